#!/bin/sh
# Compiles every library kernel for the GPUs that memplan names, with warnings as
# errors, and fails if ptxas reports a spill. Exit code 77: there is no nvcc.
#
#   check-nvcc.sh INCLUDE_FOLDER SOURCE.cu
set -eu
include=$1 source=$2
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
  echo "skipped: no nvcc in PATH or /usr/local/cuda/bin"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for arch in sm_80 sm_90; do
  if ! "$nvcc" -std=c++17 -O2 -arch=$arch -Werror all-warnings \
      -Xcompiler -Wall,-Wextra -Xptxas -v -I "$include" \
      -c "$source" -o "$work/out.o" >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
  fi
  kernels=$(grep -c 'Used [0-9]* registers' "$work/log") || true
  if [ "$kernels" -eq 0 ]; then
    echo "$arch: ptxas reported no kernel"
    cat "$work/log"
    exit 1
  fi
  if grep -B2 -E '[1-9][0-9]* bytes spill' "$work/log"; then
    echo "$arch: the kernels above spill registers"
    exit 1
  fi
  echo "$arch: $kernels kernels, no warning, no spill"
done
