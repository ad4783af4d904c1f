//===- Weights.h - from a file into the block -------------------*- C++ -*-===//
//
// Emitted code knows where each weight lies in its file, so there is nothing to
// parse; what matters is to refuse a file that isn't the one meant. A
// safetensors file begins with the length of its header (8 bytes, little
// endian), then the header (JSON), then the data
// (https://github.com/huggingface/safetensors, "Format").
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_WEIGHTS_H
#define MEMPLAN_RUNTIME_WEIGHTS_H

#include "memplan/Runtime/Memory.h"

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <string>

namespace memplan::rt {

/// One weight: `bytes` bytes from the file's byte `file_offset` (counted from
/// its first byte) go to the block's byte `block_offset`.
struct WeightEntry {
  const char *name;
  uint64_t file_offset, bytes, block_offset;
};

/// What the file must look like.
struct WeightsFile {
  uint64_t file_bytes;   ///< Its exact size.
  uint64_t header_bytes; ///< Length of the JSON; 0 if it isn't safetensors.
  uint64_t header_hash;  ///< fnv1a64 of the JSON.
};

/// The 64-bit FNV-1a hash (http://www.isthe.com/chongo/tech/comp/fnv). Pass an
/// earlier result to go on where it ended.
inline uint64_t fnv1a64(const void *data, size_t bytes,
                        uint64_t hash = 0xcbf29ce484222325) {
  const auto *byte = static_cast<const unsigned char *>(data);
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ byte[i]) * 0x100000001b3;
  return hash;
}

/// A file being read piece by piece.
class WeightsReader {
public:
  explicit WeightsReader(const char *path) : path(path) {}
  ~WeightsReader() {
    if (file)
      std::fclose(file);
  }
  WeightsReader(const WeightsReader &) = delete;
  WeightsReader &operator=(const WeightsReader &) = delete;

  memplan_status open() {
    file = std::fopen(path, "rb");
    if (!file)
      return fail(MEMPLAN_ERROR_FILE, "can't open weights file '%s': %s", path,
                  std::strerror(errno));
    staging.reset(new (std::nothrow) char[kStagingBytes]);
    if (!staging)
      return fail(MEMPLAN_ERROR_MEMORY, "no memory to read '%s' through", path);
    return MEMPLAN_OK;
  }

  /// Refuses a file of another size or with another header.
  memplan_status check(const WeightsFile &expected) {
    if (std::fseek(file, 0, SEEK_END) != 0)
      return fail(MEMPLAN_ERROR_FILE, "can't read weights file '%s': %s", path,
                  std::strerror(errno));
    uint64_t size = static_cast<uint64_t>(std::ftell(file));
    if (size != expected.file_bytes)
      return fail(MEMPLAN_ERROR_FORMAT,
                  "weights file '%s' has %" PRIu64 " bytes, expected %" PRIu64
                  ": cut short, or not this model's",
                  path, size, expected.file_bytes);
    if (expected.header_bytes == 0)
      return MEMPLAN_OK;
    unsigned char prefix[8] = {};
    MEMPLAN_TRY(read(0, 8, [&](const char *data, size_t bytes, uint64_t) {
      std::memcpy(prefix, data, bytes);
      return MEMPLAN_OK;
    }));
    uint64_t headerBytes = 0;
    for (int i = 0; i < 8; ++i)
      headerBytes |= uint64_t(prefix[i]) << (8 * i);
    if (headerBytes != expected.header_bytes || size < 8 ||
        headerBytes > size - 8)
      return fail(MEMPLAN_ERROR_FORMAT,
                  "weights file '%s' has a header of %" PRIu64
                  " bytes, expected %" PRIu64 ": not this model's file",
                  path, headerBytes, expected.header_bytes);
    uint64_t hash = fnv1a64(nullptr, 0);
    MEMPLAN_TRY(
        read(8, headerBytes, [&](const char *data, size_t bytes, uint64_t) {
          hash = fnv1a64(data, bytes, hash);
          return MEMPLAN_OK;
        }));
    if (hash != expected.header_hash)
      return fail(MEMPLAN_ERROR_FORMAT,
                  "weights file '%s' has another header than expected (hash "
                  "%016" PRIx64 ", not %016" PRIx64 "): not this model's file",
                  path, hash, expected.header_hash);
    return MEMPLAN_OK;
  }

  /// Calls sink(data, bytes, offset from `first`) for each piece of a range.
  template <class Sink>
  memplan_status read(uint64_t first, uint64_t bytes, Sink sink) {
    // Ranges are mostly adjacent; a seek would throw away what stdio has read.
    if (first != position &&
        std::fseek(file, static_cast<long>(first), SEEK_SET) != 0)
      return fail(MEMPLAN_ERROR_FILE, "can't seek in weights file '%s': %s",
                  path, std::strerror(errno));
    position = first;
    for (uint64_t done = 0; done < bytes;) {
      size_t piece = bytes - done < kStagingBytes
                         ? static_cast<size_t>(bytes - done)
                         : kStagingBytes;
      if (std::fread(staging.get(), 1, piece, file) != piece) {
        position = ~uint64_t(0);
        return fail(MEMPLAN_ERROR_FILE,
                    "weights file '%s' ends or fails at byte %" PRIu64, path,
                    first + done);
      }
      position += piece;
      MEMPLAN_TRY(sink(staging.get(), piece, done));
      done += piece;
    }
    return MEMPLAN_OK;
  }

private:
  static constexpr size_t kStagingBytes = size_t(1) << 20;
  const char *path;
  std::FILE *file = nullptr;
  std::unique_ptr<char[]> staging;
  uint64_t position = ~uint64_t(0); // unknown
};

/// Reads `count` weights from `path` into the block of `block_bytes` bytes.
/// Every entry is checked against file and block before anything is written.
inline memplan_status loadWeights(const char *path, const WeightsFile &expected,
                                  const WeightEntry *entries, size_t count,
                                  void *weights_block, size_t block_bytes) {
  if (!path)
    return fail(MEMPLAN_ERROR_ARGUMENT, "no path of a weights file given");
  for (size_t i = 0; i < count; ++i) {
    const WeightEntry &entry = entries[i];
    if (entry.bytes > expected.file_bytes ||
        entry.file_offset > expected.file_bytes - entry.bytes)
      return fail(MEMPLAN_ERROR_FORMAT,
                  "weight '%s' would lie at bytes %" PRIu64 "+%" PRIu64
                  " of a file of %" PRIu64 " bytes",
                  entry.name, entry.file_offset, entry.bytes,
                  expected.file_bytes);
    if (entry.bytes > block_bytes ||
        entry.block_offset > block_bytes - entry.bytes)
      return fail(MEMPLAN_ERROR_ARGUMENT,
                  "weight '%s' would lie at bytes %" PRIu64 "+%" PRIu64
                  " of a block of %zu bytes",
                  entry.name, entry.block_offset, entry.bytes, block_bytes);
  }
  // Weights of no elements need no block.
  bool empty = true;
  for (size_t i = 0; i < count; ++i)
    empty &= entries[i].bytes == 0;
  if (!empty && !weights_block)
    return fail(MEMPLAN_ERROR_ARGUMENT, "no block to load weights into");

  WeightsReader reader(path);
  MEMPLAN_TRY(reader.open());
  MEMPLAN_TRY(reader.check(expected));
  for (size_t i = 0; i < count; ++i) {
    const WeightEntry &entry = entries[i];
    if (entry.bytes == 0)
      continue;
    char *target = static_cast<char *>(weights_block) + entry.block_offset;
    MEMPLAN_TRY(reader.read(
        entry.file_offset, entry.bytes,
        [&](const char *data, size_t bytes, uint64_t offset) {
          return copyToDevice(entry.name, target + offset, data, bytes);
        }));
  }
  return MEMPLAN_OK;
}

/// A file below the folder that load is given, and what to read from it.
struct WeightsSource {
  const char *file;
  WeightsFile expected;
  const WeightEntry *entries;
  size_t count;
};

/// Reads weights from several files below `folder` ("" is the current one).
inline memplan_status loadWeightsFrom(const char *folder,
                                      const WeightsSource *sources,
                                      size_t count, void *weights_block,
                                      size_t block_bytes) {
  for (size_t i = 0; i < count; ++i) {
    std::string path = *folder ? std::string(folder) + "/" : std::string();
    path += sources[i].file;
    MEMPLAN_TRY(loadWeights(path.c_str(), sources[i].expected,
                            sources[i].entries, sources[i].count, weights_block,
                            block_bytes));
  }
  return MEMPLAN_OK;
}

} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_WEIGHTS_H
