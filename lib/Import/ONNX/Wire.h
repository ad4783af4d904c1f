//===- Wire.h - Protocol buffer wire format ---------------------*- C++ -*-===//
//
// A cursor over the fields of one serialized message, as specified in
// https://protobuf.dev/programming-guides/encoding/. Nothing is copied: the
// payload of a field is a piece of the mapped file, so that a tensor's bytes
// are known by their position and never read.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_WIRE_H
#define MEMPLAN_LIB_IMPORT_ONNX_WIRE_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace memplan::onnx {

enum class WireType : uint8_t {
  Varint = 0,
  Fixed64 = 1,
  Bytes = 2,
  Fixed32 = 5
};

class WireReader {
public:
  explicit WireReader(llvm::StringRef message) : rest(message) {}

  /// Moves to the next field. False at the end of the message and on malformed
  /// input; `malformed` tells which.
  bool next();
  bool malformed() const { return bad; }
  /// For callers that find a field's payload wrong.
  void setMalformed() { bad = true; }

  uint32_t number() const { return fieldNumber; }
  WireType type() const { return wireType; }

  /// The field's payload. Asking for another wire type than the field has
  /// makes the message malformed and gives a zero or empty value.
  int64_t varint() { return expect(WireType::Varint) ? int64_t(scalar) : 0; }
  uint32_t fixed32() {
    return expect(WireType::Fixed32) ? uint32_t(scalar) : 0;
  }
  uint64_t fixed64() { return expect(WireType::Fixed64) ? scalar : 0; }
  float float32();
  llvm::StringRef bytes() {
    return expect(WireType::Bytes) ? payload : llvm::StringRef();
  }

  /// Takes a base-128 number off the front of `from`; false when truncated or
  /// longer than 64 bits.
  static bool takeVarint(llvm::StringRef &from, uint64_t &value);

private:
  bool expect(WireType wanted) {
    bad |= wireType != wanted;
    return wireType == wanted;
  }

  llvm::StringRef rest, payload;
  uint64_t scalar = 0;
  uint32_t fieldNumber = 0;
  WireType wireType = WireType::Varint;
  bool bad = false;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_WIRE_H
