//===- Wire.cpp - Protocol buffer wire format -----------------------------===//

#include "Wire.h"

#include "llvm/Support/Endian.h"

#include <cstring>

using namespace memplan::onnx;
using llvm::StringRef;

bool WireReader::takeVarint(StringRef &from, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (from.empty())
      return false;
    uint8_t byte = from.front();
    from = from.drop_front();
    // The tenth byte has room for the 64th bit alone.
    if (shift == 63 && byte > 1)
      return false;
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

bool WireReader::next() {
  if (bad || rest.empty())
    return false;
  auto fail = [&] {
    bad = true;
    return false;
  };
  uint64_t tag;
  if (!takeVarint(rest, tag) || (tag >> 3) == 0 || (tag >> 3) > (1u << 29) - 1)
    return fail();
  fieldNumber = tag >> 3;
  wireType = static_cast<WireType>(tag & 7);
  switch (wireType) {
  case WireType::Varint:
    return takeVarint(rest, scalar) || fail();
  case WireType::Fixed64:
    if (rest.size() < 8)
      return fail();
    scalar = llvm::support::endian::read64le(rest.data());
    rest = rest.drop_front(8);
    return true;
  case WireType::Fixed32:
    if (rest.size() < 4)
      return fail();
    scalar = llvm::support::endian::read32le(rest.data());
    rest = rest.drop_front(4);
    return true;
  case WireType::Bytes: {
    uint64_t length;
    if (!takeVarint(rest, length) || length > rest.size())
      return fail();
    payload = rest.take_front(length);
    rest = rest.drop_front(length);
    return true;
  }
  }
  // Groups (3 and 4) are not used by ONNX; 6 and 7 do not exist.
  return fail();
}

float WireReader::float32() {
  uint32_t bits = fixed32();
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
