//===- WeightsTest.cpp - loading weights, and refusing other files --------===//

#include "memplan/Runtime/Weights.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

using namespace memplan::rt;

namespace {

class Weights : public testing::Test {
protected:
  // "hello" padded to 8, as safetensors pads its JSON, then 16 bytes of data.
  std::string header = "hello   ";
  std::string data = "0123456789abcdef";
  std::string path;
  WeightsFile expected{8 + 8 + 16, 8, 0};
  std::vector<char> block = std::vector<char>(32, '.');

  void SetUp() override {
    char name[] = "/tmp/memplan-weights-XXXXXX";
    const int descriptor = mkstemp(name);
    ASSERT_GE(descriptor, 0);
    close(descriptor);
    path = name;
    expected.header_hash = fnv1a64(header.data(), header.size());
    write(std::string("\x08\0\0\0\0\0\0\0", 8) + header + data);
  }
  void TearDown() override { std::remove(path.c_str()); }

  void write(const std::string &bytes) {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
    std::fclose(file);
  }

  memplan_status load(const std::vector<WeightEntry> &entries) {
    return loadWeights(path.c_str(), expected, entries.data(), entries.size(),
                       block.data(), block.size());
  }

  void expectRefused(memplan_status status, const char *text,
                     const std::vector<WeightEntry> &entries = {
                         {"w", 16, 4, 0}}) {
    EXPECT_EQ(load(entries), status);
    EXPECT_NE(std::strstr(memplan_last_error(), text), nullptr)
        << memplan_last_error();
    EXPECT_EQ(block, std::vector<char>(32, '.')) << "nothing is written";
  }
};

TEST_F(Weights, GoWhereTheyBelong) {
  // Out of order, with a gap, and one that is empty.
  ASSERT_EQ(load({{"b", 20, 6, 16}, {"a", 16, 4, 0}, {"none", 32, 0, 32}}),
            MEMPLAN_OK)
      << memplan_last_error();
  EXPECT_EQ(std::string(block.begin(), block.end()),
            "0123............456789..........");
}

TEST_F(Weights, LargeOnesAreReadInPieces) {
  // Three staging buffers of 1 MiB and a bit.
  std::string large((3u << 20) + 12345, '\0');
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = char(i * 2654435761u >> 13);
  write(large);
  expected = {large.size(), 0, 0}; // not safetensors: no header to check
  block.assign(large.size(), '.');
  ASSERT_EQ(load({{"all", 0, large.size(), 0}}), MEMPLAN_OK);
  EXPECT_EQ(std::memcmp(block.data(), large.data(), large.size()), 0);
}

TEST_F(Weights, TheHashIsFnv1a64) {
  // The first vectors of the reference's test suite (draft-eastlake-fnv, C).
  EXPECT_EQ(fnv1a64("", 0), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a", 1), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("foobar", 6), 0x85944171f73967e8u);
  EXPECT_EQ(fnv1a64("bar", 3, fnv1a64("foo", 3)), fnv1a64("foobar", 6));
}

TEST_F(Weights, AMissingFileIsRefused) {
  path += ".none";
  expectRefused(MEMPLAN_ERROR_FILE, "No such file");
}

TEST_F(Weights, AFileOfAnotherSizeIsRefused) {
  write(std::string("\x08\0\0\0\0\0\0\0", 8) + header + data.substr(1));
  expectRefused(MEMPLAN_ERROR_FORMAT, "31 bytes, expected 32");
  write(std::string("\x08\0\0\0\0\0\0\0", 8) + header + data + "x");
  expectRefused(MEMPLAN_ERROR_FORMAT, "33 bytes, expected 32");
  write("");
  expectRefused(MEMPLAN_ERROR_FORMAT, "0 bytes, expected 32");
}

TEST_F(Weights, AnotherHeaderIsRefused) {
  write(std::string("\x07\0\0\0\0\0\0\0", 8) + header + data);
  expectRefused(MEMPLAN_ERROR_FORMAT, "header of 7 bytes, expected 8");
  write(std::string("\x08\0\0\0\0\0\0\x80", 8) + header + data);
  expectRefused(MEMPLAN_ERROR_FORMAT, "header of 9223372036854775816 bytes");
  write(std::string("\x08\0\0\0\0\0\0\0", 8) + "jello   " + data);
  expectRefused(MEMPLAN_ERROR_FORMAT, "another header");
}

TEST_F(Weights, EntriesOutsideFileOrBlockAreRefused) {
  expectRefused(MEMPLAN_ERROR_FORMAT, "'w9'", {{"w9", 29, 4, 0}});
  expectRefused(MEMPLAN_ERROR_FORMAT, "'w9'", {{"w9", UINT64_MAX, 4, 0}});
  expectRefused(MEMPLAN_ERROR_FORMAT, "'w9'", {{"w9", 4, UINT64_MAX, 0}});
  expectRefused(MEMPLAN_ERROR_ARGUMENT, "'w9'", {{"w9", 16, 4, 29}});
  expectRefused(MEMPLAN_ERROR_ARGUMENT, "'w9'", {{"w9", 16, 4, UINT64_MAX}});
}

TEST_F(Weights, OfNoElementsNeedNoBlock) {
  const WeightEntry entry = {"w", 16, 0, 0};
  EXPECT_EQ(loadWeights(path.c_str(), expected, &entry, 1, nullptr, 0),
            MEMPLAN_OK);
}

TEST_F(Weights, NullArgumentsAreRefused) {
  const WeightEntry entry = {"w", 16, 4, 0};
  EXPECT_EQ(loadWeights(nullptr, expected, &entry, 1, block.data(), 32),
            MEMPLAN_ERROR_ARGUMENT);
  EXPECT_EQ(loadWeights(path.c_str(), expected, &entry, 1, nullptr, 32),
            MEMPLAN_ERROR_ARGUMENT);
}

} // namespace
