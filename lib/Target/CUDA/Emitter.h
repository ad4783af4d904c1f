//===- Emitter.h - What the op emitters share -------------------*- C++ -*-===//
//
// An op emitter turns one op of @main into launches. It resolves operands
// (BufferTable), defines kernels and functors (`define`: equal text is defined
// once), and appends launches. Private to lib/Target/CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_EMITTER_H
#define MEMPLAN_LIB_TARGET_CUDA_EMITTER_H

#include "BufferRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <string>
#include <vector>

namespace memplan {

/// A pointer that a launch passes on: a local variable before it.
struct PointerArgument {
  std::string name;
  BufferRef ref;
  bool read;
  bool written;
  bool isWorkspace = false; ///< Written, but no result.
};

/// One call in the emitted `run`.
struct Launch {
  mlir::Operation *op;
  std::string node;  ///< As in `getNodeName`, not escaped.
  std::string title; ///< For its comment: what it computes of which shapes.
  std::vector<PointerArgument> pointers;
  std::string call; ///< An expression of type memplan_status.
};

/// One `Gemm<T>` of the model, made in load.
struct GemmObject {
  std::string node;
  std::string arguments; ///< Of `create`, after the name.
};

class Emitter {
public:
  explicit Emitter(BufferTable &buffers) : buffers(buffers) {}

  BufferTable &buffers;
  /// Functions, functors and kernels, each after those that it uses.
  struct Definition {
    std::string name, text;
  };
  std::vector<Definition> definitions;
  std::vector<Launch> launches;
  std::vector<GemmObject> gemms;

  /// Stands for the name in the text of a definition.
  static constexpr llvm::StringLiteral kName = "$NAME";

  /// Defines what `text` says under a name made from `hint`, unless it already
  /// is; returns the name.
  std::string define(llvm::StringRef hint, llvm::StringRef text);

  /// Appends a launch of `op`; the title gets the op's operand types.
  void addLaunch(mlir::Operation *op, llvm::StringRef what,
                 llvm::ArrayRef<PointerArgument> pointers, std::string call);

  /// Drops definitions that no launch needs, such as that of an epilogue which
  /// the matrix product does itself: compilers warn of them.
  void pruneDefinitions();

private:
  llvm::StringMap<std::string> nameOfText;
  llvm::StringSet<> names;
};

/// A kernel (or functor) in the making. Numbers that differ from launch to
/// launch are parameters, so that launches of one structure share it.
class KernelText {
public:
  /// A parameter of this type with this argument; asking again for the same
  /// name gives the same parameter. Returns the name.
  std::string number(llvm::StringRef type, const llvm::Twine &name,
                     int64_t value);
  std::string pointer(llvm::StringRef name, const BufferRef &ref, bool read,
                      bool written);

  /// Declares and defines it; `comment` is a line without slashes.
  std::string define(Emitter &emitter, llvm::StringRef hint,
                     llvm::StringRef comment);
  /// The call that launches `kernel`.
  std::string launch(llvm::StringRef kernel, llvm::StringRef node,
                     const llvm::Twine &grid, const llvm::Twine &block,
                     bool barriers = false) const;

  std::string body;
  std::vector<PointerArgument> pointers;
  std::string templateHead; ///< Before `__global__`, such as launch bounds.

private:
  struct Parameter {
    std::string declaration, name, argument;
  };
  std::vector<Parameter> parameters;
};

/// Threads a block of kernels that do without barriers.
inline constexpr int64_t kMapThreads = 256;

/// `dim3(blocks)` for so many threads.
std::string gridFor(int64_t threads);

/// Emits `op` if the family has it. Reports why not otherwise.
using OpEmitter = llvm::LogicalResult (*)(Emitter &, mlir::Operation *);

llvm::LogicalResult emitGeneric(Emitter &, mlir::Operation *);
llvm::LogicalResult emitCopy(Emitter &, mlir::Operation *);
llvm::LogicalResult emitConv(Emitter &, mlir::Operation *);
llvm::LogicalResult emitMatMul(Emitter &, mlir::Operation *);
llvm::LogicalResult emitReduceWindow(Emitter &, mlir::Operation *);
llvm::LogicalResult emitRowwise(Emitter &, mlir::Operation *);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_EMITTER_H
