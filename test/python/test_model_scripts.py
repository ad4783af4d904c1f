"""The scripts that write models: seeded, whole, and of a scale that tells right from wrong."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import memplan_models
from memplan_models import light
from memplan_tools import reference


def test_same_seed_same_bytes(tmp_path):
    one, two, other = (memplan_models.write("squeezenet", tmp_path / folder, seed).read_bytes()
                       for folder, seed in (("one", 3), ("two", 3), ("other", 4)))
    assert one == two != other


def test_storages_hold_the_same_values(tmp_path):
    def weights(storage):
        model = onnx.load(memplan_models.write("cnn_relu", tmp_path / storage, storage=storage))
        return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}

    raw, typed, external = map(weights, memplan_models.STORAGES)
    assert raw.keys() == typed.keys() == external.keys() and len(raw) == 8
    for name in raw:
        np.testing.assert_array_equal(raw[name], typed[name])
        np.testing.assert_array_equal(raw[name], external[name])
    assert (tmp_path / "external/cnn_relu.weights").stat().st_size >= 4 * sum(v.size for v in raw.values())


def test_external_file_does_not_grow_when_written_again(tmp_path):
    sizes = []
    for _ in range(2):
        memplan_models.write("cnn_relu", tmp_path, storage="external")
        sizes.append((tmp_path / "cnn_relu.weights").stat().st_size)
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("name", ["cnn_relu", "cnn_dropout", "transformer_erf", "transformer_tanh", "squeezenet", *(
    pytest.param(name, marks=pytest.mark.slow) for name in light.FILES if name != "squeezenet")])
def test_outputs_are_worth_comparing(name, tmp_path):
    """Neither vanished, nor exploded, nor saturated: many elements are well above the absolute tolerance and differ."""
    path = memplan_models.write(name, tmp_path)
    inputs = reference.random_inputs(path, memplan_models.entry(name).dims)
    (result,) = reference.run(path, inputs).values()
    assert np.isfinite(result).all()
    assert 1e-4 < result.std() < 10
    assert (np.abs(result) > 1e-4).sum() >= 10
    path.unlink()


def test_unknown_name():
    with pytest.raises(ValueError, match="no model is named 'resnet'; there are cnn_relu"):
        memplan_models.entry("resnet")
