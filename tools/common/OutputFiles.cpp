//===- OutputFiles.cpp - All of a run's files or none -----------------===//

#include "OutputFiles.h"

#include "llvm/Support/Path.h"

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
  if (sys::fs::is_directory(path))
    return fileError(path, std::make_error_code(std::errc::is_a_directory));
  auto file = sys::fs::TempFile::create(path + ".%%%%%%%%.tmp",
                                        sys::fs::all_read | sys::fs::all_write);
  if (!file)
    return fileError(path, errorToErrorCode(file.takeError()));
  int descriptor = file->FD;
  pending.push_back({std::move(*file), path.str()});
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
  Error result = Error::success();
  for (Pending &output : pending)
    result = joinErrors(std::move(result), output.file.keep(output.path));
  pending.clear();
  return result;
}

} // namespace memplan
