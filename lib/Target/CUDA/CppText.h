//===- CppText.h - Pieces of C++ text ---------------------------*- C++ -*-===//
//
// Types, literals, and the one escaper through which names of the model reach
// comments and strings of emitted files.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_CPPTEXT_H
#define MEMPLAN_LIB_TARGET_CUDA_CPPTEXT_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"

#include <optional>
#include <string>

namespace memplan {

/// The C++ type of a value in a kernel and in memory; nullopt if the target
/// does not have the type.
std::optional<std::string> getCppType(mlir::Type type);

/// The same for a value within a kernel alone, such as the code of a float of 4
/// bits.
std::optional<std::string> getScalarCppType(mlir::Type type);

/// The unsigned type of the same width ("bool" for i1).
std::string getUnsignedCppType(mlir::Type type);

/// The enumerator of memplan_dtype.
llvm::StringRef getDTypeName(mlir::Type type);

/// The dtype that a safetensors file calls it.
llvm::StringRef getSafetensorsName(mlir::Type type);

/// A literal of exactly this value and of the type's C++ type.
std::optional<std::string> getCppLiteral(mlir::TypedAttr value);

/// `text` for comments: printable ASCII without backslashes, `*/`, or `??`,
/// everything else as '?'; cut to `limit` bytes.
std::string escapeForComment(llvm::StringRef text, size_t limit = 100);

/// `text` as a C string literal with the same bytes, quotes included.
std::string quoteForString(llvm::StringRef text);

/// The names in a location, joined by '+' (those of fused nodes), or "line N"
/// for a place in a file.
std::string getNodeName(mlir::Location location);

/// "640.5 KiB".
std::string formatBytes(int64_t bytes);

/// "f32[1, 3, 224, 224]".
std::string formatType(mlir::ShapedType type);

/// `statement` on lines of at most 100 columns, indented, broken after commas
/// that stand outside of strings; ends with a newline.
std::string wrapAtCommas(llvm::StringRef statement, llvm::StringRef indent);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_CPPTEXT_H
