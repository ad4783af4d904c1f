# Sourced by the scripts here: where things are, and how to say what is being done.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/build/venv
jobs=${MEMPLAN_JOBS:-$(nproc)}

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# Runs a module of python/ with the project's own interpreter.
project_python() { PYTHONPATH=$root/python "$venv/bin/python" "$@"; }

# build PRESET [TARGET...]: configures when needed, then builds.
build() {
  local preset=$1; shift
  cd "$root" || exit
  if [ ! -f "build/$preset/build.ninja" ]; then
    say "configuring build/$preset"
    cmake --preset "$preset" || die "configuring failed; to start afresh: rm -r build/$preset"
  fi
  say "building build/$preset"
  cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"}
}
