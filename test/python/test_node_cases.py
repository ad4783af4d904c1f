"""The ONNX backend test-suite's own cases for the operators that the importer covers.

A case whose operators are all in COVERED must give the suite's expected output, unless REFUSED says why it
can't; then it must be refused loudly. Shapes, axes and the like that a case passes as inputs are made
initializers first, since compiled shapes are static.
"""

import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import onnx_models as om
from memplan_tools import compiler, host
from memplan_tools.compare import difference

pytestmark = [pytest.mark.usefixtures("memplan_opt"), pytest.mark.slow]

COVERED = frozenset("""
    Abs Add AveragePool BatchNormalization Clip Concat Constant ConstantOfShape Conv Div Dropout Erf Exp Expand Flatten
    Gather Gelu Gemm GlobalAveragePool GlobalMaxPool Identity LRN LayerNormalization Log LogSoftmax MatMul Max MaxPool
    Min Mul Neg Pow ReduceMean Relu Reshape Shape Sigmoid Slice Softmax Split Sqrt Squeeze Sub Sum Tanh Transpose
    Unsqueeze
""".split())

#: inputs that must be known when compiling, by operator and position
PARAMETERS = {"Reshape": (1,), "Unsqueeze": (1,), "Squeeze": (1,), "Slice": (1, 2, 3, 4), "Split": (1,),
              "Expand": (1,), "ConstantOfShape": (0,), "ReduceMean": (1,), "Dropout": (1, 2)}

TYPES = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)

#: pattern of the case's name: why it is refused
REFUSED = {
    r"^test_training_dropout(_default)?(_mask)?$": "training mode drops at random",
}


def freeze(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> None:
    """Makes initializers of the inputs that PARAMETERS names; removes them from `values`."""
    used = {node.input[i] for node in model.graph.node for i in PARAMETERS.get(node.op_type, ())
            if i < len(node.input)}
    for value in list(model.graph.input):
        if value.name in used:
            model.graph.input.remove(value)
            model.graph.initializer.append(om.tensor(value.name, values.pop(value.name)))


@dataclass
class Case:
    name: str
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    reason: str | None = None
    failure: str | None = None
    got: dict[str, np.ndarray] = field(default_factory=dict)


def collect() -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        found = collect_testcases(None)
    cases = []
    for case in found:
        if not {node.op_type for node in case.model.graph.node} <= COVERED or not case.data_sets:
            continue
        if {node.domain for node in case.model.graph.node} - {"", "ai.onnx"}:
            continue
        values = [*case.model.graph.input, *case.model.graph.output]
        if any(not v.type.HasField("tensor_type") or v.type.tensor_type.elem_type not in TYPES for v in values):
            continue
        model = onnx.ModelProto.FromString(case.model.SerializeToString())
        inputs = {v.name: np.asarray(a) for v, a in zip(model.graph.input, case.data_sets[0][0])}
        outputs = {v.name: np.asarray(a) for v, a in zip(model.graph.output, case.data_sets[0][1])}
        freeze(model, inputs)
        reason = next((why for pattern, why in REFUSED.items() if re.search(pattern, case.name)), None)
        cases.append(Case(case.name, model, inputs, outputs, reason))
    return cases


CASES = {case.name: case for case in collect()}


def compile_and_run(case: Case, folder: Path) -> None:
    folder.mkdir()
    path = om.write(case.model, folder / "m.onnx")
    done = compiler.run(path, "--emit=cuda", "-q", "-o", folder / "m", check=False)
    if done.returncode:
        case.failure = f"exit code {done.returncode}: {done.stderr.strip()}"
        return
    try:
        with host.HostModel(folder / "m", checked=True, flags=("-O0",), precompiled=folder.parent / "pch") as model:
            case.got = model.run(case.inputs)
    except (host.HostError, ValueError) as error:
        case.failure = str(error)


@pytest.fixture(scope="module")
def ran(build_folder) -> dict[str, Case]:
    """All cases, compiled and run on all cores, since most of the time goes to the host compiler."""
    folder = build_folder / "node_cases"
    folder.mkdir()
    host.precompile_runtime(folder / "pch", checked=True, flags=("-O0",))
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda case: compile_and_run(case, folder / case.name), CASES.values()))
    return CASES


def test_enough_cases_were_found():
    kinds = {node.op_type for case in CASES.values() for node in case.model.graph.node}
    assert len(CASES) > 200 and COVERED - kinds == set(), COVERED - kinds


@pytest.mark.parametrize("name", CASES)
def test_case(ran, name):
    case = ran[name]
    if case.reason:
        assert case.failure and case.failure.startswith(f"exit code {compiler.EXIT['unsupported']}"), \
            f"want it refused ({case.reason}), got: {case.failure or 'a result'}"
        return
    assert not case.failure, case.failure
    for key, want in case.outputs.items():
        worst = difference(case.got[key], want)
        assert worst.accepted, f"{key}: {worst}"
