"""Random models against ONNX Runtime, in checked mode, and without reuse bit for bit.

MEMPLAN_RANDOM_MODELS=1000 tries so many of each kind; a failing seed is in the test's name.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from plan_check import check_plan
from random_models import Generator
from random_subgraphs import ControlFlowGenerator

pytestmark = pytest.mark.usefixtures("memplan_opt")

KINDS = {"straight": Generator, "subgraphs": ControlFlowGenerator}
CASES = [(kind, seed) for kind in KINDS for seed in range(int(os.environ.get("MEMPLAN_RANDOM_MODELS", "40")))]


def examine(kind: str, seed: int, folder, quick) -> None:
    folder.mkdir()
    path = om.write(KINDS[kind](seed).model(), folder / "m.onnx")
    inputs = reference.random_inputs(path)
    plan = compiler.plan(path)
    check_plan(plan)
    results = []
    for name, flags in (("reuse", ()), ("own", ("--no-reuse",))):
        compiler.emit_cuda(path, folder / name / "m", None, "-q", *flags)
        with host.HostModel(folder / name / "m", **quick) as model:
            results.append(model.run(inputs))
    assert_close(results[0], reference.run(path, inputs), absolute=1e-4)
    for name in results[0]:
        assert results[0][name].tobytes() == results[1][name].tobytes(), f"{name} changes without reuse"


@pytest.fixture(scope="module")
def examined(build_folder, quick):
    """The failure of each case, if any; all are tried on all cores."""
    folder = build_folder / "random_models"
    folder.mkdir()

    def attempt(case):
        kind, seed = case
        try:
            examine(kind, seed, folder / f"{kind}{seed}", quick)
        except Exception as error:  # any failure is this case's, and is raised in its test
            return error
        return None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(CASES, pool.map(attempt, CASES)))


@pytest.mark.parametrize("kind,seed", CASES)
def test_seed(examined, kind, seed):
    if examined[kind, seed]:
        raise examined[kind, seed]
