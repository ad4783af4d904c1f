//===- Emitter.h - What the op emitters share -------------------*- C++ -*-===//
//
// An op emitter turns one op of @main into launches. It resolves operands
// (BufferTable), defines kernels and functors (`define`: equal text is defined
// once), and appends launches. What stands around launches, such as the head of
// a loop, are steps (HostCode.h appends those). Private to lib/Target/CUDA.
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

/// A variable of the emitted host code.
struct HostVariable {
  std::string type, name;
};

/// One call in the emitted `run`.
struct Launch {
  mlir::Operation *op;
  std::string node;  ///< As in `getNodeName`, not escaped.
  std::string title; ///< For its comment: what it computes of which shapes.
  std::vector<PointerArgument> pointers;
  std::string call; ///< An expression of type memplan_status.
  /// What the call reads back from the device, if it does.
  std::optional<HostVariable> result;
};

/// A step of the emitted `run`, in order.
struct HostStep {
  enum class Kind {
    Launch,     ///< Launch number `launch`.
    Statement,  ///< `text`.
    Check,      ///< The same, to be kept even if nobody uses what it defines.
    OpenLoop,   ///< `text` begins a loop and ends with a brace.
    CloseLoop,  ///< The innermost loop's end.
    Break,      ///< `text` is the head of an `if` that leaves the loop.
    OpenBranch, ///< `text` begins an `if` and ends with a brace.
    Else,       ///< `text` begins the next branch.
    CloseBranch ///< The innermost `if`'s end.
  };
  Kind kind;
  std::string text;
  std::string comment; ///< Stands before it.
  std::string defines; ///< The variable that a statement declares or sets.
  size_t launch = 0;
  /// The program point (Analysis/ProgramPoints.h) that the checked mode's lives
  /// are brought to: of a launch, before an op with regions (OpenLoop,
  /// OpenBranch), after it (all others).
  int64_t point = 0;
};

/// One `Gemm<T>` of the model, made in load.
struct GemmObject {
  std::string type; ///< T.
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
  std::vector<HostStep> steps;
  std::vector<GemmObject> gemms;
  /// "gemms" for floats, else "gemmsOf" and the type: an array of the model.
  static std::string getGemmArray(llvm::StringRef type);
  /// Adds one and returns its place in its array, "gemms[3]".
  std::string addGemm(GemmObject gemm);

  /// The program point of launches to come.
  int64_t point = 0;
  /// Scalars that the host code has in variables.
  llvm::DenseMap<mlir::Value, std::string> hostNames;

  /// Stands for the name in the text of a definition.
  static constexpr llvm::StringLiteral kName = "$NAME";

  /// Defines what `text` says under a name made from `hint`, unless it already
  /// is; returns the name.
  std::string define(llvm::StringRef hint, llvm::StringRef text);

  /// Appends a launch of `op`; the title gets the op's operand types.
  void addLaunch(mlir::Operation *op, llvm::StringRef what,
                 llvm::ArrayRef<PointerArgument> pointers, std::string call);

  /// A scalar of the host code as an expression: a variable's name or a
  /// literal. Reports at `user` what is neither.
  mlir::FailureOr<std::string> getHostScalar(mlir::Value value,
                                             mlir::Operation *user);

  /// A typed pointer, in terms of the emitted `Run run`.
  std::string getPointer(llvm::StringRef type, const BufferRef &ref) const;

  /// Drops steps that define what nobody uses: compilers warn of them.
  void pruneSteps();

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
  /// The same for a scalar that the host code computes.
  void scalar(llvm::StringRef type, llvm::StringRef name,
              llvm::StringRef argument);
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

/// Adds the identifiers in `text` that stand outside of strings.
void collectIdentifiers(llvm::StringRef text, llvm::StringSet<> &found);
/// Those that a step uses.
void collectIdentifiers(const Emitter &emitter, const HostStep &step,
                        llvm::StringSet<> &found);

/// Threads a block of kernels that do without barriers.
inline constexpr int64_t kMapThreads = 256;

/// `dim3(blocks)` for so many threads.
std::string gridFor(int64_t threads);

/// Emits `op` if the family has it. Reports why not otherwise.
using OpEmitter = llvm::LogicalResult (*)(Emitter &, mlir::Operation *);

llvm::LogicalResult emitGeneric(Emitter &, mlir::Operation *);
llvm::LogicalResult emitCopy(Emitter &, mlir::Operation *);
llvm::LogicalResult emitStore(Emitter &, mlir::Operation *);
llvm::LogicalResult emitConv(Emitter &, mlir::Operation *);
llvm::LogicalResult emitMatMul(Emitter &, mlir::Operation *);
llvm::LogicalResult emitReduceWindow(Emitter &, mlir::Operation *);
llvm::LogicalResult emitRowwise(Emitter &, mlir::Operation *);
llvm::LogicalResult emitScatter(Emitter &, mlir::Operation *);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_EMITTER_H
