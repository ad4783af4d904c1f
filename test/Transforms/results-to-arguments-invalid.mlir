// RUN: memplan-opt %s --memplan-results-to-arguments --split-input-file --verify-diagnostics

func.func @dynamic(%n: index) -> memref<?xf32> {
  %a = memref.alloc(%n) : memref<?xf32>
  // expected-error @below {{result 0 has type 'memref<?xf32>'; an output needs static extents and the identity layout}}
  return %a : memref<?xf32>
}

// -----

// expected-error @below {{memplan-results-to-arguments needs a function of one block}}
func.func @blocks(%c: i1, %x: memref<4xf32>) -> memref<4xf32> {
  cf.cond_br %c, ^a, ^b
^a:
  return %x : memref<4xf32>
^b:
  return %x : memref<4xf32>
}
