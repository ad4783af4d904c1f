//===- Dims.cpp - Symbolic dimensions of a graph --------------------------===//

#include "Dims.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// How the user names a dim: its own name, or INPUT.INDEX. Empty for a dim of
/// known size. Some exporters write -1 or "?" for a dim they do not know.
static std::string symbolOf(const Dim &dim, StringRef owner, size_t index) {
  if (dim.size && *dim.size >= 0)
    return {};
  if (!dim.param.empty() && dim.param != "?")
    return dim.param.str();
  return (owner + "." + Twine(index)).str();
}

std::optional<int64_t> Dims::size(const Dim &dim, StringRef owner,
                                  size_t index) const {
  std::string symbol = symbolOf(dim, owner, index);
  if (symbol.empty())
    return dim.size;
  auto found = bindings.find(symbol);
  if (found == bindings.end())
    return std::nullopt;
  return found->second.size;
}

LogicalResult Dims::bindSymbol(StringRef symbol, Binding binding,
                               Reporter &reporter) {
  auto [found, isNew] = bindings.try_emplace(symbol, binding);
  if (isNew || found->second.size == binding.size)
    return success();
  return reporter.error(ImportErrorKind::IO)
         << "the dimension " << symbol << " is " << found->second.size << " by "
         << found->second.flag << ", but " << binding.size << " by "
         << binding.flag;
}

LogicalResult Dims::bindShape(const ValueInfo &input, ArrayRef<int64_t> shape,
                              Reporter &reporter) {
  std::string flag =
      "--input-shape " + input.name.str() + "=" + shapeText(shape);
  if (shape.size() != input.shape->size())
    return reporter.error(ImportErrorKind::IO)
           << flag << " has " << shape.size() << " dims, but the input has "
           << input.shape->size();
  for (auto [index, dim] : llvm::enumerate(*input.shape)) {
    std::string symbol = symbolOf(dim, input.name, index);
    if (symbol.empty() && *dim.size != shape[index])
      return reporter.error(ImportErrorKind::IO)
             << flag << " has " << shape[index] << " as dim " << index
             << ", which the model fixes to " << *dim.size;
    if (!symbol.empty() &&
        failed(bindSymbol(symbol, {shape[index], flag}, reporter)))
      return failure();
  }
  return success();
}

FailureOr<Dims> Dims::bind(ArrayRef<const ValueInfo *> inputs,
                           const ImportOptions &options, Reporter &reporter) {
  // Every symbol with the first place where it stands, in the model's order.
  SmallVector<std::pair<std::string, std::string>> symbols;
  llvm::StringSet<> known;
  for (const ValueInfo *input : inputs)
    for (auto [index, dim] : llvm::enumerate(*input->shape)) {
      std::string symbol = symbolOf(dim, input->name, index);
      if (!symbol.empty() && known.insert(symbol).second)
        symbols.push_back({symbol, "dim " + std::to_string(index) +
                                       " of input " + quoted(input->name)});
    }

  Dims dims;
  SmallVector<StringRef> given;
  for (const auto &entry : options.dims)
    given.push_back(entry.getKey());
  llvm::sort(given);
  for (StringRef name : given) {
    int64_t size = options.dims.lookup(name);
    if (options.usedNames && !known.contains(name))
      continue;
    if (options.usedNames)
      options.usedNames->insert(("--dim " + name).str());
    if (!known.contains(name)) {
      auto diagnostic = reporter.error(ImportErrorKind::IO)
                        << "--dim " << name
                        << " names no symbolic dimension of the model; it has ";
      llvm::interleaveComma(symbols, diagnostic,
                            [&](auto &entry) { diagnostic << entry.first; });
      if (symbols.empty())
        diagnostic << "none";
      return failure();
    }
    if (size < 0)
      return reporter.error(ImportErrorKind::IO)
             << "--dim " << name << "=" << size << " is negative";
    dims.bindings[name] = {size, "--dim"};
  }
  for (const ValueInfo *input : inputs) {
    auto shape = options.inputShapes.find(input->name);
    if (shape != options.inputShapes.end() &&
        failed(dims.bindShape(*input, shape->second, reporter)))
      return failure();
  }

  SmallVector<std::string> unbound;
  for (auto &[symbol, place] : symbols)
    if (!dims.bindings.count(symbol))
      unbound.push_back("--dim " + symbol + "=N (" + place + ")");
  if (unbound.empty())
    return dims;
  auto diagnostic =
      reporter.error(ImportErrorKind::UnboundShape)
      << unbound.size()
      << (unbound.size() == 1 ? " dimension is" : " dimensions are")
      << " symbolic; give ";
  llvm::interleaveComma(unbound, diagnostic);
  return failure();
}
