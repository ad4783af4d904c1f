//===- ScalarCode.h - Regions of scalar ops to device functions -*- C++ -*-===//

#ifndef MEMPLAN_LIB_TARGET_CUDA_SCALARCODE_H
#define MEMPLAN_LIB_TARGET_CUDA_SCALARCODE_H

#include "Emitter.h"
#include "mlir/IR/Region.h"

namespace memplan {

/// What a region computes, as text that calls it. Most are a device function;
/// one that yields an argument or a constant needs none.
class ScalarFunction {
public:
  /// Block arguments that matter, ascending.
  llvm::SmallVector<unsigned> arguments;
  /// Loop dims whose index (linalg.index) matters, ascending.
  llvm::SmallVector<int64_t> indices;
  /// Memrefs that it reads at places of its own choice.
  std::vector<PointerArgument> tables;
  /// Scalars of the host code around it: parameters of this name, which the
  /// kernel is to get with that value.
  struct Capture {
    std::string type, name, value;
  };
  std::vector<Capture> captures;
  unsigned numResults = 1;
  llvm::SmallVector<mlir::Type> resultTypes;
  /// What it computes in a word or two, for names: "add_max".
  std::string hint;

  /// An expression; with several results a statement that assigns `results`.
  std::string call(llvm::function_ref<std::string(unsigned)> argument,
                   llvm::function_ref<std::string(int64_t)> index = {},
                   llvm::ArrayRef<std::string> results = {}) const;

  /// The function that returns its block argument.
  static ScalarFunction argument(unsigned number) {
    ScalarFunction function;
    function.kind = Kind::Argument;
    function.arguments = {number};
    function.hint = "copy";
    return function;
  }

  bool isArgument() const { return kind == Kind::Argument; }
  bool uses(unsigned argument) const {
    return llvm::is_contained(arguments, argument);
  }

private:
  friend class ScalarCode;
  enum class Kind { Function, Argument, Literal };
  Kind kind = Kind::Function;
  std::string text; ///< The function's name or the literal.
};

/// Defines the function of `region`; its parameters are named `argumentNames`.
mlir::FailureOr<ScalarFunction>
makeScalarFunction(Emitter &emitter, mlir::Operation *op, mlir::Region &region,
                   llvm::ArrayRef<std::string> argumentNames);

} // namespace memplan

#endif // MEMPLAN_LIB_TARGET_CUDA_SCALARCODE_H
