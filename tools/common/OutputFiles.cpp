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
  return moveAll();
}

Error OutputFiles::moveAll() {
  std::vector<Moved> moved;
  auto undo = [&](StringRef path, std::error_code code) {
    for (const Moved &file : llvm::reverse(moved)) {
      (void)sys::fs::rename(file.to, file.from);
      sys::DontRemoveFileOnSignal(file.to);
    }
    return fileError(path, code);
  };
  auto move = [&](StringRef from, StringRef to) {
    std::error_code code = sys::fs::rename(from, to);
    if (code)
      return code;
    moved.push_back({from.str(), to.str()});
    sys::RemoveFileOnSignal(to);
    return code;
  };
  std::vector<std::string> old;
  for (const Pending &output : pending) {
    if (!sys::fs::exists(output.path))
      continue;
    old.push_back(output.file.TmpName + ".old");
    if (std::error_code code = move(output.path, old.back()))
      return undo(output.path, code);
  }
  // Not by TempFile::keep(path), which copies where it can't rename, and then
  // leaves the temporary file.
  for (const Pending &output : pending)
    if (std::error_code code = move(output.file.TmpName, output.path))
      return undo(output.path, code);
  for (Pending &output : pending) {
    consumeError(output.file.keep());
    sys::DontRemoveFileOnSignal(output.path);
  }
  for (const std::string &path : old) {
    (void)sys::fs::remove(path);
    sys::DontRemoveFileOnSignal(path);
  }
  pending.clear();
  return Error::success();
}

} // namespace memplan
