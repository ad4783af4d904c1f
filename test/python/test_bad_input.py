"""Every bad input gives one clear message, the exit code of its class and no output file."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnx_models as om
from memplan_tools import compiler
from memplan_tools.compiler import EXIT
from onnx_models import INT64, node, value

pytestmark = pytest.mark.usefixtures("memplan_opt")


@pytest.fixture
def refused(tmp_path):
    """Compiles, wants the exit code of `kind` and every one of `parts` on standard error, and no file left."""

    def check(source, kind: str, *parts: str, flags=(), emit: str = "cuda"):
        path = om.write(source, tmp_path / "bad.onnx") if hasattr(source, "SerializeToString") else source
        out = tmp_path / "out"
        out.mkdir()
        done = compiler.run(path, f"--emit={emit}", "-o", out / "bad", *flags, check=False)
        assert done.returncode == EXIT[kind], f"exit code {done.returncode}\n{done.stderr}"
        assert done.stdout == ""
        for part in parts:
            assert part in done.stderr, f"{part!r} isn't in:\n{done.stderr}"
        assert not list(out.iterdir()), "something was written"
        assert len(done.stderr) < 4000
        return done.stderr

    return check


# --- the file ---------------------------------------------------------------------------------------------------


def test_missing_file(refused, tmp_path):
    refused(tmp_path / "nowhere.onnx", "usage", "nowhere.onnx")


def test_folder_instead_of_file(refused, tmp_path):
    (tmp_path / "folder.onnx").mkdir()
    refused(tmp_path / "folder.onnx", "usage", "folder.onnx")


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_truncated_file(refused, tmp_path, keep):
    whole = om.model([node("Add", ["x", "w"], ["y"])], [value("x", [400])], [value("y", [400])],
                     [om.tensor("w", np.ones(400, np.float32))]).SerializeToString()
    path = tmp_path / "cut.onnx"
    path.write_bytes(whole[:int(len(whole) * keep)])
    refused(path, "invalid", "cut.onnx")


def test_empty_file(refused, tmp_path):
    (tmp_path / "empty.onnx").write_bytes(b"")
    refused(tmp_path / "empty.onnx", "invalid", "empty.onnx")


@pytest.mark.parametrize("content", [b"this is no protobuf at all\n" * 20, bytes(range(256)) * 8,
                                     b"\x89PNG\r\n\x1a\n" + b"\0" * 100])
def test_not_a_protobuf(refused, tmp_path, content):
    (tmp_path / "text.onnx").write_bytes(content)
    refused(tmp_path / "text.onnx", "invalid", "text.onnx")


def test_protobuf_without_graph(refused):
    made = om.relu()
    made.ClearField("graph")
    refused(made, "invalid", "graph")


# --- MLIR -------------------------------------------------------------------------------------------------------

SHIFTED_COPY = """
func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<6xf32>
  %low = memref.subview %a[0] [4] [1] : memref<6xf32> to memref<4xf32, strided<[1]>>
  %high = memref.subview %a[2] [4] [1] : memref<6xf32> to memref<4xf32, strided<[1], offset: 2>>
  memref.copy %x, %low : memref<4xf32> to memref<4xf32, strided<[1]>>
  memref.copy %low, %high : memref<4xf32, strided<[1]>> to memref<4xf32, strided<[1], offset: 2>>
  memref.copy %high, %y : memref<4xf32, strided<[1], offset: 2>> to memref<4xf32>
  return
}
"""


def test_errors_come_with_their_notes(refused, tmp_path):
    path = tmp_path / "shifted.mlir"
    path.write_text(SHIFTED_COPY)
    text = refused(path, "invalid", "parts of a buffer that it has yet to read")
    error, note = text.splitlines()
    assert error.startswith(f'loc("{path}":7:3): error: ') and note == f'loc("{path}":3:8): note: this buffer'


def test_shifted_copy_within_an_output(refused, tmp_path):
    path = tmp_path / "shifted.mlir"
    path.write_text(SHIFTED_COPY.replace("%a = memref.alloc() : memref<6xf32>", "")
                    .replace("%y:", "%a: memref<6xf32> {bufferize.result}, %y:"))
    refused(path, "invalid", "parts of a buffer that it has yet to read")


# --- operators --------------------------------------------------------------------------------------------------


def test_all_unknown_operators_are_listed_with_counts(refused):
    nodes = [node("Frobnicate", ["x"], ["a"], "first"), node("Frobnicate", ["a"], ["b"], "second"),
             node("Relu", ["b"], ["c"]), node("Twiddle", ["c"], ["y"], "third", domain="com.acme")]
    made = om.model(nodes, [value("x", [2])], [value("y", [2])],
                    opsets=[helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)])
    text = refused(made, "unsupported", "Frobnicate", "2", "first", "Twiddle", "com.acme", "third", "17")
    assert "Relu" not in text


def test_operator_of_a_foreign_domain_is_not_mistaken_for_onnx(refused):
    made = om.model([node("Relu", ["x"], ["y"], "theirs", domain="com.acme")], [value("x", [2])], [value("y", [2])],
                    opsets=[helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)])
    refused(made, "unsupported", "com.acme", "theirs")


def test_old_opset(refused):
    refused(om.model([node("Relu", ["x"], ["y"], "r")], [value("x", [2])], [value("y", [2])], opset=0),
            "unsupported", "opset", "0")


def test_element_type_without_kernels(refused):
    made = om.model([node("Relu", ["x"], ["y"], "r")], [value("x", [2], TensorProto.STRING)],
                    [value("y", [2], TensorProto.STRING)])
    text = refused(made, "unsupported", "x")
    assert "string" in text.lower()


# --- shapes -----------------------------------------------------------------------------------------------------


def symbolic():
    return om.model([node("Relu", ["x"], ["y"])], [value("x", ["batch", 3, "width"])],
                    [value("y", ["batch", 3, "width"])])


def test_unbound_dims_are_listed_with_their_flag(refused):
    refused(symbolic(), "unbound", "--dim batch=", "--dim width=")


def test_bound_dims_are_not_listed(refused):
    text = refused(symbolic(), "unbound", "--dim width=", flags=["--dim", "batch=4"])
    assert "--dim batch=" not in text


@pytest.mark.parametrize("word", ["batch", "batch=", "batch=x", "batch=-1", "=4", "batch=99999999999999999999"])
def test_malformed_dim(refused, word):
    refused(symbolic(), "usage", word, flags=["--dim", word, "--dim", "width=2"])


def test_dim_that_the_model_has_not(refused):
    refused(symbolic(), "usage", "hieght", flags=["--dim", "batch=1", "--dim", "width=2", "--dim", "hieght=2"])


def test_shape_product_overflow(refused):
    huge = [2**40, 2**40]
    refused(om.relu(huge), "invalid", "overflow", "x")


def test_shape_product_overflow_by_dim(refused):
    refused(symbolic(), "invalid", "overflow", flags=["--dim", f"batch={2**40}", "--dim", f"width={2**40}"])


def test_shape_product_overflow_inside(refused):
    made = om.model([node("ConstantOfShape", ["s"], ["y"], "fill")], [], [value("y", None)],
                    [om.tensor("s", np.array([2**33, 2**33], np.int64))])
    refused(made, "invalid", "overflow", "fill")


def test_shapes_that_do_not_broadcast(refused):
    made = om.model([node("Add", ["a", "b"], ["y"], "sum")], [value("a", [2, 3]), value("b", [2, 4])],
                    [value("y", [2, 3])])
    refused(made, "invalid", "sum", "3", "4")


def test_convolution_of_the_wrong_channels(refused):
    made = om.model([node("Conv", ["x", "w"], ["y"], "conv7")], [value("x", [1, 3, 8, 8])], [value("y", [1, 4, 6, 6])],
                    [om.tensor("w", np.ones((4, 2, 3, 3), np.float32))])
    refused(made, "invalid", "conv7", "3", "2")


def test_matmul_of_unequal_depth(refused):
    made = om.model([node("MatMul", ["a", "b"], ["y"], "mm")], [value("a", [2, 3]), value("b", [4, 5])],
                    [value("y", [2, 5])])
    refused(made, "invalid", "mm", "3", "4")


def test_declared_output_type_is_wrong(refused):
    made = om.model([node("Relu", ["x"], ["y"], "relu")], [value("x", [2, 3])], [value("y", [2, 3], INT64)])
    refused(made, "invalid", "'y'", "int64", "f32")


def test_reshape_to_another_count(refused):
    made = om.model([node("Reshape", ["x", "s"], ["y"], "fold")], [value("x", [2, 3])], [value("y", [4, 2])],
                    [om.tensor("s", np.array([4, 2], np.int64))])
    refused(made, "invalid", "fold")


def test_axis_out_of_range(refused):
    made = om.model([node("Softmax", ["x"], ["y"], "soft", axis=5)], [value("x", [2, 3])], [value("y", [2, 3])])
    refused(made, "invalid", "soft", "5")


# --- the graph --------------------------------------------------------------------------------------------------


def test_type_mismatch(refused):
    made = om.model([node("Add", ["a", "b"], ["y"], "sum")], [value("a", [2]), value("b", [2], INT64)],
                    [value("y", [2])])
    refused(made, "invalid", "sum", "f32", "i64")


def test_missing_initializer(refused):
    made = om.model([node("Add", ["x", "ghost"], ["y"], "sum")], [value("x", [2])], [value("y", [2])])
    refused(made, "invalid", "ghost", "sum")


def test_output_that_nothing_makes(refused):
    made = om.model([node("Relu", ["x"], ["y"])], [value("x", [2])], [value("phantom", [2])])
    refused(made, "invalid", "phantom")


def test_missing_operand(refused):
    made = om.model([node("Add", ["x"], ["y"], "half")], [value("x", [2])], [value("y", [2])])
    refused(made, "invalid", "half")


def test_cyclic_graph(refused):
    nodes = [node("Add", ["x", "b"], ["a"], "forth"), node("Relu", ["a"], ["b"], "back")]
    refused(om.model(nodes, [value("x", [2])], [value("b", [2])]), "invalid", "cycl", "forth")


def test_node_that_reads_itself(refused):
    refused(om.model([node("Add", ["x", "y"], ["y"], "ouroboros")], [value("x", [2])], [value("y", [2])]),
            "invalid", "ouroboros")


@pytest.mark.parametrize("where", ["nodes", "initializers", "inputs", "node and input", "node and initializer"])
def test_duplicate_names(refused, where):
    nodes, inputs, weights = [node("Relu", ["x"], ["y"])], [value("x", [2])], []
    ones = np.ones(2, np.float32)
    if where == "nodes":
        nodes.append(node("Relu", ["x"], ["y"]))
    elif where == "initializers":
        weights += [om.tensor("w", ones), om.tensor("w", 2 * ones)]
        nodes = [node("Add", ["x", "w"], ["y"])]
    elif where == "inputs":
        inputs.append(value("x", [2]))
    elif where == "node and input":
        nodes.insert(0, node("Relu", ["x"], ["x"]))
    else:
        weights.append(om.tensor("y", ones))
    made = om.model(nodes, inputs, [value("y", [2])], weights)
    name = {"initializers": "w", "inputs": "x", "node and input": "x"}.get(where, "y")
    refused(made, "invalid", f"'{name}'")


def test_initializer_with_too_few_bytes(refused):
    weight = om.tensor("w", np.ones(4, np.float32))
    weight.raw_data = weight.raw_data[:10]
    made = om.model([node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", [4])], [weight])
    refused(made, "invalid", "w", "10", "16")


def test_initializer_with_a_negative_dim(refused):
    weight = om.tensor("w", np.ones(4, np.float32))
    weight.dims[0] = -4
    made = om.model([node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", [4])], [weight])
    refused(made, "invalid", "w")


# --- external data ----------------------------------------------------------------------------------------------


def external(location: str, **keys):
    weight = TensorProto(name="w", data_type=om.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, text in {"location": location, **keys}.items():
        weight.external_data.add(key=key, value=str(text))
    return om.model([node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", [4])], [weight])


@pytest.mark.parametrize("location", ["../outside.bin", "sub/../../outside.bin", "ABSOLUTE", "link.bin", "linked/outside.bin"])
def test_external_data_outside_the_models_folder(refused, tmp_path, location):
    model_folder = tmp_path / "model"
    (model_folder / "sub").mkdir(parents=True)
    (tmp_path / "outside.bin").write_bytes(np.ones(4, np.float32).tobytes())
    (model_folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    (model_folder / "linked").symlink_to(tmp_path)
    location = location.replace("ABSOLUTE", str(tmp_path / "outside.bin"))
    path = om.write(external(location), model_folder / "bad.onnx")
    refused(path, "invalid", "outside", location)


def test_external_data_that_is_not_there(refused):
    refused(external("absent.bin"), "usage", "absent.bin")


@pytest.mark.parametrize("keys", [{}, {"offset": 8}, {"offset": 2**62}, {"length": 16, "offset": 4}])
def test_external_data_that_is_too_short(refused, tmp_path, keys):
    (tmp_path / "weights.bin").write_bytes(bytes(12 if not keys else 16))
    refused(external("weights.bin", **keys), "invalid", "weights.bin")


@pytest.mark.parametrize("keys", [{"offset": "x"}, {"offset": -4}, {"length": 8}])
def test_external_data_with_bad_numbers(refused, tmp_path, keys):
    (tmp_path / "weights.bin").write_bytes(bytes(16))
    refused(external("weights.bin", **keys), "invalid", "w")


# --- usage ------------------------------------------------------------------------------------------------------


def test_unknown_flag(refused, tmp_path):
    refused(om.relu(), "usage", "--emmit", flags=["--emmit=cuda"])


@pytest.mark.parametrize("flag", ["--alignment=24", "--alignment=8", "--effort=-1"])
def test_number_out_of_range(refused, flag):
    refused(om.relu(), "usage", flag.partition("=")[0], "must", flags=[flag])


def test_unknown_emission(refused):
    refused(om.relu(), "usage", "fortran", emit="fortran")


def test_folder_that_is_not_there_is_made(tmp_path):
    compiler.run(om.write(om.relu(), tmp_path / "r.onnx"), "--emit=cuda", "-o", tmp_path / "no/such/r")
    assert sorted(p.name for p in (tmp_path / "no/such").iterdir()) == ["r.cu", "r.h", "r.safetensors"]


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = compiler.run(om.write(om.relu(), tmp_path / "r.onnx"), "--emit=cuda", "-o", tmp_path / "file/r",
                        check=False)
    assert done.returncode == EXIT["usage"] and "file" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "r.onnx"]


@pytest.mark.parametrize("name", ["", ".", "..", 'a"b', "a\\b", "a\nb"], ids=repr)
def test_names_that_no_emitted_file_can_have(tmp_path, name):
    path = om.write(om.relu(), tmp_path / "r.onnx")
    done = compiler.run(path, "--emit=cuda", "-o", f"{tmp_path}/out/{name}", check=False)
    assert done.returncode == EXIT["usage"] and "-o" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.onnx"]


def test_cuda_of_standard_input_needs_a_name(tmp_path):
    done = compiler.run("-", "--emit=cuda", check=False, input="module {}", cwd=tmp_path)
    assert done.returncode == EXIT["usage"] and "-o OUT" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", ["", "file/x"], ids=["folder", "below a file"])
def test_passes_on_a_model_that_cannot_be_written(tmp_path, output):
    (tmp_path / "file").write_text("in the way")
    path = om.write(om.relu(), tmp_path / "r.onnx")
    done = compiler.run(path, "--memplan-pipeline", "-o", tmp_path / output, check=False)
    assert done.returncode == EXIT["usage"]
    assert "cannot write" in done.stderr and len(done.stderr.splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "r.onnx"]


def test_exit_codes_are_documented():
    text = compiler.run("--help").stdout
    for code in EXIT.values():
        assert str(code) in text


# --- a failure leaves what was there ----------------------------------------------------------------------------


def test_earlier_output_survives_a_failure(tmp_path):
    good, bad = om.write(om.relu(), tmp_path / "good.onnx"), om.write(symbolic(), tmp_path / "bad.onnx")
    compiler.emit_cuda(good, tmp_path / "out/m")
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    assert compiler.run(bad, "--emit=cuda", "-o", tmp_path / "out/m", check=False).returncode == EXIT["unbound"]
    assert before == {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
