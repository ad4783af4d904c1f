"""Several models compiled for one arena, run in turns by a C program that owns it."""

import re
import subprocess

import numpy as np
import pytest

import memplan_models
from memplan_tools import ROOT, compiler, reference
from memplan_tools.compare import assert_close

pytestmark = pytest.mark.usefixtures("memplan_opt")

#: the dims of each; together one --dim of a name is for all that have it
DIMS = {"N": 2, "S": 12}
NAMES = ["cnn_relu", "bert_small", "mobilenet_v2_small"]

MAIN = """
#include "trio.h"
#include <stdio.h>
#include <stdlib.h>

static void *readAll(const char *name, size_t bytes) {
  void *data = aligned_alloc(256, (bytes + 255) / 256 * 256);
  FILE *file = fopen(name, "rb");
  if (!file || fread(data, 1, bytes, file) != bytes)
    exit(2);
  fclose(file);
  return data;
}

#define RUN(NAME, ROUND)                                                                     \\
  do {                                                                                       \\
    const void *in[8];                                                                       \\
    void *out[8];                                                                            \\
    char path[100];                                                                          \\
    for (size_t i = 0; i < NAME##_num_inputs(); ++i) {                                       \\
      snprintf(path, 100, #NAME ".in%zu.%d", i, ROUND);                                      \\
      in[i] = readAll(path, NAME##_inputs[i].bytes);                                         \\
    }                                                                                        \\
    for (size_t i = 0; i < NAME##_num_outputs(); ++i)                                        \\
      out[i] = aligned_alloc(256, (NAME##_outputs[i].bytes + 255) / 256 * 256);              \\
    if (NAME##_run(models.NAME, in, out, NULL) != MEMPLAN_OK) {                              \\
      puts(memplan_last_error());                                                            \\
      return 1;                                                                              \\
    }                                                                                        \\
    for (size_t i = 0; i < NAME##_num_outputs(); ++i) {                                      \\
      snprintf(path, 100, #NAME ".out%zu.%d", i, ROUND);                                     \\
      FILE *file = fopen(path, "wb");                                                        \\
      fwrite(out[i], 1, NAME##_outputs[i].bytes, file);                                      \\
      fclose(file);                                                                          \\
    }                                                                                        \\
  } while (0)

int main(void) {
  const char *paths[] = {"trio_cnn_relu.safetensors", "trio_bert_small.safetensors",
                         "trio_mobilenet_v2_small.safetensors"};
  size_t arena = (trio_arena_bytes() + 255) / 256 * 256;
  char *block = aligned_alloc(256, trio_weights_bytes() + arena);
  trio_t models;
  if (trio_load(&models, paths, block, block + trio_weights_bytes()) != MEMPLAN_OK) {
    puts(memplan_last_error());
    return 1;
  }
  for (int round = 0; round < 2; ++round) {
    RUN(trio_cnn_relu, round);
    RUN(trio_bert_small, round);
    RUN(trio_mobilenet_v2_small, round);
  }
  printf("%zu %zu\\n", trio_weights_bytes(), trio_arena_bytes());
  trio_free(&models);
  return 0;
}
"""


@pytest.fixture(scope="module")
def paths(build_folder):
    return [memplan_models.write(name, build_folder / "shared_models") for name in NAMES]


def dims_of(name):
    return {d: n for d, n in DIMS.items() if d in memplan_models.entry(name).dims}


def flags():
    return [word for d, n in DIMS.items() for word in ("--dim", f"{d}={n}")]


def test_in_turns(paths, tmp_path):
    done = compiler.run(*paths, *flags(), "--emit=cuda", "-o", tmp_path / "trio")
    plans = [compiler.plan(path, dims_of(name)) for path, name in zip(paths, NAMES)]
    arenas = [plan["arena_bytes"] for plan in plans]
    assert re.search(rf"an arena each +{sum(arenas)} bytes", done.stderr)
    assert re.search(rf"one arena for all +{max(arenas)} bytes", done.stderr)

    (tmp_path / "main.c").write_text(MAIN)
    include = [f"-I{ROOT / 'include'}", f"-I{tmp_path}"]
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Werror", *include, "-c", "main.c"], cwd=tmp_path, check=True)
    objects = ["main.o"]
    for name in NAMES:
        objects.append(f"{name}.o")
        subprocess.run(["g++", "-std=c++17", "-O0", "-DMEMPLAN_CHECKED", *include, "-x", "c++", "-c", f"trio_{name}.cu", "-o",
                        objects[-1]], cwd=tmp_path, check=True)
    subprocess.run(["g++", "-pthread", *objects, "-o", "main"], cwd=tmp_path, check=True)

    inputs = {}
    for path, name in zip(paths, NAMES):
        for turn in range(2):
            inputs[name, turn] = reference.random_inputs(path, dims_of(name), seed=turn)
            for i, array in enumerate(inputs[name, turn].values()):
                (tmp_path / f"trio_{name}.in{i}.{turn}").write_bytes(array.tobytes())
    ran = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    weights = sum(-(-plan["weights_bytes"] // 256) * 256 for plan in plans)
    assert ran.stdout.split() == [str(weights), str(max(arenas))]
    for path, name in zip(paths, NAMES):
        for turn in range(2):
            want = reference.run(path, inputs[name, turn])
            got = {key: np.frombuffer((tmp_path / f"trio_{name}.out{i}.{turn}").read_bytes(), value.dtype).reshape(value.shape)
                   for i, (key, value) in enumerate(want.items())}
            assert_close(got, want, absolute=1e-4)


@pytest.mark.parametrize("arguments,message", [
    (["--emit=plan", "-o", "OUT"], "go together with --emit=cuda alone"),
    ([], "go together with --emit=cuda alone"),
    (["--emit=cuda"], "-o OUT"),
    (["--emit=cuda", "-o", "-"], "-o OUT"),
    (["--emit=cuda", "-o", "OUT", "--dim", "Q=3"], "--dim Q names nothing in any of the models"),
    (["--emit=cuda", "-o", "OUT", "--input-shape", "q=3"], "--input-shape q names nothing in any of the models"),
    (["--emit=cuda", "-o", "OUT", "--memory-budget=100KiB"], "more than --memory-budget"),
    (["--emit=cuda", "-o", "OUT", "TWICE"], "would both be called"),
])
def test_refused(paths, arguments, message, tmp_path):
    words = [{"OUT": tmp_path / "out", "TWICE": paths[0]}.get(word, word) for word in arguments]
    done = compiler.run(*paths, *flags(), *words, check=False)
    assert done.returncode in (1, 5) and message in done.stderr and not done.stdout, done.stderr
    assert not list(tmp_path.iterdir())


def test_a_flags_value_is_no_model(paths, tmp_path):
    """-o NAME.onnx names a prefix, not a second model."""
    compiler.run(paths[0], "--dim", "N=2", "--emit=cuda", "-o", tmp_path / "out.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.onnx.cu", "out.onnx.h", "out.onnx.safetensors"]
