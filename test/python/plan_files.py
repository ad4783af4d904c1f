"""Plans as --emit=plan writes them, made without the compiler: of any size, and hostile ones."""

import json
import random


def live_profile(buffers: list[dict]) -> list[list[int]]:
    """From each time on, so many bytes live, by a sweep."""
    changes: dict[int, int] = {}
    for b in buffers:
        for part in b.get("parts", [b]):
            changes[part["lower"]] = changes.get(part["lower"], 0) + part["bytes"]
            changes[part["upper"]] = changes.get(part["upper"], 0) - part["bytes"]
    live, profile = 0, []
    for time in sorted(changes):
        live += changes[time]
        profile.append([time, live])
    return profile


def first_fit(buffers: list[dict], alignment: int = 256) -> int:
    """Gives each buffer an offset, in the order of birth; returns the height."""
    height = 0
    live: list[dict] = []
    for b in sorted(buffers, key=lambda b: (b["lower"], -b["bytes"])):
        live = sorted((o for o in live if o["upper"] > b["lower"]), key=lambda o: o["offset"])
        offset = 0
        for other in live:
            if offset + b["bytes"] <= other["offset"]:
                break
            end = other["offset"] + other["bytes"]
            offset = max(offset, -(-end // alignment) * alignment)
        b["offset"] = offset
        live.append(b)
        height = max(height, offset + b["bytes"])
    return height


def document(buffers: list[dict], operations: list[dict], points: int, model: str = "made", **more) -> dict:
    """A whole plan of one function and one arena."""
    height = max((b["offset"] + b["bytes"] for b in buffers), default=0)
    live = live_profile(buffers)
    peak = max(live, key=lambda entry: entry[1], default=[0, 0])
    at_peak = [b for b in buffers if b["lower"] <= peak[0] < b["upper"]]
    total = sum(b["bytes"] for b in buffers)
    figures = {"no_reuse_bytes": total, "lower_bound_bytes": peak[1], "lower_bound_proof": "live_bytes",
               "optimal": peak[1] == height, "alignment": 256}
    return {"version": 1, "model": model, "arena_bytes": height, "weights_bytes": 0, **figures, "buffers": buffers,
            "peaks": [{"function": "main", "point": peak[0], "node": "", "live_bytes": peak[1],
                       "buffers": [{"name": b["name"], "first_written_by": "", "last_used_by": "",
                                    "live_bytes_without": peak[1] - b["bytes"]} for b in at_peak]}],
            "arenas": [{"function": 0, "bytes": height, **figures, "live": live}],
            "functions": [{"name": "main", "points": points, "operations": operations}],
            "weights": [], "inputs": [], "outputs": [], **more}


def buffer(index: int, node: str, size: int, lower: int, upper: int, offset: int = 0) -> dict:
    return {"name": f"b{index}", "cause": "activation", "bytes": size, "lower": lower, "upper": upper, "offset": offset,
            "type": "f32", "shape": [size // 4], "node": node, "written_at": [lower], "read_at": [upper - 1], "arena": 0}


def large(count: int, seed: int = 0) -> dict:
    """Blocks of a network that shrinks, with long-lived skips: `count` buffers, one an operation."""
    rng = random.Random(seed)
    buffers, operations = [], []
    for i in range(count):
        stage = i * 6 // count
        node = f"stage{stage}/block{i // 40 % 64}/op{i % 40}"
        # Activations shrink from stage to stage; in each, a few live long.
        size = 256 * max(1, int(rng.lognormvariate(0, 0.9) * 400 / 2 ** (stage / 2)))
        life = rng.randint(2, 6) if rng.random() < 0.93 else rng.randint(20, max(21, count // 40))
        buffers.append(buffer(i, node, size, i, min(count, i + life)))
        operations.append({"point": i, "end": i + 1, "op": "linalg.generic", "nodes": [node]})
    first_fit(buffers)
    return document(buffers, operations, count, model=f"made of {count:,} buffers")


def write(plan: dict, path) -> str:
    path.write_text(json.dumps(plan))
    return str(path)
