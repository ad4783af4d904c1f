"""Runs cases that were built into one library, in a process of its own: emitted code that crashes or hangs takes
nobody with it. Called by harness.py with a pickled job; writes one pickled result a case as it goes."""

import pickle
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from memplan_tools import host  # noqa: E402


def flat(values: dict) -> dict:
    """Sequences as the compiler names their elements: NAME[0], NAME[1] ..."""
    out = {}
    for name, value in values.items():
        if isinstance(value, list):
            out.update({f"{name}[{i}]": v for i, v in enumerate(value)})
        elif value is not None:
            out[name] = value
    return out


def main(job_path: str, result_path: str) -> None:
    library, cases = pickle.loads(Path(job_path).read_bytes())
    with open(result_path, "wb") as results:
        for name, prefix, data_sets in cases:
            try:
                with host.HostModel(prefix, library=library) as model:
                    got = [model.run(flat(inputs)) for inputs in data_sets]
                outcome = (name, got, None)
            except Exception as error:  # whatever it is, it is this case's outcome
                outcome = (name, None, f"{type(error).__name__}: {error}")
            pickle.dump(outcome, results)
            results.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
