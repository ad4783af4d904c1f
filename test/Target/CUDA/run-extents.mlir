// An output of which only the run tells how much counts: its extent is kept behind the arena.
// RUN: memplan-opt %s --emit=cuda -q -o %t && FileCheck %s < %t.cu && FileCheck %s --check-prefix=HEADER < %t.h

// HEADER: [0] y: f32[8]; the run tells the extent of dim 0
// HEADER: memplan_status {{.*}}_output_shape({{.*}}_t *model, size_t output, int64_t *dims,

// CHECK: constexpr size_t kExtentsOffset = (kArenaBytes + 15) / 16 * 16;
// One extent, 16 bytes for it.
// CHECK: constexpr size_t kRunBytes = kExtentsOffset + 16;
// The launch writes to output 1, which is not the caller's.
// CHECK: run.output<int64_t>(1)
// CHECK: _num_outputs(void) { return 1; }
// CHECK: _arena_bytes(void) { return kRunBytes; }
// CHECK: kWeightsBytes + kRunBytes
// CHECK: places[1 + i] = model->arena + kExtentsOffset + 16 * i;
// CHECK: static constexpr size_t kRunDims[][3] = {{[{][{]}}0, 0, 0}};
func.func @main(%x: memref<8xf32>, %y: memref<8xf32> {bufferize.result, memplan.name = "y"},
                %n: memref<i64> {bufferize.result, memplan.run_dim = [0, 0]}) {
  %five = arith.constant 5 : i64
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) loc("exp")
  linalg.fill ins(%five : i64) outs(%n : memref<i64>) loc("extent")
  return
}
