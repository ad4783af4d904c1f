"""What the command line says of a model's inputs: shapes, and values that are known when compiling."""

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import onnx_models as om
from memplan_tools import compiler, host
from memplan_tools.compiler import EXIT

pytestmark = pytest.mark.usefixtures("memplan_opt")


def reshape():
    """y = x in the shape |s|; x has an open dim."""
    return om.model([om.node("Abs", ["s"], ["t"]), om.node("Reshape", ["x", "t"], ["y"])],
                    [om.value("x", [2, "n"]), om.value("s", [2], om.INT64)], [om.value("y", None)])


def compiled(model, tmp_path, quick, *flags) -> host.HostModel:
    path = om.write(model, tmp_path / "m.onnx")
    compiler.emit_cuda(path, tmp_path / "out/m", None, *flags)
    return host.HostModel(tmp_path / "out/m", **quick)


def refusal(model, tmp_path, kind, *flags) -> str:
    done = compiler.run(om.write(model, tmp_path / "m.onnx"), "--emit=cuda", "-o", tmp_path / "out/m", *flags, check=False)
    assert done.returncode == EXIT[kind], done.stderr
    assert not (tmp_path / "out").exists() and done.stderr.count("error: ") == 1
    return done.stderr


@pytest.mark.parametrize("value", ["3,4", "-3, 4", "@file"])
def test_a_shape_and_a_value(value, tmp_path, quick):
    if value == "@file":
        (tmp_path / "s.pb").write_bytes(numpy_helper.from_array(np.array([3, 4])).SerializeToString())
        value = f"@{tmp_path}/s.pb"
    with compiled(reshape(), tmp_path, quick, "--input-shape", "x=2x6", "--input-value", f"s={value}") as model:
        assert [i.name for i in model.inputs] == [b"x"]
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        np.testing.assert_array_equal(model.run({"x": x})["y"], x.reshape(3, 4))


def test_an_error_names_the_inputs_that_a_value_comes_from(tmp_path):
    text = refusal(reshape(), tmp_path, "unsupported", "--dim", "n=6")
    assert "depends on the model's inputs 's'" in text and "--input-value" in text


@pytest.mark.parametrize("kind, flags, part", [
    ("unbound", ["--input-value", "s=3,4"], "give --dim n=N"),
    ("usage", ["--input-shape", "x=2x6", "--dim", "n=5"], "is 5 by --dim, but 6 by --input-shape x=2x6"),
    ("usage", ["--input-shape", "x=3x6"], "which the model fixes to 2"),
    ("usage", ["--input-shape", "x=2x6x1"], "has 3 dims, but the input has 2"),
    ("usage", ["--input-shape", "z=2"], "--input-shape z names no input of the model"),
    ("usage", ["--input-shape", "x=2by6"], "is not NAME=N0xN1x..."),
    ("usage", ["--input-shape", "x=2x6", "--input-shape", "x=2x7"], "gives x more than once"),
    ("usage", ["--input-value", "z=1"], "'z' names no input of the model; it has 'x', 's'"),
    ("usage", ["--input-value", "s=3,four"], "'four' is no int64"),
    ("usage", ["--input-value", "s=3,99999999999999999999"], "is no int64"),
    ("usage", ["--input-value", "s=3,4,4"], "has 3 values, which do not make its shape"),
    ("usage", ["--input-value", "s=@/nowhere.pb"], "/nowhere.pb"),
    ("usage", ["--input-value", "s=@FLOATS"], "is of float, but the input of int64"),
    ("usage", ["--input-value", "s=@MODEL"], "is not a file with a serialized TensorProto"),
])
def test_refused(kind, flags, part, tmp_path):
    floats, other = tmp_path / "floats.pb", tmp_path / "other.txt"
    floats.write_bytes(numpy_helper.from_array(np.ones(2, np.float32)).SerializeToString())
    other.write_text("no protobuf at all")
    flags = [f.replace("FLOATS", str(floats)).replace("MODEL", str(other)) for f in flags]
    assert part in refusal(reshape(), tmp_path, kind, *flags)


def test_equal_symbols_stay_equal(tmp_path):
    made = om.model([om.node("Add", ["a", "b"], ["y"])], [om.value("a", ["n", 4]), om.value("b", ["n", 4])],
                    [om.value("y", ["n", 4])])
    text = refusal(made, tmp_path, "usage", "--input-shape", "a=2x4", "--input-shape", "b=3x4")
    assert "the dimension n is 2 by --input-shape a=2x4, but 3 by --input-shape b=3x4" in text
    plan = compiler.run(tmp_path / "m.onnx", "--emit=mlir", "-q", "--input-shape", "a=2x4").stdout
    assert plan.count("tensor<2x4xf32>") > 2


def test_a_question_mark_is_no_name(tmp_path):
    """Some exporters write it for every dim that they don't know."""
    made = om.model([om.node("Relu", ["x"], ["y"])], [om.value("x", ["?", "?"])], [om.value("y", ["?", "?"])])
    text = refusal(made, tmp_path, "unbound")
    assert "--dim x.0=N" in text and "--dim x.1=N" in text
    assert "tensor<2x3xf32>" in compiler.run(tmp_path / "m.onnx", "--emit=mlir", "-q", "--input-shape", "x=2x3").stdout


def test_an_input_without_a_shape(tmp_path, quick):
    made = om.model([om.node("Relu", ["x"], ["y"])], [om.value("x", None)], [om.value("y", None)])
    assert "has no shape; give --input-shape x=N0xN1x..." in refusal(made, tmp_path, "unbound")
    with compiled(made, tmp_path, quick, "--input-shape", "x=3") as model:
        np.testing.assert_array_equal(model.run({"x": np.array([-1, 0, 2], np.float32)})["y"], [0, 0, 2])


@pytest.mark.parametrize("dtype, text, want", [
    (TensorProto.FLOAT, "1.5,-2,inf", [1.5, -2, np.inf]), (TensorProto.BOOL, "true,0,1", [True, False, True]),
    (TensorProto.UINT8, "0,255,7", [0, 255, 7]), (TensorProto.INT8, "-128,127,0", [-128, 127, 0]),
    (TensorProto.DOUBLE, "1e300,0,-1e-300", [1e300, 0, -1e-300])])
def test_values_of_other_types(dtype, text, want, tmp_path, quick):
    made = om.model([om.node("Identity", ["v"], ["y"]), om.node("Relu", ["x"], ["z"])],
                    [om.value("v", [3], dtype), om.value("x", [1])], [om.value("y", [3], dtype), om.value("z", [1])])
    with compiled(made, tmp_path, quick, "--input-value", f"v={text}") as model:
        np.testing.assert_array_equal(model.run({"x": np.zeros(1, np.float32)})["y"], want)


@pytest.mark.parametrize("text", ["256,0,0", "-1,0,0", "1.5,0,0", ",,", "1,2"])
def test_values_that_do_not_fit(text, tmp_path):
    made = om.model([om.node("Identity", ["v"], ["y"])], [om.value("v", [3], TensorProto.UINT8)],
                    [om.value("y", [3], TensorProto.UINT8)])
    assert "--input-value v" in refusal(made, tmp_path, "usage", "--input-value", f"v={text}")


@pytest.mark.parametrize("flag", ["--dim=n=1", "--input-shape=x=1", "--input-value=x=1", "--sequence-length=x=1", "--absent=x"])
def test_flags_of_onnx_are_not_for_mlir(flag, tmp_path):
    (tmp_path / "m.mlir").write_text("func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }\n")
    done = compiler.run(tmp_path / "m.mlir", "--emit=plan", flag, check=False)
    assert done.returncode == EXIT["usage"] and f"{flag.split('=')[0]} is about an ONNX model" in done.stderr
