//===- MemPlanOps.td - Structured ops without a linalg form -*- tablegen -*-===//

#ifndef MEMPLAN_DIALECT_MEMPLANOPS_TD
#define MEMPLAN_DIALECT_MEMPLANOPS_TD

include "memplan/Dialect/MemPlanAttributes.td"
include "memplan/Dialect/MemPlanInterfaces.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def MemPlan_Shaped : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;

// All structured ops: one destination that is overwritten and never read;
// regions of scalar code, isolated so that their constants stay inside.
class MemPlan_StructuredOp<string name, list<Trait> traits = []>
    : Op<MemPlan_Dialect, name, !listconcat([
        DestinationStyleOpInterface, IsolatedFromAbove, SingleBlock,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<BufferizableOpInterface,
          ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>,
        DeclareOpInterfaceMethods<MemPlan_EpilogueOpInterface>,
        DeclareOpInterfaceMethods<MemPlan_InPlaceOpInterface>,
        DeclareOpInterfaceMethods<MemPlan_StridedOpInterface>], traits)> {
  let results = (outs Optional<AnyRankedTensor>:$result);
  let hasVerifier = 1;
  code structuredDecls = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
  let extraClassDeclaration = structuredDecls;
}

def MemPlan_ConvOp : MemPlan_StructuredOp<"conv", [AttrSizedOperandSegments]> {
  let summary = "convolution with implicit padding, groups and an epilogue";
  let description = [{
    out[n, f, o...] = epilogue(sum over c, k of
        input[n, g*C/groups + c, o*strides + k*dilations - pads_begin] * filter[f, c, k...], extras...)
    with g the group of f; elements outside the input are 0. Layouts: input
    N x C x spatial, filter F x C/groups x kernel, output N x F x spatial, of
    spatial rank 1 to 3. `linalg` convolutions need a padded copy of the input.
    The accumulator's type is the epilogue's first argument (f32 for f16, bf16).

    Either operand may be of integers, which are then summed as i32, or as f32 if
    the other is of floats. `input_zero` (one element) and `filter_zero` (one, or
    one a feature) are zero points: an element counts as its difference from
    that, in i32, and what is outside of the input as 0. Integers of up to 16
    bits are signed, but for `unsigned_input` and `unsigned_filter`.

    With `pool <max> window = [2, 2]` (or `<average>`), what the epilogue yields
    goes through windows of this extent that don't overlap, and the output has
    one element a window; what is left at the end of a dim is dropped. With
    `interleaved`, feature i of group g is the output's channel i * groups + g
    and not g * F/groups + i: a channel shuffle. In both cases the epilogue's
    extras are read at the positions before that. With `upsample = [2, 2]`
    (powers of two), each element of the input stands for so many in each
    spatial dim, which nobody stores; everything else is over those.

    ```mlir
    %r = memplan.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>)
           extras(%b : tensor<4xf32>) outs(%init : tensor<1x4x8x8xf32>)
           strides = [1, 1] dilations = [1, 1] pads_begin = [1, 1] pads_end = [1, 1]
           groups = 1 extra_maps = [affine_map<(n, f, h, w) -> (f)>] {
         ^bb0(%acc: f32, %bias: f32):
           %0 = arith.addf %acc, %bias : f32
           memplan.yield %0 : f32
         } -> tensor<1x4x8x8xf32>
    ```
  }];
  let arguments = (ins MemPlan_Shaped:$input, MemPlan_Shaped:$filter,
                       Variadic<MemPlan_Shaped>:$extras, MemPlan_Shaped:$init,
                       Optional<MemPlan_Shaped>:$input_zero,
                       Optional<MemPlan_Shaped>:$filter_zero,
                       UnitAttr:$unsigned_input, UnitAttr:$unsigned_filter,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_begin, DenseI64ArrayAttr:$pads_end,
                       I64Attr:$groups, OptionalAttr<MemPlan_WindowKindAttr>:$pool,
                       OptionalAttr<DenseI64ArrayAttr>:$pool_window,
                       UnitAttr:$interleaved,
                       OptionalAttr<DenseI64ArrayAttr>:$upsample,
                       AffineMapArrayAttr:$extra_maps);
  let regions = (region SizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    `ins` `(` $input `,` $filter `:` type($input) `,` type($filter) `)`
    (`extras` `(` $extras^ `:` type($extras) `)`)?
    `outs` `(` $init `:` type($init) `)`
    (`unsigned_input` $unsigned_input^)?
    (`input_zero` `(` $input_zero^ `:` type($input_zero) `)`)?
    (`unsigned_filter` $unsigned_filter^)?
    (`filter_zero` `(` $filter_zero^ `:` type($filter_zero) `)`)?
    `strides` `=` $strides `dilations` `=` $dilations
    `pads_begin` `=` $pads_begin `pads_end` `=` $pads_end
    `groups` `=` $groups (`interleaved` $interleaved^)?
    (`upsample` `=` $upsample^)? (`pool` $pool^ `window` `=` $pool_window)?
    `extra_maps` `=` $extra_maps
    attr-dict-with-keyword $epilogue (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$filter,
      "::mlir::ValueRange":$extras, "::mlir::Value":$init,
      "::llvm::ArrayRef<int64_t>":$strides, "::llvm::ArrayRef<int64_t>":$dilations,
      "::llvm::ArrayRef<int64_t>":$padsBegin, "::llvm::ArrayRef<int64_t>":$padsEnd,
      "int64_t":$groups, "::llvm::ArrayRef<::mlir::AffineMap>":$extraMaps,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$epilogue)>];
  let extraClassDeclaration = structuredDecls # [{
    /// A pool's window has at most as many elements.
    static constexpr int64_t kMostPooled = 32;
    /// Factors of upsampling are at most this.
    static constexpr int64_t kMostUpsampled = 1024;
    int64_t getSpatialRank();
    /// The logarithms of the upsampling factors; 0 without upsampling.
    ::llvm::SmallVector<int64_t> getUpsampleShifts();
    /// The output's shape before pooling; dynamic where it can't be told.
    ::llvm::SmallVector<int64_t> getUnpooledShape();
    /// Whether input, filter or output have elements of over 32 bits: targets
    /// then compute each result by itself.
    bool hasWideTypes();
    /// Of EpilogueOpInterface.
    bool yieldsOutput() { return !getPool() && !getInterleaved(); }
    bool canYield(::mlir::Type type);
  }];
}

def MemPlan_MatMulOp : MemPlan_StructuredOp<"matmul", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemPlan_WorkspaceOpInterface, ["canUseWorkspace"]>]> {
  let summary = "batched matrix product with an epilogue";
  let description = [{
    Iteration space (batch..., m, n, k). `indexing_maps` are those of lhs, rhs and
    output: lhs a permutation of (batch..., m, k) from which batch dims may be
    absent (broadcast); rhs the same of (batch..., k, n); output a permutation of
    (batch..., m, n). Transposes are thus part of the op. `extra_maps` are over
    the output's dims. `linalg.matmul` reads its destination and has no epilogue.
    On memrefs the op may have a `workspace`: bytes to split sums over k in.

    Integers may be operands as in `memplan.conv`. The zero points' maps follow
    in `indexing_maps`, that of `lhs_zero` over (batch..., m), that of `rhs_zero`
    over (batch..., n), each dim at most once: a zero point a row and a column,
    say.

    ```mlir
    %r = memplan.matmul ins(%a, %b : tensor<4x8xf32>, tensor<16x8xf32>)
           extras(%bias : tensor<16xf32>) outs(%init : tensor<4x16xf32>)
           indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                            affine_map<(m, n, k) -> (n, k)>,
                            affine_map<(m, n, k) -> (m, n)>]
           extra_maps = [affine_map<(m, n) -> (n)>] {
         ^bb0(%acc: f32, %e: f32):
           %0 = arith.addf %acc, %e : f32
           memplan.yield %0 : f32
         } -> tensor<4x16xf32>
    ```
  }];
  let arguments = (ins MemPlan_Shaped:$lhs, MemPlan_Shaped:$rhs,
                       Variadic<MemPlan_Shaped>:$extras, MemPlan_Shaped:$init,
                       Optional<MemPlan_Shaped>:$lhs_zero,
                       Optional<MemPlan_Shaped>:$rhs_zero,
                       Optional<AnyStridedMemRef>:$workspace,
                       UnitAttr:$unsigned_lhs, UnitAttr:$unsigned_rhs,
                       AffineMapArrayAttr:$indexing_maps, AffineMapArrayAttr:$extra_maps);
  let regions = (region SizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    `ins` `(` $lhs `,` $rhs `:` type($lhs) `,` type($rhs) `)`
    (`extras` `(` $extras^ `:` type($extras) `)`)?
    `outs` `(` $init `:` type($init) `)`
    (`unsigned_lhs` $unsigned_lhs^)?
    (`lhs_zero` `(` $lhs_zero^ `:` type($lhs_zero) `)`)?
    (`unsigned_rhs` $unsigned_rhs^)?
    (`rhs_zero` `(` $rhs_zero^ `:` type($rhs_zero) `)`)?
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)?
    `indexing_maps` `=` $indexing_maps `extra_maps` `=` $extra_maps
    attr-dict-with-keyword $epilogue (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
      "::mlir::ValueRange":$extras, "::mlir::Value":$init,
      "::llvm::ArrayRef<::mlir::AffineMap>":$indexingMaps,
      "::llvm::ArrayRef<::mlir::AffineMap>":$extraMaps,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$epilogue)>];
  let extraClassDeclaration = structuredDecls # [{
    ::mlir::AffineMap getLhsMap();
    ::mlir::AffineMap getRhsMap();
    ::mlir::AffineMap getOutputMap();
    /// Those of the zero points, null without one.
    ::mlir::AffineMap getLhsZeroMap();
    ::mlir::AffineMap getRhsZeroMap();
    void setZeroPoints(::mlir::Value lhs, ::mlir::AffineMap lhsMap,
                       ::mlir::Value rhs, ::mlir::AffineMap rhsMap);
    /// Whether this is a product of two matrices of one type of floats, as
    /// libraries have.
    bool isLibraryProduct();
    /// Of EpilogueOpInterface.
    bool canYield(::mlir::Type) { return !isLibraryProduct(); }
    /// Number of dims of the iteration space: batch dims + 3.
    int64_t getNumLoops();
    /// Extents of (batch..., m, n, k); the op's shapes must be static.
    ::llvm::SmallVector<int64_t> getLoopExtents();
  }];
}

def MemPlan_ReduceWindowOp : MemPlan_StructuredOp<"reduce_window"> {
  let summary = "pooling over a full-rank window with implicit padding";
  let description = [{
    out[o...] = epilogue(reduce over w of map(input[o*strides + w*dilations - pads_begin]), extras...).
    `window`, `strides`, `dilations` and pads have one entry per dim. Positions
    outside the input are skipped; `average` divides by how many are inside the
    input, `average_include_pad` by how many are inside
    [-pads_begin, size + pads_end). The output's type gives its extents, so that
    the last window may hang over the padded end (ceil_mode). A window with
    nothing inside gives `sum` 0, `max` the lowest value, `average` 0.

    Windows along one dim, as LRN's across channels, may write the result over
    the input: whoever computes one result of a line has read the line before.
    `memplan::getWindowLine` says where.

    ```mlir
    %r = memplan.reduce_window <max> ins(%x : tensor<1x4x8x8xf32>)
           outs(%init : tensor<1x4x4x4xf32>)
           window = [1, 1, 3, 3] strides = [1, 1, 2, 2] dilations = [1, 1, 1, 1]
           pads_begin = [0, 0, 1, 1] pads_end = [0, 0, 1, 1] extra_maps = []
         map {
         ^bb0(%e: f32):
           memplan.yield %e : f32
         } epilogue {
         ^bb0(%acc: f32):
           memplan.yield %acc : f32
         } -> tensor<1x4x4x4xf32>
    ```
  }];
  let arguments = (ins MemPlan_WindowKindAttr:$kind, MemPlan_Shaped:$input,
                       Variadic<MemPlan_Shaped>:$extras, MemPlan_Shaped:$init,
                       DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads_begin,
                       DenseI64ArrayAttr:$pads_end, AffineMapArrayAttr:$extra_maps);
  let regions = (region SizedRegion<1>:$map, SizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    $kind `ins` `(` $input `:` type($input) `)`
    (`extras` `(` $extras^ `:` type($extras) `)`)?
    `outs` `(` $init `:` type($init) `)`
    `window` `=` $window `strides` `=` $strides `dilations` `=` $dilations
    `pads_begin` `=` $pads_begin `pads_end` `=` $pads_end
    `extra_maps` `=` $extra_maps
    attr-dict-with-keyword `map` $map `epilogue` $epilogue (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::memplan::WindowKind":$kind, "::mlir::Value":$input,
      "::mlir::Value":$init, "::llvm::ArrayRef<int64_t>":$window,
      "::llvm::ArrayRef<int64_t>":$strides, "::llvm::ArrayRef<int64_t>":$dilations,
      "::llvm::ArrayRef<int64_t>":$padsBegin, "::llvm::ArrayRef<int64_t>":$padsEnd,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$map,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$epilogue)>];
  let extraClassDeclaration = structuredDecls # [{
    /// Of EpilogueOpInterface.
    bool canYield(::mlir::Type) { return true; }
  }];
}

def MemPlan_RowwiseOp : MemPlan_StructuredOp<"rowwise"> {
  let summary = "dependent reductions over a row, then one pass over it or its result";
  let description = [{
    The iteration space d0..dn-1 is that of `indexing_maps` (one per input, then
    the output); `row_dims` are its reduced dims. Stage i reduces its yielded
    value over the row with `combiners[i]` and may use the results of earlier
    stages; `finish` yields the output's element from the inputs' elements and
    all stage results. The output map is the identity (one element per point) or
    drops exactly `row_dims` (one element per row; `finish` then must not use an
    input that depends on `row_dims`). Softmax, norms and reductions are one op,
    hence one kernel and no intermediate buffer.

    ```mlir
    // softmax over the last dim
    %r = memplan.rowwise ins(%x : tensor<4x8xf32>) outs(%init : tensor<4x8xf32>)
           row_dims = [1] combiners = [#memplan.combiner<max>, #memplan.combiner<sum>]
           indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
         finish {
         ^bb0(%e: f32, %max: f32, %sum: f32):
           %0 = arith.subf %e, %max : f32
           %1 = math.exp %0 : f32
           %2 = arith.divf %1, %sum : f32
           memplan.yield %2 : f32
         } stages {
         ^bb0(%e: f32):
           memplan.yield %e : f32
         }, {
         ^bb0(%e: f32, %max: f32):
           %0 = arith.subf %e, %max : f32
           %1 = math.exp %0 : f32
           memplan.yield %1 : f32
         } -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Variadic<MemPlan_Shaped>:$inputs, MemPlan_Shaped:$init,
                       DenseI64ArrayAttr:$row_dims, MemPlan_CombinerArrayAttr:$combiners,
                       AffineMapArrayAttr:$indexing_maps);
  let regions = (region SizedRegion<1>:$finish, VariadicRegion<SizedRegion<1>>:$stages);
  let assemblyFormat = [{
    `ins` `(` $inputs `:` type($inputs) `)`
    `outs` `(` $init `:` type($init) `)`
    `row_dims` `=` $row_dims `combiners` `=` $combiners
    `indexing_maps` `=` $indexing_maps
    attr-dict-with-keyword `finish` $finish `stages` $stages (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::Value":$init,
      "::llvm::ArrayRef<int64_t>":$rowDims, "::llvm::ArrayRef<::memplan::Combiner>":$combiners,
      "::llvm::ArrayRef<::mlir::AffineMap>":$indexingMaps,
      "::llvm::ArrayRef<::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>>":$stages,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$finish)>];
  let extraClassDeclaration = structuredDecls # [{
    ::mlir::AffineMap getOutputMap();
    ::mlir::AffineMap getInputMap(unsigned i);
    /// Whether the output drops the row dims (reduction form).
    bool isReduction();
    /// Of EpilogueOpInterface.
    bool canYield(::mlir::Type) { return true; }
    /// Extents of the iteration space; the op's shapes must be static.
    ::llvm::SmallVector<int64_t> getLoopExtents();
    ::memplan::Combiner getCombiner(unsigned stage);
  }];
}

def MemPlan_ScatterOp : Op<MemPlan_Dialect, "scatter", [
    DestinationStyleOpInterface, IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<BufferizableOpInterface,
      ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>,
    DeclareOpInterfaceMethods<MemPlan_InPlaceOpInterface>,
    DeclareOpInterfaceMethods<MemPlan_StridedOpInterface>]> {
  let summary = "a copy of a tensor with updates at places that are data";
  let description = [{
    out = data; then, for each point p of the updates' dims in row-major order,
    out[at(p)] = combine(out[at(p)], updates[p]). In dim `axes[j]` of the output,
    at(p) is the element of `indices[j]` at `index_maps[j]`(p); in the remaining
    dims, in order, it is p[loops[0]], p[loops[1]], ... A negative index counts
    from the end; updates at an index that is outside even then are left out.
    Points that differ in `loops` never meet and may be done at the same time;
    the others are done one after another, so that the result is the same each
    time. No `linalg` op writes where data says.

    ```mlir
    // ScatterElements along axis 0, adding
    %r = memplan.scatter ins(%x, %u : tensor<8x4xf32>, tensor<3x4xf32>)
           indices(%i : tensor<3x4xi64>) outs(%init : tensor<8x4xf32>)
           axes = [0] loops = [1] index_maps = [affine_map<(i, j) -> (i, j)>] {
         ^bb0(%old: f32, %update: f32):
           %0 = arith.addf %old, %update : f32
           memplan.yield %0 : f32
         } -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins MemPlan_Shaped:$data, MemPlan_Shaped:$updates,
                       Variadic<MemPlan_Shaped>:$indices, MemPlan_Shaped:$init,
                       DenseI64ArrayAttr:$axes, DenseI64ArrayAttr:$loops,
                       AffineMapArrayAttr:$index_maps);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let regions = (region SizedRegion<1>:$combine);
  let hasVerifier = 1;
  let assemblyFormat = [{
    `ins` `(` $data `,` $updates `:` type($data) `,` type($updates) `)`
    `indices` `(` $indices `:` type($indices) `)`
    `outs` `(` $init `:` type($init) `)`
    `axes` `=` $axes `loops` `=` $loops `index_maps` `=` $index_maps
    attr-dict-with-keyword $combine (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$data, "::mlir::Value":$updates,
      "::mlir::ValueRange":$indices, "::mlir::Value":$init,
      "::llvm::ArrayRef<int64_t>":$axes, "::llvm::ArrayRef<int64_t>":$loops,
      "::llvm::ArrayRef<::mlir::AffineMap>":$indexMaps,
      "::llvm::function_ref<::mlir::Value(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange)>":$combine)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    ::mlir::OpOperand &getInitOperand();
    ::mlir::AffineMap getIndexMap(unsigned i);
  }];
}

def MemPlan_YieldOp : Op<MemPlan_Dialect, "yield", [Pure, Terminator,
    ParentOneOf<["ConvOp", "MatMulOp", "ReduceWindowOp", "RowwiseOp", "ScatterOp"]>]> {
  let summary = "the value of a structured op's region";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // MEMPLAN_DIALECT_MEMPLANOPS_TD
