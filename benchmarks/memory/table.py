#!/usr/bin/env python3
"""What every model needs in memory for its activations, technique by technique, and what other programs need for it.

    PYTHONPATH=python PEERS/bin/python benchmarks/memory/table.py [NAME...] [--batch 1 8] [--json FILE]

PEERS is a virtual environment with requirements.txt of this folder. README.md there says what is counted for whom.
All sizes are MiB of activations: no weights, no inputs, no outputs.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import files
import memplan_models
from memplan_tools import compiler

HERE = Path(__file__).resolve().parent

#: The nine classic classifiers, then what has been made since.
MODELS = ("alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
          "zfnet512", "mobilenet_v2", "efficientnet_b0", "unet", "yolo", "randwire", "bert_base", "gpt2_step", "vit_b16")

#: What each technique is called in the table, and the flag that turns it off; in the order in which the columns add them.
TECHNIQUES = (("schedule", "--no-schedule"), ("forward", "--no-forward"), ("in place", "--no-in-place"),
              ("fusion", "--no-fusion"))

#: module in peers/: heading
PEERS = {"ort": "ORT", "onnxsim_plan": "onnxsim", "iree": "IREE", "tvm_relax": "TVM", "emx": "emx",
         "greedy_by_size": "by size*", "best_fit": "best fit*"}


@dataclass
class Cell:
    """A number of bytes, or the reason why there is none."""
    bytes: int | None = None
    reason: str = ""
    more: dict | None = None

    def __str__(self):
        return "-" if self.bytes is None else f"{self.bytes / 2**20:.2f}"


def known_techniques() -> list[tuple[str, str]]:
    """Those that this build of the compiler can turn off."""
    text = compiler.run("--help").stdout
    return [t for t in TECHNIQUES if re.search(rf"^  {t[1]}\b", text, re.MULTILINE)]


def columns(techniques) -> list[tuple[str, tuple[str, ...], str]]:
    """(heading, flags, key in the plan) of each of our columns."""
    every = tuple(flag for _, flag in techniques)
    found = [("no reuse", every, "no_reuse_bytes")]
    if techniques:
        found.append(("lifetimes", every, "arena_bytes"))
    for i, (name, _) in enumerate(techniques[:-1]):
        found.append((f"+ {name}", every[i + 1:], "arena_bytes"))
    found += [("arena", (), "arena_bytes"), ("bound", (), "lower_bound_bytes")]
    return found


def ours(path: Path, specs, more: list[str]) -> tuple[dict[str, Cell], bool | None]:
    """Our columns and whether the arena is proved to be the least."""
    plans, cells = {}, {}
    for heading, flags, key in specs:
        if flags not in plans:
            try:
                plans[flags] = compiler.plan(path, None, *flags, *more)
            except RuntimeError as error:
                plans[flags] = str(error).splitlines()[-1]
        plan = plans[flags]
        cells[heading] = Cell(reason=plan) if isinstance(plan, str) else Cell(plan[key])
    last = plans[()]
    return cells, None if isinstance(last, str) else last["optimal"]


def peer(name: str, path: Path, limit: float) -> Cell:
    start = time.perf_counter()
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen([sys.executable, "-m", "peers", name, str(path.resolve())], cwd=HERE, text=True, env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # the peer's own compiler too
        process.communicate()
        return Cell(reason=f"time limit of {limit:g} s")
    if process.returncode:
        lines = errors.strip().splitlines() or [f"exit code {process.returncode}"]
        return Cell(reason=lines[-1][:300])
    more = json.loads(out.strip().splitlines()[-1])
    return Cell(more.pop("bytes"), more=more | {"seconds": round(time.perf_counter() - start, 1)})


@dataclass
class Row:
    model: str
    batch: int
    ours: dict[str, Cell]
    proved: bool | None
    peers: dict[str, Cell]

    @property
    def best(self) -> tuple[str, int] | None:
        known = [(cell.bytes, name) for name, cell in self.peers.items() if cell.bytes]
        return min(known)[::-1] if known else None

    @property
    def ratio(self) -> float | None:
        arena = self.ours["arena"].bytes
        return arena / self.best[1] if arena and self.best else None

    def as_json(self) -> dict:
        def cells(all_cells):
            return {k: {"bytes": c.bytes} | ({"reason": c.reason} if c.bytes is None else {}) | (c.more or {})
                    for k, c in all_cells.items()}
        return {"model": self.model, "batch": self.batch, "ours": cells(self.ours), "proved": self.proved,
                "peers": cells(self.peers), "best_peer": self.best and self.best[0], "ratio": self.ratio}


def earlier_peers(path: Path) -> dict[tuple[str, int], dict[str, Cell]]:
    """Peers' cells by model and batch, from a file that --json wrote."""
    def cell(values):
        return Cell(values.pop("bytes"), values.pop("reason", ""), values)

    return {(row["model"], row["batch"]): {p: cell(v) for p, v in row["peers"].items()} for row in json.loads(path.read_text())}


def line(cells) -> str:
    return "".join([f"{cells[0]:22}", f"{cells[1]:>5}", *(f"{str(c):>11}" for c in cells[2:])])


def geometric_mean(values) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"models; all when none is named: {', '.join(MODELS)}")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS), metavar="PEER",
                        help=f"which of {', '.join(PEERS)} (default all; none when empty)")
    parser.add_argument("--flag", action="append", default=[], help="for every compile of ours, such as --flag=--alignment=64")
    parser.add_argument("--peers-from", type=Path, metavar="FILE",
                        help="take the peers' numbers from what --json wrote before, where it has them; ours are measured")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one peer on one model (default 120)")
    parser.add_argument("--folder", type=Path, help="where model files are kept for the next time (default: nowhere)")
    parser.add_argument("--json", type=Path, help="also write everything, in bytes, to this file")
    options = parser.parse_args()

    techniques = known_techniques()
    specs = columns(techniques)
    for name, flag in TECHNIQUES:
        if (name, flag) not in techniques:
            print(f"no column for {name}: {compiler.tool()} has no {flag}", file=sys.stderr)
    print(line(["model", "batch", *(s[0] for s in specs), "proved", *(PEERS[p] for p in options.peers), "ours/best"]))
    rows, notes = [], []
    known = earlier_peers(options.peers_from) if options.peers_from else {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.names or [m for m in MODELS if m in memplan_models.NAMES]:
            for batch in options.batch:
                path = files.write(name, batch, folder)
                mine, proved = ours(path, specs, options.flag)
                before = known.get((name, batch), {})
                row = Row(name, batch, mine, proved,
                          {p: before.get(p) or peer(p, path, options.limit) for p in options.peers})
                rows.append(row)
                ratio = f"{row.ratio:.3f}" if row.ratio else "-"
                print(line([name, batch, *mine.values(), {True: "yes", False: "no", None: "-"}[proved], *row.peers.values(),
                            ratio]), flush=True)
                notes += [f"{name}, batch {batch}, {PEERS.get(who, who)}: {cell.reason}"
                          for who, cell in (mine | row.peers).items() if cell.bytes is None]
                if options.json:
                    options.json.write_text(json.dumps([r.as_json() for r in rows], indent=1) + "\n")
            if not options.folder:
                for old in folder.glob(f"{name}.*"):
                    old.unlink()
    print("* own implementation, on the unfused buffer list")
    for note in notes:
        print(f"- {note}")
    ratios = [r.ratio for r in rows if r.ratio]
    if ratios:
        worse = [f"{r.model} (batch {r.batch}, {PEERS[r.best[0]]})" for r in rows if r.ratio and r.ratio > 1]
        print(f"ours over the best peer: {geometric_mean(ratios):.3f} in geometric mean over {len(ratios)} rows; "
              f"larger than the best peer's: {', '.join(worse) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
