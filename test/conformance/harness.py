"""Takes the cases of the suite through memplan-opt, the host compiler and, if asked, nvcc, and judges them.

An outcome is one of
    pass         all outputs agree with the suite's, by the suite's own comparison and tolerances, or by rounding
                 alone (see _differ_by_rounding; such a pass is counted and shown)
    drawn        the operator draws random numbers: shapes, types and ranges agree, the numbers can't
    unsupported  memplan-opt refuses the model, saying why, with its exit code for that
    wrong        an output differs
    error        anything else: a crash, a hang, any other exit code, code that doesn't compile
"""

import os
import pickle
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import suite
from memplan_tools import compiler, host

#: cases in one library: more save time, up to where memory or a core's share of the work suffers
BATCH = 40
SECONDS_A_CASE = 60

#: operators whose results are random numbers; the suite's expected outputs are one draw of another generator
DRAWN = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}


ROUNDING = "outside the suite's tolerance by rounding alone"


@dataclass
class Result:
    case: suite.Case
    outcome: str = "error"
    reason: str = ""
    #: how far it came: imported, planned, compiled for the host, compiled by nvcc (None: not tried)
    imported: bool = False
    planned: bool = False
    nvcc: bool | None = None
    prefix: Path | None = None
    #: inputs that had to be known when compiling
    bound: list[str] = field(default_factory=list)

    def set(self, outcome: str, reason: str = "") -> "Result":
        self.outcome, self.reason = outcome, " ".join(reason.split())
        return self


def _shape_flag(name: str, array: np.ndarray) -> list[str]:
    return ["--input-shape", f"{name}={'x'.join(map(str, array.shape)) or 'scalar'}"]


def _input_flags(case: suite.Case) -> list[str]:
    """What the model leaves open about its inputs, as the first data set has it."""
    flags = []
    for value in case.model.graph.input:
        if value.name not in case.data_sets[0].inputs:
            continue
        given = case.data_sets[0].inputs[value.name]
        kind = value.type.tensor_type
        if given is None:
            flags += ["--absent", value.name]
        elif isinstance(given, list):
            flags += ["--sequence-length", f"{value.name}={len(given)}"]
            for i, element in enumerate(given):
                flags += _shape_flag(f"{value.name}[{i}]", element)
        elif not value.type.HasField("tensor_type") or not kind.HasField("shape") or \
                any(not d.HasField("dim_value") for d in kind.shape.dim):
            flags += _shape_flag(value.name, given)
    return flags


def _compile(model: Path, flags, result: Result) -> subprocess.CompletedProcess | None:
    """memplan-opt; inputs that it wants to know are given to it."""
    inputs = result.case.data_sets[0].inputs if result.case.data_sets else {}
    while True:
        shapes = [f for i, f in enumerate(flags) if not _is_about(flags, i, result.bound)]
        for index, name in enumerate(result.bound):
            path = model.with_suffix(f".{index}.pb")
            kind = next(v for v in result.case.model.graph.input if v.name == name).type.tensor_type.elem_type
            tensor = numpy_helper.from_array(inputs[name])
            path.write_bytes(tensor.SerializeToString())
            assert tensor.data_type == kind, f"{name}: {tensor.data_type} for {kind}"
            shapes += ["--input-value", f"{name}=@{path}"]
        try:
            done = compiler.run(model, "--emit=cuda", "-q", "-o", result.prefix, *shapes, check=False,
                                timeout=SECONDS_A_CASE)
        except subprocess.TimeoutExpired:
            return None
        asked = re.search(r"depends on the model's inputs ((?:'[^']*'(?:, )?)+).*see --input-value", done.stderr)
        names = re.findall(r"'([^']*)'", asked[1]) if asked else []
        new = [n for n in names if n in inputs and n not in result.bound]
        if done.returncode != compiler.EXIT["unsupported"] or not new:
            return done
        # All of small integers at once, as a caller who knows his model would.
        result.bound += new


def _is_about(flags: list[str], i: int, names: list[str]) -> bool:
    pair = flags[i - i % 2:i - i % 2 + 2]
    return pair[1].rsplit("=", 1)[0] in names


def emit(case: suite.Case, folder: Path) -> Result:
    result = Result(case, prefix=folder / case.name)
    if not case.data_sets:
        return result.set("unsupported", "the suite has no data for it")
    model = folder / f"{case.name}.onnx"
    model.write_bytes(case.model.SerializeToString())
    flags = _input_flags(case)
    done = _compile(model, flags, result)
    if done is None:
        return result.set("error", f"memplan-opt took more than {SECONDS_A_CASE} s")
    if done.returncode == 0:
        result.imported = result.planned = True
        return result.set("error", "not run")
    result.imported = compiler.run(model, "--emit=mlir", "-q", *flags, check=False).returncode == 0
    message = re.sub(rf"^error: {re.escape(str(model))}: ", "", done.stderr.strip().split("\n")[0])
    if done.returncode in (compiler.EXIT["unsupported"], compiler.EXIT["unbound"]):
        return result.set("unsupported", message)
    return result.set("error", f"exit code {done.returncode}: {message}")


def _outputs_in_order(case: suite.Case, got: dict) -> list:
    outputs = []
    for value in case.model.graph.output:
        if value.type.HasField("tensor_type") or value.name in got:
            outputs.append(got[value.name])
            continue
        pattern = re.compile(re.escape(value.name) + r"\[\d+\]$")
        elements = [a for name, a in got.items() if pattern.match(name)]
        outputs.append(elements if elements or "sequence" in value.type.WhichOneof("value") else None)
    return outputs


def _pair(want: list, ours: list) -> tuple[list, list]:
    """Both with the elements of sequences in line: the suite's comparison takes a sequence's scalar for a list."""
    assert len(want) == len(ours), f"{len(ours)} outputs, expected {len(want)}"
    pairs = ([], [])
    for w, o in zip(want, ours):
        if isinstance(w, list):
            assert isinstance(o, list) and len(w) == len(o), f"a sequence of {len(o)}, expected {len(w)}"
        for into, value in zip(pairs, (w, o)):
            into.extend(value if isinstance(w, list) else [value])
    return pairs


def _differ_by_rounding(want: np.ndarray, ours: np.ndarray) -> bool:
    """Whether no element differs by more than two units in the last place of the largest one. The suite's expected
    numbers are results of the same arithmetic in another order; where an element is a small difference of large
    terms, or one unit is nearly the relative tolerance (float16), two right results may be that far apart."""
    if want.shape != ours.shape or want.dtype != ours.dtype or want.dtype.kind not in "fcV" or not want.size:
        return False
    unit = 2.0 ** -7 if want.dtype.name == "bfloat16" else np.finfo(want.dtype).eps
    with np.errstate(invalid="ignore"):
        w, o = want.astype(np.float64), ours.astype(np.float64)
        same = (w == o) | (np.isnan(w) & np.isnan(o))
        largest = np.max(np.abs(w[np.isfinite(w)]), initial=0)
        return bool(np.all(same | (np.abs(w - o) <= 2 * unit * largest)))


def judge(result: Result, got: list[dict]) -> None:
    from onnx.backend.test.runner import Runner

    case = result.case
    is_drawn = bool(DRAWN & set(case.operators)) or "training_dropout" in case.name
    note = "expected numbers are one draw of another generator" if is_drawn else ""
    for data, outputs in zip(case.data_sets, got):
        try:
            want, ours = _pair(list(data.outputs.values()), _outputs_in_order(case, outputs))
            if is_drawn:
                assert [(a.shape, a.dtype) for a in ours] == [(a.shape, a.dtype) for a in want]
                continue
            for w, o in zip(want, ours):
                if w is None and o is None:
                    continue
                try:
                    Runner.assert_similar_outputs([w], [o], case.rtol, case.atol)
                except AssertionError:
                    if not _differ_by_rounding(w, o):
                        raise
                    note = ROUNDING
        except Exception as error:  # numpy raises several kinds for what can't be compared
            result.set("wrong", str(error))
            return
    result.set("drawn" if is_drawn else "pass", note)


def _execute(batch: list[Result], library: Path) -> None:
    job, output = library.with_suffix(".job"), library.with_suffix(".result")
    job.write_bytes(pickle.dumps((str(library), [(r.case.name, str(r.prefix), [d.inputs for d in r.case.data_sets])
                                                 for r in batch])))
    output.write_bytes(b"")
    try:
        done = subprocess.run([sys.executable, str(Path(__file__).with_name("worker.py")), str(job), str(output)],
                              capture_output=True, text=True, timeout=3 * SECONDS_A_CASE + 10 * len(batch))
        end = f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        end = "it hangs"
    by_name = {r.case.name: r for r in batch}
    with open(output, "rb") as stream:
        while True:
            try:
                name, got, failure = pickle.load(stream)
            except (EOFError, pickle.UnpicklingError):
                break
            result = by_name.pop(name)
            if failure:
                result.set("error", failure)
            else:
                judge(result, got)
    rest = list(by_name.values())
    if rest:  # the first of them ended the process
        rest[0].set("error", f"the process that ran it ended: {end}")
        if rest[1:]:
            _execute(rest[1:], library)


def run_batch(batch: list[Result], library: Path) -> None:
    """Builds some cases as one library and runs each; what doesn't compile is tried in halves."""
    large = all(r.case.kind == "light" for r in batch)  # minutes in checked mode
    try:
        host.build_together([r.prefix for r in batch], library, checked=not large, flags=("-O2",) if large else ("-O0",))
    except host.HostError as error:
        if len(batch) == 1:
            batch[0].set("error", f"the host compiler: {str(error)[:500]}")
            return
        middle = len(batch) // 2
        run_batch(batch[:middle], library.with_name(library.stem + "a.so"))
        run_batch(batch[middle:], library.with_name(library.stem + "b.so"))
        return
    _execute(batch, library)


def nvcc_path() -> str | None:
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def _compile_for_gpu(batch: list[Result], source: Path) -> None:
    text = ['#include "memplan/Runtime/Runtime.h"', "#include <new>"]
    for i, result in enumerate(batch):
        text += [f"namespace model{i} {{", f'#include "{result.prefix.resolve()}.cu"', "}"]
    source.write_text("\n".join(text) + "\n")
    done = subprocess.run([nvcc_path(), "-std=c++17", "-arch=sm_90", "-O0", "-Xptxas", "-O0", f"-I{host.RUNTIME_INCLUDE}",
                           "-cubin", "-o", os.devnull, str(source)], capture_output=True, text=True)
    if done.returncode == 0 or len(batch) == 1:
        for result in batch:
            result.nvcc = done.returncode == 0
        if done.returncode:
            batch[0].set("error", f"nvcc: {done.stderr[:500]}")
        return
    middle = len(batch) // 2
    _compile_for_gpu(batch[:middle], source.with_name(source.stem + "a.cu"))
    _compile_for_gpu(batch[middle:], source.with_name(source.stem + "b.cu"))


def run(cases: list[suite.Case], folder: Path, gpu_step: int = 0) -> list[Result]:
    """All of `cases`, on all cores. Every `gpu_step`-th that was emitted is compiled by nvcc too (0: none)."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda case: emit(case, folder), cases))
        emitted = [r for r in results if r.planned]
        small = [r for r in emitted if r.case.kind != "light"]
        batches = [[r] for r in emitted if r.case.kind == "light"]
        batches += [small[i:i + BATCH] for i in range(0, len(small), BATCH)]
        list(pool.map(run_batch, batches, [folder / f"lib{i}.so" for i in range(len(batches))]))
        if gpu_step:
            chosen = emitted[::gpu_step]
            batches = [chosen[i:i + BATCH] for i in range(0, len(chosen), BATCH)]
            list(pool.map(_compile_for_gpu, batches, [folder / f"gpu{i}.cu" for i in range(len(batches))]))
    return results
