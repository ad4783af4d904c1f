#!/usr/bin/env python3
"""Builds, runs, checks and measures the models of this bundle.

    python3 run.py            on the GPU: needs nvcc and a driver, nothing else
    python3 run.py --host     without a GPU: needs a C++17 compiler
    python3 run.py --compile-only --arch sm_80 --arch sm_90

Standard library only. ONNX Runtime (with numpy) is timed beside the emitted code where it is installed.
"""

import argparse
import array
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARRAY_TYPES = {"float32": "f", "float64": "d", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
               "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "bool": "B"}
WRAPPED = ("cudaMalloc", "cudaMallocAsync", "cudaFree", "cudaStreamSynchronize", "cudaDeviceSynchronize")


class Failure(Exception):
    pass


def find(program: str):
    beside = Path("/usr/local/cuda/bin") / program
    return shutil.which(program) or (str(beside) if beside.exists() else None)


def call(command, what: str, **options) -> str:
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise Failure(f"{what} failed with exit code {done.returncode}:\n{(done.stderr or done.stdout).strip()[-3000:]}")
    return done.stdout


def device_arch() -> str:
    """sm_NN of the first GPU."""
    smi = find("nvidia-smi")
    if not smi:
        raise Failure("nvidia-smi isn't there, so no GPU is; run with --host, or name --arch and --compile-only")
    capability = call([smi, "--query-gpu=compute_cap", "--format=csv,noheader"], "nvidia-smi").splitlines()[0]
    return "sm_" + capability.strip().replace(".", "")


class Model:
    def __init__(self, about: dict, build: Path):
        self.about, self.name = about, about["name"]
        self.folder, self.build = HERE / "models" / about["name"], build
        self.row: dict = {}

    def reads_back(self) -> bool:
        """Whether a run waits for values from the device, which its header tells."""
        return "_num_readbacks" in (self.folder / f"{self.name}.h").read_text()

    def compile_command(self, args, arch, program: Path, checked: bool = False):
        defines = [f"-DMODEL={self.about['c_name']}", f'-DMODEL_HEADER="{self.name}.h"',
                   "-I", HERE / "include", "-I", self.folder]
        if self.reads_back():
            defines.append("-DMODEL_READS_BACK")
        sources = [self.folder / f"{self.name}.cu", HERE / "driver.cu"]
        if args.host:
            return [os.environ.get("CXX", "g++"), "-std=c++17", "-O2", "-pthread",
                    *(["-DMEMPLAN_CHECKED"] if checked else []), *defines, "-x", "c++", *sources, "-o", program]
        wraps = ",".join(f"--wrap={name}" for name in WRAPPED)
        return [find("nvcc"), "-std=c++17", "-O3", f"-arch={arch}", "-Werror", "all-warnings", "-cudart=static",
                *defines, *sources, "-Xlinker", wraps, "-lcublasLt", "-o", program]

    def compile(self, args, arch, checked: bool = False) -> Path:
        """The program; kept from an earlier call if nothing that it is made of has changed."""
        program = self.build / f"{self.name}-{'checked' if checked else arch}"
        command = self.compile_command(args, arch, program, checked)
        digest = hashlib.sha256(repr(list(map(str, command))).encode())
        for path in [HERE / "driver.cu", *sorted(self.folder.glob("*.cu")), *sorted(self.folder.glob("*.h")),
                     *sorted((HERE / "include").rglob("*.h"))]:
            digest.update(path.read_bytes())
        stamp = program.with_suffix(".stamp")
        if not (program.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest()):
            call(command, f"compiling {self.name} for {arch}")
            stamp.write_text(digest.hexdigest())
        return program

    def drive(self, program: Path, runs: int, wrapper=()) -> dict:
        out = self.build / f"{self.name}.out"
        out.mkdir(exist_ok=True)
        inputs = [self.folder / t["file"] for t in self.about["inputs"]]
        # Eager: all code is on the device after load, so that growth during run can only be the model's.
        environment = dict(os.environ, CUDA_MODULE_LOADING="EAGER")
        text = call([*wrapper, program, self.folder / f"{self.name}.safetensors", runs, out, *inputs],
                    f"running {self.name}", env=environment)
        # A wrapper may print lines of its own.
        return json.loads(next(line for line in text.splitlines() if line.startswith("{")))

    def worst(self) -> float:
        """The largest error over its tolerance; 1 is the limit."""
        largest = 0.0
        for i, tensor in enumerate(self.about["outputs"]):
            got, want = (array.array(ARRAY_TYPES[tensor["dtype"]], path.read_bytes())
                         for path in (self.build / f"{self.name}.out" / f"{i}.bin", self.folder / tensor["file"]))
            if len(got) != len(want):
                raise Failure(f"{self.name}: output {tensor['name']!r} has {len(got)} elements, want {len(want)}")
            for g, w in zip(got, want):
                if g == w or (g != g and w != w):
                    continue
                error = abs(g - w) / (self.about["absolute"] + self.about["relative"] * abs(w))
                largest = max(largest, error if math.isfinite(error) else math.inf)
        return largest


def runtime_milliseconds(model: Model, host: bool):
    """ONNX Runtime's time per run, its provider; None where it isn't installed or has no such provider."""
    path = model.folder / "model.onnx"
    try:
        import numpy
        import onnxruntime
    except ImportError:
        return None
    provider = "CPUExecutionProvider" if host else "CUDAExecutionProvider"
    if not path.exists() or provider not in onnxruntime.get_available_providers():
        return None
    import time
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=[provider])
    binding = session.io_binding()
    for tensor in model.about["inputs"]:
        values = numpy.fromfile(model.folder / tensor["file"], tensor["dtype"]).reshape(tensor["shape"])
        binding.bind_ortvalue_input(tensor["name"], onnxruntime.OrtValue.ortvalue_from_numpy(
            values, "cpu" if host else "cuda", 0))
    for tensor in model.about["outputs"]:
        binding.bind_output(tensor["name"], "cpu" if host else "cuda")
    for _ in range(5):
        session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    runs, start = 0, time.perf_counter()
    while runs < 200 and time.perf_counter() - start < 2.0:
        session.run_with_iobinding(binding)
        runs += 1
    binding.synchronize_outputs()
    return (time.perf_counter() - start) * 1e3 / runs


def mebibytes(value) -> str:
    return f"{value / 2**20:.2f}"


def yes(value: bool) -> str:
    return "yes" if value else "NO"


def examine(model: Model, args, arch: str) -> None:
    """Fills model.row; raises Failure."""
    row, about = model.row, model.about
    row["model"] = model.name
    row["weights MiB"], row["arena MiB"] = mebibytes(about["weights_bytes"]), mebibytes(about["arena_bytes"])
    row["bound MiB"], row["no reuse MiB"] = mebibytes(about["lower_bound_bytes"]), mebibytes(about["no_reuse_bytes"])
    row["optimal"] = "yes" if about["optimal"] else "not proved"
    program = model.compile(args, arch)

    found = model.drive(program, args.runs)
    row["error/tolerance"] = f"{model.worst():.3f}"
    problems = []
    if model.worst() > 1:
        problems.append("the result is wrong")
    if not found["runs_same"]:
        problems.append("a later run gave another result than the first")
    block = found["weights_bytes"] + found["arena_bytes"]
    if found["arena_bytes"] != about["arena_bytes"] or found["weights_bytes"] != about["weights_bytes"]:
        problems.append("the code's sizes aren't the plan's")
    row["allocs load/run"] = f"{found['load_allocations']}/{found['run_allocations']}"
    row["syncs in run"] = str(found["run_synchronisations"])
    # Workspace for cuBLASLt is part of the plan, so one block is all there is; an empty block needs none.
    if found["load_allocations"] != (1 if block else 0) or found["run_allocations"]:
        problems.append("load must allocate once, run never allocate")
    if found["run_synchronisations"] and not model.reads_back():
        problems.append("run must not wait")
    if not args.host:
        row["load +MiB"], row["run +MiB"] = mebibytes(found["load_memory"]), mebibytes(found["run_growth"])
        if "graph_same" in found:
            row["graph nodes"], row["graph same"] = str(found["graph_nodes"]), yes(found["graph_same"])
        if found["run_growth"] > 0:
            problems.append(f"device memory grew by {found['run_growth']} bytes over {args.runs} runs")
        if not found.get("graph_same", True):
            problems.append("the graph's replay gave another result")

    if args.host:
        model.drive(model.compile(args, arch, checked=True), 0)
        row["checked"] = yes(model.worst() <= 1)
    else:
        sanitizer = find("compute-sanitizer")
        if sanitizer:
            model.drive(program, 0, [sanitizer, "--error-exitcode", "9"])
        row["sanitizer"] = "clean" if sanitizer else "not installed"

    if "run_ms" in found:
        row["run ms"] = f"{found['run_ms']:.3f}"
    if "graph_ms" in found:
        row["graph ms"] = f"{found['graph_ms']:.3f}"
    if not args.no_baseline:
        baseline = runtime_milliseconds(model, args.host)
        row["ONNX Runtime ms"] = "-" if baseline is None else f"{baseline:.3f}"
    row["device"] = found["device"]
    if problems:
        raise Failure("; ".join(problems))


def table(rows: list[dict]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns] + [[row.get(c, "-") for c in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = ["  ".join(w.ljust(n) if not i else w.rjust(n) for i, (w, n) in enumerate(zip(line, widths)))
             for line in cells]
    lines.insert(1, "  ".join("-" * n for n in widths))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names; all when none is given")
    parser.add_argument("--host", action="store_true", help="build with $CXX (g++) and run without a GPU")
    parser.add_argument("--runs", type=int, help="runs to repeat and time (default 1000; with --host 3)")
    parser.add_argument("--arch", action="append", help="sm_NN; default: the GPU's")
    parser.add_argument("--compile-only", action="store_true", help="compile for each --arch and leave")
    parser.add_argument("--no-baseline", action="store_true", help="don't time ONNX Runtime")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilations at a time")
    args = parser.parse_args()
    args.runs = args.runs if args.runs is not None else (3 if args.host else 1000)

    manifest = json.loads((HERE / "manifest.json").read_text())
    known = {m["name"]: m for m in manifest["models"]}
    unknown = [m for m in args.models if m not in known]
    if unknown:
        parser.error(f"no model is named {', '.join(unknown)}; there are {', '.join(known)}")
    build = HERE / ("build-host" if args.host else "build-cuda")
    build.mkdir(exist_ok=True)
    models = [Model(known[name], build) for name in (args.models or known)]

    try:
        if not args.host and not find("nvcc"):
            raise Failure("nvcc isn't there (nor in /usr/local/cuda/bin); --host runs without it")
        architectures = ["host"] if args.host else args.arch or [device_arch()]
        for arch in architectures:
            if not re.fullmatch(r"host|sm_\d+[af]?", arch):
                raise Failure(f"--arch {arch}: want sm_NN")
        if args.compile_only or len(models) > 1:
            jobs = [(m, arch) for m in models for arch in architectures]
            with ThreadPoolExecutor(args.jobs) as pool:
                for (m, arch), _ in zip(jobs, pool.map(lambda job: job[0].compile(args, job[1]), jobs)):
                    print(f"compiled {m.name} for {arch}", flush=True)
        if args.compile_only:
            return 0
    except Failure as failure:
        print(f"run.py: {failure}", file=sys.stderr)
        return 1

    failures = {}
    for model in models:
        print(f"running {model.name}", flush=True)
        try:
            examine(model, args, architectures[0])
        except Failure as failure:
            failures[model.name] = str(failure)
        model.row["verdict"] = "FAILED" if model.name in failures else "pass"
    print()
    print(table([m.row for m in models]))
    for name, failure in failures.items():
        print(f"\n{name}: {failure}")
    print(f"\n{len(models) - len(failures)} of {len(models)} models passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
