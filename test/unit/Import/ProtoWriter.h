//===- ProtoWriter.h - Writes protobuf messages for tests -------*- C++ -*-===//

#ifndef MEMPLAN_TEST_UNIT_IMPORT_PROTOWRITER_H
#define MEMPLAN_TEST_UNIT_IMPORT_PROTOWRITER_H

#include <cstdint>
#include <string>

/// Builds one message, field by field, in the protobuf wire format.
class ProtoWriter {
public:
  ProtoWriter &varint(uint32_t field, uint64_t value) {
    put(uint64_t(field) << 3);
    put(value);
    return *this;
  }
  ProtoWriter &bytes(uint32_t field, const std::string &value) {
    put(uint64_t(field) << 3 | 2);
    put(value.size());
    text += value;
    return *this;
  }
  ProtoWriter &message(uint32_t field, const ProtoWriter &value) {
    return bytes(field, value.text);
  }
  const std::string &str() const { return text; }

private:
  void put(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      text.push_back(static_cast<char>(value | 0x80));
    text.push_back(static_cast<char>(value));
  }
  std::string text;
};

#endif // MEMPLAN_TEST_UNIT_IMPORT_PROTOWRITER_H
