"""Greedy by size, as TensorFlow Lite's arena planner places (Pisarchyk and Lee, 2020), written here: the largest tensor
first, at the lowest offset where the gap between those alive with it that are already placed is smallest.

On the unfused buffer list: every tensor between the nodes of the simplified model, in the file's order (buffers.py).
"""

from .buffers import Tensor, buffers

ALIGNMENT = 64


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def place(tensors: list[Tensor]) -> int:
    """Bytes of the block."""
    placed: list[tuple[int, int, Tensor]] = []  # offset, end, tensor; by offset
    height = 0
    for tensor in sorted(tensors, key=lambda t: (-t.bytes, t.lower)):
        size = aligned(tensor.bytes)
        best, smallest, end = None, None, 0
        for offset, top, other in placed:
            if other.upper <= tensor.lower or tensor.upper <= other.lower:
                continue
            gap = offset - end
            if gap >= size and (smallest is None or gap < smallest):
                best, smallest = end, gap
            end = max(end, top)
        offset = end if best is None else best
        placed.append((offset, offset + size, tensor))
        placed.sort(key=lambda p: p[:2])
        height = max(height, offset + size)
    return height


def measure(path) -> dict:
    from .simplified import simplified  # needs onnxsim, which placing doesn't

    tensors = buffers(simplified(path))
    return {"bytes": place(tensors), "buffers": len(tensors), "no_reuse": sum(t.bytes for t in tensors)}
