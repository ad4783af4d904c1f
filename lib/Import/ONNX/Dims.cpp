//===- Dims.cpp - Symbolic dimensions of a graph --------------------------===//

#include "Dims.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// How the user names a dim: its own name, or INPUT.INDEX. Empty for a dim of
/// known size. Some exporters write -1 for a dim they do not know.
static std::string symbolOf(const Dim &dim, StringRef owner, size_t index) {
  if (dim.size && *dim.size >= 0)
    return {};
  if (!dim.param.empty())
    return dim.param.str();
  return (owner + "." + Twine(index)).str();
}

std::optional<int64_t> Dims::size(const Dim &dim, StringRef owner,
                                  size_t index) const {
  std::string symbol = symbolOf(dim, owner, index);
  if (symbol.empty())
    return dim.size;
  auto found = sizes.find(symbol);
  if (found == sizes.end())
    return std::nullopt;
  return found->second;
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
    dims.sizes[name] = size;
  }

  SmallVector<std::string> unbound;
  for (auto &[symbol, place] : symbols)
    if (!dims.sizes.count(symbol))
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
