"""Makes the packages under python/ importable and shares what tests build."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from memplan_tools import compiler, host  # noqa: E402


@pytest.fixture(scope="session")
def build_folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("build")


@pytest.fixture(scope="session")
def quick(build_folder) -> dict:
    """Arguments of HostModel for small models: checked, and built in the least time."""
    folder = build_folder / "quick"
    host.precompile_runtime(folder, checked=True, flags=("-O0",))
    return {"checked": True, "flags": ("-O0",), "precompiled": folder}


@pytest.fixture(scope="session")
def memplan_opt() -> Path:
    """The compiler; a missing one is an error, never a skip."""
    return compiler.tool()
