//===- OutputFiles.cpp - All of a run's files or none -----------------===//

#include "OutputFiles.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

using namespace llvm;

namespace memplan {

static Error fileError(StringRef path, std::error_code code) {
  return createStringError(code, "cannot write '%s': %s", path.str().c_str(),
                           code.message().c_str());
}

OutputFiles::~OutputFiles() {
  for (Pending &output : pending)
    consumeError(output.file.discard());
}

Error OutputFiles::add(StringRef path,
                       function_ref<Error(raw_ostream &)> write) {
  if (path == "-") {
    raw_string_ostream os(standardOutput);
    return write(os);
  }
  StringRef folder = sys::path::parent_path(path);
  if (!folder.empty())
    if (std::error_code code = sys::fs::create_directories(folder))
      return fileError(folder, code);
  // What a link leads to is written, not the link.
  SmallString<128> target(path);
  sys::fs::file_status status;
  if (!sys::fs::status(path, status)) {
    if (status.type() == sys::fs::file_type::directory_file)
      return fileError(path, std::make_error_code(std::errc::is_a_directory));
    // A device or a pipe can't be replaced by a file.
    if (status.type() != sys::fs::file_type::regular_file) {
      special.push_back({std::string(), path.str()});
      raw_string_ostream os(special.back().content);
      return write(os);
    }
    if (std::error_code code = sys::fs::real_path(path, target))
      return fileError(path, code);
  } else if (!sys::fs::real_path(folder.empty() ? "." : folder, target)) {
    // A new file, or a link to one: by its folder's own name.
    sys::path::append(target, sys::path::filename(path));
  } else {
    target = path;
  }
  for (const Pending &other : pending)
    if (other.path == target)
      return createStringError("two outputs go to '%s'", path.str().c_str());
  auto file = sys::fs::TempFile::create(target + ".%%%%%%%%.tmp",
                                        sys::fs::all_read | sys::fs::all_write);
  if (!file)
    return fileError(path, errorToErrorCode(file.takeError()));
  int descriptor = file->FD;
  pending.push_back({std::move(*file), target.str().str()});
  raw_fd_ostream os(descriptor, /*shouldClose=*/false);
  Error failed = write(os);
  os.flush();
  if (os.has_error()) {
    std::error_code code = os.error();
    os.clear_error();
    return joinErrors(std::move(failed), fileError(path, code));
  }
  return failed;
}

Error OutputFiles::writeSpecial(const Special &output) {
  std::error_code code;
  raw_fd_ostream os(output.path, code, sys::fs::CD_OpenExisting);
  if (code)
    return fileError(output.path, code);
  os << output.content;
  os.close();
  code = os.error();
  os.clear_error();
  return code ? fileError(output.path, code) : Error::success();
}

Error OutputFiles::commit() {
  if (!standardOutput.empty()) {
    outs() << standardOutput;
    outs().flush();
    if (outs().has_error()) {
      std::error_code code = outs().error();
      outs().clear_error();
      return fileError("standard output", code);
    }
    standardOutput.clear();
  }
  for (const Special &output : special)
    if (Error failed = writeSpecial(output))
      return failed;
  special.clear();
  // Files that belong together: when one can't be moved, or a signal comes,
  // those that were are taken back, so that no new file stands beside an old
  // one.
  for (size_t i = 0; i < pending.size(); ++i) {
    Error failed = pending[i].file.keep(pending[i].path);
    if (!failed) {
      sys::RemoveFileOnSignal(pending[i].path);
      continue;
    }
    for (size_t moved = 0; moved < i; ++moved) {
      (void)sys::fs::remove(pending[moved].path);
      sys::DontRemoveFileOnSignal(pending[moved].path);
    }
    consumeError(pending[i].file.discard());
    std::error_code code = errorToErrorCode(std::move(failed));
    Error error = fileError(pending[i].path, code);
    pending.erase(pending.begin(), pending.begin() + i + 1);
    return error;
  }
  for (const Pending &output : pending)
    sys::DontRemoveFileOnSignal(output.path);
  pending.clear();
  return Error::success();
}

} // namespace memplan
