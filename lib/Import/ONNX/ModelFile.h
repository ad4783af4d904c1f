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
  /// `externalDataRoot` is one more folder for external data, or empty.
  static mlir::FailureOr<ModelFile> open(Reporter &reporter,
                                         llvm::StringRef externalDataRoot = {});

  llvm::StringRef bytes() const { return main->getBuffer(); }
  /// Where a piece of `bytes()` is.
  FileBytes locate(llvm::StringRef piece) const;

  /// Where a tensor says that its data is
  /// (https://github.com/onnx/onnx/blob/main/docs/ExternalData.md).
  struct ExternalData {
    llvm::StringRef location;
    int64_t offset = 0;
    /// All that follow, if nullopt.
    std::optional<int64_t> length;
    /// SHA-1 of the whole file in hex, or empty.
    llvm::StringRef checksum;
  };
  /// The bytes of external data. The file must be a regular one below the
  /// model's folder, reached without `..` and without a symbolic or hard link:
  /// a model from elsewhere must not make the compiler read, and copy into its
  /// output, files of its user. Links into the external data root are allowed.
  /// `owner` names the tensor in messages.
  mlir::FailureOr<FileBytes> external(const ExternalData &data,
                                      const std::string &owner,
                                      Reporter &reporter);

private:
  struct External {
    std::string path;
    std::unique_ptr<llvm::MemoryBuffer> buffer;
    /// Of the file, in lower-case hex; empty until a tensor states one.
    std::string checksum;
  };
  mlir::FailureOr<External *> openExternal(llvm::StringRef location,
                                           const std::string &owner,
                                           Reporter &reporter);

  std::string path, externalDataRoot;
  std::unique_ptr<llvm::MemoryBuffer> main;
  llvm::MapVector<llvm::StringRef, std::unique_ptr<External>> externals;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_MODELFILE_H
