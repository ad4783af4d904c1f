"""What scheduling, forwarding and overwriting save, on models whose least memory is known by hand."""

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import memplan_models
import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from plan_check import check_plan
from random_models import Generator

pytestmark = pytest.mark.usefixtures("memplan_opt")

OFF = ("--no-schedule", "--no-forward", "--no-in-place")


def write(folder, nodes, shape):
    output = om.value("y", None)
    output.type.tensor_type.ClearField("shape")
    return om.write(om.model(nodes, [om.value("x", shape)], [output]), folder / "m.onnx")


def planned(path, *flags):
    return compiler.run(path, "--emit=mlir-planned", "-q", *flags).stdout


def check_result(path, folder, quick):
    inputs = reference.random_inputs(path)
    compiler.emit_cuda(path, folder / "out" / "m", None, "-q")
    with host.HostModel(folder / "out" / "m", **quick) as model:
        assert_close(model.run(inputs), reference.run(path, inputs), absolute=1e-5)


def test_sin_and_cos_side_by_side(tmp_path, quick):
    """Both are written where sigmoid, in place, leaves the output: no copy, no byte of scratch."""
    path = write(tmp_path, [om.node("Sin", ["x"], ["s"]), om.node("Cos", ["x"], ["c"]),
                            om.node("Concat", ["s", "c"], ["p"], axis=1), om.node("Sigmoid", ["p"], ["y"])], (2, 8, 32))
    assert "memref.copy" not in planned(path)
    assert compiler.plan(path)["arena_bytes"] == 0
    # Without these techniques: both parts, their concatenation, each beside what it is made of.
    assert compiler.plan(path, None, *OFF)["arena_bytes"] >= 2 * (2 * 8 * 32 * 4)
    check_result(path, tmp_path, quick)


@pytest.mark.parametrize("flags", [(), ("--no-fusion",)])
def test_a_chain_needs_one_tensor_at_most(tmp_path, quick, flags):
    kinds = ["Tanh", "Sigmoid", "Erf", "Cos"]
    names = ["x", *(f"v{i}" for i in range(99)), "y"]
    nodes = [om.node(kinds[i % 4], [names[i]], [names[i + 1]]) for i in range(100)]
    path = write(tmp_path, nodes, (4, 100))
    assert compiler.plan(path, None, *flags)["arena_bytes"] <= 4 * 100 * 4
    if not flags:
        check_result(path, tmp_path, quick)


def test_a_long_chain_is_several_kernels_in_one_tensor(tmp_path, quick):
    """A kernel's body has a bound, so that compile time grows with the chain and not with its square."""
    names = ["x", *(f"v{i}" for i in range(599)), "y"]
    nodes = [om.node(["Tanh", "Cos"][i % 2], [names[i]], [names[i + 1]]) for i in range(600)]
    path = write(tmp_path, nodes, (4, 100))
    assert 600 // 256 < planned(path).count("linalg.generic") < 10
    assert compiler.plan(path)["arena_bytes"] == 0
    check_result(path, tmp_path, quick)


def test_nested_concatenation_along_an_inner_dim(tmp_path, quick):
    """Parts of parts, two of them read elsewhere too."""
    nodes = [om.node("Sin", ["x"], ["a"]), om.node("Cos", ["a"], ["b"]), om.node("Concat", ["a", "b"], ["p"], axis=2),
             om.node("Transpose", ["a"], ["t"], perm=[0, 2, 1]), om.node("Tanh", ["x"], ["c"]),
             om.node("Concat", ["c", "p"], ["q"], axis=2), om.node("MatMul", ["t", "q"], ["y"])]
    path = write(tmp_path, nodes, (2, 6, 6))
    assert "memref.copy" not in planned(path)
    check_result(path, tmp_path, quick)


def test_many_nested_concatenations(tmp_path, quick):
    """Each holds all before it: what is kept of each must not double from one to the next."""
    nodes, shared = [], "x"
    for i in range(60):
        nodes += [om.node("ReduceMean", [shared], [f"m{i}"], axes=[0], keepdims=1),
                  om.node("Tanh", [f"m{i}"], [f"t{i}"]), om.node("Concat", [shared, f"t{i}"], [f"c{i}"], axis=0)]
        shared = f"c{i}"
    path = write(tmp_path, [*nodes, om.node("Transpose", [shared], ["y"])], (2, 5))
    # The first holds the input, which is the caller's; all others are one buffer.
    assert planned(path).count("memref.copy") <= 1
    check_plan(compiler.plan(path))
    check_result(path, tmp_path, quick)


def test_what_cannot_be_written_strided_is_copied(tmp_path, quick):
    """A convolution writes dense channels, so its part of a concatenation along the innermost dim is a copy."""
    weight = helper.make_node("ConstantOfShape", ["s"], ["w"], value=om.tensor("v", np.full(1, 0.25, np.float32)))
    size = helper.make_node("Constant", [], ["s"], value=om.tensor("s", np.array([3, 3, 1, 1], np.int64)))
    path = write(tmp_path, [size, weight, om.node("Conv", ["x", "w"], ["c"]), om.node("Tanh", ["c"], ["t"]),
                            om.node("Concat", ["c", "t"], ["y"], axis=3)], (2, 3, 4, 5))
    assert planned(path).count("memref.copy") == 1
    check_result(path, tmp_path, quick)


@pytest.mark.parametrize("name", ["light_densenet121", "light_inception_v1", "light_inception_v2", "light_squeezenet",
                                  "light_shufflenet"])
def test_no_copy_is_left(name, tmp_path):
    """Nor does that cost a byte: a concatenation's parts live each for its own time."""
    path = memplan_models.write(name, tmp_path)
    assert "memref.copy" not in planned(path)
    plan = compiler.plan(path)
    check_plan(plan)
    assert plan["optimal"] and plan["arena_bytes"] <= compiler.plan(path, None, "--no-forward")["arena_bytes"]


def test_channel_shuffle_is_no_kernel(tmp_path):
    """A reshape, a transpose, a reshape: one kernel that permutes for each of ShuffleNet's shuffles at most, and none where
    the convolution before it stores its results there."""
    path = memplan_models.write("light_shufflenet", tmp_path)
    shuffles = sum(node.op_type == "Transpose" for node in onnx.load(path).graph.node)

    def permuting(*flags):
        text = compiler.run(path, "--emit=cuda", "-q", "-o", "-", *flags).stdout
        return len(re.findall(r"launch\w*\([^;]*\bmap_copy\w*", text))

    assert 0 < permuting("--no-fusion") <= shuffles
    assert permuting() == 0


def test_terms_of_a_sum_die_before_the_last_is_made(tmp_path, quick):
    """s + t is added up before the large product is made: 64 x 4 floats beside 64 x 64, not twice as many."""
    nodes = [om.node("Softmax", ["x"], ["s"], axis=0), om.node("Softmax", ["x"], ["t"], axis=1),
             om.node("Transpose", ["x"], ["z"], perm=[1, 0]), om.node("MatMul", ["x", "z"], ["large"]),
             om.node("MatMul", ["large", "x"], ["u"]), om.node("Add", ["s", "t"], ["st"]), om.node("Add", ["st", "u"], ["y"])]
    path = write(tmp_path, nodes, (64, 4))
    assert compiler.plan(path)["arena_bytes"] <= 64 * 4 * 4 + 64 * 64 * 4
    check_result(path, tmp_path, quick)


def test_a_sum_of_many_terms_needs_no_more_than_unfused(tmp_path, quick):
    """A randomly wired network, of which each node adds up what several others made."""
    path = memplan_models.write("randwire_small", tmp_path)
    dims = memplan_models.registry.entry("randwire_small").dims
    fused, apart = (compiler.plan(path, dims, *flags) for flags in ((), ("--no-fusion",)))
    check_plan(fused)
    assert fused["arena_bytes"] <= apart["arena_bytes"]


def constant(name, *shape):
    values = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    return om.node("Constant", [], [name], value=om.tensor(name, values))


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("window", [[2, 2], [1, 2], [4, 2]])
def test_pooling_in_a_convolution(kind, window, tmp_path, quick):
    """Conv, bias, relu and pooling are one launch, and nothing but the output is stored. 9 x 11 is no multiple of any."""
    nodes = [constant("w", 5, 3, 3, 3), constant("b", 5), om.node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
             om.node("Relu", ["c"], ["r"]), om.node(kind, ["r"], ["y"], kernel_shape=window, strides=window)]
    path = write(tmp_path, nodes, (2, 3, 9, 11))
    assert planned(path).count("memplan.conv") == 1 and "memplan.reduce_window" not in planned(path)
    assert compiler.plan(path)["arena_bytes"] == 0
    check_result(path, tmp_path, quick)


def test_pooling_of_a_sum_reads_it_before_the_pool(tmp_path, quick):
    """The residual has the extents before pooling: 8 x 8, not 4 x 4."""
    nodes = [constant("w", 3, 3, 3, 3), om.node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), om.node("Add", ["c", "x"], ["s"]),
             om.node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), om.node("Tanh", ["p"], ["y"])]
    path = write(tmp_path, nodes, (2, 3, 8, 8))
    assert compiler.plan(path)["arena_bytes"] == 0
    check_result(path, tmp_path, quick)


@pytest.mark.parametrize("pool", [dict(kernel_shape=[3, 3], strides=[2, 2]), dict(kernel_shape=[2, 2], strides=[1, 1]),
                                  dict(kernel_shape=[3, 3], strides=[3, 3]),
                                  dict(kernel_shape=[2, 2], strides=[2, 2], pads=[1, 1, 1, 1]),
                                  dict(kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)])
def test_pooling_that_stays_apart(pool, tmp_path, quick):
    """Windows that overlap, hang over or are no powers of two."""
    nodes = [constant("w", 4, 3, 3, 3), om.node("Conv", ["x", "w"], ["c"]), om.node("MaxPool", ["c"], ["y"], **pool)]
    path = write(tmp_path, nodes, (2, 3, 9, 9))
    assert "memplan.reduce_window" in planned(path)
    check_result(path, tmp_path, quick)


@pytest.mark.parametrize("channels", [6, 30])
def test_channel_shuffle_of_a_grouped_convolution(channels, tmp_path, quick):
    """Its results are stored where the shuffle would move them; the depthwise kernel (30: one channel a group) as well."""
    groups = 3 if channels == 6 else 30
    split, back = np.array([2, groups, 60 // groups, 5, 5]), np.array([2, 60, 5, 5])
    nodes = [constant("w", 60, channels // groups, 3, 3), constant("b", 60),
             om.node("Conv", ["x", "w", "b"], ["c"], group=groups, pads=[1, 1, 1, 1]), om.node("Relu", ["c"], ["r"]),
             om.node("Constant", [], ["split"], value=om.tensor("split", split)),
             om.node("Constant", [], ["back"], value=om.tensor("back", back)), om.node("Reshape", ["r", "split"], ["g"]),
             om.node("Transpose", ["g"], ["t"], perm=[0, 2, 1, 3, 4]), om.node("Reshape", ["t", "back"], ["y"])]
    path = write(tmp_path, nodes, (2, channels, 5, 5))
    assert "interleaved" in planned(path) and "linalg.generic" not in planned(path)
    assert compiler.plan(path)["arena_bytes"] == 0
    check_result(path, tmp_path, quick)


@pytest.mark.parametrize("factors", [(2, 2), (4, 2)])
def test_upsampling_before_a_convolution(factors, tmp_path, quick):
    """Each element is read in several places, and the larger tensor is not stored."""
    a, b = factors
    six = [om.node("Constant", [], [n], value=om.tensor(n, np.array(v))) for n, v in
           (("six", [2, 3, 5, 1, 6, 1]), ("more", [2, 3, 5, a, 6, b]), ("four", [2, 3, 5 * a, 6 * b]))]
    nodes = [*six, constant("w", 4, 3, 3, 3), om.node("Sigmoid", ["x"], ["s"]), om.node("Softmax", ["s"], ["m"], axis=1),
             om.node("Reshape", ["m", "six"], ["r"]), om.node("Expand", ["r", "more"], ["e"]), om.node("Reshape", ["e", "four"], ["u"]),
             om.node("Conv", ["u", "w"], ["y"], pads=[1, 1, 1, 1])]
    path = write(tmp_path, nodes, (2, 3, 5, 6))
    assert "upsample = " in planned(path) and compiler.plan(path)["arena_bytes"] <= 2 * 3 * 5 * 6 * 4 + 256
    check_result(path, tmp_path, quick)


@pytest.mark.parametrize("shape", [(2, 7, 5, 9), (1, 40, 3, 11)])
def test_normalization_across_channels_in_place(shape, tmp_path, quick):
    """LRN's windows lie along the channels: its result goes over its input, which lives in the output from the start."""
    nodes = [om.node("Softmax", ["x"], ["s"], axis=1), om.node("LRN", ["s"], ["y"], size=5, alpha=0.1, beta=0.75, bias=1.0)]
    path = write(tmp_path, nodes, shape)
    assert compiler.plan(path)["arena_bytes"] == 0
    check_result(path, tmp_path, quick)


def test_normalization_of_long_lines_is_not_in_place(tmp_path, quick):
    """400 channels by 32 lines by 4 bytes are more than a block has: 51,200 > 49,152."""
    nodes = [om.node("Softmax", ["x"], ["s"], axis=1), om.node("LRN", ["s"], ["y"], size=3)]
    path = write(tmp_path, nodes, (1, 400, 3, 3))
    assert compiler.plan(path)["arena_bytes"] == 400 * 9 * 4
    check_result(path, tmp_path, quick)


@pytest.mark.parametrize("shape", [(3, 5, 16), (1, 1, 16)])
@pytest.mark.parametrize("activation", [None, "Relu", "Exp"])
def test_a_product_goes_over_its_residual(shape, activation, tmp_path, quick):
    """x + x w + b: a library call takes the residual as C, which may be where it stores. With exp, a kernel of its own
    comes after the product, so that the residual must live elsewhere."""
    nodes = [constant("w", 16, 16), constant("b", 16), om.node("Softmax", ["x"], ["s"], axis=-1),
             om.node("MatMul", ["x", "w"], ["p"]), om.node("Add", ["p", "b"], ["q"]), om.node("Add", ["s", "q"], ["y" if not activation else "r"])]
    if activation:
        nodes.append(om.node(activation, ["r"], ["y"]))
    path = write(tmp_path, nodes, shape)
    arena = compiler.plan(path)["arena_bytes"]
    assert arena == (np.prod(shape) * 4 if activation == "Exp" else 0)
    check_result(path, tmp_path, quick)


@pytest.mark.parametrize("seed", range(100))
def test_less_or_as_much_as_without(seed, tmp_path):
    path = om.write(Generator(seed).model(), tmp_path / "m.onnx")
    assert compiler.plan(path)["arena_bytes"] <= compiler.plan(path, None, *OFF)["arena_bytes"]


def weight(name, *shape):
    rng = np.random.default_rng(len(name))
    return om.tensor(name, (0.2 * rng.standard_normal(shape)).astype(np.float32))


def test_branches_share_bytes(tmp_path, quick):
    """8 x 256 floats between the products of one branch, 8 x 1024 in the other: the larger is all that is needed."""
    def branch(width, mark):
        nodes = [om.node("MatMul", ["x", f"a{mark}"], [f"h{mark}"]), om.node("Softmax", [f"h{mark}"], [f"s{mark}"], axis=0),
                 om.node("MatMul", [f"s{mark}", f"b{mark}"], [f"y{mark}"])]
        weights = [weight(f"a{mark}", 16, width), weight(f"b{mark}", width, 4)]
        return helper.make_graph(nodes, mark, [], [om.value(f"y{mark}", (8, 4))]), weights

    (narrow, some), (wide, others) = branch(256, "n"), branch(1024, "w")
    path = om.write(om.model([om.node("If", ["c"], ["y"], then_branch=narrow, else_branch=wide)],
                             [om.value("x", (8, 16)), om.value("c", (), TensorProto.BOOL)], [om.value("y", (8, 4))],
                             some + others), tmp_path / "m.onnx")
    plan = compiler.plan(path)
    assert plan["arena_bytes"] == 8 * 1024 * 4
    assert plan["no_reuse_bytes"] == 8 * 256 * 4 + 8 * 1024 * 4
    assert "memref.copy" not in planned(path)
    for taken in (True, False):
        inputs = {**reference.random_inputs(path), "c": np.array(taken)}
        compiler.emit_cuda(path, tmp_path / "out" / "m", None, "-q")
        with host.HostModel(tmp_path / "out" / "m", **quick) as model:
            assert_close(model.run(inputs), reference.run(path, inputs), absolute=1e-5)


def test_a_state_that_grows_and_is_sliced(tmp_path, quick):
    """A window of 4 rows slides over 6 new ones: 5 rows are needed at a time, not 10, and the outputs."""
    nodes = [om.node("Concat", ["h", "r"], ["g"], axis=0), om.node("Slice", ["g", "one", "end", "zero"], ["n"]),
             om.node("ReduceMean", ["g"], ["o"], axes=[0], keepdims=0)]
    body = helper.make_graph(nodes, "step", [om.value("h", (4, 64)), om.value("r", (1, 64))],
                             [om.value("n", (4, 64)), om.value("o", (64,))])
    path = om.write(om.model([om.node("Scan", ["h0", "x"], ["y", "s"], body=body, num_scan_inputs=1)],
                             [om.value("h0", (4, 64)), om.value("x", (6, 1, 64))],
                             [om.value("y", (4, 64)), om.value("s", (6, 64))],
                             [om.tensor("one", np.array([1])), om.tensor("end", np.array([5])),
                              om.tensor("zero", np.array([0]))]), tmp_path / "m.onnx")
    assert compiler.plan(path)["arena_bytes"] == 5 * 64 * 4
    check_result(path, tmp_path, quick)


def test_an_lstm_in_a_loop(tmp_path, quick):
    """What the recurrence of all rounds needs is what one needs."""
    def model(rounds):
        lstm = om.node("LSTM", ["h", "w", "r", "b"], ["l"], hidden_size=8, direction="bidirectional")
        nodes = [om.node("Identity", ["k"], ["d"]), lstm, om.node("Transpose", ["l"], ["t"], perm=[0, 2, 1, 3]),
                 om.node("Reshape", ["t", "shape"], ["n"])]
        body = helper.make_graph(
            nodes, "round", [om.value("i", (), TensorProto.INT64), om.value("k", (), TensorProto.BOOL), om.value("h", (5, 2, 16))],
            [om.value("d", (), TensorProto.BOOL), om.value("n", (5, 2, 16))])
        return om.model([om.node("Loop", ["m", "", "x"], ["y"], body=body)], [om.value("x", (5, 2, 16))],
                        [om.value("y", (5, 2, 16))],
                        [om.tensor("m", np.array(rounds)), weight("w", 2, 32, 16), weight("r", 2, 32, 8), weight("b", 2, 64),
                         om.tensor("shape", np.array([5, 2, 16]))])

    once, often = (om.write(model(rounds), tmp_path / f"{rounds}.onnx") for rounds in (2, 7))
    assert compiler.plan(once)["arena_bytes"] == compiler.plan(often)["arena_bytes"]
    check_result(often, tmp_path, quick)


def test_concatenations_that_begin_alike(tmp_path, quick):
    """They are one up to where they differ; nothing that is not yet written is copied."""
    path = om.write(om.model(
        [om.node("Sin", ["x"], ["s"]), om.node("Concat", ["s", "x"], ["a"], axis=0), om.node("Concat", ["s", "s"], ["c"], axis=0),
         om.node("Softmax", ["c"], ["b"], axis=1)], [om.value("x", (5, 12))],
        [om.value("a", (10, 12)), om.value("b", (10, 12))]), tmp_path / "m.onnx")
    check_result(path, tmp_path, quick)
