//===- CppText.cpp - Pieces of C++ text -----------------------------------===//

#include "CppText.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace mlir;

namespace memplan {

/// The runtime's types of 16 bits and less: C++ type, memplan_dtype and dtype
/// of safetensors. Formats that safetensors hasn't are bytes there.
namespace {
struct SmallFloat {
  const char *cpp, *dtype, *safetensors;
};
} // namespace

static std::optional<SmallFloat> getSmallFloat(Type type) {
  if (type.isF16())
    return SmallFloat{"Half", "MEMPLAN_F16", "F16"};
  if (type.isBF16())
    return SmallFloat{"BFloat16", "MEMPLAN_BF16", "BF16"};
  if (isa<Float8E4M3FNType>(type))
    return SmallFloat{"F8E4M3FN", "MEMPLAN_F8E4M3FN", "F8_E4M3"};
  if (isa<Float8E4M3FNUZType>(type))
    return SmallFloat{"F8E4M3FNUZ", "MEMPLAN_F8E4M3FNUZ", "U8"};
  if (isa<Float8E5M2Type>(type))
    return SmallFloat{"F8E5M2", "MEMPLAN_F8E5M2", "F8_E5M2"};
  if (isa<Float8E5M2FNUZType>(type))
    return SmallFloat{"F8E5M2FNUZ", "MEMPLAN_F8E5M2FNUZ", "U8"};
  if (isa<Float8E8M0FNUType>(type))
    return SmallFloat{"F8E8M0FNU", "MEMPLAN_F8E8M0FNU", "F8_E8M0"};
  if (isa<Float4E2M1FNType>(type)) // one a byte in memory
    return SmallFloat{"F4E2M1FN", "MEMPLAN_F4E2M1FN", "U8"};
  return std::nullopt;
}

std::optional<std::string> getCppType(Type type) {
  if (auto narrow = getSmallFloat(type))
    return narrow->cpp;
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isIndex())
    return "int64_t";
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return std::nullopt;
  switch (integer.getWidth()) {
  case 1:
    return "bool";
  case 8:
  case 16:
  case 32:
  case 64:
    return (integer.isUnsigned() ? "uint" : "int") +
           std::to_string(integer.getWidth()) + "_t";
  default:
    return std::nullopt;
  }
}

std::optional<std::string> getScalarCppType(Type type) {
  return type.isInteger(4) ? "Bits4" : getCppType(type);
}

std::string getUnsignedCppType(Type type) {
  if (type.isIndex())
    return "uint64_t";
  unsigned width = type.getIntOrFloatBitWidth();
  if (width > 1 && width < 8)
    width = 8;
  return width == 1 ? "bool" : "uint" + std::to_string(width) + "_t";
}

StringRef getDTypeName(Type type) {
  if (auto narrow = getSmallFloat(type))
    return narrow->dtype;
  if (type.isF32())
    return "MEMPLAN_F32";
  if (type.isF64())
    return "MEMPLAN_F64";
  if (type.isIndex())
    return "MEMPLAN_I64";
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return "MEMPLAN_BOOL";
  case 2:
    return isUnsigned ? "MEMPLAN_U2" : "MEMPLAN_I2";
  case 4:
    return isUnsigned ? "MEMPLAN_U4" : "MEMPLAN_I4";
  case 8:
    return isUnsigned ? "MEMPLAN_U8" : "MEMPLAN_I8";
  case 16:
    return isUnsigned ? "MEMPLAN_U16" : "MEMPLAN_I16";
  case 32:
    return isUnsigned ? "MEMPLAN_U32" : "MEMPLAN_I32";
  default:
    return isUnsigned ? "MEMPLAN_U64" : "MEMPLAN_I64";
  }
}

StringRef getSafetensorsName(Type type) {
  if (auto narrow = getSmallFloat(type))
    return narrow->safetensors;
  if (type.isF32())
    return "F32";
  if (type.isF64())
    return "F64";
  if (type.isIndex())
    return "I64";
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return "BOOL";
  case 8:
    return isUnsigned ? "U8" : "I8";
  case 16:
    return isUnsigned ? "U16" : "I16";
  case 32:
    return isUnsigned ? "U32" : "I32";
  default:
    return isUnsigned ? "U64" : "I64";
  }
}

static std::string getFloatLiteral(const APFloat &value, bool isDouble) {
  std::string type = isDouble ? "double" : "float";
  if (value.isNaN())
    return type + "(NAN)";
  if (value.isInfinity())
    return type + (value.isNegative() ? "(-INFINITY)" : "(INFINITY)");
  // The fewest digits that bring the same value back.
  double number = isDouble ? value.convertToDouble()
                           : static_cast<double>(value.convertToFloat());
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, number);
    double back = isDouble
                      ? std::strtod(text.c_str(), nullptr)
                      : static_cast<double>(std::strtof(text.c_str(), nullptr));
    if (back == number)
      break;
  }
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return isDouble ? text : text + "f";
}

std::optional<std::string> getCppLiteral(TypedAttr value) {
  auto type = getCppType(value.getType());
  if (!type)
    return std::nullopt;
  if (auto number = dyn_cast<FloatAttr>(value);
      number && getSmallFloat(number.getType())) {
    bool lost = false;
    APFloat wide = number.getValue(); // every such number is a float
    wide.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
    return *type + "(" + getFloatLiteral(wide, /*isDouble=*/false) + ")";
  }
  if (auto number = dyn_cast<FloatAttr>(value))
    return getFloatLiteral(number.getValue(), number.getType().isF64());
  auto number = dyn_cast<IntegerAttr>(value);
  if (!number)
    return std::nullopt;
  if (*type == "bool")
    return number.getValue().isZero() ? "false" : "true";
  if (number.getType().isUnsignedInteger())
    return *type + "(" + llvm::toString(number.getValue(), 10, false) + "u)";
  int64_t n = number.getValue().getSExtValue();
  if (n == INT64_MIN)
    return "INT64_MIN"; // its digits are no literal: the minus is an operator
  return *type + "(" + std::to_string(n) + ")";
}

std::string escapeForComment(StringRef text, size_t limit) {
  std::string result;
  for (char c : text.take_front(limit)) {
    bool isSafe = llvm::isPrint(c) && c != '\\' && c != '"' && c != '?';
    // Neither the end of a comment nor a new one (-Wcomment).
    if (!result.empty() && ((result.back() == '*' && c == '/') ||
                            (result.back() == '/' && c == '*')))
      isSafe = false;
    result += isSafe ? c : '_';
  }
  if (text.size() > limit)
    result += "...";
  return result;
}

std::string quoteForString(StringRef text) {
  std::string result = "\"";
  for (unsigned char c : text) {
    // Octal escapes end after three digits; hexadecimal ones would not.
    if (llvm::isPrint(c) && c != '"' && c != '\\' && c != '?')
      result += static_cast<char>(c);
    else
      llvm::raw_string_ostream(result)
          << llvm::format("\\%03o", static_cast<unsigned>(c));
  }
  return result + "\"";
}

static void collectNames(Location location,
                         llvm::SmallSetVector<StringRef, 4> &names,
                         std::optional<unsigned> &line) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    names.insert(name.getName().getValue());
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      collectNames(part, names, line);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collectNames(call.getCallee(), names, line);
  } else if (auto place = dyn_cast<FileLineColLoc>(location)) {
    if (!line)
      line = place.getLine();
  }
}

std::string getNodeName(Location location) {
  llvm::SmallSetVector<StringRef, 4> names;
  std::optional<unsigned> line;
  collectNames(location, names, line);
  if (!names.empty())
    return llvm::join(names, "+");
  return line ? "line " + std::to_string(*line) : "unnamed";
}

std::string formatBytes(int64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes);
  const char *unit = "";
  for (const char *next : {"KiB", "MiB", "GiB", "TiB"}) {
    value /= 1024;
    unit = next;
    if (value < 1024)
      break;
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format(value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

std::string formatType(ShapedType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type.getElementType() << "[";
  llvm::interleaveComma(type.getShape(), os);
  os << "]";
  return text;
}

std::string wrapAtCommas(StringRef statement, StringRef indent) {
  std::string result = indent.str(), word;
  constexpr size_t kLineWidth = 100;
  size_t width = indent.size();
  bool inString = false;
  int depth = 0; // of braces: a list within a list stays together
  auto flush = [&] {
    if (width + word.size() > kLineWidth && width > indent.size()) {
      while (!result.empty() && result.back() == ' ')
        result.pop_back();
      result += "\n" + indent.str() + "    ";
      width = indent.size() + 4;
    }
    result += word;
    width += word.size();
    word.clear();
  };
  for (size_t i = 0; i < statement.size(); ++i) {
    char c = statement[i];
    word += c;
    if (c == '"') // strings hold no quotes: those are escaped as octal
      inString = !inString;
    if (!inString)
      depth += (c == '{') - (c == '}');
    bool afterComma = c == ' ' && i > 0 &&
                      (statement[i - 1] == ',' || statement[i - 1] == '=');
    if (afterComma && !inString && depth <= 1)
      flush();
  }
  flush();
  return result + "\n";
}

} // namespace memplan
