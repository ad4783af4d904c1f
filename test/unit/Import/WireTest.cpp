//===- WireTest.cpp - The protobuf wire format ----------------------------===//

#include "Wire.h"

#include "gtest/gtest.h"

#include <string>

using namespace memplan::onnx;
using llvm::StringRef;

TEST(Wire, ReadsEveryWireType) {
  // Field 1 varint 300 (0xac 0x02, the format's own example), field 2 bytes
  // "hi", field 3 the float 1.0 (0x3f800000), field 4 eight bytes.
  const char data[] = "\x08\xac\x02"
                      "\x12\x02hi"
                      "\x1d\x00\x00\x80\x3f"
                      "\x21\x01\x00\x00\x00\x00\x00\x00\x80";
  WireReader reader(StringRef(data, sizeof(data) - 1));
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(), 1u);
  EXPECT_EQ(reader.varint(), 300);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), "hi");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.float32(), 1.0f);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.fixed64(), 0x8000000000000001u);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.malformed());
}

TEST(Wire, NegativeNumbersTakeTenBytes) {
  StringRef minusOne("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10);
  uint64_t value;
  ASSERT_TRUE(WireReader::takeVarint(minusOne, value));
  EXPECT_EQ(static_cast<int64_t>(value), -1);
  EXPECT_TRUE(minusOne.empty());
}

TEST(Wire, RefusesMalformedInput) {
  const std::string cases[] = {
      std::string("\x08", 1),         // no value
      std::string("\x08\x80", 2),     // unfinished varint
      std::string("\x12\x05hi", 4),   // 5 bytes promised, 2 there
      std::string("\x1d\x00\x00", 3), // 4 bytes promised, 2 there
      std::string("\x21\x00", 2),     // 8 bytes promised, 1 there
      std::string("\x0b", 1),         // a group
      std::string("\x0f\x01", 2),     // wire type 7
      std::string("\x00\x01", 2),     // field number 0
      std::string("\x08") + std::string(9, '\xff') + '\x02', // 65 bits
  };
  for (const std::string &text : cases) {
    WireReader reader(text);
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.malformed());
  }
}

TEST(Wire, AskingForAnotherTypeIsMalformed) {
  WireReader reader(StringRef("\x08\x01", 2));
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_TRUE(reader.malformed());
}
