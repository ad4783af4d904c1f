//===- ImportFlags.cpp - What is said of an input file --------------------===//

#include "ImportFlags.h"

#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace memplan {

static InFlightDiagnostic error(MLIRContext &context) {
  return emitError(UnknownLoc::get(&context));
}

/// What `flag` says of each name, by `parse`, whose failure is an error that
/// says what is `accepted`.
template <typename T>
static LogicalResult
parseNamed(StringRef flag, ArrayRef<std::string> given, StringRef accepted,
           llvm::function_ref<std::optional<T>(StringRef)> parse,
           MLIRContext &context, llvm::StringMap<T> &parsed) {
  for (StringRef entry : given) {
    auto [name, text] =
        flag == "input-value" ? entry.split('=') : entry.rsplit('=');
    std::optional<T> value;
    if (!name.empty() && entry.contains('='))
      value = parse(text);
    if (!value)
      return error(context)
             << "--" << flag << "=" << entry << " is not " << accepted;
    if (!parsed.try_emplace(name, std::move(*value)).second)
      return error(context)
             << "--" << flag << " gives " << name << " more than once";
  }
  return success();
}

static std::optional<int64_t> parseExtent(StringRef text) {
  int64_t extent;
  if (text.getAsInteger(10, extent) || extent < 0)
    return std::nullopt;
  return extent;
}

/// N0xN1x..., or `scalar`.
static std::optional<SmallVector<int64_t>> parseShape(StringRef text) {
  SmallVector<int64_t> shape;
  SmallVector<StringRef> parts;
  if (text != "scalar")
    text.split(parts, 'x');
  for (StringRef part : parts) {
    auto extent = parseExtent(part);
    if (!extent)
      return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

FailureOr<ImportOptions> parseImportOptions(const DriverOptions &options,
                                            MLIRContext &context) {
  ImportOptions parsed;
  parsed.externalDataRoot = options.externalDataRoot;
  parsed.usedNames = options.usedNames;
  auto keepText = [](StringRef text) { return std::optional(text.str()); };
  if (failed(parseNamed<int64_t>("dim", options.dims,
                                 "NAME=N with N a whole number of at least 0",
                                 parseExtent, context, parsed.dims)) ||
      failed(parseNamed<SmallVector<int64_t>>(
          "input-shape", options.inputShapes,
          "NAME=N0xN1x... with whole numbers of at least 0, or NAME=scalar",
          parseShape, context, parsed.inputShapes)) ||
      failed(parseNamed<std::string>("input-value", options.inputValues,
                                     "NAME=V0,V1,... or NAME=@FILE", keepText,
                                     context, parsed.inputValues)) ||
      failed(parseNamed<int64_t>("sequence-length", options.sequenceLengths,
                                 "NAME=N with N a whole number of at least 0",
                                 parseExtent, context, parsed.sequenceLengths)))
    return failure();
  for (StringRef name : options.absent)
    parsed.absent.insert(name);
  return parsed;
}

LogicalResult checkNoImportFlags(const DriverOptions &options,
                                 MLIRContext &context) {
  for (auto [flag, isAbsent] :
       {std::pair{"--dim", options.dims.empty()},
        std::pair{"--input-shape", options.inputShapes.empty()},
        std::pair{"--input-value", options.inputValues.empty()},
        std::pair{"--sequence-length", options.sequenceLengths.empty()},
        std::pair{"--absent", options.absent.empty()}}) {
    if (isAbsent)
      continue;
    return error(context) << flag << " is about an ONNX model; "
                          << options.input << " is read as MLIR";
  }
  return success();
}

/// Whether `file`, links resolved, is below `folder`.
static bool isBelow(StringRef file, StringRef folder) {
  SmallString<128> realFile, realFolder;
  if (llvm::sys::fs::real_path(file, realFile) ||
      llvm::sys::fs::real_path(folder, realFolder))
    return false;
  StringRef rest = realFile;
  return rest.consume_front(realFolder) &&
         (rest.starts_with("/") || realFolder == "/");
}

LogicalResult checkWeightFiles(ModuleOp module, const DriverOptions &options) {
  StringRef own = llvm::sys::path::parent_path(options.input);
  if (own.empty())
    own = ".";
  auto isAllowed = [&](StringRef file) {
    if (!options.externalDataRoot.empty() &&
        isBelow(file, options.externalDataRoot))
      return true;
    llvm::sys::fs::file_status status;
    return options.input != "-" && isBelow(file, own) &&
           !llvm::sys::fs::status(file, status) && status.getLinkCount() == 1;
  };
  for (auto global : module.getOps<memref::GlobalOp>()) {
    auto weight = global->getAttrOfType<WeightAttr>(kWeightAttr);
    if (weight && !isAllowed(weight.getFile()))
      return global.emitError()
             << "has its data in '" << weight.getFile()
             << "', which is not there or not below the module's folder, or "
                "has another name as well; --external-data-root=DIR allows "
                "one more folder";
  }
  return success();
}

} // namespace memplan
