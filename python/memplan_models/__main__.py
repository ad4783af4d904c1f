"""python -m memplan_models FOLDER [NAME...]: writes the models named (all of them when none is)."""

import argparse
import sys

from . import NAMES, STORAGES, entry, write


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m memplan_models", description=__doc__)
    parser.add_argument("folder", nargs="?", help="where NAME.onnx is written")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to write; see --list")
    parser.add_argument("--list", action="store_true", help="print the names and leave")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights (default 0)")
    parser.add_argument("--storage", choices=STORAGES, default="raw", help="how tensors are held (default raw)")
    args = parser.parse_args()
    if args.list:
        for name in NAMES:
            dims = "".join(f" --dim {k}={v}" for k, v in entry(name).dims.items())
            print(f"{name:20} {entry(name).about}{dims and f' [{dims.strip()}]'}")
        return 0
    if not args.folder:
        parser.error("name a folder to write to, or pass --list")
    for name in args.names or NAMES:
        try:
            print(write(name, args.folder, args.seed, args.storage))
        except ValueError as error:
            parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
