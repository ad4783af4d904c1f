"""Results whose size depends on data: against onnxruntime, which gives them in their true shape."""

import numpy as np
import onnx_models as om
import pytest
from memplan_tools import compiler, host

ort = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("memplan_opt")

BOOL, INT64 = om.TensorProto.BOOL, om.INT64


def reference(model, values):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, values)))


@pytest.fixture
def check(tmp_path, quick):
    """Compiles a model once and compares it with onnxruntime for each of some inputs."""

    def check(nodes, inputs, outputs, runs, initializers=(), opset=17):
        model = om.model(nodes, inputs, [om.value(name, shape, dtype) for name, shape, dtype in outputs], initializers, opset)
        compiler.emit_cuda(om.write(model, tmp_path / "m.onnx"), tmp_path / "out/m")
        with host.HostModel(tmp_path / "out/m", **quick) as compiled:
            for values in runs:
                want, got = reference(model, values), compiled.run(values)
                for name in want:
                    assert got[name].shape == want[name].shape, name
                    np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-6, err_msg=name)
        return (tmp_path / "out/m.h").read_text(), (tmp_path / "out/m.cu").read_text()

    return check


def boxes_and_scores(seed, batch=2, count=50, classes=3):
    r = np.random.default_rng(seed)
    corner = r.uniform(0, 10, (batch, count, 2)).astype(np.float32)
    size = r.uniform(0.5, 4, (batch, count, 2)).astype(np.float32)
    # Scores on a grid: some are equal.
    scores = np.round(r.uniform(0, 1, (batch, classes, count)), 2).astype(np.float32)
    return {"boxes": np.concatenate([corner, corner + size], -1), "scores": scores}


def detector():
    """Suppression, then a row for each detection: box, score and class."""
    nodes = [om.node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["chosen"]),
             om.node("Slice", ["chosen", "0", "1", "axis1"], ["batch"]), om.node("Slice", ["chosen", "1", "2", "axis1"], ["class"]),
             om.node("Slice", ["chosen", "2", "3", "axis1"], ["box"]),
             om.node("Concat", ["batch", "box"], ["at"], axis=1), om.node("GatherND", ["boxes", "at"], ["picked"]),
             om.node("GatherND", ["scores", "chosen"], ["score"]), om.node("Unsqueeze", ["score", "axis1"], ["scores1"]),
             om.node("Cast", ["class"], ["classf"], to=om.FLOAT),
             om.node("Concat", ["picked", "scores1", "classf"], ["rows"], axis=1)]
    constants = [om.tensor("most", np.int64(7)), om.tensor("overlap", np.float32(0.3)), om.tensor("least", np.float32(0.4)),
                 om.tensor("axis1", np.array([1])), *(om.tensor(str(i), np.array([i])) for i in range(4))]
    return nodes, constants


def test_a_detector(check):
    nodes, constants = detector()
    runs = [boxes_and_scores(seed) for seed in range(3)]
    runs.append({**runs[0], "scores": np.zeros_like(runs[0]["scores"])})  # nothing is found
    header, source = check(nodes, [om.value("boxes", [2, 50, 4]), om.value("scores", [2, 3, 50])],
                           [("rows", ["n", 6], om.FLOAT), ("chosen", ["n", 3], INT64)], runs, constants)
    # 2 batches of 3 classes of at most 7 boxes.
    assert "rows: f32[42, 6]; the run tells the extent of dim 0" in header
    assert "m_output_shape(m_t *model, size_t output, int64_t *dims," in header
    assert "num_readbacks" not in header, "a known number of boxes needs no value from the device"
    assert "kRunBytes" in source


def test_boxes_are_filtered_before(check):
    """Boxes of low score go first: how many are left, and how many of these are chosen, the run tells."""
    nodes = [om.node("Greater", ["score", "least"], ["good"]), om.node("NonZero", ["good"], ["at"]), om.node("Squeeze", ["at", "axis0"], ["kept"]),
             om.node("Gather", ["boxes", "kept"], ["some"]), om.node("Gather", ["score", "kept"], ["high"]),
             om.node("Unsqueeze", ["some", "axis0"], ["some1"]), om.node("Unsqueeze", ["high", "axes01"], ["high2"]),
             om.node("NonMaxSuppression", ["some1", "high2", "most", "overlap"], ["chosen"]),
             om.node("Gather", ["chosen", "two"], ["picks"], axis=1), om.node("Slice", ["picks", "axis0", "ten"], ["first"]),
             om.node("Gather", ["some", "first"], ["result"]), om.node("Relu", ["result"], ["y"]), om.node("Shape", ["y"], ["shape"])]
    constants = [om.tensor("least", np.float32(0.5)), om.tensor("axis0", np.array([0])), om.tensor("axes01", np.array([0, 1])),
                 om.tensor("most", np.int64(30)), om.tensor("overlap", np.float32(0.4)), om.tensor("two", np.int64(2)),
                 om.tensor("ten", np.array([10]))]
    runs = [{"boxes": v["boxes"][0], "score": v["scores"][0, 0]} for v in (boxes_and_scores(seed, 1, 60, 1) for seed in range(3))]
    runs.append({**runs[0], "score": np.zeros(60, np.float32)})
    check(nodes, [om.value("boxes", [60, 4]), om.value("score", [60])], [("y", ["n", 4], om.FLOAT), ("shape", [2], INT64)], runs, constants)


def test_indices_count_from_the_runs_end(check):
    """The last element is the last that there is, not the last of the bound."""
    r = np.random.default_rng(6)
    x = r.standard_normal((7, 4)).astype(np.float32)
    nodes = [om.node("Compress", ["x", "c"], ["y"], axis=0), om.node("Gather", ["y", "i"], ["z"]),
             om.node("GatherElements", ["y", "j"], ["w"], axis=0), om.node("Gather", ["y", "last"], ["l"])]
    runs = [{"x": x, "c": np.arange(7) < 4, "i": np.array([-1, 0, -4]), "j": np.array([[-1, 3, -2, 0]])},
            {"x": x, "c": np.arange(7) > 4, "i": np.array([-1, 0, -2]), "j": np.array([[-1, 1, -2, 0]])}]
    check(nodes, [om.value("x", [7, 4]), om.value("c", [7], BOOL), om.value("i", [3], INT64), om.value("j", [1, 4], INT64)],
          [("z", [3, 4], om.FLOAT), ("w", [1, 4], om.FLOAT), ("l", [4], om.FLOAT)], runs, [om.tensor("last", np.int64(-1))])


def test_choices_among_choices(check):
    nodes = [om.node("Compress", ["x", "c"], ["y"], axis=0), om.node("Greater", ["y", "zero"], ["p"]),
             om.node("NonZero", ["p"], ["at"]), om.node("Compress", ["y", "d"], ["z"], axis=1),
             om.node("ReduceMax", ["y"], ["most"], axes=[1], keepdims=0), om.node("Greater", ["most", "zero"], ["q"]),
             om.node("Compress", ["y", "q"], ["w"], axis=0), om.node("LayerNormalization", ["w", "scale"], ["norm"]),
             om.node("Dropout", ["norm"], ["same"])]
    r = np.random.default_rng(5)
    runs = [{"x": r.standard_normal((7, 4)).astype(np.float32) - 0.5, "c": r.uniform(size=7) < p, "d": r.uniform(size=4) < p}
            for p in (0, .3, .6, 1)]
    check(nodes, [om.value("x", [7, 4]), om.value("c", [7], BOOL), om.value("d", [4], BOOL)],
          [("at", [2, "k"], INT64), ("z", ["n", "m"], om.FLOAT), ("same", ["l", 4], om.FLOAT)], runs,
          [om.tensor("zero", np.float32(0)), om.tensor("scale", np.ones(4, np.float32))])


@pytest.mark.parametrize("center", [0, 1])
def test_suppression_by_inputs(check, center):
    """Thresholds, and the number of boxes, of the run."""
    inputs = [om.value("boxes", [2, 50, 4]), om.value("scores", [2, 3, 50]), om.value("most", [1], INT64),
              om.value("overlap", [1]), om.value("least", [1])]
    runs = [{**boxes_and_scores(seed), "most": np.array([most]), "overlap": np.array([overlap], np.float32),
             "least": np.array([least], np.float32)}
            for seed, most, overlap, least in ((0, 5, .5, .2), (1, 100, .1, .0), (2, 0, .5, .5), (3, 1, .9, .9))]
    if center:
        for run in runs:
            low, high = np.split(run["boxes"], 2, axis=-1)
            run["boxes"] = np.concatenate([(low + high) / 2, high - low], -1).astype(np.float32)
    check([om.node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["y"], center_point_box=center)],
          inputs, [("y", ["n", 3], INT64)], runs)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 1, 4)])
def test_nonzero(check, shape):
    r = np.random.default_rng(0)
    runs = [{"x": (r.uniform(size=shape) < p).astype(np.float32)} for p in (0.0, 0.4, 1.0)]
    check([om.node("NonZero", ["x"], ["y"]), om.node("Transpose", ["y"], ["t"]), om.node("GatherND", ["x", "t"], ["z"]),
           om.node("ReduceSum", ["z"], ["sum"], keepdims=0), om.node("Shape", ["t"], ["shape"])], [om.value("x", shape)],
          [("y", [len(shape), "n"], INT64), ("z", ["n"], om.FLOAT), ("sum", [], om.FLOAT), ("shape", [2], INT64)], runs)


def test_views(check):
    """Also where the bound is 1, as are other dims."""
    r = np.random.default_rng(7)
    nodes = [om.node("Compress", ["x", "c"], ["y"], axis=0), om.node("Reshape", ["y", "a"], ["p"]), om.node("Reshape", ["y", "b"], ["q"]),
             om.node("Flatten", ["q"], ["f"]), om.node("Compress", ["one", "d"], ["u"], axis=0), om.node("Reshape", ["u", "a"], ["v"]),
             om.node("Unsqueeze", ["u", "zero"], ["w"]), om.node("Flatten", ["w"], ["g"], axis=2)]
    check(nodes, [om.value("x", [5, 4]), om.value("c", [5], BOOL), om.value("one", [1, 4]), om.value("d", [1], BOOL)],
          [("p", ["n", 1, 4], om.FLOAT), ("q", ["n", 2, 2], om.FLOAT), ("f", ["n", 4], om.FLOAT), ("v", ["m", 1, 4], om.FLOAT),
           ("g", ["m", 4], om.FLOAT)],
          [{"x": r.standard_normal((5, 4)).astype(np.float32), "c": r.uniform(size=5) < p, "one": np.ones((1, 4), np.float32),
            "d": np.array([p > 0.5])} for p in (0, .6, 1)],
          [om.tensor("a", np.array([-1, 1, 4])), om.tensor("b", np.array([0, 2, 2])), om.tensor("zero", np.array([0]))])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(check, axis):
    r = np.random.default_rng(1)
    x = r.standard_normal((4, 6, 3)).astype(np.float32)
    length = {None: 20, 0: 4, 1: 5, -1: 3}[axis]
    runs = [{"x": x, "c": r.uniform(size=length) < p} for p in (0.0, 0.5, 1.0)]
    shape = [4, 6, 3] if axis is not None else [72]
    shape[axis or 0] = "n"
    check([om.node("Compress", ["x", "c"], ["y"], **({} if axis is None else {"axis": axis})), om.node("Exp", ["y"], ["z"]),
           om.node("Add", ["y", "z"], ["w"])], [om.value("x", x.shape), om.value("c", [length], BOOL)],
          [("y", shape, om.FLOAT), ("w", shape, om.FLOAT)], runs)


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.int8])
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(check, kind, is_sorted, axis):
    r = np.random.default_rng(2)
    runs = [{"x": r.integers(0, most, (12, 4)).astype(kind)} for most in (1, 3, 50)]
    if axis is not None:
        runs.append({"x": np.take(runs[1]["x"], r.integers(0, 4, runs[1]["x"].shape[axis]), axis)})
    shape = ["n"] if axis is None else ["n", 4] if axis == 0 else [12, "n"]
    dtype = om.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    check([om.node("Unique", ["x"], ["y", "first", "inverse", "counts"], sorted=is_sorted,
                   **({} if axis is None else {"axis": axis}))], [om.value("x", [12, 4], dtype)],
          [("y", shape, dtype), ("first", ["n"], INT64), ("inverse", ["m"], INT64), ("counts", ["n"], INT64)], runs)


def test_unique_of_many(check):
    """Longer than what is ranked by counting."""
    r = np.random.default_rng(3)
    check([om.node("Unique", ["x"], ["y", "first", "inverse", "counts"])], [om.value("x", [3000])],
          [("y", ["n"], om.FLOAT), ("first", ["n"], INT64), ("inverse", [3000], INT64), ("counts", ["n"], INT64)],
          [{"x": np.round(r.standard_normal(3000) * scale).astype(np.float32)} for scale in (1, 1000)])


def test_parts_of_the_run_are_joined(check):
    """Parts of two origins one after another; a slice of the first few; reductions see no more than there is."""
    r = np.random.default_rng(4)
    nodes = [om.node("Compress", ["x", "c"], ["a"], axis=0), om.node("Compress", ["x", "d"], ["b"], axis=0),
             om.node("Concat", ["a", "x", "b"], ["joined"], axis=0), om.node("Slice", ["joined", "start", "end", "zero"], ["few"]),
             om.node("ReduceMax", ["few"], ["most"], axes=[0], keepdims=0), om.node("ReduceSum", ["joined", "zero"], ["sum"]),
             om.node("ArgMin", ["joined"], ["least"], axis=0), om.node("MatMul", ["joined", "w"], ["product"]),
             om.node("Softmax", ["product"], ["soft"], axis=1), om.node("Size", ["joined"], ["size"])]
    runs = [{"x": r.standard_normal((6, 5)).astype(np.float32), "c": r.uniform(size=6) < p, "d": r.uniform(size=6) < q}
            for p, q in ((0, 0), (0, 1), (1, 0), (.5, .5), (.3, .7))]
    constants = [om.tensor("start", np.array([2])), om.tensor("end", np.array([9])), om.tensor("zero", np.array([0])),
                 om.tensor("w", r.standard_normal((5, 3)).astype(np.float32))]
    check(nodes, [om.value("x", [6, 5]), om.value("c", [6], BOOL), om.value("d", [6], BOOL)],
          [("joined", ["n", 5], om.FLOAT), ("few", ["m", 5], om.FLOAT), ("most", [5], om.FLOAT), ("sum", [1, 5], om.FLOAT),
           ("least", [1, 5], INT64), ("soft", ["n", 3], om.FLOAT), ("size", [], INT64)], runs, constants)


def test_what_is_known_has_its_true_shape(tmp_path, quick):
    """Indices of a constant are a constant: nothing of the run about it."""
    mask = np.array([[1, 0, 1], [0, 0, 1]], np.float32)
    nodes = [om.node("NonZero", ["mask"], ["at"]), om.node("Transpose", ["at"], ["rows"]), om.node("GatherND", ["x", "rows"], ["y"])]
    made = om.model(nodes, [om.value("x", [2, 3])], [om.value("y", [3])], [om.tensor("mask", mask)])
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    assert "output_shape" not in (tmp_path / "out/m.h").read_text()
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        np.testing.assert_array_equal(model.run({"x": np.arange(6, dtype=np.float32).reshape(2, 3)})["y"], [0, 2, 5])


@pytest.mark.parametrize("node, message", [
    (om.node("CumSum", ["y", "zero"], ["z"]), "an extent that only the run tells"),
    (om.node("Softmax", ["y"], ["z"], axis=0), "is computed along dim 0"),
    (om.node("Add", ["y", "x"], ["z"]), "meets another tensor in dim 0"),
    (om.node("Reshape", ["y", "flat"], ["z"]), None),
    (om.node("Reshape", ["y", "given"], ["z"]), "dim 0 is not apart"),  # 5x4: 5 is the bound, not the extent
    (om.node("Reshape", ["y", "folded"], ["z"]), "dim 0 is not apart"),  # 5 rows, of as many elements as there are
    (om.node("Flatten", ["y"], ["z"], axis=0), "dim 0 is not apart"),
    (om.node("Flatten", ["y"], ["z"], axis=1), None),
    (om.node("GatherND", ["y", "pairs"], ["z"]), "is indexed in dim 0"),
    (om.node("Slice", ["y", "back", "flat"], ["z"]), "is sliced in dim 0"),
    (om.node("ReduceMean", ["y"], ["z"], axes=[0]), "whose extent only the run tells"),
    (om.node("ArgMax", ["y"], ["z"], axis=0, select_last_index=1), "has its last extreme sought along dim 0"),
    (om.node("Gemm", ["y", "m", "own"], ["z"]), "an extent that only the run tells"),
    (om.node("Unique", ["y"], ["z"]), "an extent that only the run tells"),
    (om.node("Transpose", ["w"], ["z"]), None),
])
def test_operators_without_a_rule_refuse(tmp_path, node, message):
    nodes = [om.node("Compress", ["x", "c"], ["y"], axis=0), om.node("MatMul", ["y", "m"], ["w"]), node]
    constants = [om.tensor("zero", np.array(0)), om.tensor("flat", np.array([-1])), om.tensor("own", np.ones((5, 4), np.float32)), om.tensor("given", np.array([5, 4])), om.tensor("folded", np.array([5, -1])), om.tensor("pairs", np.array([[0, 1]])),
                 om.tensor("back", np.array([-2])), om.tensor("m", np.eye(4, dtype=np.float32))]
    made = om.model(nodes, [om.value("x", [5, 4]), om.value("c", [5], BOOL)], [om.value("z", None)], constants)
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "m", check=False)
    if message is None:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == compiler.EXIT["unsupported"], done.stderr
    assert message in done.stderr and "error" in done.stderr
    assert not (tmp_path / "m.cu").exists()
