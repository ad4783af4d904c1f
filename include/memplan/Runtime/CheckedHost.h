//===- CheckedHost.h - ArenaGuard where it does something -------*- C++ -*-===//
//
// Included by Checked.h, which says what for. Keeps a shadow of the arena (what
// it should hold) and, for each byte, whether it was written in its present
// life. Three times the arena's memory, and one comparison of it a launch.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_CHECKEDHOST_H
#define MEMPLAN_RUNTIME_CHECKEDHOST_H

#include "memplan/Runtime/Checked.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace memplan::rt {
// Its own namespace: a program may link checked and unchecked models.
inline namespace checked {

class ArenaGuard {
public:
  ~ArenaGuard() { poison(0, bytes, /*dead=*/false); }

  /// The start of a run: all of the arena is dead.
  memplan_status enter(void *memory, size_t size) {
    poison(0, bytes, /*dead=*/false); // an earlier run that ended in an error
    arena = static_cast<unsigned char *>(memory);
    bytes = size;
    live.clear();
    guarded.clear();
    shadow.assign(bytes, kPoison);
    written.assign(bytes, 0);
    if (bytes)
      std::memset(arena, kPoison, bytes);
    poison(0, bytes, /*dead=*/true);
    return MEMPLAN_OK;
  }

  /// The life of a buffer starts; it holds nothing yet.
  memplan_status begin(const void *ptr, size_t size, const char *name) {
    size_t offset = 0;
    if (!inArena(ptr, size, offset))
      return fail(MEMPLAN_ERROR_CHECK,
                  "buffer '%s' of %zu bytes isn't inside the arena", name,
                  size);
    if (size == 0)
      return MEMPLAN_OK;
    if (const Buffer *other = liveAt(offset, offset + size))
      return fail(MEMPLAN_ERROR_CHECK,
                  "buffer '%s' (bytes %zu to %zu of the arena) begins inside "
                  "live buffer '%s' (bytes %zu to %zu)",
                  name, offset, offset + size, other->name.c_str(),
                  other->offset, other->end);
    live[offset] = {name, offset, offset + size};
    poison(offset, size, /*dead=*/false);
    return MEMPLAN_OK;
  }

  /// The life of a buffer that begin named ends.
  memplan_status end(const void *ptr, size_t size) {
    size_t offset = 0;
    if (size == 0)
      return MEMPLAN_OK;
    auto found = inArena(ptr, size, offset) ? live.find(offset) : live.end();
    if (found == live.end() || found->second.end != offset + size)
      return fail(MEMPLAN_ERROR_CHECK,
                  "a life ends that didn't begin: %zu bytes at byte %zu of the "
                  "arena",
                  size, offset);
    live.erase(found);
    std::memset(arena + offset, kPoison, size);
    std::memset(&shadow[offset], kPoison, size);
    std::memset(&written[offset], 0, size);
    poison(offset, size, /*dead=*/true);
    return MEMPLAN_OK;
  }

  memplan_status beforeLaunch(const char *what,
                              std::initializer_list<Range> writes,
                              std::initializer_list<Range> reads = {}) {
    for (const Range &range : reads)
      MEMPLAN_TRY(forEachRow(range, [&](size_t first, size_t last) {
        MEMPLAN_TRY(checkLive(what, "reads", first, last));
        const void *hole = std::memchr(&written[first], 0, last - first);
        if (!hole)
          return MEMPLAN_OK;
        size_t at = static_cast<size_t>(
            static_cast<const unsigned char *>(hole) - written.data());
        return fail(MEMPLAN_ERROR_CHECK,
                    "'%s' reads byte %zu of the arena, in buffer '%s', which "
                    "was never written",
                    what, at, nameAt(at).c_str());
      }));
    for (const Range &range : writes)
      MEMPLAN_TRY(forEachRow(range, [&](size_t first, size_t last) {
        return checkLive(what, "writes", first, last);
      }));
    return MEMPLAN_OK;
  }

  /// `writes`: all that the launch may have written.
  memplan_status afterLaunch(const char *what,
                             std::initializer_list<Range> writes) {
    // Dead bytes are looked at too, so they must be readable for a moment.
    poison(0, bytes, /*dead=*/false);
    for (const Range &range : writes)
      MEMPLAN_TRY(forEachRow(range, [&](size_t first, size_t last) {
        std::memcpy(&shadow[first], arena + first, last - first);
        std::memset(&written[first], 1, last - first);
        return MEMPLAN_OK;
      }));
    if (bytes && std::memcmp(shadow.data(), arena, bytes) != 0) {
      size_t at = 0;
      while (shadow[at] == arena[at])
        ++at;
      if (const Buffer *buffer = liveAt(at, at + 1))
        return fail(MEMPLAN_ERROR_CHECK,
                    "'%s' changed byte %zu of the arena, in live buffer '%s' "
                    "(byte %zu of it), which isn't its output",
                    what, at, buffer->name.c_str(), at - buffer->offset);
      return fail(MEMPLAN_ERROR_CHECK,
                  "'%s' changed byte %zu of the arena, where no buffer lives",
                  what, at);
    }
    poisonDead();
    return MEMPLAN_OK;
  }

  /// Memory outside the arena that must not change until `leave`.
  memplan_status protect(const void *ptr, size_t size, const char *name) {
    guarded.push_back({ptr, size, name, hashOf(ptr, size)});
    return MEMPLAN_OK;
  }

  /// The end of a run. What still lives (outputs) keeps its bytes.
  memplan_status leave() {
    poison(0, bytes, /*dead=*/false);
    std::vector<Guarded> regions;
    regions.swap(guarded); // they are the caller's again, to free or change
    for (const Guarded &region : regions)
      if (hashOf(region.ptr, region.bytes) != region.hash)
        return fail(MEMPLAN_ERROR_CHECK,
                    "'%s' was changed by the run, which only reads it",
                    region.name.c_str());
    return MEMPLAN_OK;
  }

private:
  static constexpr unsigned char kPoison = 0xff;

  struct Buffer {
    std::string name;
    size_t offset, end; // bytes of the arena, half-open
  };
  struct Guarded {
    const void *ptr;
    size_t bytes;
    std::string name;
    uint64_t hash;
  };

  /// Eight bytes a step: weights are large, and this is no defence.
  static uint64_t hashOf(const void *ptr, size_t size) {
    const auto *byte = static_cast<const unsigned char *>(ptr);
    uint64_t hash = size;
    for (; size >= 8; size -= 8, byte += 8) {
      uint64_t word;
      std::memcpy(&word, byte, 8);
      hash = (hash ^ word) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 29;
    }
    for (; size > 0; --size, ++byte)
      hash = (hash ^ *byte) * 0x9e3779b97f4a7c15;
    return hash;
  }

  bool inArena(const void *ptr, size_t size, size_t &offset) const {
    auto base = reinterpret_cast<uintptr_t>(arena);
    auto address = reinterpret_cast<uintptr_t>(ptr);
    offset = address - base; // meaningless if address < base
    return address >= base && offset <= bytes && size <= bytes - offset;
  }

  /// A live buffer that overlaps [first, last), or null.
  const Buffer *liveAt(size_t first, size_t last) const {
    auto next = live.lower_bound(last);
    if (next == live.begin())
      return nullptr;
    const Buffer &buffer = std::prev(next)->second;
    return buffer.end > first ? &buffer : nullptr;
  }

  std::string nameAt(size_t at) const {
    const Buffer *buffer = liveAt(at, at + 1);
    return buffer ? buffer->name : "(dead)";
  }

  /// Calls check(first, last) for the range's rows; memory outside the arena is
  /// the caller's and not looked at.
  template <class Check>
  memplan_status forEachRow(const Range &range, Check check) const {
    size_t offset = 0;
    if (range.bytes == 0 || range.count == 0 || !inArena(range.ptr, 1, offset))
      return MEMPLAN_OK;
    size_t extent = (range.count - 1) * range.stride + range.bytes;
    if (!inArena(range.ptr, extent, offset))
      return fail(MEMPLAN_ERROR_CHECK,
                  "a launch's operand leaves the arena: %zu bytes from byte "
                  "%zu of %zu",
                  extent, offset, bytes);
    if (range.stride == range.bytes)
      return check(offset, offset + extent);
    for (size_t row = 0; row < range.count; ++row)
      MEMPLAN_TRY(check(offset + row * range.stride,
                        offset + row * range.stride + range.bytes));
    return MEMPLAN_OK;
  }

  /// Parts of a buffer live each for its own time; they have its name and lie
  /// side by side.
  bool isInOneBuffer(size_t first, size_t last) const {
    const Buffer *before = nullptr;
    while (first < last) {
      const Buffer *buffer = liveAt(first, first + 1);
      if (!buffer || (before && before->name != buffer->name))
        return false;
      before = buffer;
      first = buffer->end;
    }
    return true;
  }

  memplan_status checkLive(const char *what, const char *verb, size_t first,
                           size_t last) const {
    const Buffer *buffer = liveAt(first, last);
    if (buffer && isInOneBuffer(first, last))
      return MEMPLAN_OK;
    if (!buffer)
      return fail(MEMPLAN_ERROR_CHECK,
                  "'%s' %s bytes %zu to %zu of the arena, where no buffer "
                  "lives",
                  what, verb, first, last);
    return fail(MEMPLAN_ERROR_CHECK,
                "'%s' %s bytes %zu to %zu of the arena, beyond live buffer "
                "'%s' (bytes %zu to %zu)",
                what, verb, first, last, buffer->name.c_str(), buffer->offset,
                buffer->end);
  }

  void poison([[maybe_unused]] size_t offset, [[maybe_unused]] size_t size,
              [[maybe_unused]] bool dead) {
#ifdef MEMPLAN_ASAN
    if (!arena || size == 0)
      return;
    if (dead)
      __asan_poison_memory_region(arena + offset, size);
    else
      __asan_unpoison_memory_region(arena + offset, size);
#endif
  }

  void poisonDead() {
    size_t from = 0;
    for (const auto &entry : live) {
      poison(from, entry.second.offset - from, /*dead=*/true);
      from = entry.second.end;
    }
    poison(from, bytes - from, /*dead=*/true);
  }

  unsigned char *arena = nullptr;
  size_t bytes = 0;
  std::map<size_t, Buffer> live; // by offset; they don't overlap
  std::vector<Guarded> guarded;
  std::vector<unsigned char> shadow, written;
};

} // namespace checked
} // namespace memplan::rt

#endif // MEMPLAN_RUNTIME_CHECKEDHOST_H
