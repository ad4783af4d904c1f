"""python -m peers NAME FILE: measures one peer on one model and prints one line of JSON, the last of standard output."""

import importlib
import json
import sys


def main() -> int:
    name, path = sys.argv[1:]
    result = importlib.import_module(f"peers.{name}").measure(path)
    print("\n" + json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
