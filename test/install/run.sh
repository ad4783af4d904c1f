#!/bin/bash
# Installs a build into a scratch prefix and builds and runs a user's project
# against it: run.sh BUILD_DIR
set -euo pipefail
build=$(realpath "$1")
source=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
cmake -G Ninja -S "$source" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  -DMLIR_DIR="$(sed -n 's/^MLIR_DIR:[A-Z]*=//p' "$build/CMakeCache.txt")" \
  -DLLVM_DIR="$(sed -n 's/^LLVM_DIR:[A-Z]*=//p' "$build/CMakeCache.txt")" \
  >"$scratch/configure.log" || { cat "$scratch/configure.log"; exit 1; }
cmake --build "$scratch/build" -j2 >"$scratch/build.log" || { cat "$scratch/build.log"; exit 1; }
"$scratch/build/user-solver"
"$scratch/build/user-opt" --memplan-plan-arena <<'IR' | grep -q 'memplan.slot<offset = 0'
func.func @f(%x: memref<4xf32>) {
  %0 = memref.alloc() : memref<4xf32>
  memref.copy %x, %0 : memref<4xf32> to memref<4xf32>
  memref.copy %0, %x : memref<4xf32> to memref<4xf32>
  return
}
IR
# What emitted code includes is there, and needs nothing else.
echo '#include "memplan/Runtime/Runtime.h"' |
  c++ -std=c++17 -fsyntax-only -I "$scratch/prefix/include" -x c++ -
echo "install: the installed package builds and runs a user's project"
