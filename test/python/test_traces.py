"""Plans as others' tools read them: trace events (Perfetto), PyTorch's snapshots, a model's metadata (Netron)."""

import json
import pickle
import pickletools

import numpy as np
import onnx
import pytest

import memplan_models
import onnx_models as om
import plan_files
from memplan_tools import compiler, reference

pytestmark = pytest.mark.usefixtures("memplan_opt")

LOOP = """func.func @main(%x: memref<64xf32>, %y: memref<64xf32> {bufferize.result}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<64xf32> loc("state")
  linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>) loc("init")
  scf.for %i = %c0 to %c4 step %c1 {
    %b = memref.alloc() : memref<64xf32> loc("temporary")
    linalg.exp ins(%a : memref<64xf32>) outs(%b : memref<64xf32>) loc("body1")
    linalg.add ins(%a, %b : memref<64xf32>, memref<64xf32>) outs(%a : memref<64xf32>) loc("body2")
  } loc("loop")
  linalg.exp ins(%a : memref<64xf32>) outs(%y : memref<64xf32>) loc("last")
  return
}
"""


def model_and_flags(name: str, folder):
    if name == "loop":
        (folder / "loop.mlir").write_text(LOOP)
        return folder / "loop.mlir", ["--no-in-place", "--no-forward"]
    return memplan_models.write(name, folder), compiler.dim_flags(memplan_models.entry(name).dims)


# --- Trace events ---


def check_trace_events(trace: dict) -> None:
    """The rules of the Trace Event Format's JSON object form, for the phases that are used."""
    assert trace["displayTimeUnit"] in ("ms", "ns")
    last: dict[tuple, list] = {}
    for e in trace["traceEvents"]:
        assert e["ph"] in "MXC" and isinstance(e["name"], str) and e["name"]
        assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and isinstance(e["args"], dict)
        if e["ph"] == "M":
            assert e["name"] in ("process_name", "thread_name") and isinstance(e["args"]["name"], str)
            continue
        assert isinstance(e["ts"], (int, float)) and e["ts"] >= 0
        if e["ph"] == "C":
            assert e["args"] and all(isinstance(v, (int, float)) for v in e["args"].values())
            continue
        assert isinstance(e["dur"], (int, float)) and e["dur"] > 0 and isinstance(e["cat"], str)
        # On one thread a slice lies within the one that is open, or after it.
        open_ = last.setdefault((e["pid"], e["tid"]), [])
        while open_ and open_[-1]["ts"] + open_[-1]["dur"] <= e["ts"]:
            open_.pop()
        assert not open_ or e["ts"] + e["dur"] <= open_[-1]["ts"] + open_[-1]["dur"], e
        open_.append(e)


@pytest.mark.parametrize("name", ["mobilenet_v2", "densenet121", "loop"])
def test_trace(tmp_path, name):
    model, flags = model_and_flags(name, tmp_path)
    trace = json.loads(compiler.run(model, "--emit=trace", "-q", *flags).stdout)
    plan = json.loads(compiler.run(model, "--emit=plan", "-q", *flags).stdout)
    check_trace_events(trace)
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    [function] = plan["functions"]
    assert [(e["ts"], e["ts"] + e["dur"], e["cat"]) for e in slices] == \
        [(o["point"], o["end"], o["op"]) for o in function["operations"]]
    assert [e["name"] for e in slices] == ["+".join(o["nodes"]) or o["op"] for o in function["operations"]]
    # Every point is some slice's.
    assert {t for e in slices for t in range(e["ts"], e["ts"] + e["dur"])} == set(range(function["points"]))
    # Counters: what lives, within the padding of each buffer of a sweep of our own.
    live = [(e["ts"], e["args"]["bytes"]) for e in trace["traceEvents"] if e["ph"] == "C" and e["name"] == "live bytes"]
    needed = [b for b in plan["buffers"] if b["cause"] != "workspace"]
    for (time, bytes_), (want_time, want) in zip(live, plan_files.live_profile(needed), strict=True):
        assert time == want_time and want <= bytes_ < want + 256 * len(needed) + 1
    assert max(b for _, b in live) == plan["peaks"][0]["live_bytes"] <= plan["lower_bound_bytes"]
    # What an op touches lives then.
    by_name = {b["name"]: b for b in plan["buffers"]}
    for e in slices:
        for entry in e["args"]["writes"] + e["args"]["reads"]:
            b = by_name[entry["buffer"]]
            assert b["lower"] <= e["ts"] < b["upper"] and entry["bytes"] == b["bytes"]


def test_accesses_bound_the_lives(tmp_path):
    """What the plan's file says of reads and writes is what its lives are made of."""
    model, flags = model_and_flags("mobilenet_v2", tmp_path)
    for b in json.loads(compiler.run(model, "--emit=plan", "-q", *flags).stdout)["buffers"]:
        if b["cause"] == "workspace":
            continue
        uses = b["written_at"] + b["read_at"]
        assert min(uses) == min(b["written_at"]) == b["lower"] and max(uses) == b["upper"] - 1


def test_a_loop_keeps_what_it_carries(tmp_path):
    """Points: 0 init, 1 to 4 the loop with body1 at 2 and body2 at 3, 5 last."""
    model, flags = model_and_flags("loop", tmp_path)
    plan = json.loads(compiler.run(model, "--emit=plan", "-q", *flags).stdout)
    assert [(o["point"], o["end"], o["nodes"]) for o in plan["functions"][0]["operations"]] == [
        (0, 1, ["init"]), (1, 5, ["loop"]), (2, 3, ["body1"]), (3, 4, ["body2"]), (5, 6, ["last"])]
    state, temporary = plan["buffers"]
    assert (state["written_at"], state["read_at"], state["lower"], state["upper"]) == ([0, 3], [2, 3, 5], 0, 6)
    assert (temporary["written_at"], temporary["read_at"], temporary["lower"], temporary["upper"]) == ([2], [3], 2, 4)


# --- PyTorch's snapshot ---

#: what the unpickler of PyTorch's page knows (torch/utils/viz/MemoryViz.js)
PAGE_OPCODES = {"PROTO", "STOP", "MARK", "EMPTY_DICT", "EMPTY_LIST", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "BINUNICODE",
                "BININT", "BININT1", "BININT2", "LONG1", "NEWTRUE", "NEWFALSE", "NONE", "EMPTY_TUPLE"}
#: as docs.pytorch.org/docs/stable/torch_cuda_memory.html documents Snapshot, Segment, Block, Frame and TraceEntry
SEGMENT = {"address": int, "total_size": int, "stream": int, "segment_type": str, "allocated_size": int, "active_size": int,
           "blocks": list, "device": int}
BLOCK = {"size": int, "requested_size": int, "address": int, "state": str, "frames": list}
ENTRY = {"action": str, "addr": int, "frames": list, "size": int, "stream": int}
FRAME = {"filename": str, "line": int, "name": str}
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom", "snapshot"}


def check_fields(value: dict, fields: dict) -> None:
    for key, kind in fields.items():
        assert type(value[key]) is kind, (key, value[key])


def check_snapshot(snapshot: dict) -> tuple[int, dict]:
    """The structure, and a replay of the trace as an allocator would have lived it. Returns the most bytes of the arenas
    that were allocated at once, and what is still allocated at the end."""
    for segment in snapshot["segments"]:
        check_fields(segment, SEGMENT)
        assert segment["segment_type"] in ("small", "large")
        at = segment["address"]
        for block in segment["blocks"]:
            check_fields(block, BLOCK)
            assert block["state"] in ("active_allocated", "active_awaiting_free", "inactive")
            assert block["address"] == at and 0 <= block["requested_size"] <= block["size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        active = sum(b["size"] for b in segment["blocks"] if b["state"] == "active_allocated")
        assert active == segment["active_size"] == segment["allocated_size"]
    segments, live = {}, {}
    most = weights = 0
    [trace] = snapshot["device_traces"]
    for entry in trace:
        check_fields(entry, ENTRY)
        assert entry["action"] in ACTIONS
        for frame in entry["frames"]:
            check_fields(frame, FRAME)
        begin, end = entry["addr"], entry["addr"] + entry["size"]
        if entry["action"] == "segment_alloc":
            assert all(end <= low or high <= begin for low, high in segments.items())
            segments[begin] = end
        elif entry["action"] == "alloc":
            assert any(low <= begin and end <= high for low, high in segments.items()), "outside of all segments"
            assert all(end <= low or low + size <= begin for low, size in live.items()), "overlaps what lives"
            live[begin] = entry["size"]
            weights += entry["size"] * entry["frames"][0]["name"].startswith("weight ")
            most = max(most, sum(live.values()) - weights)
        elif entry["action"] == "free_completed":
            assert live.pop(begin) == entry["size"]
    assert segments == {s["address"]: s["address"] + s["total_size"] for s in snapshot["segments"]}
    active = {b["address"]: b["requested_size"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] != "inactive"}
    assert live == active
    return most, live


@pytest.mark.parametrize("name", ["mobilenet_v2", "densenet121", "loop"])
def test_torch_snapshot(tmp_path, name):
    model, flags = model_and_flags(name, tmp_path)
    compiler.run(model, "--emit=torch-snapshot", "-q", "-o", tmp_path / "s.pickle", *flags)
    plan = json.loads(compiler.run(model, "--emit=plan", "-q", *flags).stdout)
    data = (tmp_path / "s.pickle").read_bytes()
    assert {op.name for op, _, _ in pickletools.genops(data)} <= PAGE_OPCODES
    snapshot = pickle.loads(data)
    most, left = check_snapshot(snapshot)
    # At one time: workspaces are in the trace, too.
    assert most == max(b for _, b in plan_files.live_profile(plan["buffers"]))
    assert sorted(left.values()) == sorted(w["bytes"] for w in plan["weights"])
    allocs = [e for e in snapshot["device_traces"][0] if e["action"] == "alloc"]
    parts = sum(len(b.get("parts", [b])) for b in plan["buffers"])
    assert len(allocs) == parts + len(plan["weights"])
    arena = snapshot["segments"][-1]
    assert arena["total_size"] == plan["arena_bytes"]
    offsets = {e["addr"] - arena["address"] for e in allocs if not e["frames"][0]["name"].startswith("weight ")}
    assert offsets == {b["offset"] + p["offset"] for b in plan["buffers"] for p in b.get("parts", [{"offset": 0}])}


def test_torch_snapshot_of_many_buffers(tmp_path):
    plan = plan_files.large(3000)
    plan_files.write(plan, tmp_path / "p.json")
    compiler.run(tmp_path / "p.json", "--emit=torch-snapshot", "-o", tmp_path / "s.pickle")
    most, left = check_snapshot(pickle.loads((tmp_path / "s.pickle").read_bytes()))
    assert most == plan["peaks"][0]["live_bytes"] and not left


# --- The annotated model ---


def without_metadata(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto.FromString(model.SerializeToString())

    def clear(graph):
        for node in graph.node:
            del node.metadata_props[:]
            for attribute in node.attribute:
                for sub in (attribute.g, *attribute.graphs):
                    clear(sub)

    del copy.metadata_props[:]
    clear(copy.graph)
    return copy


def annotate(path, *flags) -> onnx.ModelProto:
    out = path.with_name("annotated.onnx")
    compiler.run(path, "--emit=onnx", "-q", "-o", out, *flags)
    return onnx.load(out, load_external_data=False)


def test_annotated_model_is_the_model(tmp_path):
    """The same but for the metadata, valid, and computes the same in ONNX Runtime."""
    path, flags = model_and_flags("mobilenet_v2", tmp_path)
    original, annotated = onnx.load(path, load_external_data=False), annotate(path, *flags)
    assert without_metadata(annotated) == original
    onnx.checker.check_model(str(tmp_path / "annotated.onnx"), full_check=True)
    inputs = reference.random_inputs(path, memplan_models.entry("mobilenet_v2").dims)
    a, b = reference.run(path, inputs), reference.run(tmp_path / "annotated.onnx", inputs)
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def test_annotations_are_the_plan(tmp_path):
    path, flags = model_and_flags("mobilenet_v2", tmp_path)
    plan = json.loads(compiler.run(path, "--emit=plan", "-q", *flags).stdout)
    annotated = annotate(path, *flags)
    figures = {p.key: p.value for p in annotated.metadata_props}
    assert figures["memplan.arena_bytes"] == str(plan["arena_bytes"]) and figures["memplan.optimal"] == "true"
    operations = plan["functions"][0]["operations"]
    seen = 0
    for node in annotated.graph.node:
        props = {p.key: p.value for p in node.metadata_props}
        mine = [o for o in operations if (node.name or node.output[0]) in o["nodes"]]
        if not mine:
            assert not props
            continue
        seen += 1
        points = [o["point"] for o in mine]
        assert props["memplan.point"] == "; ".join(map(str, points)) and props["memplan.op"] == "; ".join(o["op"] for o in mine)
        assert ("memplan.fused" in props) == any(len(o["nodes"]) > 1 for o in mine)
        for key, uses in (("memplan.writes", "written_at"), ("memplan.reads", "read_at")):
            want = [f"{b['name']}: {b['bytes']} bytes at {b['offset']}, lives [{b['lower']}, {b['upper']})"
                    for p in points for b in plan["buffers"] if p in b[uses]]
            assert props.get(key, "") == "; ".join(want)
    assert seen > 40


def test_annotating_twice_is_annotating_once(tmp_path):
    path = om.write(om.relu(), tmp_path / "m.onnx")
    made = onnx.load(path)
    made.metadata_props.add(key="mine", value="kept")
    made.graph.node[0].metadata_props.add(key="memplan.point", value="old")
    made.graph.node[0].metadata_props.add(key="mine", value="kept")
    om.write(made, path)
    once = annotate(path)
    assert {p.key: p.value for p in once.graph.node[0].metadata_props}["memplan.point"] == "0"
    for props in (once.metadata_props, once.graph.node[0].metadata_props):
        assert [p.value for p in props if p.key == "mine"] == ["kept"]
        assert len({p.key for p in props}) == len(props)
    om.write(once, path)
    assert annotate(path) == once


def test_nodes_of_subgraphs_are_annotated(tmp_path):
    def branch(op, name):
        return onnx.helper.make_graph([om.node(op, ["x"], [name], f"in_{name}")], name, [], [om.value(name, [4])])

    made = om.model([om.node("If", ["c"], ["y"], "if", then_branch=branch("Exp", "a"), else_branch=branch("Neg", "b"))],
                    [om.value("x", [4]), om.value("c", [], onnx.TensorProto.BOOL)], [om.value("y", [4])])
    annotated = annotate(om.write(made, tmp_path / "m.onnx"))
    assert without_metadata(annotated) == made
    for attribute in annotated.graph.node[0].attribute:
        assert [p.key for p in attribute.g.node[0].metadata_props][:1] == ["memplan.point"]


def test_external_data_keeps_its_folder(tmp_path):
    inside, flags = model_and_flags("mobilenet_v2", tmp_path)
    path = tmp_path / "external.onnx"
    onnx.save(onnx.load(inside), path, save_as_external_data=True, location="external.data", size_threshold=0)
    (tmp_path / "other").mkdir()
    for out in ("-", tmp_path / "other/m.onnx"):
        done = compiler.run(path, "--emit=onnx", "-q", "-o", out, *flags, check=False)
        assert done.returncode == compiler.EXIT["usage"] and done.stdout == ""
        assert "external data is found from the folder that its file is in" in done.stderr
    assert list((tmp_path / "other").iterdir()) == []
    assert without_metadata(annotate(path, *flags)) == onnx.load(path, load_external_data=False)
    onnx.checker.check_model(str(tmp_path / "annotated.onnx"))
