"""A full disk, a failed write, a failed rename or an interrupt at any moment leaves no file half-made.

A small shared library that is loaded before the C library makes the N-th call fail, for every N until none fails.
"""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import onnx_models as om
from memplan_tools import compiler

pytestmark = pytest.mark.usefixtures("memplan_opt")

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether this is call number $FAIL_AT of the function $FAIL_IN. */
static int fails(const char *function) {
  static int count;
  const char *in = getenv("FAIL_IN"), *at = getenv("FAIL_AT");
  if (!in || strcmp(in, function) || ++count != atoi(at))
    return 0;
  if (getenv("FAIL_BY_SIGNAL"))
    raise(atoi(getenv("FAIL_BY_SIGNAL")));
  errno = ENOSPC;
  return 1;
}
ssize_t write(int fd, const void *data, size_t size) {
  if (fd > 2 && fails("write"))
    return -1;
  return ((ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, size);
}
int rename(const char *from, const char *to) {
  if (fails("rename"))
    return -1;
  return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", folder / "shim.c", "-o", folder / "shim.so", "-ldl"], check=True)
    return folder / "shim.so"


def model(folder: Path) -> Path:
    weight = om.tensor("w", np.ones((64, 64), np.float32))
    return om.write(om.model([om.node("MatMul", ["x", "w"], ["y"])], [om.value("x", [4, 64])], [om.value("y", [4, 64])],
                             [weight]), folder / "m.onnx")


def run(shim: Path, path: Path, out: Path, function: str, at: int, by_signal: int | None = None):
    environment = {**os.environ, "LD_PRELOAD": str(shim), "FAIL_IN": function, "FAIL_AT": str(at)}
    if by_signal:
        environment["FAIL_BY_SIGNAL"] = str(by_signal)
    # Whoever started the tests may ignore interrupts, as a shell does in the background.
    return compiler.run(path, "--emit=cuda", "-q", "-o", out / "m", check=False, env=environment,
                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


ALL = ["m.cu", "m.h", "m.safetensors"]


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("function", ["write", "rename"])
@pytest.mark.parametrize("by_signal", [None, signal.SIGINT, signal.SIGTERM])
def test_every_failure_leaves_nothing(shim, tmp_path, function, by_signal):
    path = model(tmp_path)
    failures = 0
    for at in range(1, 50):
        out = tmp_path / f"out{at}"
        done = run(shim, path, out, function, at, by_signal)
        if done.returncode == 0:
            assert names(out) == ALL
            break
        failures += 1
        assert not names(out), f"call {at} of {function}"
        if by_signal:
            assert done.returncode == -by_signal
        else:
            assert done.returncode == compiler.EXIT["usage"], done.stderr
            assert done.stderr.count("error: ") == 1 and "No space left" in done.stderr and "m." in done.stderr
    # Each file takes one call at least.
    assert failures >= len(ALL)


@pytest.mark.parametrize("function", ["write", "rename"])
def test_a_failure_mixes_no_old_and_new_files(shim, tmp_path, function):
    path = model(tmp_path)
    out = tmp_path / "out"
    compiler.emit_cuda(path, out / "m", None, "--alignment=512")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    for at in range(1, 4):
        run(shim, path, out, function, at)
        now = {p.name: p.read_bytes() for p in out.iterdir()}
        assert now == before or not now, f"call {at} of {function}: {sorted(now)}"
        if not now:
            compiler.emit_cuda(path, out / "m", None, "--alignment=512")
