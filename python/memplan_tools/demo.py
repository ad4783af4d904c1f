"""python -m memplan_tools.demo [MODEL.onnx] [--dim NAME=N]...: compiles a model, runs it, checks it, says what it did."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from . import ROOT, bundle


def gpu_at_hand() -> bool:
    if not (shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()):
        return False
    smi = shutil.which("nvidia-smi")
    return bool(smi) and subprocess.run([smi, "-L"], capture_output=True).returncode == 0


def size(count: int) -> str:
    return f"{count:>13,} bytes ({count / 2**20:.2f} MiB)"


def report(about: dict, folder: Path) -> str:
    share = about["no_reuse_bytes"] / max(1, about["arena_bytes"])
    how = " by search" if about["lower_bound_proof"] == "search" else ""
    proof = f"proved optimal{how}: the arena is its own lower bound" if about["optimal"] else "not proved optimal"
    dims = " ".join(f"{k}={v}" for k, v in about["dims"].items())
    shown = folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder
    return f"""{about['name']}{f' with {dims}' if dims else ''}
  weights                        {size(about['weights_bytes'])}
  activations without reuse      {size(about['no_reuse_bytes'])}
  arena                          {size(about['arena_bytes'])}, {share:.2f} times less
  lower bound                    {size(about['lower_bound_bytes'])}; {proof}
  emitted                        {shown}/{about['name']}.cu, .h, .safetensors; plan.json
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo.sh", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="path of an .onnx file, or a name of "
                        "memplan_models (default: cnn_relu cnn_dropout)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="binds a symbolic dimension")
    parser.add_argument("--host", action="store_true", help="run the host build even where a GPU is")
    args = parser.parse_args()
    dims = bundle.parse_dims(parser, args.dim)
    out = ROOT / "build/demo"
    described = []
    try:
        for word in args.models or ["cnn_relu", "cnn_dropout"]:
            model, defaults = bundle.resolve(word, ROOT / "build/models")
            print(f"==> compiling {model} to CUDA", flush=True)
            described.append(bundle.add_model(out / "models" / model.stem, model,
                                              {**defaults, **bundle.used_dims(model, dims)}, with_onnx=False))
        bundle.write_frame(out, {"models": described})
    except (ValueError, RuntimeError, FileNotFoundError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    host = args.host or not gpu_at_hand()
    print(f"==> building and running on {'the host (no GPU here)' if host else 'the GPU'}; "
          "the reference is ONNX Runtime", flush=True)
    ran = subprocess.run([sys.executable, str(out / "run.py"), "--no-baseline", *(["--host"] if host else [])])
    print()
    for about in described:
        print(report(about, out / "models" / about["name"]))
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
