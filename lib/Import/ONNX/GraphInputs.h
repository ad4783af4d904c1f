//===- GraphInputs.h - What the caller gives --------------------*- C++ -*-===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_GRAPHINPUTS_H
#define MEMPLAN_LIB_IMPORT_ONNX_GRAPHINPUTS_H

#include "Model.h"
#include "Reporter.h"

#include <deque>

namespace memplan::onnx {

/// The tensors that a graph's inputs are made of. One that is a sequence has
/// elements NAME[0], NAME[1] and so on, an optional has none or what is in it.
class GraphInputs {
public:
  /// One input of the graph, and which of the tensors are its own.
  struct Input {
    const ValueInfo *declared;
    size_t first, count;
    /// Of an optional: whether it has a value.
    bool isPresent = true;
  };

  /// By what the model declares and the options add to it; or errors.
  static mlir::FailureOr<GraphInputs>
  read(llvm::ArrayRef<const ValueInfo *> inputs, const ImportOptions &options,
       Reporter &reporter);

  llvm::ArrayRef<Input> inputs() const { return all; }
  llvm::ArrayRef<const ValueInfo *> tensors() const { return leaves; }

private:
  mlir::LogicalResult add(const ValueInfo &input, const ImportOptions &options,
                          Reporter &reporter);
  mlir::LogicalResult addTensor(const ValueInfo &input, std::string name,
                                const ImportOptions &options,
                                Reporter &reporter);
  mlir::LogicalResult checkOptions(const ImportOptions &options,
                                   Reporter &reporter);

  std::vector<Input> all;
  std::vector<const ValueInfo *> leaves;
  /// Tensors with names and shapes that are not the model's.
  std::deque<ValueInfo> made;
  std::deque<std::string> names;
  llvm::StringSet<> used; ///< Names that options may have.
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_GRAPHINPUTS_H
