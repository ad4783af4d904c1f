//===- ModelFile.h - The files of a model, mapped ---------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_MODELFILE_H
#define MEMPLAN_LIB_IMPORT_ONNX_MODELFILE_H

#include "Reporter.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace memplan::onnx {

/// A run of bytes in one of the model's files. `file` is the path as opened.
struct FileBytes {
  llvm::StringRef file;
  int64_t offset = 0;
  llvm::StringRef bytes;
};

/// Maps the model's file and the files of its external data; pages are read
/// only when something looks at them.
class ModelFile {
public:
  static mlir::FailureOr<ModelFile> open(Reporter &reporter);

  llvm::StringRef bytes() const { return main->getBuffer(); }
  /// Where a piece of `bytes()` is.
  FileBytes locate(llvm::StringRef piece) const;

  /// `length` bytes (all that follow, if nullopt) at `offset` of the external
  /// file `location`. The file must be a regular one below the model's folder,
  /// reached without `..` or a symbolic link: a model from elsewhere must not
  /// make the compiler read, and copy into its output, files of its user.
  /// `owner` names the tensor in messages.
  mlir::FailureOr<FileBytes> external(llvm::StringRef location, int64_t offset,
                                      std::optional<int64_t> length,
                                      const std::string &owner,
                                      Reporter &reporter);

private:
  struct External {
    std::string path;
    std::unique_ptr<llvm::MemoryBuffer> buffer;
  };
  mlir::FailureOr<External *> openExternal(llvm::StringRef location,
                                           const std::string &owner,
                                           Reporter &reporter);

  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> main;
  llvm::MapVector<llvm::StringRef, std::unique_ptr<External>> externals;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_MODELFILE_H
