#!/usr/bin/env bash
# Builds everything and runs all tests: GoogleTest (by ctest), lit, pytest. Ends with the runners' summary lines;
# exits with 1 when any failed.
#
#   scripts/test.sh [--preset release|dev|asan] [--quick]
#
# --quick leaves out pytest's slow tests (the large models). Installs what is missing (scripts/install-deps.sh).
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

preset=release pytest_flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name}; shift ;;
    --quick) pytest_flags+=(-m "not slow") ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done
"$root/scripts/install-deps.sh"
build "$preset"

logs=$root/build/$preset/test-logs
mkdir -p "$logs"
summaries=() failed=
# run_suite NAME SUMMARY_PATTERN COMMAND...: the last line that matches is the summary.
run_suite() {
  local name=$1 pattern=$2 started=$SECONDS line status=0
  shift 2
  say "$name"
  "$@" 2>&1 | tee "$logs/$name.log" || status=$?
  line=$(grep -E "$pattern" "$logs/$name.log" | tail -1 || true)
  [ $status = 0 ] || failed=yes
  # A runner that ran nothing has shown nothing.
  if [ -z "$line" ]; then line="no summary (exit code $status)" failed=yes; fi
  summaries+=("$(printf '%-7s %s [%d s]' "$name" "$(sed 's/=\{3,\}//g; s/^ *//' <<<"$line")" $((SECONDS - started)))")
}

export MEMPLAN_BIN=$root/build/$preset/bin
run_suite ctest '% tests passed' ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$jobs"
run_suite lit 'Passed *:|Passed: ' "$venv/bin/lit" -j "$jobs" --param "build=build/$preset" --param "python=$venv/bin/python" test
run_suite pytest '[0-9]+ (passed|failed|error)' \
  env PYTHONPATH="$root/python" "$venv/bin/python" -m pytest -q -rs --durations=5 "${pytest_flags[@]}" \
  test/python test/conformance test/hostile

echo
say "summary"
printf '%s\n' "${summaries[@]}"
[ -z "$failed" ] || die "some tests failed; logs are in build/$preset/test-logs"
