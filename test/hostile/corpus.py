#!/usr/bin/env python3
"""Files that a stranger might hand over to do harm: each is refused with one clear message, and nothing else happens.

    python test/hostile/corpus.py FOLDER    # writes them, to look at or to feed to other programs

A case is a function of a folder; it makes its files there and returns what to compile. Where a published weakness of
another program led to a case, its number stands beside it.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

import external_data  # noqa: F401  (its cases)
from cases import CASES, case, file_of, om, weighted
from onnx_models import FLOAT, INT64, node, value

# --- sizes ------------------------------------------------------------------------------------------------------

def raw_tensor(dims, data_type=FLOAT, data=b"") -> TensorProto:
    return TensorProto(name="w", data_type=data_type, dims=dims, raw_data=data)


@case("invalid", "negative extent")
def make_negative_dim(folder):
    return file_of(folder, weighted(raw_tensor([-4], data=bytes(16))))


@case("invalid", "negative extent")
def make_two_negative_dims(folder):
    return file_of(folder, weighted(raw_tensor([-2, -2], data=bytes(16))))


@case("invalid", "overflows")
def make_product_overflow(folder):
    return file_of(folder, weighted(raw_tensor([2**32, 2**32])))


@case("invalid", "overflows")
def make_product_overflow_behind_a_zero(folder):
    return file_of(folder, weighted(raw_tensor([2**62, 4, 0])))


@case("invalid", "overflows")
def make_bytes_overflow(folder):
    return file_of(folder, weighted(raw_tensor([2**62])))


@case("invalid", "expected 4398046511104")
def make_huge_dim_of_few_bytes(folder):
    return file_of(folder, weighted(raw_tensor([2**40], data=bytes(16))))


@case("invalid", "overflows")
def make_huge_input(folder):
    return file_of(folder, om.relu([2**40, 2**40]))


@case("invalid", "has 15 bytes of data, expected 16")
def make_raw_too_short(folder):
    return file_of(folder, weighted(raw_tensor([4], data=bytes(15))))


@case("invalid", "has 17 bytes of data, expected 16")
def make_raw_too_long(folder):
    return file_of(folder, weighted(raw_tensor([4], data=bytes(17))))


@case("invalid", "has 0 values, expected 4")
def make_no_data(folder):
    return file_of(folder, weighted(TensorProto(name="w", data_type=FLOAT, dims=[4])))


@case("invalid", "expected 16")
def make_typed_too_short(folder):
    return file_of(folder, weighted(TensorProto(name="w", data_type=FLOAT, dims=[4], float_data=[1, 2, 3])))


@case("invalid", "int64_data", "float_data")
def make_typed_of_another_type(folder):
    return file_of(folder, weighted(TensorProto(name="w", data_type=FLOAT, dims=[4], int64_data=[1, 2, 3, 4])))


@case("invalid", "more than once")
def make_raw_and_typed(folder):
    weight = raw_tensor([4], data=bytes(16))
    weight.float_data.extend([1, 2, 3, 4])
    return file_of(folder, weighted(weight))


@case("invalid", "string_data")
def make_strings_in_floats(folder):
    weight = raw_tensor([4], data=bytes(16))
    weight.string_data.append(b"x")
    return file_of(folder, weighted(weight))


@case("unsupported", "99")
def make_undefined_element_type(folder):
    return file_of(folder, weighted(raw_tensor([4], data_type=99, data=bytes(16))))


@case("invalid", "element type")
def make_no_element_type(folder):
    return file_of(folder, weighted(TensorProto(name="w", dims=[4], raw_data=bytes(16))))


@case("unsupported", "segments")
def make_segments(folder):
    weight = raw_tensor([4], data=bytes(16))
    weight.segment.begin, weight.segment.end = 0, 2**40
    return file_of(folder, weighted(weight))


@case("unsupported", "rank 65")
def make_rank_over_64(folder):
    return file_of(folder, om.relu([1] * 65))


@case("unsupported", "rank 4000")
def make_weight_of_rank_over_64(folder):
    return file_of(folder, weighted(raw_tensor([1] * 4000, data=bytes(4))))


# --- a small file, much work ------------------------------------------------------------------------------------

@case("unsupported", "2^30 elements")
def make_constant_of_a_terabyte(folder):
    shape = om.tensor("s", np.array([2**20, 2**20], np.int64))
    return file_of(folder, om.model([node("ConstantOfShape", ["s"], ["c"]), node("NonZero", ["c"], ["y"])], [],
                                    [value("y", None, INT64)], [shape]))


@case("unsupported", "unroll")
def make_loop_of_a_billion_iterations(folder):
    body = helper.make_graph([node("Concat", ["s", "x"], ["t"], axis=0), node("Identity", ["c"], ["d"])], "body",
                             [value("i", [], INT64), value("c", [], TensorProto.BOOL), value("s", None)],
                             [value("d", [], TensorProto.BOOL), value("t", None)])
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    return file_of(folder, om.model([loop], [value("x", [4])], [value("y", None)],
                                    [om.tensor("n", np.int64(10**9))]))


def nested(depth: int) -> GraphProto:
    graph = helper.make_graph([node("Relu", ["x"], ["y"])], "g", [], [value("y", [4])])
    for _ in range(depth):
        branches = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
        graph = helper.make_graph([branches], "g", [], [value("y", [4])])
    return graph


@case("unsupported", "nested")
def make_subgraphs_nested_past_32(folder):
    # Written from the inside out: each level holds its branch once.
    graph = helper.make_graph([node("Relu", ["x"], ["y"])], "g", [], [value("y", [4])]).SerializeToString()
    for _ in range(200):
        attribute = AttributeProto(name="then_branch", type=AttributeProto.GRAPH)
        content = attribute.SerializeToString() + _field(6, graph)
        made = NodeProto(op_type="If", input=["c"], output=["y"]).SerializeToString() + _field(5, content)
        graph = _field(1, made) + helper.make_graph([], "g", [], [value("y", [4])]).SerializeToString()
    model = om.model([], [value("x", [4]), value("c", [], TensorProto.BOOL)], [value("y", [4])])
    model.ClearField("graph")
    return file_of(folder, model.SerializeToString() + _field(7, graph))


def _field(number: int, content: bytes) -> bytes:
    """One length-delimited field of a protobuf message."""
    size, length = len(content), b""
    while True:
        size, low = size >> 7, size & 127
        length += bytes([low | (128 if size else 0)])
        if not size:
            return bytes([number << 3 | 2]) + length + content


# --- structure --------------------------------------------------------------------------------------------------

@case("invalid", "cycle")
def make_cycle(folder):
    return file_of(folder, om.model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], [value("x", [4])],
                                    [value("b", [4])]))


@case("invalid", "cycle")
def make_cycle_of_thousands(folder):
    nodes = [node("Relu", [f"t{(i - 1) % 5000}"], [f"t{i}"]) for i in range(5000)]
    return file_of(folder, om.model(nodes, [value("x", [4])], [value("t0", [4])]))


@case("invalid", "'nothing'")
def make_dangling_name(folder):
    return file_of(folder, om.model([node("Add", ["x", "nothing"], ["y"])], [value("x", [4])], [value("y", [4])]))


@case("invalid", "makes as well")
def make_duplicate_name(folder):
    return file_of(folder, om.model([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])], [value("x", [4])],
                                    [value("y", [4])]))


@case("invalid", "'y'")
def make_output_of_another_graph(folder):
    branch = helper.make_graph([node("Relu", ["x"], ["y"])], "b", [], [value("y", [4])])
    branches = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    return file_of(folder, om.model([branches, node("Relu", ["y"], ["w"])],
                                    [value("x", [4]), value("c", [], TensorProto.BOOL)], [value("w", [4])]))


@case("invalid", "expected")
def make_attribute_of_the_wrong_type(folder):
    return file_of(folder, om.model([node("Softmax", ["x"], ["y"], axis="one")], [value("x", [4, 4])],
                                    [value("y", [4, 4])]))


@case("invalid", "attribute")
def make_attribute_of_an_undefined_type(folder):
    model = om.model([node("Softmax", ["x"], ["y"], axis=1)], [value("x", [4, 4])], [value("y", [4, 4])])
    content = model.SerializeToString()
    # AttributeProto.type is field 20 (a0 01), of two bytes; its value 2 (INT) becomes 77.
    assert content.count(b"\xa0\x01\x02") == 1
    return file_of(folder, content.replace(b"\xa0\x01\x02", b"\xa0\x01\x4d"))


@case("unsupported", "of no stated type")
def make_input_without_a_type(folder):
    model = om.relu()
    model.graph.input[0].ClearField("type")
    return file_of(folder, model)


@case("invalid", "axis")
def make_axis_out_of_range(folder):
    return file_of(folder, om.model([node("Softmax", ["x"], ["y"], axis=2**62)], [value("x", [4, 4])],
                                    [value("y", [4, 4])]))


@case("invalid", "perm")
def make_permutation_of_another_rank(folder):
    return file_of(folder, om.model([node("Transpose", ["x"], ["y"], perm=[0, 1, 2, 3])], [value("x", [4, 4])],
                                    [value("y", [4, 4])]))


@case("invalid", "")
def make_kernel_shape_of_another_rank(folder):
    return file_of(folder, om.model([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2, 2, 2])],
                                    [value("x", [1, 1, 8, 8])], [value("y", None)]))


@case("unsupported", "'strides' has the entry 0")
def make_strides_of_zero(folder):
    return file_of(folder, om.model([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[0, 0])],
                                    [value("x", [1, 1, 8, 8])], [value("y", None)]))


@case("unsupported", "'pads' has the entry -9")
def make_negative_pads(folder):
    return file_of(folder, om.model([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], pads=[-9, -9, -9, -9])],
                                    [value("x", [1, 1, 8, 8])], [value("y", None)]))


@case("invalid", "")
def make_convolution_of_no_group(folder):
    return file_of(folder, om.model([node("Conv", ["x", "w"], ["y"], group=0)], [value("x", [1, 4, 8, 8])],
                                    [value("y", None)], [om.tensor("w", np.ones((4, 4, 3, 3), np.float32))]))


def function(name: str, *nodes) -> onnx.FunctionProto:
    return helper.make_function("f", name, ["a"], ["b"], list(nodes), [helper.make_opsetid("", 17),
                                                                     helper.make_opsetid("f", 1)])


def calling(*functions) -> ModelProto:
    model = om.model([node("F", ["x"], ["y"], domain="f")], [value("x", [4])], [value("y", [4])],
                     opsets=[helper.make_opsetid("", 17), helper.make_opsetid("f", 1)])
    model.functions.extend(functions)
    return model


@case("invalid", "F")
def make_function_that_calls_itself(folder):
    return file_of(folder, calling(function("F", node("F", ["a"], ["b"], domain="f"))))


@case("invalid", "F")
def make_functions_that_call_each_other(folder):
    return file_of(folder, calling(function("F", node("G", ["a"], ["b"], domain="f")),
                                   function("G", node("F", ["a"], ["b"], domain="f"))))


@case("invalid", "F")
def make_function_that_calls_itself_in_a_subgraph(folder):  # onnx#7815
    inner = helper.make_graph([node("F", ["a"], ["c"], domain="f")], "g", [], [value("c", [4])])
    branches = helper.make_node("If", ["k"], ["b"], then_branch=inner, else_branch=inner)
    constant = helper.make_node("Constant", [], ["k"], value=om.tensor("k", np.bool_(True)))
    return file_of(folder, calling(function("F", constant, branches)))


@case("unsupported", "")
def make_functions_that_double(folder):  # onnxruntime#29617
    functions = [function("F", node("F1", ["a"], ["b"], domain="f"))]
    for i in range(1, 60):
        functions.append(function(f"F{i}", node(f"F{i + 1}", ["a"], ["t"], domain="f"),
                                  node(f"F{i + 1}", ["t"], ["b"], domain="f")))
    functions.append(function("F60", node("Relu", ["a"], ["b"])))
    return file_of(folder, calling(*functions))


@case("invalid", "no field ir_version")
def make_no_ir_version(folder):
    model = om.relu()
    model.ClearField("ir_version")
    return file_of(folder, model)


@case("invalid", "no field opset_import")
def make_no_opset(folder):
    model = om.relu()
    model.ClearField("opset_import")
    return file_of(folder, model)


@case("invalid", "no field graph")
def make_no_graph(folder):
    model = om.relu()
    model.ClearField("graph")
    return file_of(folder, model)


@case("invalid", "")
def make_two_graphs(folder):
    model = om.relu().SerializeToString()
    return file_of(folder, model + _field(7, om.relu().graph.SerializeToString()))


@case("unsupported", "opset")
def make_opset_of_the_far_future(folder):
    return file_of(folder, om.model([node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])], opset=2**40))


@case("unsupported", "opset")
def make_negative_opset(folder):
    return file_of(folder, om.model([node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])], opset=-1))


@case("invalid", "empty")
def make_empty_file(folder):
    return file_of(folder, b"")


@case("invalid", "")
def make_trailing_bytes(folder):
    return file_of(folder, om.relu().SerializeToString() + b"\xff\xff\xff")


@case("invalid", "")
def make_truncated(folder):
    return file_of(folder, om.relu().SerializeToString()[:-3])


@case("invalid", "")
def make_length_past_the_end(folder):
    return file_of(folder, b"\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(8))


@case("invalid", "")
def make_varint_without_end(folder):
    return file_of(folder, b"\xff" * 4096)


# --- names ------------------------------------------------------------------------------------------------------

@case("invalid", r"\1B[2J")
def make_name_that_clears_the_screen(folder):
    return file_of(folder, om.model([node("Add", ["x", "\x1b[2J"], ["y"])], [value("x", [4])], [value("y", [4])]))


@case("invalid", "")
def make_name_of_a_megabyte(folder):
    return file_of(folder, om.model([node("Add", ["x", "n" * 10**6], ["y"])], [value("x", [4])], [value("y", [4])]))


# --- MLIR -------------------------------------------------------------------------------------------------------

def mlir(folder: Path, text: str) -> Path:
    path = folder / "bad.mlir"
    path.write_text(text)
    return path


@case("invalid", 'bad.mlir":1:')
def make_mlir_garbage(folder):
    return mlir(folder, "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %y }\n")


@case("invalid", "500 deep")
def make_mlir_nested_deep(folder):
    return mlir(folder, "module {" * 5000 + "}" * 5000)


@case("invalid", "expected integer value")
def make_mlir_upstream_null_attribute(folder):
    return mlir(folder, """
func.func @main(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.transpose ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) permutation = [1,f32>)
  return
}
""")


@case("invalid", "")
def make_mlir_strides_of_zero(folder):
    return mlir(folder, """
func.func @main(%x: tensor<1x8x8x4xf32>, %w: tensor<4x3x3x4xf32>, %d: tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32> {
  %y = memplan.conv ins(%x, %w : tensor<1x8x8x4xf32>, tensor<4x3x3x4xf32>) outs(%d : tensor<1x6x6x4xf32>)
      {strides = array<i64: 0, 0>} -> tensor<1x6x6x4xf32>
  return %y : tensor<1x6x6x4xf32>
}
""")


def write_all(folder: Path) -> None:
    for name, made in CASES.items():
        own = folder / name
        own.mkdir(parents=True)
        print(made.make(own), made.kind)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
