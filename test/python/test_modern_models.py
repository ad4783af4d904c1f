"""Models of operators since opset 21, and a decoder of com.microsoft operators: results, memory, and step by step."""

import numpy as np
import pytest

import memplan_models
from memplan_models import modern
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from plan_check import check_plan

pytestmark = pytest.mark.usefixtures("memplan_opt")


def inputs_of(name, path, dims):
    inputs = reference.random_inputs(path, dims)
    if name == "decoder_step":
        inputs["tokens"] = np.array([[5, 90, 17], [0, 3, 95]])
        inputs["positions"] = dims["P"] + np.arange(modern.STEP) + np.zeros((2, 1), np.int64)
        seen = np.arange(dims["T"])[None] <= dims["P"] + np.arange(modern.STEP)[:, None]
        inputs["mask"] = np.broadcast_to(seen, (2, 1, *seen.shape)).copy()
        inputs["mask"][1, ..., :4] = False  # the second sample is padded
    return inputs


@pytest.mark.parametrize("name", ["decoder_step", "denoiser"])
def test_result(tmp_path, quick, name):
    path, dims = memplan_models.write(name, tmp_path), memplan_models.entry(name).dims
    inputs = inputs_of(name, path, dims)
    expected = reference.run(path, inputs)
    for values in expected.values():
        assert np.isfinite(values).all() and values.std() > 1e-2
    compiler.emit_cuda(path, tmp_path / "out" / name, dims)
    with host.HostModel(tmp_path / "out" / name, **quick) as model:
        assert_close(model.run(inputs), expected)


@pytest.mark.parametrize("name", ["decoder_step", "denoiser"])
def test_arena_is_at_its_bound(tmp_path, name):
    path, dims = memplan_models.write(name, tmp_path), memplan_models.entry(name).dims
    plan = compiler.plan(path, dims)
    check_plan(plan)
    assert plan["arena_bytes"] == plan["lower_bound_bytes"]


def test_scores_exist_once(tmp_path):
    """The softmax, with the mask, is made over the product: one buffer of the scores' shape."""
    path, dims = memplan_models.write("denoiser", tmp_path), memplan_models.entry("denoiser").dims
    buffers = compiler.plan(path, dims)["buffers"]
    assert [b["shape"] for b in buffers].count([2, 4, 16, 16]) == 1  # batch, heads, queries, keys
    path, dims = memplan_models.write("decoder_step", tmp_path), memplan_models.entry("decoder_step").dims
    buffers = compiler.plan(path, dims)["buffers"]
    # Batch, heads of keys, queries a head, queries, keys.
    assert [b["shape"] for b in buffers].count([2, 2, 4, 3, 12]) == modern.LAYERS
