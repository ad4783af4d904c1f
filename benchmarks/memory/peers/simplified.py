"""The model after `onnxsim.simplify`: shapes known, constants folded, batch normalization in convolutions."""

import onnx
import onnxsim


def _drop_unread_outputs(graph: onnx.GraphProto) -> None:
    """Optional outputs that nothing reads (Dropout's mask, for one) aren't computed."""
    read = {name for node in graph.node for name in node.input} | {o.name for o in graph.output}
    for node in graph.node:
        while len(node.output) > 1 and node.output[-1] not in read:
            node.output.pop()


def _lift_constants(graph: onnx.GraphProto) -> None:
    """Constant nodes become initializers: they are weights, not activations."""
    for node in [n for n in graph.node if n.op_type == "Constant"]:
        if node.attribute[0].name == "value":
            graph.initializer.add().CopyFrom(node.attribute[0].t)
            graph.initializer[-1].name = node.output[0]
            graph.node.remove(node)


def simplified(path) -> onnx.ModelProto:
    model = onnx.load(path)
    result, _ = onnxsim.simplify(model, check_n=0)
    _drop_unread_outputs(result.graph)
    _lift_constants(result.graph)
    if result.ByteSize() < 2**31:
        return onnx.shape_inference.infer_shapes(result, data_prop=True)
    return result
