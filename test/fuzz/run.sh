#!/usr/bin/env bash
# Runs a fuzzer over its seeds and over what once made it fail, then over N mutations of them.
#
#   test/fuzz/run.sh FUZZER N [LIBFUZZER_OPTION...]
set -euo pipefail
fuzzer=$(realpath "$1") runs=$2
shift 2
name=$(basename "$fuzzer")
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PYTHONPATH=$root/python "$root/build/venv/bin/python" "$here/seeds.py" "$name" "$scratch/seeds"
mkdir "$scratch/grown"
starts=("$scratch/seeds")
[ ! -d "$here/regressions/$name" ] || starts+=("$here/regressions/$name")
# MLIR's shared library isn't instrumented, so that containers that cross the border look overrun.
export ASAN_OPTIONS=detect_container_overflow=0:allow_user_poisoning=0:detect_leaks=0:${ASAN_OPTIONS:-}
cd "$scratch"
"$fuzzer" "$scratch/grown" "${starts[@]}" -runs="$runs" -seed=1 -timeout=20 -rss_limit_mb=3000 \
  -print_final_stats=1 -artifact_prefix="${FUZZ_ARTIFACTS:-$PWD}/$name-" "$@" 2>&1 | grep -vE '^#[0-9]+\s+(NEW|REDUCE|pulse|RELOAD)'
