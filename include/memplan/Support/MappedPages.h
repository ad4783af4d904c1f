//===- MappedPages.h - Reading mapped files without keeping them *- C++ -*-===//

#ifndef MEMPLAN_SUPPORT_MAPPEDPAGES_H
#define MEMPLAN_SUPPORT_MAPPEDPAGES_H

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <sys/mman.h>
#include <unistd.h>

namespace memplan {

/// Gives the pages of a mapped file back; what is looked at again is read
/// again. LLVM's `dontNeedIfMmap` only advises, which glibc ignores.
inline void releasePages(const llvm::MemoryBuffer &buffer) {
  if (buffer.getBufferKind() != llvm::MemoryBuffer::MemoryBuffer_MMap)
    return;
  auto start = reinterpret_cast<uintptr_t>(buffer.getBufferStart());
  uintptr_t page = llvm::alignDown(start, ::sysconf(_SC_PAGESIZE));
  ::madvise(reinterpret_cast<void *>(page),
            buffer.getBufferSize() + (start - page), MADV_DONTNEED);
}

/// Calls `use` with `bytes`, a part of `buffer`, piece by piece, and gives
/// pages back meanwhile: a file of many gigabytes takes little memory.
template <typename Use>
void forEachPiece(const llvm::MemoryBuffer &buffer, llvm::StringRef bytes,
                  Use use) {
  constexpr size_t kPiece = 1 << 25;
  while (!bytes.empty()) {
    use(bytes.take_front(kPiece));
    bool isLarge = bytes.size() >= kPiece;
    bytes = bytes.drop_front(std::min(bytes.size(), kPiece));
    if (isLarge)
      releasePages(buffer);
  }
}

} // namespace memplan

#endif // MEMPLAN_SUPPORT_MAPPEDPAGES_H
