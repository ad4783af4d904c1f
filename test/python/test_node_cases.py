"""The ONNX backend test-suite's own cases for the operators that the importer covers.

A case whose operators are all in COVERED must give the suite's expected output, unless REFUSED says why it
can't; then it must be refused loudly. Shapes, axes and the like that a case passes as inputs are made
initializers first, since compiled shapes are static.
"""

import os
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
from memplan_tools import ROOT, compiler, host
from memplan_tools.compare import difference

pytestmark = [pytest.mark.usefixtures("memplan_opt"), pytest.mark.slow]

#: the importer's tables, from which the operators are read
TABLES = sorted((ROOT / "lib/Import/ONNX").glob("*Ops.cpp"))
COVERED = frozenset(name for table in TABLES for name in re.findall(r'^ +\{"([A-Z]\w*)", \d', table.read_text(), re.M))

#: inputs that must be known when compiling, by operator and position
PARAMETERS = {"Reshape": (1,), "Unsqueeze": (1,), "Squeeze": (1,), "Slice": (1, 2, 3, 4), "Split": (1,),
              "Expand": (1,), "ConstantOfShape": (0,), "Dropout": (1, 2), "Pad": (1, 3), "Tile": (1,), "Trilu": (1,),
              "Range": (0, 1, 2), "Loop": (0, 1), "Resize": (1, 2, 3), "Upsample": (1,), "OneHot": (1,), "CumSum": (1,),
              "CumProd": (1,), "CenterCropPad": (1,), "AffineGrid": (1,), "Col2Im": (1, 2), "MaxUnpool": (2,), "TopK": (1,),
              "HannWindow": (0,), "HammingWindow": (0,), "BlackmanWindow": (0,), "DFT": (1, 2), "STFT": (1, 3),
              "MelWeightMatrix": (0, 1, 2, 3, 4), "SequenceAt": (1,), "SequenceInsert": (2,), "SequenceErase": (1,),
              "SplitToSequence": (1,)}
PARAMETERS.update({name: (1,) for name in COVERED if name.startswith("Reduce")})

#: cases in one library: more save time, up to where memory or a core's share of the work suffers
BATCH = 40

#: element types that have no kernels yet; a case with one is refused, unless folding leaves it nothing to compute
WITHOUT_KERNELS = re.compile("FLOAT16|FLOAT8|FLOAT4|U?INT[24]$|STRING")

#: their results are drawn at random, see test_data_ops.py
RANDOM = re.compile("^test_(training_dropout(_default)?(_mask)?$|bernoulli)")

#: pattern of the case's name: why it is refused
REFUSED = {
    r"^test_not_[234]d$": "a model of opset 1; memplan starts at 7",
}


def freeze(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> None:
    """Makes initializers of the inputs that PARAMETERS names; removes them from `values`."""
    used = {node.input[i] for node in model.graph.node for i in PARAMETERS.get(node.op_type, ())
            if i < len(node.input)}
    if any(node.op_type in ("Range", "Pad") for node in model.graph.node):
        # Functions written out compute a Range's ends, or pads, from their own parameters.
        used |= {name for name, array in values.items() if array.ndim <= 1 and array.dtype.kind == "i"}
    if any(node.op_type == "Loop" for node in model.graph.node):
        # Likewise a trip count.
        used |= {name for name, array in values.items() if array.ndim == 0}
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
    may_refuse: bool = False
    failure: str | None = None
    got: dict[str, np.ndarray] = field(default_factory=dict)


def array(value) -> np.ndarray:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def collect() -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases
        found = collect_testcases(None)
    cases = []
    for case in found:
        if not {node.op_type for node in case.model.graph.node} <= COVERED or not case.data_sets:
            continue
        if {node.domain for node in case.model.graph.node} - {"", "ai.onnx"} or RANDOM.search(case.name):
            continue
        values = [*case.model.graph.input, *case.model.graph.output]
        if any(not v.type.HasField("tensor_type") for v in values):
            continue
        model = onnx.ModelProto.FromString(case.model.SerializeToString())
        inputs, outputs = ({v.name: array(a) for v, a in zip(declared, data)} for declared, data in
                           zip((model.graph.input, model.graph.output), case.data_sets[0]))
        freeze(model, inputs)
        reason = next((why for pattern, why in REFUSED.items() if re.search(pattern, case.name)), None)
        types = [TensorProto.DataType.Name(v.type.tensor_type.elem_type) for v in values]
        may_refuse = any(WITHOUT_KERNELS.search(t) for t in types)
        cases.append(Case(case.name, model, inputs, outputs, reason, may_refuse))
    return cases


CASES = {case.name: case for case in collect()}


def emit(case: Case, prefix: Path) -> None:
    path = om.write(case.model, prefix.with_suffix(".onnx"))
    done = compiler.run(path, "--emit=cuda", "-q", "-o", prefix, check=False)
    if done.returncode:
        case.failure = f"exit code {done.returncode}: {done.stderr.strip()}"


def run_batch(batch: list[tuple[Case, Path]], library: Path) -> None:
    """Builds some cases as one library and runs each; what doesn't compile is tried in halves."""
    try:
        host.build_together([prefix for _, prefix in batch], library, checked=True)
    except host.HostError as error:
        if len(batch) == 1:
            batch[0][0].failure = str(error)
            return
        middle = len(batch) // 2
        run_batch(batch[:middle], library.with_name(library.stem + "a.so"))
        run_batch(batch[middle:], library.with_name(library.stem + "b.so"))
        return
    for case, prefix in batch:
        try:
            with host.HostModel(prefix, library=library) as model:
                case.got = model.run(case.inputs)
        except (host.HostError, ValueError, KeyError) as error:
            case.failure = f"{type(error).__name__}: {error}"


@pytest.fixture(scope="module")
def ran(build_folder) -> dict[str, Case]:
    """All cases, compiled and run on all cores, since most of the time goes to the host compiler."""
    folder = build_folder / "node_cases"
    folder.mkdir()
    work = [(case, folder / f"case{i}") for i, case in enumerate(CASES.values())]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda item: emit(*item), work))
        work = [item for item in work if not item[0].failure]
        batches = [work[i:i + BATCH] for i in range(0, len(work), BATCH)]
        list(pool.map(run_batch, batches, [folder / f"lib{i}.so" for i in range(len(batches))]))
    return CASES


def test_enough_cases_were_found():
    kinds = {node.op_type for case in CASES.values() for node in case.model.graph.node}
    assert len(COVERED) > 100 and len(CASES) > 1000
    uncovered = {"Adagrad", "Adam", "ArrayFeatureExtractor", "Bernoulli", "Binarizer", "ConcatFromSequence",
                 "FeatureVectorizer", "GlobalLpPool", "Imputer", "LabelEncoder", "LinearClassifier", "LinearRegressor", "MaxRoiPool", "Momentum",
                 "Multinomial", "Normalizer", "OneHotEncoder", "Optional", "RandomNormal", "RandomNormalLike",
                 "RandomUniform", "RandomUniformLike", "Scaler", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
                 "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence", "TreeEnsemble",
                 "TreeEnsembleClassifier", "TreeEnsembleRegressor"}
    assert COVERED - kinds == uncovered, "they have tests of their own"


def test_global_lp_pool(tmp_path, quick):
    made = om.model([om.node("GlobalLpPool", ["x"], ["y"], p=3)], [om.value("x", [2, 3, 4, 5])],
                    [om.value("y", [2, 3, 1, 1])])
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    want = (np.abs(x.astype(np.float64)) ** 3).sum(axis=(2, 3), keepdims=True) ** (1 / 3)
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        np.testing.assert_allclose(model.run({"x": x})["y"], want, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_case(ran, name):
    case = ran[name]
    refused = (case.failure or "").startswith(f"exit code {compiler.EXIT['unsupported']}")
    if case.reason:
        assert refused, f"want it refused ({case.reason}), got: {case.failure or 'a result'}"
        return
    if refused and case.may_refuse:
        return
    assert not case.failure, case.failure
    for key, want in case.outputs.items():
        worst = difference(case.got[key], want)
        assert worst.accepted, f"{key}: {worst}"
