"""`onnxsim.plan_activation_memory` on the simplified model.

The planner places inputs and outputs in its arena too. Here they are declared to have no elements (and the planner is
told to believe the shapes that the file declares), so that it places what is between them, with the same lifetimes.
What it gives with them is `with_io`.
"""

import onnxsim

from .simplified import simplified


def measure(path) -> dict:
    model = simplified(path)
    for tensor in list(model.graph.initializer):  # their values don't matter to the planner
        tensor.ClearField("raw_data")
    with_io = onnxsim.plan_activation_memory(model, run_shape_inference=False)
    if with_io.unplanned:
        raise ValueError(f"leaves {len(with_io.unplanned)} tensors unplanned, {with_io.unplanned[0]} for one")
    for info in (*model.graph.input, *model.graph.output):
        shape = info.type.tensor_type.shape
        del shape.dim[:]
        shape.dim.add().dim_value = 0
    plan = onnxsim.plan_activation_memory(model, run_shape_inference=False)
    return {"bytes": plan.arena_bytes, "with_io": with_io.arena_bytes, "no_reuse": plan.naive_bytes}
