//===- GraphInputs.cpp - What the caller gives ----------------------------===//

#include "GraphInputs.h"

#include "DType.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Longer sequences come from no model, but from a mistake.
static constexpr int64_t kLongestSequence = 10000;

LogicalResult GraphInputs::addTensor(const ValueInfo &input, std::string name,
                                     const ImportOptions &options,
                                     Reporter &reporter) {
  bool isElement = name != input.name;
  auto given = options.inputShapes.find(name);
  if (given == options.inputShapes.end())
    given = options.inputShapes.find(input.name);
  used.insert(name);
  used.insert(input.name);
  const ValueInfo *leaf = &input;
  // Dims binds what a shape of the model's leaves open.
  if (!isElement && input.shape)
    given = options.inputShapes.end();
  if (given != options.inputShapes.end() || input.kind != "tensor") {
    names.push_back(std::move(name));
    ValueInfo tensor = input;
    tensor.name = names.back();
    tensor.kind = "tensor";
    tensor.inner.clear();
    if (given != options.inputShapes.end()) {
      tensor.shape.emplace();
      for (int64_t extent : given->second)
        tensor.shape->push_back({extent, {}});
    }
    made.push_back(std::move(tensor));
    leaf = &made.back();
  }
  if (!DType::fromCode(leaf->dataType))
    return reporter.error(ImportErrorKind::Unsupported)
           << "graph input " << quoted(leaf->name) << " has element type "
           << dtypeName(leaf->dataType) << "; " << kAcceptedTypes;
  if (!leaf->shape)
    return reporter.error(ImportErrorKind::UnboundShape)
           << "graph input " << quoted(leaf->name)
           << " has no shape; give --input-shape " << leaf->name
           << "=N0xN1x...";
  if (leaf->shape->size() > kHighestRank)
    return reporter.error(ImportErrorKind::Unsupported)
           << "graph input " << quoted(leaf->name) << " has rank "
           << leaf->shape->size() << "; ranks up to " << kHighestRank
           << " are accepted";
  leaves.push_back(leaf);
  return success();
}

LogicalResult GraphInputs::add(const ValueInfo &input,
                               const ImportOptions &options,
                               Reporter &reporter) {
  Input entry{&input, leaves.size(), 0};
  SmallVector<StringRef> kinds = {input.kind};
  llvm::append_range(kinds, input.inner);
  ArrayRef<StringRef> rest(kinds);
  if (rest.front() == "optional") {
    rest = rest.drop_front();
    entry.isPresent = !options.absent.contains(input.name);
  }
  bool isSequence = !rest.empty() && rest.front() == "sequence";
  if (isSequence)
    rest = rest.drop_front();
  if (rest.size() != 1 || rest.front() != "tensor")
    return reporter.error(ImportErrorKind::Unsupported)
           << "graph input " << quoted(input.name) << " is "
           << (input.kind.empty() ? "of no stated type"
                                  : ("a " + input.kind).str())
           << "; a tensor, a sequence of tensors and an optional of these are "
              "accepted";
  int64_t count = 1;
  if (isSequence && entry.isPresent) {
    auto given = options.sequenceLengths.find(input.name);
    if (given == options.sequenceLengths.end())
      return reporter.error(ImportErrorKind::UnboundShape)
             << "graph input " << quoted(input.name)
             << " is a sequence; give --sequence-length " << input.name << "=N";
    count = given->second;
    if (count < 0 || count > kLongestSequence)
      return reporter.error(ImportErrorKind::IO)
             << "--sequence-length " << input.name << "=" << count << "; 0 to "
             << kLongestSequence << " is accepted";
  }
  if (!entry.isPresent)
    count = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::string name = input.name.str();
    if (isSequence)
      name += "[" + std::to_string(i) + "]";
    if (failed(addTensor(input, name, options, reporter)))
      return failure();
  }
  entry.count = leaves.size() - entry.first;
  all.push_back(entry);
  return success();
}

/// An option that names nothing is a mistake.
LogicalResult GraphInputs::checkOptions(const ImportOptions &options,
                                        Reporter &reporter) {
  SmallVector<std::string> unknown;
  auto check = [&](bool isKnown, StringRef flag, StringRef name,
                   StringRef what) {
    if (isKnown && options.usedNames)
      options.usedNames->insert((flag + " " + name).str());
    else if (!isKnown && !options.usedNames)
      unknown.push_back((flag + " " + name + " names no " + what).str());
  };
  auto isOf = [&](StringRef name, StringRef kind) {
    for (const Input &input : all)
      if (input.declared->name == name &&
          (input.declared->kind == kind ||
           llvm::is_contained(input.declared->inner, kind)))
        return true;
    return false;
  };
  for (const auto &entry : options.sequenceLengths)
    check(isOf(entry.getKey(), "sequence"), "--sequence-length", entry.getKey(),
          "input that is a sequence");
  for (const auto &entry : options.absent)
    check(isOf(entry.getKey(), "optional"), "--absent", entry.getKey(),
          "input that is an optional");
  for (const auto &entry : options.inputShapes)
    check(used.contains(entry.getKey()), "--input-shape", entry.getKey(),
          "input of the model");
  if (unknown.empty())
    return success();
  llvm::sort(unknown);
  return reporter.error(ImportErrorKind::IO) << unknown.front();
}

FailureOr<GraphInputs> GraphInputs::read(ArrayRef<const ValueInfo *> inputs,
                                         const ImportOptions &options,
                                         Reporter &reporter) {
  GraphInputs result;
  for (const ValueInfo *input : inputs)
    if (failed(result.add(*input, options, reporter)))
      return failure();
  if (failed(result.checkOptions(options, reporter)))
    return failure();
  return result;
}
