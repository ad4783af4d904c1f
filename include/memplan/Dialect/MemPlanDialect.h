//===- MemPlanDialect.h - The memplan dialect -------------------*- C++ -*-===//
//
// Ops, attributes and interfaces of the `memplan` dialect; the reference is
// MemPlanOps.td and MemPlanAttributes.td.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_DIALECT_MEMPLANDIALECT_H
#define MEMPLAN_DIALECT_MEMPLANDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "memplan/Dialect/MemPlanDialect.h.inc"
#include "memplan/Dialect/MemPlanEnums.h.inc"
#include "memplan/Dialect/MemPlanInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "memplan/Dialect/MemPlanAttributes.h.inc"

namespace memplan {

/// Builds the body of a region of scalar code: gets the block's arguments,
/// returns the value to yield.
using RegionBuilder = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// Names of the dialect's discardable attributes, see MemPlanDialect.td.
inline constexpr llvm::StringLiteral kModelAttr = "memplan.model";
inline constexpr llvm::StringLiteral kNameAttr = "memplan.name";
inline constexpr llvm::StringLiteral kWeightAttr = "memplan.weight";
inline constexpr llvm::StringLiteral kSlotAttr = "memplan.slot";
inline constexpr llvm::StringLiteral kCalleeSlotsAttr = "memplan.callee_slots";
inline constexpr llvm::StringLiteral kWorkspaceAttr = "memplan.workspace";
inline constexpr llvm::StringLiteral kArenasAttr = "memplan.arenas";
inline constexpr llvm::StringLiteral kArenaArgAttr = "memplan.arena";

/// The type in which an element type is accumulated: f32 for narrower floats.
mlir::Type getAccumulatorType(mlir::Type elementType);

/// The type in which products of two element types are summed: that in which
/// floats are accumulated if there is one, else i32 or the wider integer.
mlir::Type getProductType(mlir::Type lhs, mlir::Type rhs);

/// Makes the dialect and all that its ops need known to `registry`.
void registerMemPlanDialect(mlir::DialectRegistry &registry);

} // namespace memplan

#define GET_OP_CLASSES
#include "memplan/Dialect/MemPlanOps.h.inc"

namespace memplan {

/// The dim along which all windows of the op lie, one at each element of the
/// input, if a group of threads can hold as many whole lines of it as it takes
/// to read them fast. They then read the lines before they store a result, so
/// that it may lie over the input.
std::optional<int64_t> getWindowLine(ReduceWindowOp op);

/// Lines that are held at one time, next to each other in memory.
inline constexpr int64_t kWindowLines = 32;

} // namespace memplan

#endif // MEMPLAN_DIALECT_MEMPLANDIALECT_H
