"""The memory map in a real browser: what it draws is the plan, and it can be used by mouse and by keyboard."""

import json
import re

import pytest

import browser
import memplan_models
import plan_files
from memplan_tools import compiler

pytestmark = pytest.mark.usefixtures("memplan_opt")
MODELS = ["mobilenet_v2", "densenet121"]


@pytest.fixture(scope="module")
def chromium():
    program = browser.find()
    if not program:
        pytest.skip("no chromium; scripts/install-deps.sh installs Debian's, or set MEMPLAN_BROWSER")
    with browser.Browser(program) as running:
        yield running


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """Of each model the page and the plan that it shows."""
    folder = tmp_path_factory.mktemp("maps")
    found = {}
    for name in MODELS:
        model, dims = memplan_models.write(name, folder), memplan_models.entry(name).dims
        compiler.run(model, "--emit=html", "-q", "-o", folder / f"{name}.html", *compiler.dim_flags(dims))
        found[name] = folder / f"{name}.html", compiler.plan(model, dims)
    return found


def draw(plan: dict, path):
    file = path.with_suffix(".json")
    plan_files.write(plan, file)
    compiler.run(file, "--emit=html", "-o", path)
    return path


def expected_rectangles(plan: dict) -> list[tuple]:
    """(buffer, part, lower, upper, first byte, last byte + 1), of what takes bytes."""
    found = []
    for b in plan["buffers"]:
        for i, part in enumerate(b.get("parts", [{**b, "offset": 0}])):
            if part["bytes"]:
                begin = b["offset"] + part["offset"]
                found.append((b["name"], i, part["lower"], part["upper"], begin, begin + part["bytes"]))
    return sorted(found)


def drawn_rectangles(page, view: int = 0) -> list[dict]:
    return json.loads(page.evaluate(f"JSON.stringify(memplanMap.rectangles({view}))"))


def colour_of(text: str) -> list[int]:
    return [int(text[i:i + 2], 16) for i in (1, 3, 5)]


def check_quiet(page) -> None:
    assert page.problems == []
    assert [u for u in page.requests if not u.startswith(("file:", "data:"))] == []


def middle(page, b: dict, view: int = 0) -> tuple[float, float]:
    """Where the largest part of a buffer is, in pixels of the page."""
    parts = b.get("parts", [{**b, "offset": 0}])
    part = max(parts, key=lambda p: p["bytes"] * (p["upper"] - p["lower"]))
    time = (part["lower"] + part["upper"]) / 2
    # Off the middle, where a point of time may begin and lines of text are.
    address = b["offset"] + part["offset"] + part["bytes"] * 0.3
    at = page.evaluate(f"memplanMap.place({time}, {address}, {view})")
    return at["x"], at["y"]


def by_area(plan: dict) -> list[dict]:
    return sorted(plan["buffers"], key=lambda b: -sum(p["bytes"] * (p["upper"] - p["lower"]) for p in b.get("parts", [b])))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_rectangles_are_the_plan(chromium, maps, name, dark):
    path, plan = maps[name]
    with chromium.open(path, dark=dark) as page:
        got = drawn_rectangles(page)
        assert sorted((r["buffer"], r["part"], r["lower"], r["upper"], r["begin"], r["end"]) for r in got) == \
            expected_rectangles(plan)
        assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
        # One scale for all: pixels are times and addresses.
        drawn = [r for r in got if r["pixels"]["width"] > 1 and r["pixels"]["height"] > 1]
        scale = max(r["pixels"]["width"] / (r["upper"] - r["lower"]) for r in drawn)
        height = max(r["pixels"]["height"] / (r["end"] - r["begin"]) for r in drawn)
        for r in drawn:
            assert r["pixels"]["width"] == pytest.approx(scale * (r["upper"] - r["lower"]), abs=0.01)
            assert r["pixels"]["height"] == pytest.approx(height * (r["end"] - r["begin"]), abs=0.01)
        check_quiet(page)


@pytest.mark.parametrize("name", MODELS)
def test_the_pixels_are_the_rectangles(chromium, maps, name):
    """Colours on the canvas itself: of buffers in the middle of theirs, and of the background where nobody lives."""
    path, plan = maps[name]
    with chromium.open(path) as page:
        page.evaluate("document.querySelector('input[value=size]').click()")  # plain colours, no patterns
        seen = 0
        for r in drawn_rectangles(page):
            if r["pixels"]["width"] < 8 or r["pixels"]["height"] < 12:
                continue
            want = colour_of(page.evaluate(f"memplanMap.colour('{r['buffer']}')"))
            # Lines and names cover some: near one of the corners nothing does.
            corners = [(r["lower"] + t * (r["upper"] - r["lower"]), r["begin"] + a * (r["end"] - r["begin"]))
                       for t in (0.1, 0.3, 0.7, 0.9) for a in (0.12, 0.3, 0.88)]
            got = [page.evaluate(f"memplanMap.pixel({t}, {a})") for t, a in corners]
            assert want in got, (r, want, got)
            seen += 1
        assert seen >= 10
        background = colour_of(page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--plot').trim()"))
        points, top = plan["functions"][0]["points"], plan["arena_bytes"]
        empty = [(t, a) for t in range(points) for a in (top * 0.83, top * 0.61)
                 if not any(low <= t < high and begin <= a < end for _, _, low, high, begin, end in expected_rectangles(plan))]
        got = [page.evaluate(f"memplanMap.pixel({t + 0.5}, {a})") for t, a in empty[-20:]]
        assert empty and got.count(background) >= 0.8 * len(got)  # grid lines are there as well


def test_the_live_bytes_are_those_of_the_plan(chromium, maps):
    path, plan = maps["densenet121"]
    with chromium.open(path) as page:
        live = page.evaluate("memplanMap.live()")
    # All sizes of this model are multiples of 256 but the last ones', so a plain sum is near.
    events = plan_files.live_profile([b for b in plan["buffers"] if b["cause"] != "workspace"])
    for (time, bytes_), (expected_time, expected) in zip(live, events, strict=True):
        assert time == expected_time and 0 <= bytes_ - expected <= 256 * len(plan["buffers"])
    assert max(b for _, b in live) == plan["peaks"][0]["live_bytes"]


@pytest.mark.parametrize("name", MODELS)
def test_hover_says_what_it_is(chromium, maps, name):
    path, plan = maps[name]
    with chromium.open(path) as page:
        for b in by_area(plan)[:6]:
            page.move(*middle(page, b))
            tip = page.text("#tooltip")
            shape = f"{b['type']}[{', '.join(map(str, b['shape']))}]"
            for part in (b["node"], b["name"], shape, f"[{b['lower']}, {b['upper']})"):
                assert part in tip, (b, tip)
            details = page.text("#details")
            for part in (b["node"], shape, f"{b['bytes']:,} bytes", "Why it is there", "Shares bytes with"):
                assert part in details, (b, details)
        page.move(2, 2)
        assert page.evaluate("document.getElementById('tooltip').hidden")
        check_quiet(page)


def test_a_click_selects_and_lists_what_shares_the_bytes(chromium, maps):
    path, plan = maps["mobilenet_v2"]
    with chromium.open(path) as page:
        b = by_area(plan)[0]
        page.click(*middle(page, b))
        assert page.evaluate("memplanMap.selected()") == b["name"]
        overlaps = {o["name"] for o in plan["buffers"] if o is not b and o["offset"] < b["offset"] + b["bytes"] and
                    b["offset"] < o["offset"] + o["bytes"]}
        assert f"Shares bytes with {len(overlaps)}, at other times" in page.text("#details")
        listed = re.findall(r"\b(b\d+), \[", page.text("#details"))
        assert listed and set(listed) <= overlaps
        page.evaluate("document.querySelector('#details ul button').click()")
        assert page.evaluate("memplanMap.selected()") == listed[0]
        page.press("Escape")
        assert page.evaluate("memplanMap.selected()") is None
        check_quiet(page)


def test_search(chromium, maps):
    path, plan = maps["mobilenet_v2"]
    with chromium.open(path) as page:
        page.press("/")
        assert page.evaluate("document.activeElement.id") == "search"
        page.type("block3 expand")
        want = [b["name"] for b in plan["buffers"] if "block3" in b["node"] and "expand" in b["node"]]
        assert want and page.evaluate("memplanMap.matches()") == want
        assert page.text("#matches") == f"{len(want)} of {len(plan['buffers'])}"
        rows = page.evaluate("[...document.querySelectorAll('#blame tbody tr')].map(r => r.dataset.buffer)")
        assert sorted(rows) == sorted(want)
        for name in (*want, want[0]):  # and around
            page.press("Enter")
            assert page.evaluate("memplanMap.selected()") == name
        page.press("Escape")
        page.press("Escape")
        assert page.evaluate("memplanMap.matches()") == [] and page.text("#matches") == ""
        check_quiet(page)


def test_keyboard(chromium, maps):
    """Without a mouse: to the map, between buffers in time and in address, in and out."""
    path, plan = maps["mobilenet_v2"]
    by_name = {b["name"]: b for b in plan["buffers"]}

    def selected():
        return by_name[page.evaluate("memplanMap.selected()")]

    with chromium.open(path) as page:
        for _ in range(40):
            page.press("Tab")
            if page.evaluate("document.activeElement.tagName") == "CANVAS":
                break
        assert page.evaluate("document.activeElement.tagName") == "CANVAS"
        page.press("ArrowRight")
        first = selected()
        peak = plan["peaks"][0]
        assert first["name"] == peak["buffers"][0]["name"]  # the largest at the peak
        page.press("ArrowUp")
        above = selected()
        assert above["offset"] > first["offset"] and above["lower"] < first["upper"] and first["lower"] < above["upper"]
        page.press("ArrowDown")
        assert selected() == first
        before = [b["name"] for b in sorted(plan["buffers"], key=lambda b: (b["lower"], plan["buffers"].index(b)))]
        page.press("ArrowLeft")
        assert selected()["name"] == before[before.index(first["name"]) - 1]
        assert selected()["node"] in page.text("#announcer")
        whole = page.evaluate("memplanMap.range()")
        page.press("+")
        closer = page.evaluate("memplanMap.range()")
        assert closer["t1"] - closer["t0"] < whole["t1"] - whole["t0"] and closer["a1"] - closer["a0"] < whole["a1"] - whole["a0"]
        page.press("ArrowRight", shift=True)
        assert page.evaluate("memplanMap.range()")["t0"] > closer["t0"]
        page.press("-")
        page.press("0")
        assert page.evaluate("memplanMap.range()") == whole
        page.press("p")
        there = page.evaluate("memplanMap.range()")
        assert there["t0"] <= peak["point"] < there["t1"]
        page.press("Escape")
        assert page.evaluate("memplanMap.selected()") is None
        check_quiet(page)


def test_the_table_blames_those_at_the_peak(chromium, maps):
    path, plan = maps["densenet121"]
    peak = plan["peaks"][0]
    with chromium.open(path) as page:
        rows = page.evaluate("[...document.querySelectorAll('#blame tbody tr')].map(r => r.dataset.buffer)")
        at_peak = {b["name"]: b["live_bytes_without"] for b in peak["buffers"]}
        assert set(rows[:len(at_peak)]) == set(at_peak)
        assert [at_peak[n] for n in rows[:len(at_peak)]] == sorted(at_peak.values())
        page.evaluate("[...document.querySelectorAll('#blame th button')].find(b => b.textContent.startsWith('Bytes')).click()")
        rows = page.evaluate("[...document.querySelectorAll('#blame tbody tr')].map(r => r.dataset.buffer)")
        sizes = {b["name"]: b["bytes"] for b in plan["buffers"]}
        assert [sizes[n] for n in rows] == sorted(sizes.values(), reverse=True)[:len(rows)]
        assert page.evaluate("document.querySelector('#blame th[aria-sort]').getAttribute('aria-sort')") == "descending"
        check_quiet(page)


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(chromium, maps, dark):
    """WCAG AA, 4.5 to 1: text on what it stands on, and names on every colour of a rectangle."""
    path, _ = maps["mobilenet_v2"]
    script = """(() => {
      const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return {rgb: m.slice(0, 3), a: m.length > 3 ? m[3] : 1}; };
      const lum = rgb => { const [r, g, b] = rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const worst = [];
      for (const node of document.querySelectorAll('body *')) {
        if (![...node.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !node.getClientRects().length) continue;
        if (['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(node.tagName) || node.closest('.unseen')) continue;
        let at = node, back = {a: 0};
        while (at && back.a === 0) { back = parse(getComputedStyle(at).backgroundColor); at = at.parentElement; }
        const [a, b] = [lum(parse(getComputedStyle(node).color).rgb), lum(back.rgb)];
        worst.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.tagName, node.textContent.slice(0, 30)]);
      }
      return worst.sort((a, b) => a[0] - b[0]).slice(0, 3);
    })()"""
    with chromium.open(path, dark=dark) as page:
        worst = page.evaluate(script)
        assert worst[0][0] >= 4.5, worst


def test_theme_switch_and_reduced_motion(chromium, maps):
    path, _ = maps["mobilenet_v2"]
    with chromium.open(path, dark=True, reduced_motion=True) as page:
        background = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(background)
        assert page.evaluate("getComputedStyle(document.getElementById('theme')).transitionDuration") == "0s"
        page.evaluate("document.getElementById('theme').click()")
        assert page.text("#theme") == "Theme: light" and page.evaluate(background) != dark
        page.evaluate("document.getElementById('theme').click()")
        assert page.text("#theme") == "Theme: dark" and page.evaluate(background) == dark
        check_quiet(page)


HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a\u2028b\u2029c", "\u202egnp.exe", "nul\0l",
           "\x1b[31m", "\"'`${x}", "<!--", "]]>", "&lt;", "\u2066x", "ü\U0001f600", "constructor", "__proto__", "a" * 3000]


def test_hostile_names(chromium, tmp_path):
    """Names are text, whatever they say; what would not be seen is spelled out."""
    buffers = [plan_files.buffer(i, name, 256 * (i + 1), i, i + 2) for i, name in enumerate(HOSTILE)]
    plan_files.first_fit(buffers)
    operations = [{"point": i, "end": i + 1, "op": name, "nodes": [name]} for i, name in enumerate(HOSTILE)]
    plan = plan_files.document(buffers, operations, len(HOSTILE) + 1, model=HOSTILE[0])
    values = [{"name": n, "function": 0, "bytes": 4, "type": n, "shape": [1], "written_at": [], "read_at": [0]} for n in HOSTILE]
    plan.update(inputs=values, outputs=values, weights=[{**v, "offset": 0} for v in values], weights_bytes=256)
    path = draw(plan, tmp_path / "hostile.html")
    text = path.read_text()
    assert len(re.findall("</script", text)) == 2 and not re.search("[\u2028\u2029\u202e\u2066\0\x1b]", text)
    with chromium.open(path) as page:
        assert [r["buffer"] for r in drawn_rectangles(page)] == [b["name"] for b in buffers]
        assert page.evaluate("document.querySelectorAll('script').length") == 2
        assert page.evaluate("document.querySelectorAll('img').length") == 0
        rows = page.text("#blame")
        for shown in ("</script><script>alert(1)</script>", "\\u202egnp.exe", "a\\u2028b\\u2029c", "nul\\u0000l", "\\u2066x", "ü\U0001f600"):
            assert shown in rows, shown
        for b in by_area(plan)[:5]:
            page.move(*middle(page, b))
        check_quiet(page)
    svg = tmp_path / "hostile.svg"
    compiler.run(tmp_path / "hostile.json", "--emit=svg", "-o", svg)
    with chromium.open(svg) as page:
        assert page.evaluate("document.querySelectorAll('rect.activation').length") >= len(HOSTILE)
        assert page.evaluate("document.querySelectorAll('script, img').length") == 0
        check_quiet(page)


def test_twenty_thousand_buffers_are_quick(chromium, tmp_path):
    plan = plan_files.large(20_000)
    path = draw(plan, tmp_path / "large.html")
    with chromium.open(path) as page:
        got = drawn_rectangles(page)
        assert sorted((r["buffer"], r["part"], r["lower"], r["upper"], r["begin"], r["end"]) for r in got) == \
            expected_rectangles(plan)
        # Far above what it takes here (10 ms), far below what would be a hang.
        assert page.evaluate("(() => { const t = performance.now(); for (let i = 0; i < 5; ++i) memplanMap.redraw();"
                             "return performance.now() - t; })()") < 5 * 500
        page.press("/")
        page.type("stage3 op17")
        want = [b["name"] for b in plan["buffers"] if "stage3" in b["node"] and "op17" in b["node"]]
        assert page.evaluate("memplanMap.matches()") == want
        page.press("Escape")
        for b in by_area(plan)[:5]:
            page.move(*middle(page, b))
            assert b["node"] in page.text("#tooltip")
        check_quiet(page)


def test_two_plans_side_by_side(chromium, tmp_path):
    model, dims = memplan_models.write("mobilenet_v2", tmp_path), memplan_models.entry("mobilenet_v2").dims
    plans = []
    for name, flags in (("a", ["--no-fusion"]), ("b", [])):
        compiler.run(model, "--emit=plan", "-q", "-o", tmp_path / f"{name}.json", *compiler.dim_flags(dims), *flags)
        plans.append(json.loads((tmp_path / f"{name}.json").read_text()))
    compiler.run("--compare", tmp_path / "a.json", tmp_path / "b.json", "--emit=html", "-o", tmp_path / "c.html")
    with chromium.open(tmp_path / "c.html", width=1600) as page:
        for view, plan in enumerate(plans):
            got = [(r["buffer"], r["part"], r["lower"], r["upper"], r["begin"], r["end"]) for r in drawn_rectangles(page, view)]
            assert sorted(got) == expected_rectangles(plan)
        ranges = [page.evaluate(f"memplanMap.range({view})") for view in (0, 1)]
        assert ranges[0]["a1"] == ranges[1]["a1"]  # one scale of addresses
        headings = page.evaluate("[...document.querySelectorAll('.view h2')].map(h => h.textContent)")
        assert headings == ["Left: mobilenet_v2 (a.json)", "Right: mobilenet_v2 (b.json)"]
        table = page.text("#comparison-table")
        for plan in plans:
            assert f"{plan['arena_bytes'] / 2**20:.2f} MiB" in table
        # A buffer of both is shown in both.
        b = by_area(plans[1])[0]
        page.click(*middle(page, b, view=1))
        assert page.evaluate("memplanMap.selected(1)") == b["name"]
        other = page.evaluate("memplanMap.selected(0)")
        match = next((a for a in plans[0]["buffers"] if (a["node"], a["shape"]) == (b["node"], b["shape"])), None)
        assert (other is None) == (match is None)
        check_quiet(page)


def test_several_arenas_can_be_chosen(chromium, tmp_path):
    """One for each memory space."""
    source = tmp_path / "m.mlir"
    source.write_text("""func.func @main(%x: memref<64xf32>, %y: memref<64xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<64xf32> loc("a")
  %b = memref.alloc() : memref<64xf32, 1> loc("b")
  linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  linalg.exp ins(%a : memref<64xf32>) outs(%b : memref<64xf32, 1>)
  linalg.exp ins(%b : memref<64xf32, 1>) outs(%y : memref<64xf32>)
  return
}
""")
    flags = ["--no-in-place", "--no-forward", "-q"]
    compiler.run(source, "--emit=html", "-o", tmp_path / "m.html", *flags)
    plan = json.loads(compiler.run(source, "--emit=plan", *flags).stdout)
    assert len(plan["arenas"]) == 2
    with chromium.open(tmp_path / "m.html") as page:
        for arena in (0, 1):
            page.evaluate(f"(() => {{ const s = document.getElementById('arena'); s.selectedIndex = {arena};"
                          "s.dispatchEvent(new Event('change')); })()")
            page.settle()
            assert {r["buffer"] for r in drawn_rectangles(page)} == {b["name"] for b in plan["buffers"] if b["arena"] == arena}
        check_quiet(page)


def test_a_model_without_buffers(chromium, tmp_path):
    (tmp_path / "m.mlir").write_text("func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {\n"
                                     "  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)\n  return\n}\n")
    for kind in ("html", "svg"):
        compiler.run(tmp_path / "m.mlir", f"--emit={kind}", "-q", "-o", tmp_path / f"m.{kind}")
        with chromium.open(tmp_path / f"m.{kind}") as page:
            check_quiet(page)


@pytest.mark.parametrize("kind", ["html", "svg", "trace", "torch-snapshot"])
def test_the_same_bytes_each_time(maps, tmp_path, kind):
    model, dims = memplan_models.write("mobilenet_v2", tmp_path), memplan_models.entry("mobilenet_v2").dims
    for name in "ab":
        compiler.run(model, f"--emit={kind}", "-q", "-o", tmp_path / name, *compiler.dim_flags(dims))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
