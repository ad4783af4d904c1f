"""Checks a plan as --emit=plan and --emit=csv print it, sharing nothing with the compiler: a sweep over time."""

import csv
import io


def list_parts(plan: dict) -> list[dict]:
    """What takes bytes at a time: each buffer, or its parts where they don't all live at one time."""
    found = []
    for b in plan["buffers"]:
        end = 0
        for part in b.get("parts", []):
            assert end <= part["offset"] and part["bytes"] > 0, f"parts out of order: {b}"
            end = part["offset"] + part["bytes"]
            assert end <= b["bytes"] and b["lower"] <= part["lower"] < part["upper"] <= b["upper"], b
            found.append({**part, "offset": b["offset"] + part["offset"]})
        if "parts" not in b:
            found.append(b)
    return found


def is_needed(b: dict) -> bool:
    """Whether bounds and sums count it: a workspace is what happens to be free."""
    return b.get("cause") != "workspace"


def check_plan(plan: dict, alignment: int = 256) -> None:
    for b in plan["buffers"]:
        assert b["bytes"] >= 0 and b["offset"] >= 0 and b["lower"] < b["upper"], b
        assert b["offset"] % alignment == 0, f"not aligned: {b}"
        assert b["offset"] + b["bytes"] <= plan["arena_bytes"], f"outside the arena: {b}"
    buffers = list_parts(plan)
    events = sorted([(b["lower"], 1, i) for i, b in enumerate(buffers)] +
                    [(b["upper"], 0, i) for i, b in enumerate(buffers)])  # half-open: ends come first
    live: set[int] = set()
    peak = 0
    for _, starts, i in events:
        if not starts:
            live.remove(i)
            continue
        mine = buffers[i]
        for other in (buffers[j] for j in live):
            apart = (mine["offset"] + mine["bytes"] <= other["offset"] or
                     other["offset"] + other["bytes"] <= mine["offset"])
            assert apart or not mine["bytes"] or not other["bytes"], f"overlap: {mine} and {other}"
        live.add(i)
        peak = max(peak, sum(buffers[j]["bytes"] for j in live if is_needed(buffers[j])))
    assert peak <= plan["arena_bytes"]
    assert plan["lower_bound_bytes"] <= plan["arena_bytes"] <= max(plan["no_reuse_bytes"], plan["arena_bytes"])
    # The bound may count alignment, so it is at least the plain sum at the fullest moment.
    assert peak <= plan["lower_bound_bytes"]
    assert plan["optimal"] == (plan["lower_bound_bytes"] == plan["arena_bytes"])
    assert plan["lower_bound_proof"] in ("live_bytes", "search")
    assert sum(b["bytes"] for b in plan["buffers"] if is_needed(b)) <= plan["no_reuse_bytes"]


def check_csv(text: str, plan: dict) -> None:
    """The CSV says the same as the JSON."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == "id,lower,upper,size,offset"
    got = sorted((int(r["lower"]), int(r["upper"]), int(r["size"]), int(r["offset"])) for r in rows)
    want = sorted((b["lower"], b["upper"], b["bytes"], b["offset"]) for b in list_parts(plan) if is_needed(b))
    assert got == want
