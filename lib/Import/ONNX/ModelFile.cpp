//===- ModelFile.cpp - The files of a model, mapped -----------------------===//

#include "ModelFile.h"

#include "memplan/Support/CheckedMath.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

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

FailureOr<ModelFile> ModelFile::open(Reporter &reporter) {
  ModelFile file;
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
           << "cannot read the model: " << error.message();
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
           << "; a regular file below the model's folder is accepted";
  };

  if (location.empty() || location.contains('\0') ||
      llvm::sys::path::is_absolute(location))
    return refuse("which may be outside the model's folder, for it is not a "
                  "relative path");
  llvm::SmallVector<StringRef> parts;
  location.split(parts, '/', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (part == "..")
      return refuse("which is outside the model's folder");

  StringRef folder = llvm::sys::path::parent_path(path);
  std::string folderText = folder.empty() ? "." : folder.str();
  Descriptor at(::open(folderText.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (auto [index, part] : llvm::enumerate(parts)) {
    if (at.fd < 0)
      break;
    bool isLast = index + 1 == parts.size();
    // O_NONBLOCK: a named pipe must not stop us before fstat refuses it.
    int flags =
        O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (isLast ? O_NONBLOCK : O_DIRECTORY);
    at.reset(::openat(at.fd, part.str().c_str(), flags));
  }
  if (at.fd < 0) {
    int code = errno;
    if (code == ELOOP || code == ENOTDIR)
      return refuse("which may be outside the model's folder, for a part of it "
                    "is a symbolic link or no folder");
    return reporter.error(ImportErrorKind::IO)
           << owner << " has its data in the external file " << quoted(location)
           << ", which cannot be opened: " << std::strerror(code);
  }
  struct stat info;
  if (::fstat(at.fd, &info) != 0 || !S_ISREG(info.st_mode))
    return refuse("which is not a regular file");

  auto external = std::make_unique<External>();
  llvm::SmallString<128> full(folder);
  llvm::sys::path::append(full, location);
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

FailureOr<FileBytes> ModelFile::external(StringRef location, int64_t offset,
                                         std::optional<int64_t> length,
                                         const std::string &owner,
                                         Reporter &reporter) {
  FailureOr<External *> file = openExternal(location, owner, reporter);
  if (failed(file))
    return failure();
  int64_t size = (*file)->buffer->getBufferSize();
  int64_t bytes = length.value_or(size - offset);
  auto end = checkedAdd(offset, bytes);
  if (offset < 0 || bytes < 0 || !end || *end > size)
    return reporter.invalid()
           << owner << " has its data at offset " << offset
           << (length ? ", length " + std::to_string(*length) : std::string())
           << ", of the external file " << quoted(location) << ", which has "
           << size << " bytes";
  return FileBytes{(*file)->path, offset,
                   (*file)->buffer->getBuffer().substr(offset, bytes)};
}
