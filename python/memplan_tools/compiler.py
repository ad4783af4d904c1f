"""Calls memplan-opt."""

import json
import os
import re
import subprocess
from pathlib import Path

from . import ROOT

#: exit codes by class, as `memplan-opt --help` documents them
EXIT = {"done": 0, "usage": 1, "invalid": 2, "unsupported": 3, "unbound": 4, "budget": 5, "verifier": 6, "internal": 70}


def tool(name: str = "memplan-opt") -> Path:
    """The tool of $MEMPLAN_BIN, else of the release build, else of the dev build."""
    folders = [Path(os.environ["MEMPLAN_BIN"])] if os.environ.get("MEMPLAN_BIN") else \
        [ROOT / "build/release/bin", ROOT / "build/dev/bin"]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(f"{name} is in none of {', '.join(map(str, folders))}; build it, or set MEMPLAN_BIN")


def identifier(header) -> str:
    """The C identifier that the functions of an emitted header begin with."""
    return re.search(r"size_t (\w+)_weights_bytes\(void\)", Path(header).read_text())[1]


def run(*arguments, check: bool = True, **options) -> subprocess.CompletedProcess:
    command = [str(tool()), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr}")
    return done


def dim_flags(dims: dict[str, int]) -> list[str]:
    return [f for name, value in dims.items() for f in ("--dim", f"{name}={value}")]


def emit_cuda(model, prefix, dims: dict[str, int] | None = None, *flags: str) -> str:
    """Writes prefix.cu, prefix.h and prefix.safetensors; returns the summary that the compiler printed."""
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    return run(model, "--emit=cuda", "-o", prefix, *dim_flags(dims or {}), *flags).stderr


def plan(model, dims: dict[str, int] | None = None, *flags: str) -> dict:
    return json.loads(run(model, "--emit=plan", "-q", *dim_flags(dims or {}), *flags).stdout)
