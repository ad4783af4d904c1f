#!/usr/bin/env python3
"""Compile time and memory of the models that memplan carries, one line a model.

    PYTHONPATH=python build/venv/bin/python benchmarks/models.py [NAME...]

Times are the best of three compiles to CUDA (with the verifier, writing the files) of the release build.
"""

import sys
import tempfile
import time
from pathlib import Path

import memplan_models
from memplan_tools import compiler


def best_of(count: int, action) -> float:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    names = sys.argv[1:] or [n for n in memplan_models.NAMES if not n.startswith("light_")]
    print(f"tool: {compiler.tool()}")
    print(f"{'model':18}{'seconds':>9}{'weights MiB':>13}{'no reuse MiB':>14}{'arena MiB':>11}{'bound MiB':>11}  optimal")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            path = memplan_models.write(name, folder)
            dims = memplan_models.entry(name).dims
            seconds = best_of(3, lambda: compiler.emit_cuda(path, Path(folder) / "out" / name, dims, "-q"))
            plan = compiler.plan(path, dims)
            plan["no_reuse_bytes"] = compiler.plan(path, dims, "--no-reuse")["no_reuse_bytes"]
        sizes = "".join(f"{plan[key] / 2**20:{width}.2f}" for key, width in (
            ("weights_bytes", 13), ("no_reuse_bytes", 14), ("arena_bytes", 11), ("lower_bound_bytes", 11)))
        print(f"{name:18}{seconds:9.2f}{sizes}  {'yes' if plan['optimal'] else 'no'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
