"""The cases of onnx.backend.test, all kinds in one form: a model, and inputs with the outputs they must give."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

#: kinds in the suite's own words; the models of "real" are kept as "light" ones in the package
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")

#: an input or output: a tensor, the tensors of a sequence, or None for an optional that is absent
Value = np.ndarray | list | None


@dataclass
class DataSet:
    inputs: dict[str, Value]
    outputs: dict[str, Value]


@dataclass
class Case:
    name: str
    kind: str
    model: onnx.ModelProto
    data_sets: list[DataSet]
    rtol: float
    atol: float
    operators: list[str] = field(default_factory=list)

    def __post_init__(self):
        domains = [(n.domain if n.domain != "ai.onnx" else "", n.op_type) for n in self.model.graph.node]
        self.operators = sorted({f"{domain}.{op}".lstrip(".") for domain, op in domains})


def _plain(value) -> Value:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value if value is None else np.asarray(value)


def _given(model: onnx.ModelProto) -> list[str]:
    initialized = {t.name for t in model.graph.initializer}
    return [v.name for v in model.graph.input if v.name not in initialized]


def _data_set(model: onnx.ModelProto, inputs, outputs) -> DataSet:
    # Weights of old models are inputs that may or may not have a file.
    names = [v.name for v in model.graph.input] if len(inputs) > len(_given(model)) else _given(model)
    return DataSet(dict(zip(names, map(_plain, inputs))),
                   dict(zip((v.name for v in model.graph.output), map(_plain, outputs))))


def _load(path: Path, kind: onnx.TypeProto):
    which = kind.WhichOneof("value")
    proto = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(which, onnx.TensorProto)()
    proto.ParseFromString(path.read_bytes())
    return proto


def _in_folder(folder: Path, model: onnx.ModelProto) -> list[DataSet]:
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        values = [[], []]
        for which, declared in enumerate((model.graph.input, model.graph.output)):
            for i, value in enumerate(declared):
                path = data / f"{('input', 'output')[which]}_{i}.pb"
                if path.exists():
                    values[which].append(_load(path, value.type))
        sets.append(_data_set(model, *values))
    return sets


def _light(path: Path) -> tuple[onnx.ModelProto, list[DataSet]]:
    """A model whose weights are made by its own nodes; the input is that of the suite's runner."""
    from onnx.backend.test.runner import Runner

    model = onnx.load(path)
    given = set(_given(model))
    inputs = {v.name: Runner.generate_dummy_data(v) for v in model.graph.input if v.name in given}
    outputs = {v.name: _plain(_load(path.with_name(f"{path.stem}_output_{i}.pb"), v.type))
               for i, v in enumerate(model.graph.output)}
    return model, [DataSet(inputs, outputs)]


def _normal(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.SerializeToString())


def load(kinds=KINDS) -> list[Case]:
    """All cases in the suite's order."""
    from onnx.backend.test.case.node import collect_testcases
    from onnx.backend.test.loader import load_model_tests

    cases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "node" in kinds:
            for case in collect_testcases(None):
                model = _normal(case.model)
                sets = [_data_set(model, i, o) for i, o in case.data_sets or []]
                cases.append(Case(case.name, "node", model, sets, case.rtol, case.atol))
        for kind in KINDS[1:4]:
            for case in load_model_tests(kind=kind) if kind in kinds else []:
                folder = Path(case.model_dir)
                model = onnx.load(folder / "model.onnx")
                cases.append(Case(case.name, kind, model, _in_folder(folder, model), case.rtol, case.atol))
        if "light" in kinds:
            root = Path(onnx.__file__).parent.parent
            for case in load_model_tests(kind="real"):
                if case.url.startswith("onnx/backend/test/data/light/"):
                    cases.append(Case(case.name, "light", *_light(root / case.url), case.rtol, case.atol))
    return cases
