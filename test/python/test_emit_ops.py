"""Each family of ops of the CUDA target, built for the host and compared with numpy, the plan checked as it runs."""

import numpy as np
import pytest

import emit_cases
from memplan_tools import compiler, host

pytestmark = pytest.mark.usefixtures("memplan_opt")


@pytest.mark.parametrize("checked", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("make", emit_cases.CASES, ids=lambda make: make.__name__)
def test_family(make, checked, tmp_path):
    case = make()
    source = tmp_path / f"{case.name}.mlir"
    source.write_text(case.text())
    compiler.emit_cuda(source, tmp_path / "out" / case.name)
    with host.HostModel(tmp_path / "out" / case.name, checked=checked, flags=("-O1",)) as model:
        outputs = model.run({f"a{i}": a for i, a in enumerate(case.inputs)})
    for i, expected in enumerate(case.expected):
        found = outputs[f"o{i}"]
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=f"{case.name}: output {i}")
