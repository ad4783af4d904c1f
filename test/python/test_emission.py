"""What is emitted doesn't depend on how a model was stored, and nothing in a model can break it."""

import json

import numpy as np
import pytest

import memplan_models
import onnx_models as om
from memplan_tools import compiler, host, reference
from memplan_tools.compare import assert_close
from onnx_models import node, value

pytestmark = pytest.mark.usefixtures("memplan_opt")


@pytest.fixture
def round_trip(quick):
    """Compiles, runs and compares with ONNX Runtime."""

    def check(path, prefix, dims=None):
        compiler.emit_cuda(path, prefix, dims)
        inputs = reference.random_inputs(path, dims)
        with host.HostModel(prefix, **quick) as model:
            assert_close(model.run(inputs), reference.run(path, inputs))
        return prefix

    return check


def test_storages_give_the_same_weights_file(tmp_path):
    files = []
    for storage in memplan_models.STORAGES:
        path = memplan_models.write("cnn_dropout", tmp_path / storage, storage=storage)
        prefix = tmp_path / storage / "out/m"
        compiler.emit_cuda(path, prefix, {"N": 2})
        header, _, body = prefix.with_suffix(".safetensors").read_bytes().partition(b"}}")
        files.append(body)
    assert files[0] == files[1] == files[2]


@pytest.mark.parametrize("storage", memplan_models.STORAGES)
def test_storages_give_the_right_result(round_trip, storage, tmp_path):
    path = memplan_models.write("cnn_dropout", tmp_path, storage=storage)
    round_trip(path, tmp_path / "out/m", {"N": 2})


HOSTILE = ['quote"quote', "back\\slash", "new\nline", "*/ int main", "??/ trigraph", "// end \\", "snow☃man", "%s%n",
           "../../etc/passwd", "a" * 3000, "', \"</script>"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(round_trip, name, tmp_path):
    nodes = [node("Add", [f"in{name}", f"w{name}"], [f"t{name}"], name), node("Softmax", [f"t{name}"], [name], name + "2")]
    made = om.model(nodes, [value(f"in{name}", [4, 5])], [value(name, [4, 5])],
                    [om.tensor(f"w{name}", np.arange(5, dtype=np.float32))])
    path = om.write(made, tmp_path / "m.onnx")
    prefix = round_trip(path, tmp_path / "out/m")
    assert sorted(p.suffix for p in prefix.parent.iterdir() if p.stem == "m") == [".cu", ".h", ".safetensors"]
    json.loads(compiler.run(path, "--emit=plan", "-q").stdout)


@pytest.mark.parametrize("name", ["with space", "3d-net", "class", "ünïcode", "a.b.c"])
def test_hostile_file_names(round_trip, name, tmp_path):
    path = om.write(om.relu(), tmp_path / "m.onnx")
    round_trip(path, tmp_path / "out" / name)


def test_cuda_without_a_prefix_is_named_after_the_model(tmp_path):
    compiler.run(om.write(om.relu(), tmp_path / "r.onnx"), "--emit=cuda", cwd=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.cu", "r.h", "r.onnx", "r.safetensors"]


def test_quiet_is_quiet(tmp_path):
    path = om.write(om.relu(), tmp_path / "r.onnx")
    assert compiler.emit_cuda(path, tmp_path / "out/r", None, "-q") == ""
    loud = compiler.emit_cuda(path, tmp_path / "out/r")
    assert 3 <= len(loud.splitlines()) <= 20


def test_files_say_what_made_them(tmp_path):
    import hashlib
    path = memplan_models.write("cnn_relu", tmp_path)
    prefix = tmp_path / "out/cnn_relu"
    compiler.emit_cuda(path, prefix, {"N": 5})
    text = prefix.with_suffix(".cu").read_text()
    assert hashlib.sha256(path.read_bytes()).hexdigest() in text and "N=5" in text
    assert str(tmp_path) not in text, "a path of the machine that compiled"


def test_no_timestamp_or_folder_gets_in(tmp_path):
    path = memplan_models.write("cnn_relu", tmp_path)
    for folder in ("one", "another/deep"):
        compiler.emit_cuda(path, tmp_path / folder / "m", {"N": 2})
    for suffix in (".cu", ".h", ".safetensors"):
        assert (tmp_path / "one/m").with_suffix(suffix).read_bytes() == \
            (tmp_path / "another/deep/m").with_suffix(suffix).read_bytes()


# --- outputs that bit other planners ----------------------------------------------------------------------------


def test_output_listed_twice(round_trip, tmp_path):
    # ONNX Runtime refuses two outputs of one name, so two names of one value.
    made = om.model([node("Relu", ["x"], ["t"]), node("Identity", ["t"], ["a"]), node("Identity", ["t"], ["b"])],
                    [value("x", [3, 4])], [value("a", [3, 4]), value("b", [3, 4])])
    round_trip(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")


def test_input_returned_as_it_came(round_trip, tmp_path):
    made = om.model([node("Identity", ["x"], ["y"]), node("Relu", ["x"], ["z"])], [value("x", [3, 4])],
                    [value("y", [3, 4]), value("z", [3, 4])])
    round_trip(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")


def test_output_that_is_also_read(round_trip, tmp_path):
    nodes = [node("Relu", ["x"], ["a"]), node("Softmax", ["a"], ["b"]), node("Add", ["a", "b"], ["c"])]
    made = om.model(nodes, [value("x", [3, 4])], [value(n, [3, 4]) for n in "abc"])
    round_trip(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")


def test_weight_returned(round_trip, tmp_path):
    made = om.model([node("Relu", ["x"], ["y"]), node("Identity", ["w"], ["v"])], [value("x", [2])],
                    [value("y", [2]), value("v", [3])], [om.tensor("w", np.array([1, -2, 3], np.float32))])
    round_trip(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")


def test_dead_node_and_unused_input(round_trip, tmp_path):
    made = om.model([node("Softmax", ["x"], ["dead"]), node("Relu", ["x"], ["y"])],
                    [value("x", [3, 4]), value("unused", [7])], [value("y", [3, 4])])
    round_trip(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")


def test_zero_sized_tensors(round_trip, tmp_path):
    made = om.model([node("Relu", ["x"], ["a"]), node("Concat", ["a", "b"], ["y"], axis=0)],
                    [value("x", [0, 4]), value("b", [2, 4])], [value("y", [2, 4]), value("a", [0, 4])])
    round_trip(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")


def test_scalars(round_trip, tmp_path):
    made = om.model([node("Add", ["x", "w"], ["y"])], [value("x", [])], [value("y", [])],
                    [om.tensor("w", np.float32(2.5))])
    round_trip(om.write(made, tmp_path / "m.onnx"), tmp_path / "out/m")
