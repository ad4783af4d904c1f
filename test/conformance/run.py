#!/usr/bin/env python3
"""Runs onnx.backend.test through memplan and compares every case's outcome with expectations.txt.

    python test/conformance/run.py                      # all cases; one line for each that isn't expected
    python test/conformance/run.py --match attention -v # some, one line a case
    python test/conformance/run.py --nvcc 1 --table docs/Operators.md
    python test/conformance/run.py --update             # writes expectations.txt anew
"""

import argparse
import collections
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "python")]

import harness  # noqa: E402
import suite  # noqa: E402
import table  # noqa: E402

EXPECTATIONS = Path(__file__).with_name("expectations.txt")
HEADER = """\
# What onnx.backend.test gives, for the cases that don't pass: case, outcome, reason. See harness.py for the outcomes.
# Made by `python test/conformance/run.py --update`; a change in either direction fails the run.
"""


def expected(path: Path = EXPECTATIONS) -> dict[str, tuple[str, str]]:
    """Outcome and reason of the cases that don't pass."""
    lines = [line.split(None, 2) for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name: (outcome, rest[0] if rest else "") for name, outcome, *rest in lines}


def unexpected(results: list[harness.Result], known: dict) -> list[str]:
    lines = []
    for r in results:
        want = known.get(r.case.name, ("pass", ""))[0]
        if r.outcome != want:
            lines.append(f"{r.case.name}: {r.outcome}, expected {want}{': ' if r.reason else ''}{r.reason}")
    return lines


def summary(results: list[harness.Result]) -> str:
    count = collections.Counter(r.outcome for r in results)
    order = ("pass", "drawn", "unsupported", "wrong", "error")
    rounded = sum(r.outcome == "pass" and r.reason == harness.ROUNDING for r in results)
    return (f"{len(results)} cases: " + ", ".join(f"{count[o]} {o}" for o in order) +
            f" ({100 * count['pass'] / max(1, len(results)):.1f} % pass; {rounded} of these {harness.ROUNDING})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only cases whose name this regular expression finds")
    parser.add_argument("--kinds", nargs="*", default=suite.KINDS, help="of " + " ".join(suite.KINDS))
    parser.add_argument("--every", type=int, default=1, help="only every N-th case")
    parser.add_argument("--nvcc", type=int, default=0, metavar="N", help="compile every N-th with nvcc too; 0: none")
    parser.add_argument("--folder", type=Path, help="where emitted code goes and stays (default: a temporary one)")
    parser.add_argument("--table", type=Path, help="write the table by operator")
    parser.add_argument("--update", action="store_true", help="write expectations.txt")
    parser.add_argument("-v", "--verbose", action="store_true", help="one line a case")
    options = parser.parse_args()

    started = time.monotonic()
    cases = [c for c in suite.load(options.kinds) if re.search(options.match, c.name)][::options.every]
    with tempfile.TemporaryDirectory() as scratch:
        results = harness.run(cases, options.folder or Path(scratch), options.nvcc)
    if options.verbose:
        for r in results:
            print(r.case.name, r.outcome, r.reason)
    if options.update:
        lines = [f"{r.case.name} {r.outcome} {r.reason}" for r in results if r.outcome != "pass"]
        EXPECTATIONS.write_text(HEADER + "\n".join(sorted(lines)) + "\n")
    if options.table:
        options.table.write_text(table.render(results))
    surprises = unexpected(results, expected())
    print("\n".join(surprises))
    print(f"{summary(results)}; {len(surprises)} not as expected [{time.monotonic() - started:.0f} s]")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
