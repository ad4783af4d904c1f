"""RNN, GRU and LSTM with every attribute against ONNX Runtime, in the checked build. The cases of the ONNX backend
test-suite are in test/conformance."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from test_bad_input import refused  # noqa: F401  (a fixture)

pytestmark = pytest.mark.usefixtures("memplan_opt")

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
#: of opset 14's inputs, those after X, W and R
OPTIONAL = ["B", "sequence_lens", "initial_h", "initial_c", "P"]
ALL = tuple(OPTIONAL)


def shapes(op, length, batch, size, hidden, directions, layout=0):
    rows = GATES[op] * hidden
    state = [batch, directions, hidden] if layout else [directions, batch, hidden]
    return {"X": [batch, length, size] if layout else [length, batch, size], "W": [directions, rows, size],
            "R": [directions, rows, hidden], "B": [directions, 2 * rows], "sequence_lens": [batch], "initial_h": state,
            "initial_c": state, "P": [directions, 3 * hidden], "Y_h": state, "Y_c": state,
            "Y": [batch, length, directions, hidden] if layout else [length, directions, batch, hidden]}


def model(op, length=5, batch=3, size=4, hidden=6, optional=("B",), lengths=None, outputs=("Y", "Y_h", "Y_c"),
          constant=("W", "R", "B", "P"), opset=14, seed=0, **attributes):
    """`optional`: inputs that the node has; `lengths`: sequence_lens as a constant; `constant`: inputs that are
    initializers, the others are inputs of the model."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    sizes = shapes(op, length, batch, size, hidden, directions, attributes.get("layout", 0))
    has = ["X", "W", "R", *OPTIONAL[:5 if op == "LSTM" else 3]]
    if lengths is not None:
        optional = (*optional, "sequence_lens")
    inputs = [name if name in ("X", "W", "R", *optional) else "" for name in has]
    rng = np.random.default_rng(seed)
    initializers, given = [], []
    for name in filter(None, inputs):
        if name == "sequence_lens" and lengths is not None:
            initializers.append(om.tensor(name, np.array(lengths, np.int32)))
        elif name in constant:
            initializers.append(om.tensor(name, rng.standard_normal(sizes[name]).astype(np.float32)))
        else:
            given.append(om.value(name, sizes[name], TensorProto.INT32 if name == "sequence_lens" else om.FLOAT))
    if op != "LSTM":
        outputs = [name for name in outputs if name != "Y_c"]
    names = [name if name in outputs else "" for name in ("Y", "Y_h", "Y_c")]
    while not names[-1]:
        names.pop()
    return om.model([om.node(op, inputs, names, "cell", hidden_size=hidden, **attributes)], given,
                    [om.value(name, sizes[name]) for name in names if name], initializers, opset)


WAYS = ("forward", "reverse", "bidirectional")
CASES = {}
for op in GATES:
    for way in WAYS:
        CASES[f"{op}_{way}_plain"] = model(op, direction=way, optional=())
        CASES[f"{op}_{way}_all"] = model(op, direction=way, optional=ALL)
        CASES[f"{op}_{way}_lengths"] = model(op, direction=way, lengths=[5, 2, 1], optional=("B", "initial_h"))
        CASES[f"{op}_{way}_clip"] = model(op, direction=way, optional=ALL, clip=0.3)
    CASES[f"{op}_inputs"] = model(op, optional=ALL, constant=())
    CASES[f"{op}_opset7"] = model(op, optional=("B", "initial_h"), opset=7)
    CASES[f"{op}_opset22"] = model(op, optional=("B", "initial_h"), opset=22)
    CASES[f"{op}_one"] = model(op, length=1, batch=1, size=1, hidden=1, optional=ALL, direction="bidirectional")
    CASES[f"{op}_wide"] = model(op, length=3, batch=2, size=33, hidden=65)
    CASES[f"{op}_full_lengths"] = model(op, lengths=[5, 5, 5])
    for wanted in (("Y",), ("Y_h",), ("Y_c",), ("Y", "Y_c")):
        if op == "LSTM" or "Y_c" not in wanted:
            CASES[f"{op}_only_{'_'.join(wanted)}"] = model(op, outputs=wanted, direction="bidirectional")
for way in WAYS:
    CASES[f"GRU_{way}_linear"] = model("GRU", direction=way, optional=ALL, linear_before_reset=1)
    CASES[f"GRU_{way}_linear_clip"] = model("GRU", direction=way, linear_before_reset=1, clip=0.2)
    CASES[f"LSTM_{way}_coupled"] = model("LSTM", direction=way, optional=("B", "initial_h", "initial_c"),
                                         input_forget=1)
CASES["LSTM_coupled_peepholes"] = model("LSTM", optional=("B", "P"), input_forget=1)

ACTIVATIONS = {"Affine": (0.5, 0.25), "Relu": (), "LeakyRelu": (0.1,), "ThresholdedRelu": (0.2,), "Tanh": (),
               "ScaledTanh": (0.7, 0.9), "Sigmoid": (), "HardSigmoid": (0.3, 0.4), "Elu": (0.6,), "Softsign": (),
               "Softplus": ()}
for name, parameters in ACTIVATIONS.items():
    values = {key: [value] for key, value in zip(("activation_alpha", "activation_beta"), parameters)}
    CASES[f"RNN_{name}"] = model("RNN", activations=[name], **values)
for name in ("HardSigmoid", "LeakyRelu", "Elu"):  # of Affine, ONNX Runtime has other defaults than ONNX
    CASES[f"RNN_{name}_defaults"] = model("RNN", activations=[name])
# The parameters go, in order, to the functions that have any.
CASES["LSTM_mixed"] = model("LSTM", direction="bidirectional", optional=ALL,
                            activations=["HardSigmoid", "Tanh", "Elu", "Sigmoid", "LeakyRelu", "ScaledTanh"],
                            activation_alpha=[0.3, 0.8, 0.05, 0.9], activation_beta=[0.45, 0.7])
CASES["GRU_mixed"] = model("GRU", direction="bidirectional", activations=["hardsigmoid", "TANH", "Sigmoid", "Affine"],
                           activation_alpha=[0.3, 0.9], activation_beta=[0.45, 0.1])


def inputs_of(path):
    inputs = reference.random_inputs(path)
    if "sequence_lens" in inputs:
        length = inputs["X"].shape[0]
        inputs["sequence_lens"] = np.array([length, max(1, length - 3), max(1, length - 1)], np.int32)[:len(inputs["sequence_lens"])]
    return inputs


@pytest.fixture(scope="module")
def library(build_folder):
    folder = build_folder / "recurrent"
    folder.mkdir()
    for name, made in CASES.items():
        compiler.emit_cuda(om.write(made, folder / f"{name}.onnx"), folder / name, None, "-q")
    return host.build_together([folder / name for name in CASES], folder / "librecurrent.so", checked=True)


@pytest.mark.parametrize("name", CASES)
def test_result(library, name):
    path = library.with_name(f"{name}.onnx")
    inputs = inputs_of(path)
    with host.HostModel(library.with_name(name), library=library) as built:
        assert_close(built.run(inputs), reference.run(path, inputs))


# --- what ONNX Runtime does not have ----------------------------------------------------------------------------


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("way", WAYS)
def test_batch_first(tmp_path, quick, op, way):
    """layout=1 is the same with batch and time, or batch and direction, swapped."""
    options = dict(direction=way, optional=("B", "initial_h", "initial_c"), lengths=[5, 1, 3])
    path = om.write(model(op, layout=1, **options), tmp_path / "m.onnx")
    judge = om.write(model(op, **options), tmp_path / "judge.onnx")
    compiler.emit_cuda(path, tmp_path / "m")
    inputs = reference.random_inputs(path)
    swapped = {name: array.swapaxes(0, 1) for name, array in inputs.items()}
    want = reference.run(judge, swapped)
    want = {name: array.transpose(2, 0, 1, 3) if name == "Y" else array.swapaxes(0, 1) for name, array in want.items()}
    with host.HostModel(tmp_path / "m", **quick) as built:
        assert_close(built.run(inputs), want)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("way", WAYS)
def test_empty_sequences(tmp_path, quick, op, way):
    """A sample of no steps keeps its initial state, and its part of Y is 0; the others don't notice it."""
    options = dict(direction=way, optional=("B", "initial_h", "initial_c"))
    path = om.write(model(op, lengths=[5, 0, 2], **options), tmp_path / "m.onnx")
    compiler.emit_cuda(path, tmp_path / "m")
    inputs = reference.random_inputs(path)
    judge = om.write(model(op, batch=2, lengths=[5, 2], **options), tmp_path / "judge.onnx")
    want = reference.run(judge, {name: array[:, [0, 2]] for name, array in inputs.items()})
    with host.HostModel(tmp_path / "m", **quick) as built:
        got = built.run(inputs)
    for name in want:
        axis = 2 if name == "Y" else 1
        assert_close({name: got[name].take([0, 2], axis)}, {name: want[name]})
        empty = got[name].take(1, axis)
        assert (empty == (0 if name == "Y" else inputs[f"initial_{name[-1]}"][:, 1])).all()


def test_no_steps(tmp_path, quick):
    path = om.write(model("LSTM", length=0, optional=("B", "initial_h", "initial_c")), tmp_path / "m.onnx")
    compiler.emit_cuda(path, tmp_path / "m")
    inputs = reference.random_inputs(path)
    with host.HostModel(tmp_path / "m", **quick) as built:
        got = built.run(inputs)
    assert got["Y"].shape == (0, 1, 3, 6)
    assert (got["Y_h"] == inputs["initial_h"]).all() and (got["Y_c"] == inputs["initial_c"]).all()


def test_double(tmp_path, quick):
    made = model("RNN", constant=())
    single = om.write(made, tmp_path / "single.onnx")
    for value in [*made.graph.input, *made.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    path = om.write(made, tmp_path / "m.onnx")
    compiler.emit_cuda(path, tmp_path / "m")
    inputs = reference.random_inputs(path)
    want = reference.run(single, {name: array.astype(np.float32) for name, array in inputs.items()})
    with host.HostModel(tmp_path / "m", **quick) as built:
        assert_close(built.run(inputs), {name: array.astype(np.float64) for name, array in want.items()})


def test_nothing_is_copied_from_step_to_step(tmp_path):
    path = om.write(model("LSTM", optional=ALL, direction="bidirectional"), tmp_path / "m.onnx")
    text = compiler.run(path, "--emit=mlir-planned", "-q", "-o", "-").stdout
    for body in text.split("scf.for")[1:]:
        assert "memref.copy" not in body.split("\n    }\n")[0]


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options, parts", [
    (dict(direction="sideways"), ["sideways", "bidirectional"]),
    (dict(activations=["Tanh"]), ["activations", "1 entries", "3"]),
    (dict(activations=["Tanh", "Tanh", "Gelu"]), ["Gelu", "Sigmoid"]),
    (dict(layout=2), ["layout", "2"]),
    (dict(clip=-1.0), ["clip"]),
    (dict(lengths=[5, 6, 1]), ["sequence_lens", "6", "5"]),
    (dict(lengths=[5, -1, 1]), ["sequence_lens", "-1"]),
])
def test_refused_attributes(refused, options, parts):  # noqa: F811
    refused(model("LSTM", **options), "invalid", "cell", *parts)


@pytest.mark.parametrize("name, shape", [("R", [1, 24, 5]), ("W", [1, 23, 4]), ("B", [1, 24]), ("P", [1, 12])])
def test_refused_shapes(refused, name, shape):  # noqa: F811
    made = model("LSTM", optional=ALL)
    at = next(i for i, t in enumerate(made.graph.initializer) if t.name == name)
    made.graph.initializer[at].CopyFrom(om.tensor(name, np.zeros(shape, np.float32)))
    refused(made, "invalid", "cell", f"{name} is input", "x".join(map(str, shape)))


# --- quantized ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("weight_type, per_column, batch", [(np.int8, False, 1), (np.uint8, False, 3), (np.int8, True, 2)])
def test_dynamically_quantized_lstm(direction, weight_type, per_column, batch, tmp_path, quick):
    """Against onnxruntime: inputs and each state become integers by their own range, so that all numbers agree."""
    rng = np.random.default_rng(1)
    length, size, hidden, directions = 5, 6, 4, 2 if direction == "bidirectional" else 1
    info = np.iinfo(weight_type)
    weights = []
    for name, rows in (("W", size), ("R", hidden)):
        scale_shape = (directions, 4 * hidden) if per_column else (directions,)
        zero = np.zeros(scale_shape, weight_type) if per_column or weight_type == np.int8 else \
            rng.integers(100, 150, scale_shape).astype(weight_type)
        weights += [om.tensor(name, rng.integers(info.min, info.max, (directions, rows, 4 * hidden)).astype(weight_type)),
                    om.tensor(f"{name}s", (rng.random(scale_shape) * 0.01 + 0.002).astype(np.float32)), om.tensor(f"{name}z", zero)]
    weights.append(om.tensor("B", rng.standard_normal((directions, 8 * hidden), dtype=np.float32)))
    lstm = helper.make_node("DynamicQuantizeLSTM", ["x", "W", "R", "B", "", "h", "c", "", "Ws", "Wz", "Rs", "Rz"],
                            ["y", "yh", "yc"], domain="com.microsoft", hidden_size=hidden, direction=direction)
    shapes = {"x": (length, batch, size), "h": (directions, batch, hidden), "c": (directions, batch, hidden)}
    made = om.model([lstm], [om.value(k, s) for k, s in shapes.items()], [om.value(k, None) for k in ("y", "yh", "yc")],
                    weights, opsets=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    path = om.write(made, tmp_path / "m.onnx")
    compiler.emit_cuda(path, tmp_path / "out/m")
    inputs = {k: rng.standard_normal(s, dtype=np.float32) for k, s in shapes.items()}
    with host.HostModel(tmp_path / "out/m", **quick) as built:
        got = built.run(inputs)
    # With more threads than one, ONNX Runtime takes the ranges of parts of the batch.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    want = dict(zip(("y", "yh", "yc"), session.run(None, inputs)))
    assert_close(got, want, relative=1e-3, absolute=1e-5)
