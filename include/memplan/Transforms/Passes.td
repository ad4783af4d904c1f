//===- Passes.td - The passes of memplan --------------------*- tablegen -*-===//
//
// This file is the manual: docs/Passes.md is generated from it. In the order
// in which the pipeline runs them.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_TRANSFORMS_PASSES_TD
#define MEMPLAN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def RaiseLinalg : Pass<"memplan-raise-linalg", "::mlir::func::FuncOp"> {
  let summary = "Turn linalg products and softmax into the dialect's structured ops";
  let description = [{
    On static tensors. A contraction (`linalg.matmul`, `linalg.batch_matmul`,
    `linalg.contract`, a `linalg.generic` of that form) with one reduced dim onto
    a zero fill becomes `memplan.matmul`, and
    `linalg.softmax` becomes `memplan.rowwise`: both can then take an epilogue,
    and neither reads its destination. Other contractions stay.

    ```mlir
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
    %m = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
    // becomes
    %m = memplan.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%e : tensor<4x16xf32>) ...
    ```
  }];
  let statistics = [
    Statistic<"numRaised", "ops-raised", "ops turned into memplan ops">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect", "::memplan::MemPlanDialect"];
}

def FuseStructured : Pass<"memplan-fuse", "::mlir::func::FuncOp"> {
  let summary = "Move elementwise work into the op that produces or consumes it";
  let description = [{
    On tensors, before bufferization. Repeats until nothing changes:

    - an elementwise `linalg.generic` moves into the epilogue of the op that
      produces its input (any `memplan::EpilogueOpInterface`: convolution, matrix
      product, window, rowwise), when that op's result has no other user and the
      maps agree: bias, activation, BatchNorm, residual add;
    - elementwise chains become one `linalg.generic` (upstream's patterns), but
      for sums of which several terms may die before the last is made: those are
      memplan-fuse-scheduled's;
    - a transpose (a `linalg.generic` that only yields, or `linalg.transpose`)
      moves into the indexing maps of a matrix product's operand or result, or of
      an elementwise reader;
    - an elementwise producer of the one input of a `memplan.reduce_window` moves
      into its `map` region, if it can't move into an epilogue before it;
    - pooling (max or average) in windows that don't overlap and are powers of
      two, or a channel shuffle, moves into the convolution before it, and
      nearest-neighbour upsampling by powers of two into the one after it: what
      is before the pooling and after the upsampling is never stored.

    Values with several users are never recomputed.

    ```mlir
    %0 = memplan.conv ins(%x, %w : ...) ... { ^bb0(%acc: f32): memplan.yield %acc : f32 }
    %1 = linalg.generic {max(%0, 0)}
    // becomes
    %1 = memplan.conv ins(%x, %w : ...) ... { ^bb0(%acc: f32): memplan.yield max(%acc, 0) }
    ```
  }];
  let statistics = [
    Statistic<"numEpilogues", "epilogues-fused", "elementwise ops moved into a producer's epilogue">,
    Statistic<"numTransposes", "transposes-folded", "transposes folded into indexing maps">,
    Statistic<"numIntoConvolutions", "fused-into-convolutions", "poolings, shuffles and upsamplings that moved into a convolution">
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect", "::memplan::MemPlanDialect"];
}

def Schedule : Pass<"memplan-schedule", "::mlir::func::FuncOp"> {
  let summary = "Order ops so that the fewest bytes are alive at one time";
  let description = [{
    On static tensors, before bufferization. Reorders the ops of each block, also
    those nested in control flow, so that the peak of live bytes is smallest:
    exactly where the search ends within `effort`, else as low as it came, with a
    lower bound that says how far it may be off. Never raises the peak, and moves
    nothing if it can't lower it.

    A tensor is alive from its producer to its last user. Views (reshapes,
    `tensor.extract_slice`) are the tensor that they show, what is inserted into
    an empty tensor is made there, results are made in the caller's buffers, and
    an op may overwrite an input that dies there where `memplan::canOverwrite`
    says so. Ops with memory effects keep their order among each other. Constants,
    weights, empty tensors and views move along with their first user. A block
    that makes a tensor of dynamic size stays as it is. See docs/Schedule.md.

    ```mlir
    %big0 = linalg.exp ins(%x : tensor<100xf32>) ...
    %big1 = linalg.sin ins(%x : tensor<100xf32>) ...
    %small0 = linalg.reduce ins(%big0 : tensor<100xf32>) ...
    %small1 = linalg.reduce ins(%big1 : tensor<100xf32>) ...
    // becomes
    %big0 = linalg.exp ins(%x : tensor<100xf32>) ...
    %small0 = linalg.reduce ins(%big0 : tensor<100xf32>) ...
    %big1 = linalg.sin ins(%x : tensor<100xf32>) ...
    %small1 = linalg.reduce ins(%big1 : tensor<100xf32>) ...
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "256",
           "Bytes of which each tensor takes a multiple, as in memplan-plan-arena; a power of two">,
    Option<"effort", "effort", "int64_t", "50'000'000",
           "Bound on the search for each block, in steps of some nanoseconds. The same number of steps gives the same order on any machine. 0: keep the order, report peak and bound">,
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Say of each block what its peak was and is, and of a block that stays as it is why">
  ];
  let statistics = [
    Statistic<"peakBefore", "peak-before", "sum of the functions' peaks in bytes, in the order that was found">,
    Statistic<"peakAfter", "peak-after", "the same in the new order">,
    Statistic<"lowerBound", "lower-bound", "sum of what no order's peak is below">,
    Statistic<"numProved", "blocks-proved", "blocks whose peak is the smallest of all orders">,
    Statistic<"numOpen", "blocks-open", "blocks whose peak is not proved to be">,
    Statistic<"numLeftAlone", "blocks-left-alone", "blocks that stay as they are">,
    Statistic<"numMoved", "ops-moved", "ops that are at another place than before">,
    Statistic<"numSteps", "solver-steps", "steps that the search took, see effort">
  ];
}

def FuseScheduled : Pass<"memplan-fuse-scheduled", "::mlir::func::FuncOp"> {
  let summary = "Fuse elementwise ops where the order leaves room for their inputs";
  let description = [{
    On static tensors, after memplan-schedule. memplan-fuse leaves sums of many
    terms in steps, since a term that is added early can die early; that costs
    launches and traffic. Now that the order is known, each such step becomes one
    with its only user if the peak stays what it is: its inputs then live until
    that user, its result not at all. Live bytes are counted as memplan-schedule
    does.

    ```mlir
    %ab = linalg.generic {%a + %b}
    %c = memplan.conv ...          // the peak: %a and %b have died
    %abc = linalg.generic {%ab + %c}
    %abcd = linalg.generic {%abc + %d}
    // becomes
    %ab = linalg.generic {%a + %b}
    %c = memplan.conv ...
    %abcd = linalg.generic {%ab + %c + %d}
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "256",
           "Bytes of which each tensor takes a multiple, as in memplan-plan-arena; a power of two">
  ];
  let statistics = [
    Statistic<"numFused", "ops-fused", "ops that became part of their user">
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def SeparateDestinations : Pass<"memplan-separate-destinations", "::mlir::func::FuncOp"> {
  let summary = "Give each use of a tensor.empty one of its own";
  let description = [{
    CSE makes one `tensor.empty` of all of one type, and bufferization one buffer
    of that where values don't live at once: reuse that nobody planned, that no
    bound counts and that `no-reuse` can't undo. Run before one-shot
    bufferization; which buffers share bytes is then the planner's decision
    alone. So it does to concatenations that begin with the same parts, which CSE
    makes one up to where they differ.

    ```mlir
    %e = tensor.empty() : tensor<4xf32>
    %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %1 = linalg.exp ins(%0 : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %e = tensor.empty() : tensor<4xf32>
    %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %f = tensor.empty() : tensor<4xf32>
    %1 = linalg.exp ins(%0 : tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let statistics = [
    Statistic<"numSeparated", "destinations-separated", "tensor.empty ops that were added">
  ];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def ControlFlowDestinations
    : Pass<"memplan-control-flow-destinations", "::mlir::func::FuncOp"> {
  let summary = "Give what control flow hands on a buffer that is known before";
  let description = [{
    One-shot bufferization takes a loop only if each value that an iteration
    hands on lies in the buffer that the iteration was given, and joins the two
    branches of an `scf.if` in a buffer of which nobody knows which it is. This
    pass says where the values are to lie, with
    `bufferization.materialize_in_destination`: what a loop carries, in the
    buffer of its argument; a result of `scf.if`, in one that both branches
    write. Each is a copy, which `memplan-forward-destinations` takes away where
    the producer can write there.

    Values of loops that exchange their places go through a buffer of their own.
    Only tensors of static shape are given destinations. Run before one-shot
    bufferization.

    ```mlir
    %r = scf.if %c -> tensor<4xf32> {
      %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %0 : tensor<4xf32>
    } else { ... }
    // becomes
    %d = tensor.empty() : tensor<4xf32>
    %r = scf.if %c -> tensor<4xf32> {
      %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %1 = bufferization.materialize_in_destination %0 in %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      scf.yield %1 : tensor<4xf32>
    } else { ... }
    ```
  }];
  let statistics = [
    Statistic<"numDestinations", "destinations", "values that were given one">
  ];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ProtectInputs : Pass<"memplan-protect-inputs", "::mlir::func::FuncOp"> {
  let summary = "Keep bufferization from writing into a public function's inputs";
  let description = [{
    Sets `bufferization.writable = false` on the tensor arguments of public
    functions, unless they say otherwise: a caller's input is never scratch and
    never an output. Run before one-shot bufferization.

    ```mlir
    func.func @main(%x: tensor<4xf32>)
    // becomes
    func.func @main(%x: tensor<4xf32> {bufferization.writable = false})
    ```
  }];
}

def ResultsToArguments : Pass<"memplan-results-to-arguments", "::mlir::ModuleOp"> {
  let summary = "Let public functions write their results into the caller's buffers";
  let description = [{
    Turns the memref results of public functions that nothing in the module
    calls into trailing arguments, marked `bufferize.result`, which keep the
    result's attributes. A result that is an alloc of the function, reshaped or
    not, is written in place. Anything else is copied: an input, a constant, part
    of a buffer, a value that is returned twice. (Upstream's
    `buffer-results-to-out-params` fails on the last.)

    ```mlir
    func.func @main(%x: memref<4xf32>) -> memref<2x2xf32> {
      %a = memref.alloc() : memref<4xf32>
      linalg.exp ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
      %r = memref.expand_shape %a [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
      return %r : memref<2x2xf32>
    }
    // becomes
    func.func @main(%x: memref<4xf32>, %out: memref<2x2xf32> {bufferize.result}) {
      %a = memref.collapse_shape %out [[0, 1]] : memref<2x2xf32> into memref<4xf32>
      linalg.exp ins(%x : memref<4xf32>) outs(%a : memref<4xf32>)
      return
    }
    ```
  }];
  let statistics = [
    Statistic<"numInPlace", "outputs-in-place", "results written in place">,
    Statistic<"numCopies", "outputs-copied", "results that need a copy">
  ];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def ForwardDestinations : Pass<"memplan-forward-destinations", "::mlir::ModuleOp"> {
  let summary = "Let producers write where a copy would take their result";
  let description = [{
    On memrefs, after bufferization. A copy of a whole alloc, reshaped or not,
    into (part of) another alloc of the block or an output goes: the alloc becomes
    a view of the copy's destination. Concatenations, stacks, padding, concats of
    concats and outputs that are also used inside lose their copies so. It is
    safe, and done, if

    - nobody else touches that part of the destination from the first access to
      the alloc up to the copy, and
    - after the copy the alloc is not written, and not read once the destination
      is written again, and
    - all that use the alloc can have the destination's strides
      (`memplan::StridedOpInterface`; reshapes where they stay views).

    First, an alloc of which only a part is ever seen shrinks to that part.
    `emit-remarks` says why a copy stays.

    ```mlir
    %a = memref.alloc() : memref<4x8xf32>
    linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32>)
    %c = memref.alloc() : memref<8x8xf32>
    %low = memref.subview %c[0, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1]>>
    memref.copy %a, %low : memref<4x8xf32> to memref<4x8xf32, strided<[8, 1]>>
    // becomes
    %c = memref.alloc() : memref<8x8xf32>
    %a = memref.subview %c[0, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1]>>
    linalg.exp ins(%x : memref<4x8xf32>) outs(%a : memref<4x8xf32, strided<[8, 1]>>)
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "256",
           "Bytes of which each planned buffer takes a multiple, as in memplan-plan-arena">,
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Say of each copy that stays why">
  ];
  let statistics = [
    Statistic<"numForwarded", "copies-forwarded", "copies that went">,
    Statistic<"numShrunk", "allocs-shrunk", "allocs that were larger than what is seen of them">
  ];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def ReuseBuffers : Pass<"memplan-reuse-buffers", "::mlir::ModuleOp"> {
  let summary = "Let ops overwrite an input that dies there";
  let description = [{
    On memrefs, after bufferization. An op in destination-passing style whose
    destination's life begins at it, and one of whose inputs' lives ends at it,
    gets one buffer for both, if `memplan::canOverwrite` says that results stay
    the same: elementwise `linalg` ops whose input and destination are read and
    written in step, row-by-row ops, an epilogue's residual. Input and
    destination must be whole buffers of the same type (reshapes aside) in one
    memory space, since among threads a narrower element may be stored over one
    that another thread has yet to read. An input that dies where an output
    (`bufferize.result`) is first written lives in the output from its start.

    ```mlir
    %a = memref.alloc() : memref<64xf32>
    linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
    %b = memref.alloc() : memref<64xf32>
    linalg.tanh ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
    // becomes
    %a = memref.alloc() : memref<64xf32>
    linalg.exp ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
    linalg.tanh ins(%a : memref<64xf32>) outs(%a : memref<64xf32>)
    ```
  }];
  let statistics = [
    Statistic<"numReused", "inputs-overwritten", "ops that write into their input's buffer">,
    Statistic<"savedBytes", "bytes-overwritten", "sum of the buffers that went">
  ];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def PlanArena : Pass<"memplan-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Give every static buffer an offset in one block, as attributes";
  let description = [{
    On memrefs, after bufferization. In each function and memory space: finds the
    static `memref.alloc`s whose whole life lies in the function, computes their
    lifetimes, gives them offsets such that buffers that live at one time share
    no byte, and writes `memplan.slot` on each and `memplan.arenas` on the
    function. Changes nothing else; `memplan-materialize-arena` acts on it.

    A lifetime reaches from the first access to past the last, through views,
    branches and calls, and over all of a loop that the accesses are in and the
    alloc is not. Allocs that are returned, stored, carried round the loop that
    makes them, used by ops of unknown effects, made in parallel regions, of
    dynamic size or with a layout are left alone; `emit-remarks` says why. See
    docs/Planning.md.

    The arena of a private function that is only called directly and not
    recursive is a buffer of each call: `memplan.callee_slots` on the call.

    ```mlir
    func.func @main(%x: memref<64xf32>) {
      %a = memref.alloc() : memref<64xf32>
      ...
    // becomes
    func.func @main(%x: memref<64xf32>) attributes {memplan.arenas = [
        #memplan.arena<bytes = 256, lower_bound = 256, no_reuse = 256,
                       optimal = true, alignment = 256>]} {
      %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<64xf32>
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", "256",
           "Bytes of which each offset is a multiple; a power of two. Raised where an alloc or an element type needs more">,
    Option<"effort", "effort", "int64_t", "500'000'000",
           "Bound on the search for each arena, in steps. A step is one buffer or stretch of time looked at, a few nanoseconds at most, so that the default ends within a second or two. The same number of steps gives the same plan on any machine. 0: one greedy placement">,
    Option<"noReuse", "no-reuse", "bool", "false",
           "Give each buffer bytes of its own: the oracle to compare with when a plan is suspected">,
    Option<"emitRemarks", "emit-remarks", "bool", "false",
           "Say of each alloc that is left alone why">
  ];
  let statistics = [
    Statistic<"numBuffers", "buffers-planned", "allocs that got a slot">,
    Statistic<"numLeftAlone", "buffers-left-alone", "allocs that stay as they are">,
    Statistic<"arenaBytes", "arena-bytes", "sum of the arenas of all functions">,
    Statistic<"noReuseBytes", "no-reuse-bytes", "the same without reuse">,
    Statistic<"solverSteps", "solver-steps", "steps that the solver took, see effort">
  ];
  let dependentDialects = ["::memplan::MemPlanDialect"];
}

def OfferWorkspace : Pass<"memplan-offer-workspace", "::mlir::ModuleOp"> {
  let summary = "Give ops the bytes that are free under the peak while they run";
  let description = [{
    After `memplan-plan-arena`. An op that can use scratch memory
    (`WorkspaceOpInterface`: a matrix product that splits its sums) gets the
    largest run of bytes of the arena in which nothing lives at its time, as a
    buffer of its own with a slot, marked `memplan.workspace`. No arena grows, and
    nothing is offered that is smaller than 4 KiB. An op that needs more than it
    was given fails when the model is loaded, and allocates nothing.

    ```mlir
    memplan.matmul ins(%a, %b : ...) outs(%c : ...) indexing_maps = ...
    // becomes
    %w = memref.alloc() {memplan.slot = #memplan.slot<offset = 8192, lower = 4, upper = 5>,
                         memplan.workspace} : memref<65536xi8>
    memplan.matmul ins(%a, %b : ...) outs(%c : ...) workspace(%w : memref<65536xi8>) indexing_maps = ...
    ```
  }];
  let options = [
    Option<"perOp", "per-op", "int64_t", "int64_t(32) << 20",
           "The most bytes that one op is offered. The default is what NVIDIA recommends for its largest GPUs. 0: none">,
    Option<"total", "total", "int64_t", "-1",
           "The most bytes that all ops of a function together are offered, in program order; negative: no bound">
  ];
  let statistics = [
    Statistic<"numOffered", "workspaces", "ops that were given a workspace">,
    Statistic<"offeredBytes", "workspace-bytes", "sum of their bytes">
  ];
  let dependentDialects = ["::memplan::MemPlanDialect", "::mlir::memref::MemRefDialect"];
}

def MaterializeArena : Pass<"memplan-materialize-arena", "::mlir::ModuleOp"> {
  let summary = "Make planned buffers views of their arena";
  let description = [{
    After `memplan-plan-arena`. The arena becomes the function's last argument, a
    `memref<Nxi8>` marked `memplan.arena`, or one alloc at its entry; each alloc
    with a slot becomes a `memref.view` of it that keeps the slot, and its
    deallocs go. The arena of a called function is a view that the caller passes;
    a public function that is called, a recursive one, and one whose address is
    taken keep theirs in an alloc.

    ```mlir
    func.func @main(%x: memref<64xf32>) attributes {memplan.arenas = [...]} {
      %a = memref.alloc() {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} : memref<64xf32>
    // becomes
    func.func @main(%x: memref<64xf32>, %arena: memref<256xi8> {memplan.arena = ...}) ... {
      %c0 = arith.constant 0 : index
      %a = memref.view %arena[%c0][] {memplan.slot = ...} : memref<256xi8> to memref<64xf32>
    ```
  }];
  let options = [
    Option<"storage", "storage", "::memplan::ArenaStorage",
           "::memplan::ArenaStorage::Argument",
           "Where the arena of a function without callers in the module comes from",
           [{::llvm::cl::values(
               clEnumValN(::memplan::ArenaStorage::Argument, "argument",
                          "a trailing argument; the caller owns the bytes"),
               clEnumValN(::memplan::ArenaStorage::Alloc, "alloc",
                          "one memref.alloc at function entry"))}]>
  ];
  let statistics = [
    Statistic<"numViews", "views", "views of an arena that were made">
  ];
  let dependentDialects = ["::memplan::MemPlanDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def VerifyArena : Pass<"memplan-verify-arena", "::mlir::ModuleOp"> {
  let summary = "Check an arena plan against the IR, independently of the planner";
  let description = [{
    After `memplan-plan-arena` or `memplan-materialize-arena`; changes nothing.
    Re-derives aliases and lifetimes by another method than the planner's and
    fails, with errors that name the buffers and their locations, if two buffers
    that are in use at one time share a byte, if an offset is misaligned or out
    of the arena, if a claimed lifetime does not cover the real one, or if the
    arena's size, bound or proof does not follow from the slots.

    ```mlir
    %a = memref.view %arena[%c0][] {memplan.slot = #memplan.slot<offset = 0, lower = 0, upper = 2>} ...
    %b = memref.view %arena[%c0][] {memplan.slot = #memplan.slot<offset = 0, lower = 1, upper = 3>} ...
    memref.copy %x, %a
    memref.copy %a, %b // error: %b overlaps %a
    ```
  }];
}

def PrintLiveness : Pass<"memplan-print-liveness", "::mlir::ModuleOp"> {
  let summary = "Print each buffer's size, lifetime and number of aliases";
  let description = [{
    For people: what `memplan-plan-arena` would work with, on standard output.
    Lifetimes are half-open, in program points: ops that may touch memory,
    numbered from 0 in program order, two for an op that holds such ops.

    ```
    @main: 3 points
      conv1: 1024 bytes, [0, 2), 1 aliases, 2 accesses
      buffer: left alone, is returned
    ```
  }];
}

#endif // MEMPLAN_TRANSFORMS_PASSES_TD
