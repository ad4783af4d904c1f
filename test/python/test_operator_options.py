"""Operators whose options the ONNX backend test-suite tries few of, against ONNX Runtime, in the checked build."""

import numpy as np
import pytest
from onnx import TensorProto

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")

CASES = {}


def add(name, kind, inputs, shape, constants=None, opset=18, dtype=om.FLOAT, outputs=1, **attributes):
    """One node. `inputs`: arrays that the model is given; `constants`: by position, arrays known when compiling;
    `shape`: that of the result."""
    constants = constants or {}
    count = len(inputs) + len(constants)
    names = [f"c{i}" if i in constants and constants[i] is not None else "" if i in constants else f"x{i}"
             for i in range(count)]
    given = dict(zip([n for n in names if n.startswith("x")], inputs))
    values = [om.value(n, a.shape, TensorProto.DataType.Value({"float32": "FLOAT", "float64": "DOUBLE", "int64": "INT64",
                                                               "int32": "INT32", "uint8": "UINT8"}[str(a.dtype)]))
              for n, a in given.items()]
    results = [om.value(f"y{i}", shape, dtype if i == 0 else TensorProto.INT64) for i in range(outputs)]
    made = om.model([om.node(kind, names, [f"y{i}" for i in range(outputs)], "tested", **attributes)], values, results,
                    [om.tensor(n, constants[i]) for i, n in enumerate(names) if n.startswith("c")], opset)
    assert name not in CASES
    CASES[name] = made, given


RNG = np.random.default_rng(7)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


# --- Resize ----------------------------------------------------------------------------------------------------

for mode in ("nearest", "linear", "cubic"):
    for where in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for label, sizes in (("up", (7, 9)), ("down", (3, 2))):
            add(f"resize_{mode}_{where}_{label}", "Resize", [floats(1, 2, 4, 5)], [1, 2, *sizes],
                {1: None, 2: None, 3: np.array([1, 2, *sizes])}, mode=mode, coordinate_transformation_mode=where)
for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    for scale in (0.6, 0.5, 1.5, 2.0, 2.7):
        out = int(np.float32(scale) * np.float32(10))
        add(f"resize_nearest_{rounding}_{scale}", "Resize", [floats(1, 1, 10)], [1, 1, out],
            {1: None, 2: np.array([1, 1, scale], np.float32)}, mode="nearest", nearest_mode=rounding)
add("resize_cubic_outside", "Resize", [floats(1, 1, 6, 7)], [1, 1, 9, 4],
    {1: None, 2: None, 3: np.array([1, 1, 9, 4])}, mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)
add("resize_opset11", "Resize", [floats(1, 1, 4, 4)], [1, 1, 8, 8],
    {1: np.array([], np.float32), 2: np.array([1, 1, 2, 2], np.float32)}, opset=11, mode="linear")
add("resize_opset10", "Resize", [floats(1, 1, 4, 4)], [1, 1, 8, 6], {1: np.array([1, 1, 2, 1.5], np.float32)}, opset=10,
    mode="nearest")
add("resize_opset10_down", "Resize", [floats(1, 1, 8, 9)], [1, 1, 4, 5], {1: np.array([1, 1, 0.5, 0.6], np.float32)},
    opset=10, mode="nearest")
add("upsample7", "Upsample", [floats(1, 2, 3, 4)], [1, 2, 6, 12], opset=7, mode="nearest", scales=[1.0, 1.0, 2.0, 3.0])
add("upsample9_linear", "Upsample", [floats(1, 2, 3, 4)], [1, 2, 6, 12], {1: np.array([1, 1, 2, 3], np.float32)}, opset=9,
    mode="linear")
add("resize_trilinear", "Resize", [floats(1, 1, 3, 4, 5)], [1, 1, 6, 8, 7], {1: None, 2: None,
    3: np.array([1, 1, 6, 8, 7])}, mode="linear")

# --- ConvTranspose ---------------------------------------------------------------------------------------------

add("deconv_plain", "ConvTranspose", [floats(2, 3, 4, 5), floats(3, 2, 3, 3)], [2, 2, 6, 7])
add("deconv_groups", "ConvTranspose", [floats(1, 6, 4, 5), floats(6, 2, 3, 2), floats(4)], [1, 4, 9, 12], group=2,
    strides=[2, 3], pads=[0, 1, 0, 1], kernel_shape=[3, 2])
add("deconv_dilated", "ConvTranspose", [floats(1, 2, 5, 4), floats(2, 3, 3, 3)], [1, 3, 12, 9], strides=[2, 2],
    dilations=[2, 2], pads=[1, 2, 1, 1], output_padding=[1, 1])
add("deconv_1d", "ConvTranspose", [floats(2, 3, 7), floats(3, 4, 4)], [2, 4, 20], strides=[3], pads=[1, 1])
add("deconv_3d", "ConvTranspose", [floats(1, 2, 3, 2, 4), floats(2, 2, 2, 3, 2)], [1, 2, 6, 4, 8], strides=[2, 1, 2])
add("deconv_bias_opset7", "ConvTranspose", [floats(1, 2, 3, 3), floats(2, 2, 2, 2), floats(2)], [1, 2, 6, 6], opset=7,
    strides=[2, 2])

# --- scatters --------------------------------------------------------------------------------------------------

for reduction in ("none", "add", "mul", "max", "min"):
    index = RNG.permuted(np.tile(np.arange(6), (4, 1)), axis=1)[:, :3]
    if reduction != "none":
        index = RNG.integers(-6, 6, (4, 3))
    add(f"scatter_elements_{reduction}", "ScatterElements", [floats(5, 6), index, floats(4, 3)], [5, 6], axis=1,
        reduction=reduction)
    rows = np.array([[1, 2], [0, 3], [2, 0]]) if reduction == "none" else np.array([[1, 2], [1, 2], [0, 3], [-1, -1]])
    add(f"scatter_nd_{reduction}", "ScatterND", [floats(3, 4, 5), rows, floats(len(rows), 5)], [3, 4, 5],
        reduction=reduction)
    add(f"scatter_int_{reduction}", "ScatterElements", [RNG.integers(-9, 9, (6, 4)), RNG.integers(-6, 6, (5, 4)) if
        reduction != "none" else np.tile([[0], [3], [2], [5], [1]], (1, 4)), RNG.integers(-9, 9, (5, 4))], [6, 4],
        dtype=TensorProto.INT64, axis=0, reduction=reduction)
add("scatter_opset9", "Scatter", [floats(3, 3), np.array([[1, 0, 2], [0, 2, 1]]), floats(2, 3)], [3, 3], opset=9)
add("gather_nd_batch", "GatherND", [floats(3, 4, 5, 2), RNG.integers(-4, 4, (3, 2, 1))], [3, 2, 5, 2], batch_dims=1)

# --- others ----------------------------------------------------------------------------------------------------

for exclusive in (0, 1):
    for reverse in (0, 1):
        add(f"cumsum_{exclusive}{reverse}", "CumSum", [floats(3, 37, 2)], [3, 37, 2], {1: np.array(1)},
            exclusive=exclusive, reverse=reverse)
for extent in (1, 5, 33, 1500):
    for largest in (0, 1):
        k = min(extent, 17)
        # Many equal elements.
        add(f"topk_{extent}_{largest}", "TopK", [RNG.integers(0, 50, (2, extent, 2)).astype(np.float32)], [2, k, 2],
            {1: np.array([k])}, outputs=2, axis=1, largest=largest)
add("topk_opset10", "TopK", [floats(3, 20)], [3, 4], {1: np.array([4])}, opset=10, outputs=2)
add("topk_opset7", "TopK", [floats(3, 20)], [3, 4], opset=9, outputs=2, k=4)
add("topk_int", "TopK", [RNG.integers(-5, 5, (4, 12))], [4, 12], {1: np.array([12])}, dtype=TensorProto.INT64, outputs=2)
for equation, shapes in {"ij,jk->ik": [(3, 4), (4, 5)], "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "ij->ji": [(3, 4)],
                         "ij->": [(3, 4)], "ii->i": [(4, 4)], "i,j->ij": [(3,), (4,)], "bhqd,bhkd->bhqk":
                         [(2, 3, 4, 5), (2, 3, 6, 5)], "bqhd,bkhd->bhqk": [(2, 4, 3, 5), (2, 6, 3, 5)],
                         "abc,cd,de->abe": [(2, 3, 4), (4, 5), (5, 6)], "ij,ij->i": [(3, 4), (3, 4)],
                         "ijk,jl->il": [(2, 3, 4), (3, 5)], "...ij,...jk->...ik": [(2, 3, 4), (2, 4, 5)],
                         "abcd,cdef->abef": [(2, 3, 4, 5), (4, 5, 2, 3)]}.items():
    arrays = [floats(*s) for s in shapes]
    add(f"einsum_{equation}", "Einsum", arrays, np.einsum(equation, *arrays).shape, equation=equation)
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        for align in (0, 1):
            grid = RNG.uniform(-1.7, 1.7, (2, 5, 6, 2)).astype(np.float32)
            add(f"grid_sample_{mode}_{padding}_{align}", "GridSample", [floats(2, 2, 4, 7), grid], [2, 2, 5, 6], opset=16,
                mode=mode, padding_mode=padding, align_corners=align)
for mode in ("avg", "max"):
    for ratio in (0, 2):
        regions = np.array([[0, 0, 9, 9], [1.5, 2.5, 7, 8.25], [3, 3, 3.5, 4], [-2, 4, 12, 11]], np.float32)
        add(f"roi_align_{mode}_{ratio}", "RoiAlign", [floats(2, 3, 10, 12), regions[:3], np.array([0, 1, 1])], [3, 3, 4, 3],
            opset=16, mode=mode, output_height=4, output_width=3, sampling_ratio=ratio, spatial_scale=0.8)
add("max_roi_pool", "MaxRoiPool", [floats(2, 3, 10, 12), np.array([[0, 0, 0, 9, 9], [1, 2, 3, 7, 8], [1, 4, 4, 4, 4]],
    np.float32)], [3, 3, 2, 3], pooled_shape=[2, 3], spatial_scale=0.9)
add("det4", "Det", [floats(3, 4, 4)], [3])
add("hardmax_opset11", "Hardmax", [floats(2, 3, 4)], [2, 3, 4], opset=11, axis=1)
add("lp_norm1", "LpNormalization", [floats(3, 4, 5)], [3, 4, 5], axis=1, p=1)


@pytest.fixture(scope="module")
def library(build_folder):
    """All cases in one library."""
    folder = build_folder / "operator_options"
    folder.mkdir()
    prefixes = []
    for i, (made, _) in enumerate(CASES.values()):
        compiler.emit_cuda(om.write(made, folder / f"m{i}.onnx"), folder / f"m{i}")
        prefixes.append(folder / f"m{i}")
    host.build_together(prefixes, folder / "all.so", checked=True)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_against_onnxruntime(library, name):
    _, given = CASES[name]
    number = list(CASES).index(name)
    want = reference.run(library / f"m{number}.onnx", given)
    with host.HostModel(library / f"m{number}", library=library / "all.so") as model:
        assert_close(model.run(given), want)


# --- what is refused ---------------------------------------------------------------------------------------------

X = om.value("x", [1, 2, 4, 4])
REFUSED = {
    "resize_sizes_of_the_run": (
        om.model([om.node("Resize", ["x", "", "", "s"], ["y"])], [X, om.value("s", [4], TensorProto.INT64)],
                 [om.value("y", None)]), "the sizes comes from input 3 's' (4xi64), which depends on the model's inputs"),
    "resize_mode": (om.model([om.node("Resize", ["x", "", "s"], ["y"], mode="area")], [X], [om.value("y", None)],
                             [om.tensor("s", np.ones(4, np.float32))]), "attribute 'mode' is 'area'; accepted: nearest"),
    "resize_scale": (om.model([om.node("Resize", ["x", "", "s"], ["y"])], [X], [om.value("y", None)],
                              [om.tensor("s", np.array([1, 1, -2, 1], np.float32))]), "scale -2"),
    "scatter_index": (om.model([om.node("ScatterElements", ["x", "i", "u"], ["y"], axis=3)],
                               [X, om.value("u", [1, 1, 1, 1])], [om.value("y", None)],
                               [om.tensor("i", np.full((1, 1, 1, 1), 4))]), "index 4 is outside [-4, 3]"),
    "einsum_letters": (om.model([om.node("Einsum", ["x"], ["y"], equation="ab+c->a")], [X], [om.value("y", None)]),
                       "something other than letters"),
    "einsum_input": (om.model([om.node("Einsum", ["x", "", "x"], ["y"], equation="abcd,e,abcd->a")], [X], [om.value("y", None)]),
                     "input 1 is left out"),
    "topk_k": (om.model([om.node("TopK", ["x", "k"], ["y", ""])], [X], [om.value("y", None)],
                        [om.tensor("k", np.array([5]))]), "k is 5 for an axis of extent 4"),
    "deconv_output": (om.model([om.node("ConvTranspose", ["x", "w"], ["y"], output_shape=[-(2**63), 4])], [X],
                               [om.value("y", None)], [om.tensor("w", np.ones((2, 1, 2, 2), np.float32))]),
                      "the output has extent -9223372036854775808"),
    "det_size": (om.model([om.node("Det", ["x"], ["y"])], [om.value("x", [9, 9])], [om.value("y", None)]),
                 "holds matrices of 9 rows; 1 to 8 are accepted"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    made, message = REFUSED[name]
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "out/m", check=False)
    assert done.returncode in (compiler.EXIT["unsupported"], compiler.EXIT["invalid"]), done.stderr
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_global_lp_pool(tmp_path, quick):
    made = om.model([om.node("GlobalLpPool", ["x"], ["y"], p=3)], [om.value("x", [2, 3, 4, 5])],
                    [om.value("y", [2, 3, 1, 1])])
    compiler.emit_cuda(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    want = (np.abs(x.astype(np.float64)) ** 3).sum(axis=(2, 3), keepdims=True) ** (1 / 3)
    with host.HostModel(tmp_path / "out/m", **quick) as model:
        np.testing.assert_allclose(model.run({"x": x})["y"], want, rtol=1e-5)
