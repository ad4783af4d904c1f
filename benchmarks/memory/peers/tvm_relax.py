"""TVM: the storages that Relax's StaticPlanBlockMemory allocates, after the passes of the default CPU pipeline before it.

Weights are constants of the module, so that what depends on them alone is folded. Outputs aren't planned by the pass and
stay outside, as inputs do. Buffers inside a kernel (a convolution's padded copy of its input, for one) aren't counted,
which is in the peer's favour.
"""

import onnx
import tvm
from tvm import relax
from tvm.relax.backend.cpu_generic import pipeline
from tvm.relax.frontend.onnx import from_onnx


def _passes(target):
    passes = [*pipeline.library_dispatch_passes(target), relax.transform.DecomposeOpsForInference(),
              *pipeline.legalize_passes(target), *pipeline.dataflow_lower_passes(target)]
    return tvm.transform.Sequential([*passes, relax.transform.StaticPlanBlockMemory()])


def _storages(function) -> list[int]:
    sizes = []

    def visit(expression):
        if isinstance(expression, relax.Call) and getattr(expression.op, "name", "") == "relax.memory.alloc_storage":
            shape = expression.args[0]
            sizes.append(sum(int(v) for v in shape.values))

    relax.analysis.post_order_visit(function, visit)
    return sizes


def measure(path) -> dict:
    module = from_onnx(onnx.load(path), keep_params_in_input=False)
    target = tvm.target.Target("llvm")
    with target:
        module = _passes(target)(module)
    function = module["main"]
    sizes = _storages(function)
    return {"bytes": sum(sizes), "storages": len(sizes)}
