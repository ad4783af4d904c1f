#!/usr/bin/env python3
"""Prints how the solver does on published instances, instance by instance.

    benchmarks/solver_table.py --data DIR                       this project's solver
    benchmarks/solver_table.py --data DIR --minimalloc BIN      beside MiniMalloc, as ratios
    benchmarks/solver_table.py --data DIR --rules               what each search rule is worth

DIR holds CSV files; a file NAME.CAPACITY.csv is solved for that capacity, and all are minimised. Times are user CPU
seconds of whole processes, the least of `--runs`, taken in turn with those of the other program. Standard library only.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = ["decompose", "backjump", "remember", "order-stacks", "order-twins"]


def cpu_seconds(command, timeout):
    """User CPU time of a command and what it printed; (None, "") if it takes longer than `timeout`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, ""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, done.stdout


def capacity_of(path):
    """The number in NAME.CAPACITY.csv, or None."""
    suffix = pathlib.Path(path.stem).suffix[1:]
    return int(suffix) if suffix.isdigit() else None


def solve(options, path, *flags):
    command = [options.solver, str(path), "--json", "--jobs=1", f"--effort={options.effort}", *flags]
    seconds, output = cpu_seconds(command, options.timeout)
    return seconds, json.loads(output) if output else None


def fastest(measure, runs):
    results = [measure() for _ in range(runs)]
    return min(results, key=lambda result: result[0] if result[0] is not None else float("inf"))


def show(seconds):
    return "-" if seconds is None else f"{seconds:.3f}"


def print_row(widths, cells):
    print("  ".join(str(cell).rjust(width) for cell, width in zip(cells, widths)), flush=True)


def compare(options, files):
    """One row an instance: fitting its capacity, then minimising."""
    widths = [12, 8, 12, 12, 8, 12, 12, 9, 8, 10]
    print_row(widths, ["instance", "buffers", "fit cpu s", "minimalloc", "ratio", "height", "bound", "excess %",
                       "cpu s", "status"])
    for path in files:
        capacity = capacity_of(path)
        fit = other = (None, None)
        if capacity is not None:
            fit = fastest(lambda: solve(options, path, f"--capacity={capacity}"), options.runs)
            if options.minimalloc:
                command = [options.minimalloc, f"--capacity={capacity}", f"--input={path}", f"--output={os.devnull}"]
                other = fastest(lambda: cpu_seconds(command, options.timeout), options.runs)
        seconds, low = fastest(lambda: solve(options, path), 1)
        ratio = f"{other[0] / max(fit[0], 1e-3):.0f}" if other[0] is not None else "-"
        if low is None:
            print_row(widths, [path.stem, "-", show(fit[0]), show(other[0]), ratio, "-", "-", "-", "-", "time-out"])
            continue
        excess = 100 * (low["height"] / low["lower_bound"] - 1) if low["lower_bound"] else 0
        print_row(widths, [path.stem.split(".")[0], low["buffers"], show(fit[0]), show(other[0]), ratio, low["height"],
                           low["lower_bound"], f"{excess:.4f}", show(seconds), low["status"]])


def measure_rules(options, files):
    """Steps without each rule over steps with all, where a capacity is given; '>' where the effort ran out."""
    widths = [12, 14] + [14] * len(RULES)
    print_row(widths, ["instance", "steps"] + [f"no {rule}" for rule in RULES])
    for path in files:
        capacity = capacity_of(path)
        if capacity is None:
            continue
        _, base = solve(options, path, f"--capacity={capacity}")
        cells = [path.stem.split(".")[0], base["steps"]]
        for rule in RULES:
            _, result = solve(options, path, f"--capacity={capacity}", f"--{rule}=false")
            mark = ">" if result["status"] == "limit" else ""
            cells.append(f"{mark}{result['steps'] / base['steps']:.2f}")
        print_row(widths, cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with the instances")
    parser.add_argument("--solver", default=str(ROOT / "build/release/bin/memplan-solve"))
    parser.add_argument("--minimalloc", help="a build of google/minimalloc to compare with")
    parser.add_argument("--rules", action="store_true", help="measure the search rules instead")
    parser.add_argument("--effort", type=int, default=2_000_000_000, help="steps for each solve")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for each process")
    options = parser.parse_args()
    files = sorted(options.data.glob("*.csv"))
    if not files:
        sys.exit(f"no .csv files in {options.data}")
    (measure_rules if options.rules else compare)(options, files)


if __name__ == "__main__":
    main()
