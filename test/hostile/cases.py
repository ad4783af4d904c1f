"""What a hostile file is: how to make it, and what must be said of it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, TensorProto

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import onnx_models as om  # noqa: E402
from onnx_models import node, value  # noqa: E402


@dataclass(frozen=True)
class Case:
    make: Callable[[Path], Path]
    #: class of the exit code (memplan_tools.compiler.EXIT)
    kind: str
    #: what the message says
    parts: tuple[str, ...]
    flags: tuple[str, ...] = ()


CASES: dict[str, Case] = {}


def case(kind: str, *parts: str, flags: tuple[str, ...] = ()):
    def add(make):
        name = make.__name__.removeprefix("make_")
        assert name not in CASES
        CASES[name] = Case(make, kind, parts, flags)
        return make
    return add


def file_of(folder: Path, content) -> Path:
    path = folder / "bad.onnx"
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return path


def weighted(weight: TensorProto, shape=(4,)) -> ModelProto:
    return om.model([node("Add", ["x", "w"], ["y"])], [value("x", shape)], [value("y", shape)], [weight])
