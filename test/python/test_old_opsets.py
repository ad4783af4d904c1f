"""Opsets 1 to 6: the models that ONNX's test-suite has from PyTorch, and old forms of operators against numpy."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_models as om
from memplan_tools import compiler, host
from memplan_tools.compare import assert_close
from onnx_models import node, value

pytestmark = pytest.mark.usefixtures("memplan_opt")

DATA = Path(onnx.__file__).parent / "backend/test/data"
MODELS = {f.parent.name: f for kind in ("converted", "operator") for f in sorted(DATA.glob(f"pytorch-{kind}/*/model.onnx"))}

#: inputs that must be known when compiling, by operator and position
PARAMETERS = {"Reshape": 1, "Expand": 1, "Tile": 1}


def case(path: Path):
    """The model, its inputs and outputs. What must be known when compiling becomes an initializer."""
    model = onnx.load(path)

    def read(kind, declared):
        return {v.name: numpy_helper.to_array(TensorProto.FromString((path.parent / f"test_data_set_0/{kind}_{i}.pb").read_bytes()))
                for i, v in enumerate(declared) if (path.parent / f"test_data_set_0/{kind}_{i}.pb").exists()}

    inputs, outputs = read("input", model.graph.input), read("output", model.graph.output)
    frozen = {n.input[PARAMETERS[n.op_type]] for n in model.graph.node if n.op_type in PARAMETERS}
    model.graph.initializer.extend(om.tensor(name, inputs[name]) for name in frozen & inputs.keys())
    known = {t.name for t in model.graph.initializer}
    return model, {k: v for k, v in inputs.items() if k not in known}, outputs


@pytest.fixture(scope="module")
def library(build_folder):
    folder = build_folder / "old_opsets"
    folder.mkdir()
    cases = {name: case(path) for name, path in MODELS.items()}
    failures = {}

    def emit(item):
        number, (name, (model, _, _)) = item
        path = om.write(model, folder / f"m{number}.onnx")
        done = compiler.run(path, "--emit=cuda", "-q", "-o", path.with_suffix(""), check=False)
        if done.returncode:
            failures[name] = done.stderr

    with ThreadPoolExecutor() as pool:
        list(pool.map(emit, enumerate(cases.items())))
        prefixes = {name: folder / f"m{i}" for i, name in enumerate(cases) if name not in failures}
        names = list(prefixes)
        parts = {name: folder / f"lib{i // 30}.so" for i, name in enumerate(names)}
        list(pool.map(lambda lib: host.build_together([prefixes[n] for n in names if parts[n] == lib], lib, checked=True),
                      sorted(set(parts.values()))))
    return cases, failures, prefixes, parts


def test_all_models_are_there():
    assert len(MODELS) == 117


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_model(library, name):
    cases, failures, prefixes, parts = library
    assert name not in failures, failures[name]
    _, inputs, outputs = cases[name]
    with host.HostModel(prefixes[name], library=parts[name]) as model:
        assert_close(model.run(inputs), outputs)


# --- forms that those models don't have ---------------------------------------------------------------------------

RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
C = RNG.standard_normal(3).astype(np.float32) + 2
HW = RNG.standard_normal((4, 5)).astype(np.float32) + 3
CHW = RNG.standard_normal((3, 4, 5)).astype(np.float32)
ONE = np.full(1, 2.5, np.float32)
FLAGS = X > 0

OLD = {
    # name: (opset, operator, inputs, attributes, result[, constants by position])
    "add_axis": (6, "Add", [X, C], dict(broadcast=1, axis=1), X + C[:, None, None]),
    "add_axis_negative": (6, "Add", [X, HW], dict(broadcast=1, axis=-2), X + HW),
    "add_suffix": (4, "Add", [X, CHW], dict(broadcast=1), X + CHW),
    "add_one": (1, "Add", [X, ONE], dict(broadcast=1, axis=0, consumed_inputs=[0, 0]), X + 2.5),
    "sub": (6, "Sub", [X, C], dict(broadcast=1, axis=1), X - C[:, None, None]),
    "mul_first_axes": (6, "Mul", [X, X[..., 0, 0].copy()], dict(broadcast=1, axis=0), X * X[..., :1, :1]),
    "div": (1, "Div", [X, HW], dict(broadcast=1, axis=2), X / HW),
    "pow": (1, "Pow", [np.abs(X), C], dict(broadcast=1, axis=1), np.abs(X) ** C[:, None, None]),
    "greater": (1, "Greater", [X, C], dict(broadcast=1, axis=1), X > C[:, None, None]),
    "less": (1, "Less", [X, X + 1], {}, np.ones_like(FLAGS)),
    "equal": (1, "Equal", [np.arange(6).reshape(2, 3), np.array([0, 4, 2])], dict(broadcast=1),
              np.array([[True, False, True], [False, True, False]])),
    "and": (1, "And", [FLAGS, FLAGS[0, 0, 0].copy()], dict(broadcast=1), FLAGS & FLAGS[0, 0, 0]),
    "or": (1, "Or", [FLAGS, FLAGS[0, :, 0, 0].copy()], dict(broadcast=1, axis=1), FLAGS | FLAGS[0, :, :1, :1]),
    "xor": (1, "Xor", [FLAGS, FLAGS], {}, FLAGS ^ FLAGS),
    "prelu_channel": (6, "PRelu", [X, C], {}, np.where(X < 0, X * C[:, None, None], X)),
    "prelu_one": (1, "PRelu", [X, ONE], dict(consumed_inputs=[0, 0]), np.where(X < 0, X * 2.5, X)),
    "max": (1, "Max", [X, -X], dict(consumed_inputs=[0, 0]), np.abs(X)),
    "selu": (1, "Selu", [X], dict(consumed_inputs=[0]), 1.0507 * np.where(X > 0, X, 1.6732 * np.expm1(X))),
    "cast": (1, "Cast", [X * 3], dict(to="INT32"), (X * 3).astype(np.int32)),
    "cast_bool": (5, "Cast", [np.array([0, 2, 0])], dict(to="BOOL"), np.array([False, True, False])),
    "clip": (1, "Clip", [X], dict(min=-0.5, consumed_inputs=[0]), np.maximum(X, -0.5)),
    "concat": (1, "Concat", [X, X], {}, np.concatenate([X, X], 1)),
    "reshape": (1, "Reshape", [X], dict(shape=[0, -1, 5], consumed_inputs=[0]), X.reshape(2, -1, 5)),
    "pad": (1, "Pad", [HW], dict(paddings=[1, 0, 0, 2], value=1.5), np.pad(HW, [(1, 0), (0, 2)], constant_values=1.5)),
    "tile": (1, "Tile", [HW], {}, np.tile(HW, (1, 3)), {1: np.array([3]), 2: np.array([1])}),
    "upsample": (1, "Upsample", [X], dict(height_scale=2.0, width_scale=3.0), X.repeat(2, 2).repeat(3, 3)),
    "topk": (1, "TopK", [HW], dict(k=2), np.sort(HW, 1)[:, ::-1][:, :2]),
    "gemm": (6, "Gemm", [HW, HW, HW[0, :4].copy()], dict(transB=1, broadcast=1, alpha=0.5), 0.5 * HW @ HW.T + HW[0, :4]),
    "gemm_whole": (1, "Gemm", [HW, HW, HW @ HW.T], dict(transB=1, beta=2.0), 3 * (HW @ HW.T)),
    "batchnorm": (1, "BatchNormalization", [X, C, C, C, C], dict(is_test=1, consumed_inputs=[0, 0, 0, 1, 1], epsilon=0.01),
                  ((X.swapaxes(1, 3) - C) / np.sqrt(C + 0.01) * C + C).swapaxes(1, 3)),
    "dropout": (1, "Dropout", [X], dict(is_test=1), X),
    "lp_pool": (1, "LpPool", [X], dict(p=2.0, kernel_shape=[4, 5]), np.sqrt((X ** 2).sum((2, 3), keepdims=True))),
    "global_lp_pool": (1, "GlobalLpPool", [X], dict(p=1.0), np.abs(X).sum((2, 3), keepdims=True)),
    "average_pool": (1, "AveragePool", [X], dict(kernel_shape=[4, 5]), X.mean((2, 3), keepdims=True)),
    "instance_norm": (1, "InstanceNormalization", [X, C, C], dict(consumed_inputs=[0, 0, 0]),
                      (X - X.mean((2, 3), keepdims=True)) / np.sqrt(X.var((2, 3), keepdims=True) + 1e-5)
                      * C[:, None, None] + C[:, None, None]),
    "softmax": (1, "Softmax", [HW], {}, np.exp(HW) / np.exp(HW).sum(1, keepdims=True)),
    "split": (1, "Split", [HW], dict(axis=1), HW[:, :2], {1: np.array([2, 3])}),
}


def old_model(opset, kind, inputs, attributes, constants=None):
    constants = constants or {}
    names = [f"x{i}" for i in range(len(inputs) + len(constants))]
    given = dict(zip([n for i, n in enumerate(names) if i not in constants], inputs))
    outputs = 2 if kind in ("Split", "TopK") else 1
    made = om.model([node(kind, names, [f"y{i}" for i in range(outputs)], "tested", **attributes)],
                    [value(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)) for n, a in given.items()], [],
                    [om.tensor(f"x{i}", c) for i, c in constants.items()], opset)
    for i in range(outputs):
        made.graph.output.append(onnx.ValueInfoProto(name=f"y{i}"))
    return made, given


@pytest.fixture(scope="module")
def old_library(build_folder):
    folder = build_folder / "old_forms"
    folder.mkdir()
    prefixes = []
    for name, (opset, kind, inputs, attributes, _, *constants) in OLD.items():
        made, _ = old_model(opset, kind, inputs, attributes, *constants)
        path = om.write(made, folder / f"old_{name}.onnx")
        compiler.run(path, "--emit=cuda", "-q", "-o", path.with_suffix(""))
        prefixes.append(path.with_suffix(""))
    host.build_together(prefixes, folder / "all.so", checked=True)
    return folder


@pytest.mark.parametrize("name", OLD)
def test_old_form(old_library, name):
    opset, kind, inputs, attributes, want, *constants = OLD[name]
    _, given = old_model(opset, kind, inputs, attributes, *constants)
    with host.HostModel(old_library / f"old_{name}", library=old_library / "all.so") as model:
        got = model.run(given)["y0"]
    assert got.dtype == want.dtype or got.dtype == np.float32
    assert_close({"y": got}, {"y": want.astype(got.dtype)})


@pytest.mark.parametrize("opset,kind,inputs,attributes,part", [
    (6, "Add", [X, C], {}, "'broadcast' = 0"),
    (6, "Add", [X, C], dict(broadcast=1), "does not broadcast"),
    (6, "Add", [X, HW], dict(broadcast=1, axis=3), "does not broadcast"),
    (6, "Max", [X, X], dict(broadcast=1), "'broadcast' is not one of this operator's"),
    (6, "Relu", [X], dict(consumed_inputs=[0]), "'consumed_inputs' is not one of this operator's"),
    (6, "BatchNormalization", [X, C, C, C, C], {}, "'is_test' is 0"),
    (6, "Dropout", [X], {}, "'is_test' is 0"),
    (6, "Gemm", [HW, HW, HW[0, :4].copy()], dict(transB=1), "'broadcast' is 0"),
    (1, "Cast", [X], dict(to="REAL"), "'to' is 'REAL'"),
    (1, "LpPool", [X], dict(p=1.5, kernel_shape=[1, 1]), "'p' is 1.5"),
])
def test_refused(tmp_path, opset, kind, inputs, attributes, part):
    made, _ = old_model(opset, kind, inputs, attributes)
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "out/m", check=False)
    assert done.returncode in (compiler.EXIT["unsupported"], compiler.EXIT["invalid"]), done.stderr
    assert "node 'tested'" in done.stderr and part in done.stderr
