"""ONNX Runtime on the CPU, with its arena and its memory pattern, all graph optimizations on (the default).

The first run traces the allocations of all tensors; from the second on they are one block in the arena, whose size is
what the memory pattern needs. The profile says after each node how many bytes of the arena are in use, as requested
(without the arena's rounding to bins). We take the largest number from the second run on, less what was in use before
the first node ran (weights). Outputs are bound to memory of ours, as inputs are, so neither is counted. Scratch that a
kernel allocates and frees inside itself isn't counted either, which is in the peer's favour; the arena's high-water
mark, which has it (and all rounding, weights, and the first run, which has no pattern yet), is given as `arena_peak`.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}
RUNS = 2  # one to trace, one to measure


def _profile(path, folder) -> list[dict]:
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = options.enable_mem_pattern = options.enable_mem_reuse = True
    options.intra_op_num_threads = 1
    options.enable_profiling = True
    options.profile_file_prefix = str(Path(folder) / "profile")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    keep = []
    for tensor in session.get_inputs():
        keep.append(onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(tensor.shape, TYPES[tensor.type])))
        binding.bind_ortvalue_input(tensor.name, keep[-1])
    for tensor in session.get_outputs():
        if not all(isinstance(dim, int) for dim in tensor.shape):
            raise ValueError(f"output {tensor.name} has the shape {tensor.shape}, which isn't static")
        keep.append(onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(tensor.shape, TYPES[tensor.type])))
        binding.bind_ortvalue_output(tensor.name, keep[-1])
    for _ in range(RUNS):
        session.run_with_iobinding(binding)
    return json.loads(Path(session.end_profiling()).read_text())


def measure(path) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        events = _profile(path, folder)
    nodes = sorted((e for e in events if "mem_bytes_requested_in_use" in e.get("args", {})), key=lambda e: e["ts"])
    runs = sorted((e["ts"] for e in events if e["name"] == "model_run"))
    if len(runs) != RUNS or not nodes:
        raise ValueError("the profile doesn't say what the arena holds")
    first = nodes[0]["args"]
    before = int(first["mem_bytes_requested_in_use"]) - int(first["mem_requested_in_use_delta"])
    steady = [int(e["args"]["mem_bytes_requested_in_use"]) for e in nodes if e["ts"] >= runs[1]]
    return {"bytes": max(steady) - before, "before": before,
            "arena_peak": max(int(e["args"]["mem_in_use_peak"]) for e in nodes)}
