// RUN: memplan-opt %s --pass-pipeline='builtin.module(memplan-plan-arena,memplan-verify-arena)' | FileCheck %s
// RUN: memplan-opt %s --pass-pipeline='builtin.module(memplan-plan-arena{effort=0},memplan-verify-arena)' \
// RUN:   | FileCheck %s --check-prefix=GREEDY
// RUN: memplan-opt %s --emit=plan --no-forward --effort=0 -q | FileCheck %s --check-prefix=NOSEARCH
// RUN: memplan-opt %s --emit=plan --no-forward -o - 2>&1 | FileCheck %s --check-prefixes=SEARCH,SUMMARY
// RUN: memplan-opt %s --emit=cuda --no-forward --effort=7 -q -o - | FileCheck %s --check-prefix=STAMP

// STAMP: Settings: --no-forward {{.*}}--effort 7
// The live bytes are no tight bound here. In units of 256 bytes (64 floats):
//
//   point   0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
//   a  2    #  #  #
//   b  3       #  #  #  #  #
//   c  1             #  #  #  #  #  #  #  #  #  #
//   d  1                #  #  #  #  #
//   e  2                      #  #  #  #
//   f  1                         #  #  #  #  #
//   g  3                                  #  #  #  #  #  #
//   h  2                                           #  #
//   live    2  5  5  4  5  5  4  5  5  4  5  5  4  5  5  3
//
// At most 5 units live, but 5 are too few. a and b fill [0, 5) at point 1, so b
// is at one end: at [0, 3), or else mirror everything. Then c and d are 3 and 4
// in some order (point 4), and e and f fill [0, 3), so that f is 0 or 2 (point
// 7). g and h fill [0, 5) at point 13, so g is [0, 3), which holds f, or [2, 5),
// which holds c; but g lives with both at point 10.
// With 6: a [3, 5), b [0, 3), c 5, d 3, e [1, 3), f 0, g [2, 5), h [0, 2).
// Sum: 2 + 3 + 1 + 1 + 2 + 1 + 3 + 2 = 15 units, 3840 bytes. Without a search
// the bound is 5 units, 1280 bytes, and no placement is known to be optimal.
// CHECK: #memplan.arena<bytes = 1536, lower_bound = 1536, lower_bound_proof = search, no_reuse = 3840, optimal = true, alignment = 256>
// GREEDY: #memplan.arena<bytes = {{[0-9]+}}, lower_bound = 1280, no_reuse = 3840, optimal = false, alignment = 256>
// NOSEARCH: "lower_bound_bytes": 1280,
// NOSEARCH: "lower_bound_proof": "live_bytes",
// NOSEARCH: "optimal": false,
// SEARCH: "arena_bytes": 1536,
// SEARCH: "lower_bound_bytes": 1536,
// SEARCH: "lower_bound_proof": "search",
// SEARCH: "optimal": true,
// SUMMARY: 8 buffers, proved optimal by search: no placement of these lifetimes needs less
func.func @main(%x1: memref<64xf32>, %x2: memref<128xf32>, %x3: memref<192xf32>,
                %y1: memref<64xf32> {bufferize.result}, %y2: memref<128xf32> {bufferize.result},
                %y3: memref<192xf32> {bufferize.result}) {
  %a = memref.alloc() : memref<128xf32>
  %b = memref.alloc() : memref<192xf32>
  %c = memref.alloc() : memref<64xf32>
  %d = memref.alloc() : memref<64xf32>
  %e = memref.alloc() : memref<128xf32>
  %f = memref.alloc() : memref<64xf32>
  %g = memref.alloc() : memref<192xf32>
  %h = memref.alloc() : memref<128xf32>
  memref.copy %x2, %a : memref<128xf32> to memref<128xf32>
  memref.copy %x3, %b : memref<192xf32> to memref<192xf32>
  memref.copy %a, %y2 : memref<128xf32> to memref<128xf32>
  memref.copy %x1, %c : memref<64xf32> to memref<64xf32>
  memref.copy %x1, %d : memref<64xf32> to memref<64xf32>
  memref.copy %b, %y3 : memref<192xf32> to memref<192xf32>
  memref.copy %x2, %e : memref<128xf32> to memref<128xf32>
  memref.copy %x1, %f : memref<64xf32> to memref<64xf32>
  memref.copy %d, %y1 : memref<64xf32> to memref<64xf32>
  memref.copy %e, %y2 : memref<128xf32> to memref<128xf32>
  memref.copy %x3, %g : memref<192xf32> to memref<192xf32>
  memref.copy %f, %y1 : memref<64xf32> to memref<64xf32>
  memref.copy %c, %y1 : memref<64xf32> to memref<64xf32>
  memref.copy %x2, %h : memref<128xf32> to memref<128xf32>
  memref.copy %h, %y2 : memref<128xf32> to memref<128xf32>
  memref.copy %g, %y3 : memref<192xf32> to memref<192xf32>
  return
}
