"""An If whose condition the run tells, and one branch of which is invalid for the shapes that the inputs have."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnx_models as om
from memplan_tools import compiler, host
from memplan_tools.compiler import EXIT

pytestmark = pytest.mark.usefixtures("memplan_opt")


def model(then_nodes, else_nodes):
    branches = [helper.make_graph(nodes, name, [], [om.value(f"{name}_y", None)])
                for name, nodes in (("t", then_nodes), ("e", else_nodes))]
    chosen = helper.make_node("If", ["c"], ["z"], then_branch=branches[0], else_branch=branches[1])
    return om.model([om.node("Exp", ["x"], ["u"]), chosen, om.node("Neg", ["z"], ["y"])],
                    [om.value("x", [2, 6]), om.value("c", [], TensorProto.BOOL)], [om.value("y", None)],
                    [om.tensor("good", np.array([3, 4])), om.tensor("bad", np.array([5, 5]))])


def reshape(name: str, to: str):
    return [om.node("Reshape", ["u", to], [f"{name}_y"], f"to_{to}")]


@pytest.mark.parametrize("bad", ["then", "else"])
def test_taking_it_is_an_error_of_the_run(bad, tmp_path, quick):
    made = model(reshape("t", "bad" if bad == "then" else "good"), reshape("e", "bad" if bad == "else" else "good"))
    done = compiler.run(om.write(made, tmp_path / "m.onnx"), "--emit=cuda", "-q", "-o", tmp_path / "out/m")
    assert "warning: " in done.stderr and "to_bad" in done.stderr and "error of the run" in done.stderr
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)
    with host.HostModel(tmp_path / "out/m", **quick) as built:
        got = built.run({"x": x, "c": np.bool_(bad == "else")})
        np.testing.assert_allclose(got["y"], -np.exp(x).reshape(3, 4), rtol=1e-6)
        with pytest.raises(host.HostError, match=f"status 1: .*{bad}_branch.* is impossible for inputs of these shapes"):
            built.run({"x": x, "c": np.bool_(bad != "else")})
        # It goes on afterwards.
        np.testing.assert_array_equal(built.run({"x": x, "c": np.bool_(bad == "else")})["y"], got["y"])


def test_two_impossible_branches_are_an_error(tmp_path):
    path = om.write(model(reshape("t", "bad"), reshape("e", "bad")), tmp_path / "m.onnx")
    done = compiler.run(path, "--emit=cuda", "-o", tmp_path / "out/m", check=False)
    assert done.returncode == EXIT["invalid"] and "to_bad" in done.stderr


def test_what_is_not_supported_stays_an_error(tmp_path):
    """A branch that memplan can't do is not silently left out."""
    path = om.write(model(reshape("t", "good"), [om.node("Frobnicate", ["u"], ["e_y"])]), tmp_path / "m.onnx")
    assert compiler.run(path, "--emit=plan", check=False).returncode == EXIT["unsupported"]
