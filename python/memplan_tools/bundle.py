"""python -m memplan_tools.bundle OUT MODEL...: a folder that checks and measures models on a machine with a GPU.

MODEL is a path of an .onnx file or the name of one of memplan_models. The folder needs nvcc and Python's
standard library there, nothing else: python3 OUT/run.py.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx

from . import ROOT, compare, compiler, reference

FILES = Path(__file__).with_name("bundle_files")
README = """A bundle of models compiled by memplan.

    python3 run.py          builds with nvcc, runs, checks and measures on this machine's GPU
    python3 run.py --host   the same without a GPU, by a C++17 compiler
    python3 run.py --help   the rest

models/NAME holds the emitted code (.cu, .h), the weights, inputs (seeded, normal), the outputs that
ONNX Runtime gave for them, and the plan. A result passes if |got - want| <= absolute + relative * |want|
for every element, with the tolerances of manifest.json.
"""


def _tensors(folder: Path, kind: str, arrays: dict[str, np.ndarray]) -> list[dict]:
    described = []
    for i, (name, array) in enumerate(arrays.items()):
        file = f"{kind}{i}.bin"
        (folder / file).write_bytes(np.ascontiguousarray(array).tobytes())
        described.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "file": file})
    return described


def add_model(folder: Path, model: Path, dims: dict[str, int], flags=(), with_onnx: bool = True, seed: int = 0) -> dict:
    """Compiles `model` into `folder` and writes inputs and expected outputs; returns its part of the manifest."""
    name = model.stem
    folder.mkdir(parents=True, exist_ok=True)
    compiler.emit_cuda(model, folder / name, dims, "-q", *flags)
    c_name = compiler.identifier(folder / f"{name}.h")
    if f"{c_name}_output_shape" in (folder / f"{name}.h").read_text():
        raise SystemExit(f"{model}: only the run tells the size of an output, which a bundle can't compare")
    plan = compiler.plan(model, dims, *flags)
    (folder / "plan.json").write_text(json.dumps(plan, indent=1) + "\n")
    inputs = reference.random_inputs(model, dims, seed)
    outputs = reference.run(model, inputs)
    if with_onnx:
        # Re-saved as one file, so that external data comes along; too big for that, it stays away.
        loaded = onnx.load(model)
        if loaded.ByteSize() < 2**31 - 1:
            onnx.save(loaded, folder / "model.onnx")
    about = {k: plan[k] for k in ("weights_bytes", "arena_bytes", "lower_bound_bytes", "lower_bound_proof", "optimal")}
    about["no_reuse_bytes"] = compiler.plan(model, dims, "--no-reuse")["no_reuse_bytes"]
    return {"name": name, "c_name": c_name, "dims": dims, **about,
            "relative": compare.RELATIVE, "absolute": compare.ABSOLUTE,
            "inputs": _tensors(folder, "input", inputs), "outputs": _tensors(folder, "expected", outputs)}


def write_frame(out: Path, manifest: dict) -> None:
    """Everything that is the same for all models, and the manifest last."""
    out.mkdir(parents=True, exist_ok=True)
    for file in ("run.py", "driver.cu"):
        shutil.copyfile(FILES / file, out / file)
    target = out / "include/memplan/Runtime"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "include/memplan/Runtime", target, ignore=shutil.ignore_patterns("*.txt"))
    (out / "README.txt").write_text(README)
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def resolve(model: str, models_folder: Path) -> tuple[Path, dict[str, int]]:
    """Path and default dims of a model given by path or by the name of one of memplan_models."""
    import memplan_models

    if model in memplan_models.NAMES:
        path = models_folder / f"{model}.onnx"
        if not path.exists():
            memplan_models.write(model, models_folder)
        return path, dict(memplan_models.entry(model).dims)
    path = Path(model)
    if not path.is_file():
        raise ValueError(f"{model} is neither a file nor a model of memplan_models "
                         f"({', '.join(memplan_models.NAMES)})")
    return path, {}


def parse_dims(parser: argparse.ArgumentParser, words: list[str]) -> dict[str, int]:
    dims = {}
    for word in words:
        name, _, value = word.rpartition("=")
        if not name or not value.isdigit():
            parser.error(f"--dim {word}: want NAME=NUMBER")
        dims[name] = int(value)
    return dims


def used_dims(model: Path, dims: dict[str, int]) -> dict[str, int]:
    """The part of `dims` that the model's inputs name, so that one --dim can serve several models."""
    graph = onnx.load(model, load_external_data=False).graph
    named = {d.dim_param for v in graph.input for d in v.type.tensor_type.shape.dim}
    return {k: v for k, v in dims.items() if k in named}


def main() -> int:
    parser = argparse.ArgumentParser(prog="gpu-bundle.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="binds a symbolic dimension")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default 0)")
    parser.add_argument("--no-onnx", action="store_true", help="leave the .onnx out: smaller, but no ONNX Runtime time")
    args = parser.parse_args()
    dims = parse_dims(parser, args.dim)
    described = []
    try:
        for word in args.models:
            model, defaults = resolve(word, ROOT / "build/models")
            print(f"compiling {model.stem}", flush=True)
            described.append(add_model(args.out / "models" / model.stem, model,
                                       {**defaults, **used_dims(model, dims)}, (), not args.no_onnx, args.seed))
        write_frame(args.out, {"models": described})
    except (ValueError, RuntimeError, FileNotFoundError) as error:
        print(f"gpu-bundle: {error}", file=sys.stderr)
        return 1
    megabytes = sum(f.stat().st_size for f in args.out.rglob("*") if f.is_file()) / 1e6
    print(f"{args.out}: {len(described)} models, {megabytes:.0f} MB. On the machine with the GPU: python3 run.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
