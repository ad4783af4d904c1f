//===- MemPlanAttributes.td - Plans and weights as attributes -*- tablegen -*-===//

#ifndef MEMPLAN_DIALECT_MEMPLANATTRIBUTES_TD
#define MEMPLAN_DIALECT_MEMPLANATTRIBUTES_TD

include "memplan/Dialect/MemPlanDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class MemPlan_Attr<string name, string attrMnemonic> : AttrDef<MemPlan_Dialect, name> {
  let mnemonic = attrMnemonic;
  let genVerifyDecl = 1;
  let assemblyFormat = "`<` struct(params) `>`";
}

def MemPlan_WeightAttr : MemPlan_Attr<"Weight", "weight"> {
  let summary = "where the bytes of an external memref.global are";
  let description = [{
    `bytes` bytes from `offset` in `file`, little-endian, row-major, exactly the
    memref's contents. The file is mapped when the bytes are needed and never
    becomes part of the IR.
  }];
  let parameters = (ins StringRefParameter<"path as opened">:$file,
                        "int64_t":$offset, "int64_t":$bytes);
}

def MemPlan_PartAttr : MemPlan_Attr<"Part", "part"> {
  let summary = "a range of a buffer's bytes and its lifetime";
  let description = [{
    `bytes` bytes from `offset`, counted from the buffer's start, that live in
    `[lower, upper)`: an access to the buffer whose first and last byte lie on
    both sides of a byte counts as one to it.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$bytes,
                        "int64_t":$lower, "int64_t":$upper);
}

def MemPlan_SlotAttr : MemPlan_Attr<"Slot", "slot"> {
  let summary = "a buffer's place in its arena and its lifetime";
  let description = [{
    `offset` in bytes from the arena's start; the half-open lifetime
    `[lower, upper)` in program points of the enclosing function. `parts`, if the
    buffer's bytes don't all live at one time: `#memplan.part`s in ascending
    order that share no byte and whose lifetimes make up the slot's; bytes that
    no part has are never touched.
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$lower, "int64_t":$upper,
                        OptionalParameter<"::mlir::ArrayAttr">:$parts);
  let builders = [AttrBuilder<(ins "int64_t":$offset, "int64_t":$lower, "int64_t":$upper), [{
    return $_get($_ctxt, offset, lower, upper, ::mlir::ArrayAttr());
  }]>];
}

def MemPlan_BoundProof : I32EnumAttr<"BoundProof", "what proves a lower bound", [
    I32EnumAttrCase<"LiveBytes", 0, "live_bytes">,
    I32EnumAttrCase<"Search", 1, "search">]> {
  let cppNamespace = "::memplan";
  let genSpecializedAttr = 0;
}

def MemPlan_ArenaAttr : MemPlan_Attr<"Arena", "arena"> {
  let summary = "one arena of a function, with its proof status";
  let description = [{
    `bytes`: height of the plan. `lower_bound`: no placement of these lifetimes
    can be smaller. `lower_bound_proof`: `live_bytes` (not printed) if so many
    bytes live at one time, each buffer rounded up to the alignment but one;
    `search` if the solver has searched all placements below it, which can't be
    seen from the slots. `no_reuse`: sum of all buffers, each aligned. `optimal`:
    whether bytes equals the lower bound. `alignment`: of every offset and of the
    arena, in bytes. `memory_space`: that of the buffers, absent for the default
    one.
  }];
  let parameters = (ins "int64_t":$bytes, "int64_t":$lower_bound,
                        DefaultValuedParameter<"::memplan::BoundProof",
                                               "::memplan::BoundProof::LiveBytes">:$lower_bound_proof,
                        "int64_t":$no_reuse, "bool":$optimal, "int64_t":$alignment,
                        OptionalParameter<"::mlir::Attribute">:$memory_space);
}

def MemPlan_WindowKind : I32EnumAttr<"WindowKind", "how a window is reduced", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Average", 2, "average">,
    I32EnumAttrCase<"AverageIncludePad", 3, "average_include_pad">]> {
  let cppNamespace = "::memplan";
  let genSpecializedAttr = 0;
}
def MemPlan_WindowKindAttr : EnumAttr<MemPlan_Dialect, MemPlan_WindowKind, "window_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def MemPlan_Combiner : I32EnumAttr<"Combiner", "how a row is reduced", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">,
    I32EnumAttrCase<"Prod", 3, "prod">]> {
  let cppNamespace = "::memplan";
  let genSpecializedAttr = 0;
}
def MemPlan_CombinerAttr : EnumAttr<MemPlan_Dialect, MemPlan_Combiner, "combiner"> {
  let assemblyFormat = "`<` $value `>`";
}
def MemPlan_CombinerArrayAttr : TypedArrayAttrBase<MemPlan_CombinerAttr, "array of combiners">;

#endif // MEMPLAN_DIALECT_MEMPLANATTRIBUTES_TD
