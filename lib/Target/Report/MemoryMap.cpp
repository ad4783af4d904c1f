//===- MemoryMap.cpp - The memory map as a page ---------------------------===//
//
// The page itself is MemoryMap/map.html with its style and scripts; here the
// plan is put into it. Names come from strangers' files.
//
//===----------------------------------------------------------------------===//

#include "memplan/Target/Report/PlanReport.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SHA256.h"

#include "MapPage.inc"
#include "MapScript.inc"
#include "MapStyle.inc"

using llvm::StringRef;

namespace memplan {

/// JSON in which no byte means anything to HTML, or turns an editor's text
/// around: such characters stand in strings only, where \u may be put.
static std::string escapeForScript(StringRef json) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const auto *at = reinterpret_cast<const llvm::UTF8 *>(json.bytes_begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(json.bytes_end());
  auto escape = [&](unsigned unit) { os << llvm::format("\\u%04x", unit); };
  while (at != end) {
    if (*at < 0x80) {
      char c = static_cast<char>(*at++);
      if (c == '<' || c == '>' || c == '&' || c == 0x7f)
        escape(c);
      else if (c != '\n')
        os << c;
      continue;
    }
    llvm::UTF32 point = 0xfffd;
    if (llvm::convertUTF8Sequence(&at, end, &point, llvm::strictConversion) !=
        llvm::conversionOK) {
      ++at;
      point = 0xfffd;
    }
    if (point >= 0x10000) {
      escape(0xd800 + ((point - 0x10000) >> 10));
      escape(0xdc00 + ((point - 0x10000) & 0x3ff));
    } else {
      escape(point);
    }
  }
  return text;
}

/// What a content security policy calls a script or style of its own.
static std::string hashForPolicy(StringRef text) {
  llvm::SHA256 hash;
  hash.update(text);
  return "sha256-" + llvm::encodeBase64(hash.final());
}

void emitMemoryMap(const PlanDocument &plan, llvm::raw_ostream &os,
                   const PlanDocument *other) {
  std::string json;
  llvm::raw_string_ostream data(json);
  data << '[';
  if (other) {
    writePlanJSON(*other, data, /*indent=*/0);
    data << ',';
  }
  writePlanJSON(plan, data, /*indent=*/0);
  data << ']';
  // One scope for all files, and none of their names for other scripts.
  std::string script =
      "'use strict';\n(() => {\n" + std::string(kMapScript) + "})();\n";

  StringRef page = kMapPage;
  auto copyTo = [&](StringRef mark) {
    size_t at = page.find(mark);
    os << page.take_front(at);
    page = page.drop_front(at + mark.size());
  };
  copyTo("@STYLE_HASH@");
  os << hashForPolicy(kMapStyle);
  copyTo("@SCRIPT_HASH@");
  os << hashForPolicy(script);
  copyTo("@STYLE@");
  os << kMapStyle;
  copyTo("@DATA@");
  os << escapeForScript(json);
  copyTo("@SCRIPT@");
  os << script << page;
}

} // namespace memplan
