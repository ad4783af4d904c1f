#!/usr/bin/env bash
# Builds memplan (release, build/release/bin), compiles a model to CUDA, runs it, on a GPU if there is one, else on
# the host build, checks the result against ONNX Runtime and prints what it did.
#
#   scripts/demo.sh [MODEL.onnx...] [--dim NAME=N]... [--host]
#
# Without a model: the two small CNNs of python/memplan_models. Installs what is missing (scripts/install-deps.sh).
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

case " $* " in
  *' -h '* | *' --help '*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
esac
"$root/scripts/install-deps.sh"
arguments=()
for argument in "$@"; do # paths are meant from where the caller stands
  if [ -f "$argument" ]; then argument=$(realpath "$argument"); fi
  arguments+=("$argument")
done
build release memplan-opt
project_python -m memplan_tools.demo "${arguments[@]}"
