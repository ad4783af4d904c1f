//===- ModelFile.cpp - The files of a model, mapped -----------------------===//

#include "ModelFile.h"

#include "memplan/Support/CheckedMath.h"
#include "memplan/Support/MappedPages.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA1.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace memplan;
using namespace memplan::onnx;
using llvm::failure;
using llvm::StringRef;
using mlir::FailureOr;

FailureOr<ModelFile> ModelFile::open(Reporter &reporter,
                                     StringRef externalDataRoot) {
  ModelFile file;
  file.externalDataRoot = externalDataRoot.str();
  file.path = reporter.file().str();
  llvm::sys::fs::file_status status;
  std::error_code error = llvm::sys::fs::status(file.path, status);
  if (!error && llvm::sys::fs::is_directory(status))
    error = std::make_error_code(std::errc::is_a_directory);
  if (!error) {
    auto buffer = llvm::MemoryBuffer::getFile(file.path, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    error = buffer.getError();
    if (!error)
      file.main = std::move(*buffer);
  }
  if (error)
    return reporter.error(ImportErrorKind::IO)
           << "cannot read the file: " << error.message();
  return file;
}

FileBytes ModelFile::locate(StringRef piece) const {
  return {path, piece.data() - main->getBufferStart(), piece};
}

namespace {
/// A file descriptor that closes itself.
struct Descriptor {
  int fd;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  void reset(int other) {
    if (fd >= 0)
      ::close(fd);
    fd = other;
  }
};
} // namespace

/// Opens the file `parts` below `folder`, without following a link. On failure
/// `fd` is negative and errno says why.
static void openBelow(Descriptor &at, const std::string &folder,
                      llvm::ArrayRef<StringRef> parts) {
  at.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (auto [index, part] : llvm::enumerate(parts)) {
    if (at.fd < 0)
      return;
    bool isLast = index + 1 == parts.size();
    // O_NONBLOCK: a named pipe must not stop us before fstat refuses it.
    int flags =
        O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (isLast ? O_NONBLOCK : O_DIRECTORY);
    at.reset(::openat(at.fd, part.str().c_str(), flags));
  }
}

static llvm::SmallVector<StringRef> splitPath(StringRef path) {
  llvm::SmallVector<StringRef> parts;
  path.split(parts, '/', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return parts;
}

/// The same for what a link at `path` leads to, if that is below `root`. Links
/// are resolved first and not followed when opening: one that changes meanwhile
/// leads nowhere.
static bool openInRoot(Descriptor &at, StringRef path, StringRef root) {
  llvm::SmallString<128> target, realRoot;
  if (root.empty() || llvm::sys::fs::real_path(path, target) ||
      llvm::sys::fs::real_path(root, realRoot))
    return false;
  llvm::SmallVector<StringRef> parts = splitPath(target);
  llvm::SmallVector<StringRef> rootParts = splitPath(realRoot);
  if (parts.size() <= rootParts.size() ||
      llvm::ArrayRef(parts).take_front(rootParts.size()) !=
          llvm::ArrayRef(rootParts))
    return false;
  openBelow(at, realRoot.str().str(),
            llvm::ArrayRef(parts).drop_front(rootParts.size()));
  return at.fd >= 0;
}

FailureOr<ModelFile::External *>
ModelFile::openExternal(StringRef location, const std::string &owner,
                        Reporter &reporter) {
  auto found = externals.find(location);
  if (found != externals.end())
    return found->second.get();
  auto refuse = [&](const llvm::Twine &why) {
    return reporter.invalid()
           << owner << " has its data in the external file " << quoted(location)
           << ", " << why
           << "; a regular file below the model's folder is accepted, and one "
              "in a folder given by --external-data-root";
  };

  if (location.empty() || location.contains('\0') ||
      llvm::sys::path::is_absolute(location))
    return refuse("which may be outside the model's folder, for it is not a "
                  "relative path");
  llvm::SmallVector<StringRef> parts = splitPath(location);
  if (parts.empty() || llvm::is_contained(parts, ".."))
    return refuse("which is outside the model's folder");

  StringRef folder = llvm::sys::path::parent_path(path);
  llvm::SmallString<128> full(folder);
  llvm::sys::path::append(full, location);
  struct stat info = {};
  Descriptor at(-1);
  bool isTrusted = false;
  openBelow(at, folder.empty() ? "." : folder.str(), parts);
  int code = errno;
  bool isLinked = at.fd < 0 ? code == ELOOP || code == ENOTDIR
                            : ::fstat(at.fd, &info) == 0 && info.st_nlink > 1 &&
                                  S_ISREG(info.st_mode);
  if (isLinked)
    isTrusted = openInRoot(at, full, externalDataRoot);
  if (isLinked && !isTrusted)
    return refuse(at.fd < 0
                      ? "which may be outside the model's folder, for a part "
                        "of it is a symbolic link or no folder"
                      : "which may be outside the model's folder, for the file "
                        "has another name as well (a hard link)");
  if (at.fd < 0)
    return reporter.error(ImportErrorKind::IO)
           << owner << " has its data in the external file " << quoted(location)
           << ", which cannot be opened: " << std::strerror(code);
  if (::fstat(at.fd, &info) != 0 || !S_ISREG(info.st_mode))
    return refuse("which is not a regular file");

  auto external = std::make_unique<External>();
  external->path = full.str().str();
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      llvm::sys::fs::convertFDToNativeFile(at.fd), external->path, info.st_size,
      /*RequiresNullTerminator=*/false);
  if (!buffer)
    return refuse("which cannot be read: " + buffer.getError().message());
  external->buffer = std::move(*buffer);
  External *result = external.get();
  externals[location] = std::move(external);
  return result;
}

/// SHA-1 in hex.
static std::string hashContent(const llvm::MemoryBuffer &buffer) {
  llvm::SHA1 hash;
  forEachPiece(buffer, buffer.getBuffer(),
               [&](StringRef piece) { hash.update(piece); });
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

FailureOr<FileBytes> ModelFile::external(const ExternalData &data,
                                         const std::string &owner,
                                         Reporter &reporter) {
  FailureOr<External *> file = openExternal(data.location, owner, reporter);
  if (failed(file))
    return failure();
  StringRef content = (*file)->buffer->getBuffer();
  int64_t size = content.size();
  int64_t bytes = data.length.value_or(size - data.offset);
  auto end = checkedAdd(data.offset, bytes);
  if (data.offset < 0 || bytes < 0 || !end || *end > size)
    return reporter.invalid()
           << owner << " has its data at offset " << data.offset
           << (data.length ? ", length " + std::to_string(*data.length)
                           : std::string())
           << ", of the external file " << quoted(data.location)
           << ", which has " << size << " bytes";
  if (!data.checksum.empty()) {
    if ((*file)->checksum.empty())
      (*file)->checksum = hashContent(*(*file)->buffer);
    if (!data.checksum.equals_insensitive((*file)->checksum))
      return reporter.invalid()
             << owner << " says that the external file "
             << quoted(data.location) << " has the SHA-1 "
             << quoted(data.checksum) << ", but it has " << (*file)->checksum;
  }
  return FileBytes{(*file)->path, data.offset,
                   content.substr(data.offset, bytes)};
}
