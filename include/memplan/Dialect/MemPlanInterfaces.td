//===- MemPlanInterfaces.td - Op interfaces -----------------*- tablegen -*-===//

#ifndef MEMPLAN_DIALECT_MEMPLANINTERFACES_TD
#define MEMPLAN_DIALECT_MEMPLANINTERFACES_TD

include "mlir/IR/OpBase.td"

def MemPlan_EpilogueOpInterface : OpInterface<"EpilogueOpInterface"> {
  let cppNamespace = "::memplan";
  let description = [{
    An op in destination-passing style that computes each output element once,
    as a region's function of what it accumulated and of elements of further
    operands ("extras"), each read through a map of the output's dims. An
    elementwise consumer can move into that region.
  }];
  let methods = [
    InterfaceMethod<"The region whose yield is the output's element.",
                    "::mlir::Region &", "getEpilogueRegion">,
    InterfaceMethod<[{
      Appends an operand that the epilogue reads through `map` (from the output's
      dims to the operand's indices) and returns the epilogue's argument for it.
      The caller keeps the op valid (`modifyOpInPlace`).
    }], "::mlir::BlockArgument", "addEpilogueOperand",
        (ins "::mlir::Value":$operand, "::mlir::AffineMap":$map)>,
    InterfaceMethod<[{
      Whether the epilogue's yield is the output's element, so that more can be
      appended to it; not if something else is done to it first.
    }], "bool", "yieldsOutput", (ins), /*methodBody=*/"",
        /*defaultImplementation=*/"return true;">,
    InterfaceMethod<[{
      Whether the epilogue may yield, and the output have, another element type
      than it has now, as a cast in the end would give.
    }], "bool", "canYield", (ins "::mlir::Type":$type), /*methodBody=*/"",
        /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
      Whether an operand with this map (as in `addEpilogueOperand`) can be added.
    }], "bool", "canAddEpilogueOperand", (ins "::mlir::AffineMap":$map)>,
    InterfaceMethod<"The destination operand.", "::mlir::OpOperand &", "getInitOperand">
  ];
}

def MemPlan_InPlaceOpInterface : OpInterface<"InPlaceOpInterface"> {
  let cppNamespace = "::memplan";
  let description = [{
    An op in destination-passing style that may be given one buffer for an input
    and a destination, however its elements are shared out among threads.
    `memplan::canOverwrite` asks it; `linalg` ops are answered for there.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether results stay the same if `input` and `init` are one memref, type
      and all: each element of `input` is read only by what computes the element
      of `init` at the same place, and before that is stored.
    }], "bool", "canOverwrite",
        (ins "::mlir::OpOperand &":$input, "::mlir::OpOperand &":$init)>
  ];
}

def MemPlan_StridedOpInterface : OpInterface<"StridedOpInterface"> {
  let cppNamespace = "::memplan";
  let description = [{
    An op on memrefs that knows which layouts its operands may have. `linalg` ops
    take all that are strided.
  }];
  let methods = [
    InterfaceMethod<"Whether `operand` may be a memref of this type.", "bool",
                    "canAccess",
                    (ins "::mlir::OpOperand &":$operand, "::mlir::MemRefType":$type)>
  ];
}

def MemPlan_WorkspaceOpInterface : OpInterface<"WorkspaceOpInterface"> {
  let cppNamespace = "::memplan";
  let description = [{
    An op on memrefs that is as right without scratch memory, but may be faster
    with it. The workspace is an optional operand: a memref of bytes that the op
    overwrites and whose contents mean nothing before or after.
    `memplan-offer-workspace` gives it what is free under the peak.
  }];
  let methods = [
    InterfaceMethod<"The operand, which is there or not.",
                    "::mlir::MutableOperandRange", "getWorkspaceMutable">,
    InterfaceMethod<"Whether a workspace could make this op faster.", "bool",
                    "canUseWorkspace">
  ];
}

#endif // MEMPLAN_DIALECT_MEMPLANINTERFACES_TD
