"""Best fit in start order, as upstream MLIR's static memory planner analysis does, written here: buffers in the order in
which their lives begin, each into the smallest free stretch below the top that holds it, else at the top (extending a
free stretch that touches it).

On the unfused buffer list: every tensor between the nodes of the simplified model, in the file's order (buffers.py).
"""

from .buffers import Tensor, buffers
from .greedy_by_size import aligned


def place(tensors: list[Tensor]) -> int:
    """Bytes of the block."""
    live: list[tuple[int, int, int]] = []  # offset, end, upper
    height = 0
    for tensor in sorted(tensors, key=lambda t: t.lower):
        live = sorted(b for b in live if b[2] > tensor.lower)
        size = aligned(tensor.bytes)
        best, smallest, end = None, None, 0
        for offset, top, _ in live:
            gap = offset - end
            if gap >= size and (smallest is None or gap < smallest):
                best, smallest = end, gap
            end = max(end, top)
        if best is None and height - end >= size and (smallest is None or height - end < smallest):
            best = end  # the stretch between the last live buffer and the top
        offset = end if best is None else best
        live.append((offset, offset + size, tensor.upper))
        height = max(height, offset + size)
    return height


def measure(path) -> dict:
    from .simplified import simplified  # needs onnxsim, which placing doesn't

    tensors = buffers(simplified(path))
    return {"bytes": place(tensors), "buffers": len(tensors)}
