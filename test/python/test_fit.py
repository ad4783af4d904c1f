"""--memory-budget, --sweep and --fit-batch against plans made one by one."""

import re

import numpy as np
import onnx
import pytest

import memplan_models
from memplan_tools import compiler

pytestmark = pytest.mark.usefixtures("memplan_opt")

#: model, the dimension to fit, the others
MODELS = [("mobilenet_v2_small", "N", {}), ("bert_small", "N", {"S": 12}), ("cnn_relu", "N", {})]
LAST = 64


def arguments_bytes(path, dims) -> int:
    """Of inputs and outputs, from the model's own declarations."""
    graph = onnx.load(path).graph
    weights = {t.name for t in graph.initializer}
    total = 0
    for value in [v for v in graph.input if v.name not in weights] + list(graph.output):
        kind = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else dims[d.dim_param] for d in kind.shape.dim]
        total += int(np.prod(shape)) * onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize
    return total


@pytest.fixture(scope="module", params=MODELS, ids=[name for name, *_ in MODELS])
def measured(request, build_folder):
    """A model, and its bytes on the device at every extent up to LAST, planned one by one."""
    name, dim, others = request.param
    path = memplan_models.write(name, build_folder / "fit")
    table = {}
    for extent in range(1, LAST + 1):
        dims = {**others, dim: extent}
        plan = compiler.plan(path, dims)
        table[extent] = plan["weights_bytes"] + plan["arena_bytes"] + arguments_bytes(path, dims)
    return path, dim, others, table


def flags(others) -> list[str]:
    return [word for name, extent in others.items() for word in ("--dim", f"{name}={extent}")]


def rows(text: str) -> dict[int, list[str]]:
    return {int(words[0]): words[1:] for line in text.splitlines() if (words := line.split()) and words[0].isdigit()}


def test_sweep_is_what_single_plans_are(measured):
    path, dim, others, table = measured
    done = compiler.run(path, "--sweep", f"{dim}=1..{LAST}", *flags(others))
    assert {extent: int(words[4]) for extent, words in rows(done.stdout).items()} == table
    for weights, arena, inputs, outputs, total in rows(done.stdout).values():
        assert int(weights) + int(arena) + int(inputs) + int(outputs) == int(total)


def test_fit_is_the_largest_of_all(measured):
    """Over budgets that cut the table in different places, also exactly at one and a byte under."""
    path, dim, others, table = measured
    for budget in (table[1], table[2] - 1, table[7] + 1, table[31], table[40] - 1, (table[50] + table[51]) // 2, table[63]):
        best = max(extent for extent, total in table.items() if total <= budget)
        done = compiler.run(path, f"--fit-batch={dim}", f"--memory-budget={budget}", *flags(others))
        assert f"{dim}={best} is the largest that fits" in done.stdout, (budget, done.stdout)
        tried = rows(done.stdout)
        assert tried[best][5] == "yes" and tried[best + 1][5] == "no"
        assert len(tried) <= 12, done.stdout  # not one plan a value


def test_emits_with_what_it_found(measured, tmp_path):
    path, dim, others, table = measured
    compiler.run(path, f"--fit-batch={dim}", f"--memory-budget={table[5]}", *flags(others), "--emit=cuda", "-o",
                 tmp_path / "fitted")
    compiler.run(path, *flags(others), f"--dim={dim}=5", "--emit=cuda", "-o", tmp_path / "fitted5")
    text = (tmp_path / "fitted.h").read_text()
    assert text == (tmp_path / "fitted5.h").read_text().replace("fitted5", "fitted").replace("FITTED5", "FITTED")


def test_over_budget_says_what_would_fit(measured, tmp_path):
    path, dim, others, table = measured
    budget = table[20] + 1
    done = compiler.run(path, f"--dim={dim}=33", *flags(others), f"--memory-budget={budget}", "--emit=cuda", "-o",
                        tmp_path / "out", check=False)
    assert done.returncode == compiler.EXIT["budget"] and not list(tmp_path.iterdir())
    assert f"{table[33]} bytes" in done.stderr and f"{table[33] - budget} bytes" in done.stderr
    assert f"--dim {dim}=20\n" in done.stderr
    assert "at the peak" in done.stderr and "driver" in done.stderr


def test_a_model_ends_before_the_budget_does(build_folder):
    """There are positions for 16 tokens."""
    path = memplan_models.write("bert_small", build_folder / "fit")
    done = compiler.run(path, "--dim=N=2", "--fit-batch=S", "--memory-budget=1GiB")
    assert "S=16 is the largest that fits" in done.stdout and "isn't valid with S=17" in done.stdout
    assert "do not broadcast" in done.stdout


@pytest.mark.parametrize("text,size", [("4096", 4096), ("4096B", 4096), ("4KiB", 4096), ("4 kib", 4096), ("4kB", 4000),
                                       ("0.5MiB", 524288), ("1.5MB", 1500000), ("0.001GiB", 1073741), ("0", 0)])
def test_units(text, size, build_folder):
    """The budget that the error repeats, by the bytes that are missing."""
    path = memplan_models.write("cnn_relu", build_folder / "fit")
    done = compiler.run(path, "--dim=N=64", "--emit=plan", f"--memory-budget={text}", check=False)
    assert done.returncode == compiler.EXIT["budget"], done.stderr
    needs, more = (int(re.search(pattern, done.stderr)[1]) for pattern in (r"needs (\d+) bytes", r", (\d+) bytes(?: \([^)]*\))? more than"))
    assert needs - more == size


@pytest.mark.parametrize("arguments,message", [
    (["--memory-budget=8GB8"], "--memory-budget=8GB8 is not"),
    (["--memory-budget=-1"], "is not"),
    (["--memory-budget=1.2.3GiB"], "is not"),
    (["--memory-budget=99999999999GiB"], "is not"),
    (["--fit-batch=N"], "needs --memory-budget"),
    (["--fit-batch=N", "--memory-budget=1KiB"], "not even N=1 fits"),
    (["--fit-batch=Q", "--memory-budget=1GiB"], "names no symbolic dimension"),
    (["--sweep=N"], "is not NAME=N"),
    (["--sweep=N=1,x"], "is not NAME=N"),
    (["--sweep=N=4..1"], "is not NAME=N"),
    (["--sweep=N=1..99999999"], "is not NAME=N"),
    (["--sweep=N=1", "--emit=plan"], "prints its table alone"),
    (["--sweep=Q=1,2"], "names no symbolic dimension"),
])
def test_refused(arguments, message, build_folder):
    path = memplan_models.write("cnn_relu", build_folder / "fit")
    done = compiler.run(path, *arguments, *([] if "--fit" in arguments[0] or "--sweep" in arguments[0] else ["--emit=plan"]),
                        check=False)
    assert done.returncode in (1, 2, 3, 4, 5) and message in done.stderr and not done.stdout, done.stderr
