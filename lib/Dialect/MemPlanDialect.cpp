//===- MemPlanDialect.cpp - The memplan dialect ---------------------------===//

#include "memplan/Dialect/MemPlanDialect.h"

#include "memplan/Support/CheckedMath.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

#include "memplan/Dialect/MemPlanDialect.cpp.inc"
#include "memplan/Dialect/MemPlanEnums.cpp.inc"
#include "memplan/Dialect/MemPlanInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "memplan/Dialect/MemPlanAttributes.cpp.inc"

namespace memplan {

void MemPlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "memplan/Dialect/MemPlanOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "memplan/Dialect/MemPlanAttributes.cpp.inc"
      >();
}

LogicalResult WeightAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef file, int64_t offset,
                                 int64_t bytes) {
  if (file.empty())
    return emitError() << "weight has no file";
  if (offset < 0 || bytes < 0 || !checkedAdd(offset, bytes))
    return emitError() << "weight range of " << bytes << " bytes at " << offset
                       << " is not a range of a file";
  return success();
}

LogicalResult PartAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t offset, int64_t bytes, int64_t lower,
                               int64_t upper) {
  if (offset < 0 || bytes <= 0 || !checkedAdd(offset, bytes))
    return emitError() << "part of " << bytes << " bytes at " << offset
                       << " is no range of a buffer";
  if (lower < 0 || upper <= lower)
    return emitError() << "part has lifetime [" << lower << ", " << upper
                       << "), expected 0 <= lower < upper";
  return success();
}

LogicalResult SlotAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t offset, int64_t lower, int64_t upper,
                               ArrayAttr parts) {
  if (offset < 0)
    return emitError() << "slot has negative offset " << offset;
  if (lower < 0 || upper < lower)
    return emitError() << "slot has lifetime [" << lower << ", " << upper
                       << "), expected 0 <= lower <= upper";
  if (!parts)
    return success();
  int64_t end = 0, first = upper, last = lower;
  for (Attribute attribute : parts) {
    auto part = dyn_cast<PartAttr>(attribute);
    if (!part)
      return emitError() << "slot has " << attribute
                         << " among its parts, expected #memplan.part";
    if (part.getOffset() < end)
      return emitError() << "slot has parts that overlap or are not in "
                            "ascending order: "
                         << attribute;
    end = part.getOffset() + part.getBytes();
    first = std::min(first, part.getLower());
    last = std::max(last, part.getUpper());
  }
  if (parts.empty() || first != lower || last != upper)
    return emitError() << "slot has lifetime [" << lower << ", " << upper
                       << "), its parts [" << first << ", " << last << ")";
  return success();
}

LogicalResult ArenaAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t bytes, int64_t lowerBound, BoundProof,
                                int64_t noReuse, bool, int64_t alignment,
                                Attribute) {
  if (bytes < 0 || lowerBound < 0 || noReuse < 0)
    return emitError() << "arena has a negative size";
  if (alignment <= 0 || !llvm::isPowerOf2_64(alignment))
    return emitError() << "arena alignment " << alignment
                       << " is not a power of two";
  return success();
}

Type getAccumulatorType(Type elementType) {
  if (auto floatType = dyn_cast<FloatType>(elementType))
    if (floatType.getWidth() < 32)
      return Float32Type::get(elementType.getContext());
  return elementType;
}

Type getProductType(Type lhs, Type rhs) {
  if (isa<FloatType>(lhs))
    return getAccumulatorType(lhs);
  if (isa<FloatType>(rhs))
    return getAccumulatorType(rhs);
  if (!lhs.isInteger() || !rhs.isInteger())
    return lhs;
  Type wider =
      lhs.getIntOrFloatBitWidth() < rhs.getIntOrFloatBitWidth() ? rhs : lhs;
  if (wider.getIntOrFloatBitWidth() >= 32)
    return wider;
  return IntegerType::get(lhs.getContext(), 32);
}

void registerMemPlanDialect(DialectRegistry &registry) {
  registry.insert<MemPlanDialect>();
}

} // namespace memplan

#define GET_OP_CLASSES
#include "memplan/Dialect/MemPlanOps.cpp.inc"
