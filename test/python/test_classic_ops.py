"""Preprocessing, linear models and trees of ai.onnx.ml: against onnxruntime."""

import numpy as np
import onnx_models as om
import pytest
from memplan_tools import compiler, host
from onnx import helper

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("memplan_opt")

INT64, DOUBLE = om.INT64, om.TensorProto.DOUBLE


def ml(kind, inputs, **attributes):
    return helper.make_node(kind, inputs, ["y"], domain="ai.onnx.ml", **attributes)


@pytest.fixture
def check(tmp_path, quick):
    def check(node, values, shape, dtype=om.FLOAT, ml_opset=3, rtol=1e-5):
        inputs = [om.value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in values.items()]
        made = om.model([node], inputs, [om.value("y", shape, dtype)],
                        opsets=[om.helper.make_opsetid("", 17), om.helper.make_opsetid("ai.onnx.ml", ml_opset)])
        session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        want = session.run(None, values)[0]
        compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "m")
        with host.HostModel(tmp_path / "m", **quick) as model:
            got = model.run(values)["y"]
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-6)

    return check


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_binarizer(check):
    check(ml("Binarizer", ["x"], threshold=0.25), {"x": numbers(4, 5)}, [4, 5])


@pytest.mark.parametrize("offset, scale", [([0.5], [2.0]), ([1.0, 2.0, 3.0], [1.0, 0.5, 4.0])])
def test_scaler(check, offset, scale):
    check(ml("Scaler", ["x"], offset=offset, scale=scale), {"x": numbers(4, 3)}, [4, 3])

@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(check, norm):
    x = numbers(5, 7)
    x[2] = 0
    check(ml("Normalizer", ["x"], norm=norm), {"x": x}, [5, 7])


def test_imputer(check):
    x = numbers(4, 3)
    x[1, 2] = x[3, 0] = np.nan
    check(ml("Imputer", ["x"], imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan")), {"x": x}, [4, 3])


def test_imputer_of_integers(check):
    x = np.array([[1, 7, 2], [7, 7, 0]], np.int64)
    check(ml("Imputer", ["x"], imputed_value_int64s=[5], replaced_value_int64=7), {"x": x}, [2, 3], INT64)


def test_features(check):
    check(ml("ArrayFeatureExtractor", ["x", "at"]), {"x": numbers(3, 2, 6), "at": np.array([[5, 0, 2]])}, [3, 2, 3])

def test_feature_vectorizer(check):
    check(ml("FeatureVectorizer", ["a", "b"], inputdimensions=[2, 3]), {"a": numbers(4, 2), "b": numbers(4, 3)}, [4, 5])


def test_one_hot(check):
    check(ml("OneHotEncoder", ["x"], cats_int64s=[3, -1, 8], zeros=1), {"x": np.array([8, 3, 4, -1])}, [4, 3])


@pytest.mark.parametrize("keys, values", [
    ({"keys_int64s": [5, -3, 9]}, {"values_floats": [0.5, 1.5, 2.5], "default_float": -7.0}),
    ({"keys_floats": [1.0, float("nan"), 0.5]}, {"values_int64s": [10, 20, 30], "default_int64": -5}),
    ({"keys_int64s": [4, 2]}, {"values_int64s": [1, 2]}),
])
def test_label_encoder(check, keys, values):
    x = np.array([5, 9, 1, -3, 2, 4]) if "keys_int64s" in keys else np.array([0.5, np.nan, 2, 1], np.float32)
    check(ml("LabelEncoder", ["x"], **keys, **values), {"x": x}, [len(x)], om.FLOAT if "values_floats" in values else INT64, 4)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_regressor(check, transform):
    check(ml("LinearRegressor", ["x"], coefficients=numbers(12, seed=1).tolist(), intercepts=numbers(3, seed=2).tolist(), targets=3,
             post_transform=transform), {"x": numbers(5, 4)}, [5, 3])


def random_trees(seed, modes, trees=7, features=4, targets=3):
    """Attributes of trees of up to 5 levels, in the older form; leaves may speak of several targets."""
    r = np.random.default_rng(seed)
    nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                                 "missing_value_tracks_true")}
    leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}

    def add(tree, depth, count):
        number = count[0]
        count[0] += 1
        at = len(nodes["nodeids"])
        is_leaf = depth == 5 or (depth > 0 and r.uniform() < 0.25)
        for key, value in (("treeids", tree), ("nodeids", number), ("featureids", int(r.integers(features))),
                           ("values", float(np.round(r.standard_normal(), 1))), ("modes", "LEAF" if is_leaf else str(r.choice(modes))),
                           ("truenodeids", 0), ("falsenodeids", 0), ("missing_value_tracks_true", int(r.integers(2)))):
            nodes[key].append(value)
        if is_leaf:
            for target in r.choice(targets, int(r.integers(1, 3)), replace=False):
                for key, value in (("treeids", tree), ("nodeids", number), ("ids", int(target)), ("weights", float(r.standard_normal()))):
                    leaves[key].append(value)
        else:
            nodes["truenodeids"][at] = add(tree, depth + 1, count)
            nodes["falsenodeids"][at] = add(tree, depth + 1, count)
        return number

    for tree in range(trees):
        add(tree, 0, [0])
    return {**{f"nodes_{key}": value for key, value in nodes.items()}, **{f"target_{key}": value for key, value in leaves.items()}}


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("modes", [["BRANCH_LEQ"], ["BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ"]])
def test_trees(check, aggregate, modes):
    x = np.round(numbers(60, 4), 1)
    x[5, 1] = x[7, 3] = np.nan
    check(ml("TreeEnsembleRegressor", ["x"], n_targets=3, aggregate_function=aggregate, **random_trees(3, modes)), {"x": x}, [60, 3],
          rtol=1e-4)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX"])
@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_classifiers(tmp_path, quick, kind, transform):
    if kind == "linear":
        attributes = {"coefficients": numbers(12, seed=1).tolist(), "intercepts": numbers(3, seed=2).tolist(),
                      "classlabels_ints": [7, -2, 5], "multi_class": 1}
    else:
        trees = random_trees(4, ["BRANCH_LEQ"])
        attributes = {key.replace("target_", "class_"): value for key, value in trees.items()}
        attributes["classlabels_int64s"] = [7, -2, 5]
    node = helper.make_node("LinearClassifier" if kind == "linear" else "TreeEnsembleClassifier", ["x"], ["label", "score"],
                            domain="ai.onnx.ml", post_transform=transform, **attributes)
    made = om.model([node], [om.value("x", [40, 4])], [om.value("label", [40], INT64), om.value("score", [40, 3])],
                    opsets=[om.helper.make_opsetid("", 17), om.helper.make_opsetid("ai.onnx.ml", 3 if kind == "trees" else 1)])
    x = numbers(40, 4)
    want = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "m")
    with host.HostModel(tmp_path / "m", **quick) as model:
        got = model.run({"x": x})
    np.testing.assert_array_equal(got["label"], want[0])
    np.testing.assert_allclose(got["score"], want[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("node, code, message", [
    (ml("LabelEncoder", ["x"], keys_strings=["a"], values_floats=[1.0]), "unsupported", "'keys_int64s'"),
    (ml("Scaler", ["x"], offset=[1.0, 2.0], scale=[1.0]), "invalid", "attribute 'offset' has 2 entries"),
    (ml("LinearRegressor", ["x"], coefficients=[1.0]), "invalid", "do not fit 1 targets"),
    (ml("TreeEnsembleRegressor", ["x"], n_targets=1, nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], nodes_values=[0.0],
        nodes_modes=["BRANCH_LEQ"], nodes_truenodeids=[0], nodes_falsenodeids=[0]), "invalid", "is reached twice"),
    (ml("TreeEnsembleRegressor", ["x"], n_targets=1, nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], nodes_values=[0.0],
        nodes_modes=["BRANCH_LEQ"], nodes_truenodeids=[0], nodes_falsenodeids=[7]), "invalid", "does not exist"),
])
def test_errors(tmp_path, node, code, message):
    made = om.model([node], [om.value("x", [2, 3])], [om.value("y", None)],
                    opsets=[om.helper.make_opsetid("", 17), om.helper.make_opsetid("ai.onnx.ml", 3)])
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "m", check=False)
    assert done.returncode == compiler.EXIT[code] and message in done.stderr, done.stderr
