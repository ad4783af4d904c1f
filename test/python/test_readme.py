"""What README.md shows is what works: its C program and commands, taken from its text."""

import re
import subprocess

import pytest

import memplan_models
from memplan_tools import ROOT, compiler

README = (ROOT / "README.md").read_text()


def blocks() -> list[str]:
    """The indented blocks, without their indentation."""
    return [re.sub("^    ", "", b, flags=re.M) for b in re.findall(r"(?:^(?:    .*|)\n)+", README, re.M) if b.strip()]


def block(mark: str) -> str:
    found = [b for b in blocks() if mark in b]
    assert len(found) == 1, f"{len(found)} blocks have {mark!r}"
    return found[0]


@pytest.mark.usefixtures("memplan_opt")
def test_c_program(tmp_path):
    memplan_models.write("cnn_relu", tmp_path / "build/models")
    compiler.run("build/models/cnn_relu.onnx", "--dim", "N=4", "--emit=cuda", "-q", "-o", "build/example/cnn_relu",
                 cwd=tmp_path)
    (tmp_path / "include").symlink_to(ROOT / "include")
    (tmp_path / "main.c").write_text(block("int main(void)").strip("\n") + "\n")
    subprocess.run(block("gcc -std=c11"), shell=True, check=True, cwd=tmp_path)
    done = subprocess.run("build/example/main", capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    float(done.stdout)


def test_exit_codes():
    table = dict(re.findall(r"^\| (\d+) \| (.*?) \|$", README, re.M))
    assert sorted(map(int, table)) == sorted(compiler.EXIT.values())


def test_what_is_named_exists():
    text = README.replace("lib/X", "lib").replace("memplan/X", "memplan").replace("test/X", "test")
    for path in re.findall(r"`((?:scripts|test|docs|python|lib|include|tools|benchmarks)(?:/[\w./]*)?)`", text):
        assert (ROOT / path).exists(), path
