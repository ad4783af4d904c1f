#!/usr/bin/env python3
"""Writes the files that a fuzzer starts from: small models of the ONNX suite, lit's own inputs, small tables.

    python test/fuzz/seeds.py FUZZER FOLDER
"""

import random
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 3000


def onnx_models():
    """One or two of each set of operators."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    count: dict[tuple, int] = {}
    for case in cases:
        key = tuple(sorted({n.op_type for n in case.model.graph.node}))
        count[key] = count.get(key, 0) + 1
        data = case.model.SerializeToString()
        if count[key] <= 2 and len(data) < MOST_BYTES:
            yield data


def external_data():
    for keys in ({"location": "w.bin"}, {"location": "sub/w.bin", "offset": "4", "length": "16"},
                 {"location": "../secret.bin"}, {"location": "link.bin"}, {"location": "linked/secret.bin"},
                 {"location": "./sub//w.bin", "checksum": "0" * 40}):
        yield "\0".join(word for pair in keys.items() for word in pair).encode()


def mlir():
    for path in sorted((ROOT / "test").rglob("*.mlir")):
        for part in path.read_text().split("// -----"):
            lines = [line for line in part.splitlines() if not line.strip().startswith("//")]
            text = "\n".join(lines).strip()
            if text and len(text) < MOST_BYTES:
                yield text.encode()


def tables():
    rng = random.Random(0)
    yield b"id,lower,upper,size\n0,0,1,4\n"
    for columns in ("id,lower,upper,size", "id,lower,upper,size,alignment", "id,lower,upper,size,gaps",
                    "id,lower,upper,size,group,group_offset", "id,lower,upper,size,offset,hint", "buffer,start,end,size"):
        lines = [columns]
        for i in range(rng.randrange(2, 9)):
            lower = rng.randrange(20)
            row = {"id": i, "buffer": i, "lower": lower, "start": lower, "upper": lower + rng.randrange(1, 9),
                   "end": lower + rng.randrange(1, 9), "size": rng.randrange(1, 64), "alignment": 1 << rng.randrange(5),
                   "gaps": "", "group": "", "group_offset": "", "offset": "", "hint": rng.randrange(64)}
            lines.append(",".join(str(row[c]) for c in columns.split(",")))
        yield "\n".join(lines).encode() + b"\n"


SOURCES = {"OnnxFuzzer": onnx_models, "ExternalDataFuzzer": external_data, "MlirFuzzer": mlir, "CsvFuzzer": tables}


def main(fuzzer: str, folder: str) -> None:
    path = Path(folder)
    path.mkdir(parents=True)
    for i, data in enumerate(SOURCES[fuzzer]()):
        (path / f"{i:04}").write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
