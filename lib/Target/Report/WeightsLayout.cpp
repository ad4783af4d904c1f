//===- WeightsLayout.cpp - Where each weight lies in the block ------------===//

#include "memplan/Target/Report/WeightsLayout.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "memplan/Support/CheckedMath.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace memplan {

std::optional<int64_t> getElementBytes(Type type) {
  if (isa<IndexType>(type))
    return 8;
  if (!type.isIntOrFloat())
    return std::nullopt;
  return static_cast<int64_t>((type.getIntOrFloatBitWidth() + 7) / 8);
}

std::optional<int64_t> getContentBytes(MemRefType type) {
  auto elementBytes = getElementBytes(type.getElementType());
  auto elements = checkedProduct(type.getShape()); // dynamic extents: nullopt
  if (!elementBytes || !elements)
    return std::nullopt;
  return checkedMul(*elements, *elementBytes);
}

FailureOr<WeightsLayout> computeWeightsLayout(ModuleOp module) {
  llvm::StringSet<> read;
  module.walk([&](memref::GetGlobalOp op) { read.insert(op.getName()); });

  WeightsLayout layout;
  llvm::StringSet<> names;
  for (auto global : module.getOps<memref::GlobalOp>()) {
    if (!read.contains(global.getSymName()))
      continue;
    auto bytes = getContentBytes(global.getType());
    auto end = bytes ? checkedAdd(layout.bytes, *bytes) : std::nullopt;
    auto next = end ? checkedAlignTo(*end, kWeightAlignment) : std::nullopt;
    if (!next) {
      global.emitError() << "weight @" << global.getSymName() << " of type "
                         << global.getType()
                         << " has no size in bytes that fits 63 bits";
      return failure();
    }
    std::string name = global.getSymName().str();
    if (auto given = global->getAttrOfType<StringAttr>(kNameAttr))
      name = given.str();
    // Safetensors keys are unique and one of them is taken.
    std::string unique = name;
    for (unsigned i = 1;
         unique == "__metadata__" || !names.insert(unique).second; ++i)
      unique = name + "#" + std::to_string(i);
    layout.indexOfSymbol[global.getSymName()] = layout.weights.size();
    layout.weights.push_back({global, unique, *bytes, layout.bytes});
    layout.bytes = *next;
  }
  return layout;
}

} // namespace memplan
