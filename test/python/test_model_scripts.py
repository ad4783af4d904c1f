"""The scripts that write models: seeded, whole, and of a scale that tells right from wrong."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import memplan_models
from memplan_models import light, random_wired
from memplan_models.registry import ARCHITECTURES
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close


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


@pytest.mark.parametrize("small, dims", [(small.__name__, dims) for _, small, _, dims in ARCHITECTURES])
def test_small_architecture(small, dims, tmp_path, quick):
    """The compiled model, in checked mode, computes what ONNX Runtime does, and its outputs are worth comparing."""
    path = memplan_models.write(small, tmp_path)
    inputs = reference.random_inputs(path, dims)
    expected = reference.run(path, inputs)
    for name, values in expected.items():
        assert np.isfinite(values).all() and values.std() > 1e-2, name
    compiler.emit_cuda(path, tmp_path / "out" / small, dims)
    with host.HostModel(tmp_path / "out" / small, **quick) as model:
        assert_close(model.run(inputs), expected)


@pytest.mark.slow
@pytest.mark.parametrize("real, small", [(real, small) for real, small, _, _ in ARCHITECTURES],
                         ids=[real.__name__ for real, _, _, _ in ARCHITECTURES])
def test_small_architecture_has_the_operators_of_the_real_one(real, small):
    """What is tested on the small one is what the real one is made of."""
    def operators(model):
        return {node.op_type for node in model.graph.node}

    assert operators(small(0)) == operators(real(0))


@pytest.mark.slow
@pytest.mark.parametrize("name, millions", [
    # As the papers give them, in millions: MobileNetV2 table 4, EfficientNet table 2, BERT section 3, GPT-2's release.
    ("mobilenet_v2", 3.5), ("efficientnet_b0", 5.3), ("bert_base", 110), ("gpt2_step", 124 + 50257 * 768 / 1e6), ("vit_b16", 86)])
def test_parameters_are_as_many_as_published(name, millions):
    """GPT-2's word table is held twice: as rows to look up and, transposed, as the last layer's matrix."""
    model = memplan_models.entry(name).build(0)
    count = sum(int(np.prod(t.dims)) for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT)
    assert abs(count / 1e6 / millions - 1) < 0.02, count


def test_watts_strogatz():
    """All edges go forward, and rewiring keeps their number: 32 nodes with 4 neighbours have 32 * 4 / 2."""
    edges = random_wired.watts_strogatz(32, 4, 0.75, np.random.default_rng(1))
    assert len(edges) == len(set(edges)) == 64 and all(0 <= a < b < 32 for a, b in edges)
    ring = random_wired.watts_strogatz(6, 2, 0.0, np.random.default_rng(1))
    assert ring == [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)]
