"""The corpus of hostile files, and what only a run can show: bounded time and memory, no signal, nothing written.

With $MEMPLAN_SANITIZED_BIN, the folder of a build with sanitizers, they go through that build's tools.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "python")]

from corpus import CASES  # noqa: E402
from memplan_tools import compiler  # noqa: E402

#: of one run: in seconds of processor time, which a busy machine does not stretch, and bytes
MOST_SECONDS, MOST_BYTES = 1.0, 256 << 20


def tool() -> Path:
    sanitized = os.environ.get("MEMPLAN_SANITIZED_BIN")
    return Path(sanitized) / "memplan-opt" if sanitized else compiler.tool()


def measured(command: list) -> tuple[subprocess.CompletedProcess, float, int]:
    """Runs it in a process of its own, whose children are this one command."""
    code = ("import json,resource,subprocess,sys;"
            "d=subprocess.run(sys.argv[1:],capture_output=True,timeout=60);"
            "u=resource.getrusage(resource.RUSAGE_CHILDREN);"
            "sys.stdout.buffer.write(d.stdout);sys.stderr.buffer.write(d.stderr);"
            "print(json.dumps([d.returncode,u.ru_utime+u.ru_stime,u.ru_maxrss*1024]),file=open(3,'w'))")
    read, write = os.pipe()
    environment = {**os.environ, "ASAN_OPTIONS": "detect_container_overflow=0:allow_user_poisoning=0:detect_leaks=0:quarantine_size_mb=16"}
    done = subprocess.run([sys.executable, "-c", f"import os;os.dup2({write},3);{code}", *map(str, command)],
                          capture_output=True, pass_fds=[write], env=environment)
    os.close(write)
    with os.fdopen(read) as stream:
        import json
        returncode, seconds, size = json.loads(stream.read())
    text = subprocess.CompletedProcess(command, returncode, done.stdout.decode(errors="replace"),
                                       done.stderr.decode(errors="replace"))
    return text, seconds, size


def test_the_corpus_is_large_enough():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_refused(name, tmp_path):
    case = CASES[name]
    path = case.make(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    done, seconds, size = measured([tool(), path, "--emit=cuda", "-o", out / "bad", *case.flags])
    assert done.returncode == compiler.EXIT[case.kind], f"exit code {done.returncode}\n{done.stderr[:3000]}"
    assert not list(out.iterdir()) and done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    # MLIR's parser goes on after an error.
    assert len(errors) == 1 or errors and path.suffix == ".mlir", done.stderr[:3000]
    for part in (path.name, *case.parts):
        assert part in done.stderr, f"{part!r} isn't in:\n{done.stderr[:3000]}"
    assert len(done.stderr) < 4000 and "\x1b" not in done.stderr
    assert seconds < MOST_SECONDS and size < MOST_BYTES, f"{seconds:.2f} s, {size >> 20} MiB"
