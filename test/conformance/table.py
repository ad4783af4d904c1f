"""The table of operators in docs/Operators.md."""

import collections

import harness

INTRO = """\
# Operators

Every operator that a case of the ONNX backend suite (`onnx.backend.test` {version}) uses, with how many of its cases
memplan imports, plans with its verifier silent, compiles with nvcc{gpu}, and gets right on the host build. Generated:

    python test/conformance/run.py --nvcc 1 --table docs/Operators.md

A case counts for each operator in its graph. Outcomes of the cases that don't pass are in
`test/conformance/expectations.txt`, with the reason.

{total}

| operator | cases | imported | planned | nvcc | right |
| --- | ---: | ---: | ---: | ---: | ---: |
"""


def _row(name: str, results: list[harness.Result]) -> str:
    tried = [r for r in results if r.nvcc is not None]
    gpu = str(sum(bool(r.nvcc) for r in tried)) if tried else "-"
    counts = (len(results), sum(r.imported for r in results), sum(r.planned for r in results), gpu,
              sum(r.outcome == "pass" for r in results))
    return f"| {name} | " + " | ".join(map(str, counts)) + " |"


def render(results: list[harness.Result]) -> str:
    import onnx

    import run

    by_operator = collections.defaultdict(list)
    for r in results:
        for operator in r.case.operators:
            by_operator[operator].append(r)
    rows = [_row("**all**", results)]
    for kind in dict.fromkeys(r.case.kind for r in results):
        rows.append(_row(f"*{kind}*", [r for r in results if r.case.kind == kind]))
    rows += [_row(name, by_operator[name]) for name in sorted(by_operator, key=str.lower)]
    tried = [r.nvcc is not None for r in results if r.planned]
    gpu = "" if all(tried) else " (a sample)" if any(tried) else " (not in this run)"
    return INTRO.format(version=onnx.__version__, gpu=gpu, total=run.summary(results) + ".") + "\n".join(rows) + "\n"
