"""Plans from files that may come from strangers: all that can be wrong with one is an error at its place."""

import copy
import json
import random

import pytest

import plan_files
from memplan_tools import compiler

pytestmark = pytest.mark.usefixtures("memplan_opt")
KINDS = ["html", "svg", "trace", "torch-snapshot", "csv"]
WRONG = [None, -1, 0, 1 << 62, 1 << 63, 1e300, 0.5, "x", "", True, [], {}, [[]], [-1], ["x"]]


def small() -> dict:
    """One of everything."""
    buffers = [plan_files.buffer(i, f"n{i}", 256, i, i + 2) for i in range(3)]
    plan_files.first_fit(buffers)
    buffers[1]["parts"] = [{"offset": 0, "bytes": 128, "lower": 1, "upper": 2}, {"offset": 128, "bytes": 128, "lower": 1, "upper": 3}]
    operations = [{"point": i, "end": i + 1, "op": "op", "nodes": [f"n{i}"]} for i in range(4)]
    value = {"name": "v", "function": 0, "bytes": 64, "type": "f32", "shape": [16], "written_at": [0], "read_at": [1]}
    return plan_files.document(buffers, operations, 4, weights=[{**value, "offset": 0}], inputs=[value], outputs=[value],
                               weights_bytes=256)


def paths(value, here=()):
    """Of everything in a document."""
    if here:
        yield here
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from paths(value[key], (*here, key))


def replaced(plan: dict, path: tuple, value) -> dict:
    changed = copy.deepcopy(plan)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def draw(file, kind: str):
    done = compiler.run(file, f"--emit={kind}", "-o", file.with_suffix(".out"), check=False)
    assert done.returncode in (0, compiler.EXIT["invalid"], compiler.EXIT["usage"]), (done.returncode, done.stderr)
    assert file.with_suffix(".out").exists() == (done.returncode == 0)
    file.with_suffix(".out").unlink(missing_ok=True)
    return done


def test_the_small_plan_is_right(tmp_path):
    plan_files.write(small(), tmp_path / "p.json")
    for kind in KINDS:
        assert draw(tmp_path / "p.json", kind).returncode == 0


def test_wrong_values(tmp_path):
    """Every field, in turn, with values that are of no use there."""
    plan, rng = small(), random.Random(5)
    refused = 0
    cases = [(path, value) for path in paths(plan) for value in WRONG]
    for number, (path, value) in enumerate(rng.sample(cases, 400)):
        plan_files.write(replaced(plan, path, value), tmp_path / "p.json")
        done = draw(tmp_path / "p.json", KINDS[number % len(KINDS)])
        if done.returncode:
            refused += 1
            assert "error: " in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert refused > 200


def test_each_required_field(tmp_path):
    """Without it, the error names it."""
    plan = small()
    optional = {"model", "parts", "memory_space", "change_first"}
    for path in paths(plan):
        if isinstance(path[-1], int) or path[-1] in optional or path == ("weights", 0, "offset"):
            continue
        changed = copy.deepcopy(plan)
        at = changed
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]
        plan_files.write(changed, tmp_path / "p.json")
        done = draw(tmp_path / "p.json", "csv")
        assert done.returncode == compiler.EXIT["invalid"] and f".{path[-1]}" in done.stderr, (path, done.stderr)


def test_damaged_text(tmp_path):
    rng = random.Random(6)
    whole = json.dumps(small()).encode()
    for number in range(100):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            data[at:at + rng.randint(0, 3)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 3)))
        (tmp_path / "p.json").write_bytes(data)
        draw(tmp_path / "p.json", KINDS[number % len(KINDS)])


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"\xef\xbb\xbf{}",
                                  b'{"version": 1e9999}', b'"' + b"\\" * 1001])
def test_no_plan_at_all(tmp_path, text):
    (tmp_path / "p.json").write_bytes(text)
    for kind in ("html", "svg"):
        assert draw(tmp_path / "p.json", kind).returncode == compiler.EXIT["invalid"]


def test_a_plan_that_was_written_is_read(tmp_path):
    """What is drawn of the file is what is drawn of the model."""
    (tmp_path / "m.mlir").write_text("""func.func @main(%x: memref<64xf32>, %y: memref<64xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<64xf32> loc("a")
  linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  linalg.exp ins(%a : memref<64xf32>) outs(%y : memref<64xf32>)
  return
}
""")
    flags = ["--no-in-place", "--no-forward", "-q"]
    compiler.run(tmp_path / "m.mlir", "--emit=plan", "-o", tmp_path / "p.json", *flags)
    for kind in KINDS:
        for source, out in (("m.mlir", "a"), ("p.json", "b")):
            compiler.run(tmp_path / source, f"--emit={kind}", "-o", tmp_path / out, *(flags if source == "m.mlir" else []))
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
