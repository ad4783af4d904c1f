//===- OutputFiles.h - All of a run's files or none ---------*- C++ -*-===//

#ifndef MEMPLAN_TOOLS_COMMON_OUTPUTFILES_H
#define MEMPLAN_TOOLS_COMMON_OUTPUTFILES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace memplan {

/// Files that appear together: each is written under a temporary name beside
/// its place, and `commit` renames them all. Without a commit (an error, an
/// interrupt) nothing is left.
class OutputFiles {
public:
  ~OutputFiles();

  /// Writes one file through `write`; `-` is standard output, written on
  /// commit. Missing parent folders are made. A link stays a link: what it
  /// leads to is written.
  llvm::Error add(llvm::StringRef path,
                  llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write);

  /// Moves every file to its place.
  llvm::Error commit();

private:
  struct Pending {
    llvm::sys::fs::TempFile file;
    std::string path;
  };
  /// A device or a pipe, written in place on commit.
  struct Special {
    std::string content;
    std::string path;
  };
  struct Moved {
    std::string from, to;
  };
  static llvm::Error writeSpecial(const Special &output);
  /// All files to their places, or none: when one can't be moved, those that
  /// were are taken back and what was there before returns, so that no new
  /// file stands beside an old one. A signal meanwhile removes them all.
  llvm::Error moveAll();

  std::vector<Pending> pending;
  std::vector<Special> special;
  std::string standardOutput;
};

} // namespace memplan

#endif // MEMPLAN_TOOLS_COMMON_OUTPUTFILES_H
