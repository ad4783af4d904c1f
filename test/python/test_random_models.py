"""Random models against ONNX Runtime, in checked mode, and without reuse bit for bit.

MEMPLAN_RANDOM_MODELS=1000 tries so many of each kind; a failing seed is in the test's name. With CXX=clang++ the
emitted code compiles twice as fast.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from plan_check import check_plan
from random_mixed import MixedGenerator
from random_models import Generator
from random_run_sizes import RunSizeGenerator
from random_subgraphs import ControlFlowGenerator

pytestmark = pytest.mark.usefixtures("memplan_opt")

KINDS = {"straight": Generator, "subgraphs": ControlFlowGenerator, "run_sizes": RunSizeGenerator,
         "mixed": MixedGenerator}
COUNT = int(os.environ.get("MEMPLAN_RANDOM_MODELS", "100"))
#: Models in a library: the host compiler takes most of the time, and most of that is the same for one and for many.
BATCH = 20


@dataclass
class Case:
    kind: str
    seed: int
    path: Path | None = None
    prefixes: list[Path] = field(default_factory=list)
    #: of outputs that have one of their own
    tolerances: dict[str, dict] = field(default_factory=dict)
    failure: Exception | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}{self.seed}"

    def attempt(self, step) -> None:
        """Any failure is this case's, and is raised in its test."""
        try:
            self.failure or step()
        except Exception as error:
            self.failure = error


CASES = [Case(kind, seed) for kind in KINDS for seed in range(COUNT)]


def emit(case: Case, folder: Path) -> None:
    """With everything on, and with bytes of its own for every buffer."""
    generator = KINDS[case.kind](case.seed)
    case.path = om.write(generator.model(), folder / f"{case.name}.onnx")
    case.tolerances = getattr(generator, "tolerances", {})
    plan = compiler.plan(case.path)
    check_plan(plan)
    unscheduled = compiler.plan(case.path, None, "--no-schedule")
    assert plan["arena_bytes"] <= max(unscheduled["arena_bytes"], unscheduled["lower_bound_bytes"])
    for suffix, flags in (("", ()), ("_own", ("--no-reuse",))):
        case.prefixes.append(folder / (case.name + suffix))
        compiler.emit_cuda(case.path, case.prefixes[-1], None, "-q", *flags)


def compare(case: Case, library: Path) -> None:
    inputs = reference.random_inputs(case.path)
    results = []
    for prefix in case.prefixes:
        with host.HostModel(prefix, library=library) as model:
            results.append(model.run(inputs))
    want = reference.run(case.path, inputs, optimized=False)
    assert list(results[0]) == list(want)
    for name in want:
        assert_close({name: results[0][name]}, {name: want[name]}, **case.tolerances.get(name, {"absolute": 1e-4}))
        assert results[0][name].tobytes() == results[1][name].tobytes(), f"{name} changes without reuse"


def run_batch(cases: list[Case], folder: Path) -> None:
    for case in cases:
        case.attempt(lambda: emit(case, folder))
    built = [case for case in cases if not case.failure]
    library = folder / f"lib{cases[0].name}.so"
    try:
        host.build_together([prefix for case in built for prefix in case.prefixes], library, checked=True)
    except host.HostError as error:
        if len(built) == 1:
            built[0].failure = error
        for half in (built[:len(built) // 2], built[len(built) // 2:]):
            if half and len(built) > 1:
                for case in half:
                    case.prefixes.clear()
                run_batch(half, folder)
        return
    for case in built:
        case.attempt(lambda: compare(case, library))


@pytest.fixture(scope="module")
def examined(build_folder) -> dict[str, Case]:
    """All are tried on all cores."""
    folder = build_folder / "random_models"
    folder.mkdir()
    batches = [CASES[i:i + BATCH] for i in range(0, len(CASES), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda batch: run_batch(batch, folder), batches))
    return {case.name: case for case in CASES}


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_seed(examined, name):
    if examined[name].failure:
        raise examined[name].failure
