#!/usr/bin/env bash
# Builds the fuzzers and memplan-opt with AddressSanitizer and UndefinedBehaviorSanitizer, runs every fuzzer for a
# fixed number of inputs, and the hostile corpus through the sanitized memplan-opt. Exits with 1 when anything failed.
#
#   scripts/fuzz.sh [--runs N] [--only FUZZER]
#
# The inputs are the same each time. What a fuzzer finds is left in build/fuzz/findings; once mended, it belongs into
# test/fuzz/regressions/FUZZER. Installs what is missing (scripts/install-deps.sh --fuzz).
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

runs=20000 only=
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=${2:?--runs needs a number}; shift ;;
    --only) only=${2:?--only needs a name}; shift ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done
"$root/scripts/install-deps.sh" --fuzz
build fuzz OnnxFuzzer ExternalDataFuzzer MlirFuzzer CsvFuzzer memplan-opt
cmake -DMEMPLAN_FUZZ_RUNS="$runs" "build/fuzz" > /dev/null

export FUZZ_ARTIFACTS=$root/build/fuzz/findings
mkdir -p "$FUZZ_ARTIFACTS"
status=0
ctest --test-dir build/fuzz -R "fuzz/${only}" --output-on-failure --no-tests=error -j "$jobs" || status=1
[ -n "$only" ] || MEMPLAN_SANITIZED_BIN=$root/build/fuzz/bin PYTHONPATH=$root/python \
  "$venv/bin/python" -m pytest -q test/hostile || status=1
exit $status
