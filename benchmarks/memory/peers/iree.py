"""IREE for the host's CPU: the transient memory that its stream scheduling allocates.

`--iree-scheduling-dump-statistics-format=csv` prints one sum, which has the outputs' buffers (`external`) in it, and what
initializers need at load time. We read the same allocations from the IR that the same call prints, of the function that
runs the model, and leave `external` ones out; the printed sum is `statistics`. Weights are parameters of an archive and
never counted. Two optimization levels are compiled, and the smaller number is taken.
"""

import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

LEVELS = ("O0", "O3")
ALLOCA = re.compile(r"(%\S+), %\S+ = stream\.resource\.alloca .*!stream\.resource<(\w+)>\{(%\w+)\}")
DEALLOCA = re.compile(r"stream\.resource\.dealloca .*?(%\w+) :")


def _run(program, *arguments):
    done = subprocess.run([str(Path(sys.executable).parent / program), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["failed"]
        errors = [line.split("error: ")[-1] for line in lines if "error:" in line]
        raise ValueError(errors[0] if errors else lines[-1])


def _transient(text: str) -> int:
    """The largest sum of transient allocations alive in one function."""
    constants = {n: int(v) for n, v in re.findall(r"(%\w+) = arith\.constant (\d+) : index", text)}
    peak = now = 0
    live, counting = {}, False
    for line in text.splitlines():
        if re.match(r"  util\.(func|initializer)\b", line):
            now, live, counting = 0, {}, "util.func" in line
        if counting and (match := ALLOCA.search(line)) and match[2] == "transient":
            if match[3] not in constants:
                raise ValueError(f"allocates {match[3]} bytes, which isn't a constant")
            live[match[1]] = constants[match[3]]
            now += live[match[1]]
            peak = max(peak, now)
        elif counting and (match := DEALLOCA.search(line)):
            now -= live.pop(match[1], 0)
    return peak


def measure(path) -> dict:
    sizes, printed = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        imported = Path(folder) / "model.mlir"
        opset = next(o.version for o in onnx.load(path, load_external_data=False).opset_import if not o.domain)
        newer = ("--opset-version", 17) if opset < 17 else ()
        _run("iree-import-onnx", path, "-o", imported, *newer, "--externalize-params", "--no-save-params",
             "--num-elements-threshold", 64)
        for level in LEVELS:
            statistics, out = Path(folder) / f"{level}.csv", Path(folder) / f"{level}.mlir"
            _run("iree-compile", imported, "--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
                 "--iree-llvmcpu-target-cpu=host", f"--iree-opt-level={level}", "--compile-to=stream", "-o", out,
                 "--iree-scheduling-dump-statistics-format=csv", f"--iree-scheduling-dump-statistics-file={statistics}")
            rows = list(csv.reader(line for line in statistics.read_text().splitlines() if not line.startswith(";") and line))
            printed[level] = int(rows[1][rows[0].index("Transient Size")])
            sizes[level] = _transient(out.read_text())
    best = min(LEVELS, key=sizes.get)
    return {"bytes": sizes[best], "level": best, "levels": sizes, "statistics": printed[best]}
