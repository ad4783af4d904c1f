"""The whole ONNX backend suite, one test a case: each gives what expectations.txt says, by default to pass.

`python test/conformance/run.py` does the same with a report of its own, and writes expectations.txt anew.
"""

import shutil
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "python")]

import harness  # noqa: E402
import run  # noqa: E402
import suite  # noqa: E402

pytestmark = pytest.mark.slow

CASES = {case.name: case for case in suite.load()}
EXPECTED = run.expected()

#: every so many cases are compiled by nvcc as well, where there is one
GPU_STEP = 25


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, harness.Result]:
    folder = tmp_path_factory.mktemp("conformance")
    found = harness.run(list(CASES.values()), folder, GPU_STEP if harness.nvcc_path() else 0)
    shutil.rmtree(folder)
    return {r.case.name: r for r in found}


def test_the_suite_is_whole():
    kinds = {kind: sum(c.kind == kind for c in CASES.values()) for kind in suite.KINDS}
    assert kinds == {"node": 1884, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35, "light": 9}


def test_expectations_name_cases():
    assert set(EXPECTED) <= set(CASES)
    assert {outcome for outcome, _ in EXPECTED.values()} <= {"drawn", "unsupported"}


@pytest.mark.parametrize("name", CASES)
def test_case(results, name):
    result = results[name]
    want = EXPECTED.get(name, ("pass", ""))[0]
    assert result.outcome == want, result.reason
    assert result.nvcc is not False, result.reason
