#!/usr/bin/env bash
# Writes a folder that builds, runs, checks and measures models on a machine with a GPU, where only nvcc and
# Python are needed: python3 OUT/run.py.
#
#   scripts/gpu-bundle.sh OUT MODEL... [--dim NAME=N]... [--seed N] [--no-onnx]
#
# MODEL is an .onnx file or a name that `python -m memplan_models --list` prints.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

case " $* " in
  '  ' | *' -h '* | *' --help '*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
esac
"$root/scripts/install-deps.sh"
here=$PWD
build release memplan-opt
cd "$here"
project_python -m memplan_tools.bundle "$@"
