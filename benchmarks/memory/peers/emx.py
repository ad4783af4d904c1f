"""emx-onnx-cgen: the arrays that the C code it writes declares for tensors.

The entry function has one local array for each tensor between nodes, with inputs and outputs as its arguments and
weights outside; a node's function may have arrays of its own while it runs. All temporaries are put on the stack
(`--large-temp-threshold 0`), so that each has a declaration with its size: the entry function's sum, and the largest of a
node function.
"""

import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = {"float": 4, "double": 8, "int64_t": 8, "int32_t": 4, "int16_t": 2, "int8_t": 1, "uint8_t": 1, "uint64_t": 8,
         "uint32_t": 4, "uint16_t": 2, "bool": 1, "_Bool": 1}
ARRAY = re.compile(rf"^\s+(?:static )?({'|'.join(SIZES)}) \w+((?:\[\d+\])+);")


def _locals(text: str) -> dict[str, int]:
    """Bytes of the arrays that each function declares."""
    sizes, current = {}, ""
    for line in text.splitlines():
        if line and not line[0].isspace() and "(" in line:
            current = re.findall(r"(\w+)\s*\(", line)[0]
        elif match := ARRAY.match(line):
            elements = math.prod(map(int, re.findall(r"\[(\d+)\]", match[2])))
            sizes[current] = sizes.get(current, 0) + elements * SIZES[match[1]]
    return sizes


def measure(path) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.c"
        done = subprocess.run([str(Path(sys.executable).parent / "emx-onnx-cgen"), "compile", path, str(file), "--model-name",
                               "model", "--large-temp-threshold", "0"], capture_output=True, text=True,
                              cwd=Path(path).parent)  # where it looks for external weights
        if done.returncode:
            lines = (done.stderr + done.stdout).strip().splitlines()
            raise ValueError(lines[-1] if lines else "failed")
        text = file.read_text()
    if "malloc" in text:
        raise ValueError("allocates at run time")
    sizes = _locals(text)
    entry = sizes.pop("model", 0)
    return {"bytes": entry + max(sizes.values(), default=0), "entry": entry}
