//===- NodeBuilder.h - What an operator's builder works with ----*- C++ -*-===//
//
// A builder of the operator table gets one NodeBuilder: it reads the node's
// inputs and attributes, makes ops, and sets the results. Whatever it does not
// ask for is an error afterwards, so that no attribute is dropped in silence.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_NODEBUILDER_H
#define MEMPLAN_LIB_IMPORT_ONNX_NODEBUILDER_H

#include "TensorData.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

namespace memplan::onnx {

/// The inputs that whoever runs the graph gives it; those with an initializer
/// of their name have a value already.
llvm::SmallVector<const ValueInfo *> givenInputs(const Graph &graph);

/// What a name of the graph stands for. Sequences and optionals are taken apart
/// at import: the function knows their elements only.
enum class Form { Tensor, Sequence, Optional };

/// A dim whose extent only the run tells; the tensor's type has its upper
/// bound. What lies beyond the extent is defined, but means nothing.
struct RunDim {
  int64_t dim;
  mlir::Value extent; // tensor<i64>
};

/// An element of a tensor of integers of which something is known though the
/// run tells it: an extent of at most `bound`; or, if `extent` is null, `bound`
/// itself.
struct RunEntry {
  int64_t bound;
  mlir::Value extent; // tensor<i64>
};

/// A tensor of the graph during import, or a list of them. One of `value`,
/// `constant` and `inFile` says where a tensor's elements come from.
struct ImportedTensor {
  llvm::StringRef name;
  DType dtype;
  mlir::RankedTensorType type;
  mlir::Value value;
  mlir::DenseElementsAttr constant;
  std::optional<FileBytes> inFile;
  llvm::SmallVector<RunDim, 0> runDims;
  /// All elements, or none: shapes that are computed from extents of the run.
  llvm::SmallVector<RunEntry, 0> entries;
  /// Of another form there is neither type nor value, but the elements; an
  /// optional has one or none.
  Form form = Form::Tensor;
  llvm::SmallVector<ImportedTensor *, 0> elements;
  /// Set on a node's result that is another name for a tensor.
  ImportedTensor *aliasOf = nullptr;
  /// Set on the result of a DequantizeLinear, (elements - zero) * scale, with
  /// one scale and zero point (null: 0), or one an index of dim `axis`.
  /// Products take the elements as they are.
  struct Quantized {
    ImportedTensor *elements, *scale, *zero;
    int64_t axis; ///< -1: one of all.
  };
  std::optional<Quantized> quantized;

  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }
  int64_t rank() const { return type.getRank(); }
  int64_t dim(int64_t i) const { return type.getDimSize(i); }
  int64_t numElements() const { return type.getNumElements(); }
  bool isKnown() const { return constant || inFile; }
  bool isList() const { return form != Form::Tensor; }
  /// The run's extent of a dim, or null.
  mlir::Value runExtent(int64_t dim) const {
    for (const RunDim &entry : runDims)
      if (entry.dim == dim)
        return entry.extent;
    return {};
  }
};
/// "2x3xf32", with "<=" before a run's extent; "sequence of 3".
std::string typeText(const ImportedTensor &tensor);

/// Gives a tensor a Value at the builder's insertion point.
using Materializer =
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, ImportedTensor &)>;

/// Builds the subgraphs of nodes. All ops go to the insertion point of the
/// builder of the node that has the subgraph.
class SubgraphImporter {
public:
  /// Builds `graph` on `inputs`, one for each of its inputs, and returns its
  /// outputs: tensors that it made, inputs, constants or tensors of enclosing
  /// graphs. `place` says which subgraph it is, for messages.
  virtual mlir::FailureOr<llvm::SmallVector<ImportedTensor *>>
  importSubgraph(const Graph &graph, std::string place,
                 llvm::ArrayRef<ImportedTensor *> inputs) = 0;
  /// Keeps a tensor as long as the import takes.
  virtual ImportedTensor *keep(ImportedTensor tensor) = 0;

  /// A body may be built many times: once an iteration when a loop is unrolled,
  /// and anew after a failed attempt. All nodes built more than once count.
  struct Budget {
    int64_t numBuilt = 0;
    int64_t left = kMostRepeatedNodes;
    /// For iterations that are built only to learn something.
    int64_t trialsLeft = kMostRepeatedNodes;
    int unrolling = 0; // how many loops are being unrolled
    static constexpr int64_t kMostRepeatedNodes = 10000;

    bool isSpent() const { return left < 0; }
    void countNode() {
      ++numBuilt;
      if (unrolling)
        --left;
    }
  };
  Budget budget;

protected:
  ~SubgraphImporter() = default;
};

class NodeBuilder {
public:
  NodeBuilder(const Node &node, std::string text, int64_t opset,
              mlir::OpBuilder &builder, mlir::Location loc, Reporter &reporter,
              ModelFile &file, llvm::ArrayRef<ImportedTensor *> inputs,
              Materializer materialize, SubgraphImporter &subgraphs);

  mlir::OpBuilder &b;
  const mlir::Location loc;
  const int64_t opset;
  mlir::MLIRContext *context() { return b.getContext(); }

  //===--- inputs ---------------------------------------------------------===//
  unsigned numInputs() const { return inputs.size(); }
  bool hasInput(unsigned i) const { return i < inputs.size() && inputs[i]; }
  ImportedTensor &input(unsigned i) { return *inputs[i]; }
  /// Lets the builder see another tensor as input `i`.
  void replaceInput(unsigned i, ImportedTensor &tensor) { inputs[i] = &tensor; }
  mlir::Value value(ImportedTensor &tensor) { return materialize(b, tensor); }
  mlir::Value value(unsigned i) { return value(input(i)); }
  /// All inputs of indices `which` have the same element type, or an error.
  mlir::LogicalResult sameTypes(llvm::ArrayRef<unsigned> which);
  mlir::LogicalResult floatInput(unsigned i);

  /// The elements of an input that is known at import, or an error that says
  /// what the operator needs (`what`) and that it depends on the run.
  mlir::FailureOr<mlir::DenseElementsAttr> constant(unsigned i,
                                                    llvm::StringRef what);
  mlir::FailureOr<llvm::SmallVector<int64_t>> ints(unsigned i,
                                                   llvm::StringRef what);
  mlir::FailureOr<int64_t> scalarInt(unsigned i, llvm::StringRef what);

  //===--- attributes -----------------------------------------------------===//
  llvm::StringRef opName() const;
  bool hasAttr(llvm::StringRef name) { return find(name) != nullptr; }
  int64_t intAttr(llvm::StringRef name, int64_t otherwise);
  float floatAttr(llvm::StringRef name, float otherwise);
  llvm::StringRef stringAttr(llvm::StringRef name, llvm::StringRef otherwise);
  /// nullopt when absent.
  std::optional<llvm::SmallVector<int64_t>> intsAttr(llvm::StringRef name);
  std::optional<llvm::SmallVector<float>> floatsAttr(llvm::StringRef name);
  const Tensor *tensorAttr(llvm::StringRef name);
  const ValueInfo *typeAttr(llvm::StringRef name);
  std::optional<llvm::SmallVector<llvm::StringRef>>
  stringsAttr(llvm::StringRef name);
  /// For attributes that have no meaning at inference.
  void ignoreAttr(llvm::StringRef name) { (void)find(name); }
  /// A tensor attribute, or a file's bytes, as data.
  mlir::FailureOr<TensorData> tensorData(const Tensor &tensor);

  //===--- subgraphs ------------------------------------------------------===//
  /// An attribute that must be there, or an error and null.
  const Graph *graphAttr(llvm::StringRef name);
  /// Builds it at the insertion point of `b`. `suffix` is added to what
  /// messages call the place. Its outputs are tensors of static shape, or else
  /// an error.
  mlir::FailureOr<llvm::SmallVector<ImportedTensor *>>
  importGraph(llvm::StringRef name, const Graph &graph,
              llvm::ArrayRef<ImportedTensor *> inputs,
              const llvm::Twine &suffix = "");
  /// The same for operators that also take lists and dims of the run.
  mlir::FailureOr<llvm::SmallVector<ImportedTensor *>>
  importAnyGraph(llvm::StringRef name, const Graph &graph,
                 llvm::ArrayRef<ImportedTensor *> inputs,
                 const llvm::Twine &suffix = "");
  /// That it is a tensor of static shape.
  mlir::LogicalResult checkStatic(const ImportedTensor &output);
  ImportedTensor *keep(ImportedTensor tensor) {
    return subgraphs.keep(std::move(tensor));
  }
  SubgraphImporter::Budget &budget() { return subgraphs.budget; }
  Reporter &getReporter() { return reporter; }

  /// `axis` counted from the end if negative, within [0, rank); or an error.
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  /// The same for a list whose entries must differ.
  mlir::FailureOr<llvm::SmallVector<int64_t>> axes(llvm::ArrayRef<int64_t> axes,
                                                   int64_t rank);

  //===--- results --------------------------------------------------------===//
  unsigned numOutputs() const { return results.size(); }
  bool wantsOutput(unsigned i) const;
  llvm::StringRef outputName(unsigned i) const { return results[i].name; }
  mlir::LogicalResult result(unsigned i, mlir::Value value, DType dtype);
  mlir::LogicalResult result(mlir::Value value, DType dtype) {
    return result(0, value, dtype);
  }
  mlir::LogicalResult constantResult(mlir::DenseElementsAttr value,
                                     DType dtype) {
    return constantResult(0, value, dtype);
  }
  mlir::LogicalResult constantResult(unsigned i, mlir::DenseElementsAttr value,
                                     DType dtype);
  mlir::LogicalResult dataResult(const TensorData &data);
  /// The result is another name for `tensor`.
  mlir::LogicalResult aliasResult(unsigned i, ImportedTensor &tensor);
  mlir::LogicalResult listResult(unsigned i, Form form,
                                 llvm::ArrayRef<ImportedTensor *> elements);
  /// The extent of a dim of result `i`, a tensor<i64>, is the run's.
  void setRunDim(unsigned i, int64_t dim, mlir::Value extent) {
    results[i].runDims.push_back({dim, extent});
  }
  llvm::MutableArrayRef<ImportedTensor> getResults() { return results; }

  //===--- errors ---------------------------------------------------------===//
  mlir::InFlightDiagnostic error(ImportErrorKind kind);
  mlir::InFlightDiagnostic invalid() {
    return error(ImportErrorKind::InvalidModel);
  }
  mlir::InFlightDiagnostic unsupported() {
    return error(ImportErrorKind::Unsupported);
  }
  /// How messages call input `i`.
  std::string inputText(unsigned i);
  std::string inputText(ImportedTensor &tensor);
  /// "the model's inputs 'a', 'b'": what the tensors are computed from, which
  /// `--input-value` can make known.
  std::string originText(llvm::ArrayRef<ImportedTensor *> tensors);

  /// Success unless an attribute had a wrong type or was not asked for, or a
  /// wanted output was not set.
  mlir::LogicalResult finish();

private:
  const NodeAttribute *find(llvm::StringRef name);
  const NodeAttribute *findOfType(llvm::StringRef name,
                                  NodeAttribute::Type type);

  const Node &node;
  std::string text;
  Reporter &reporter;
  ModelFile &file;
  llvm::SmallVector<ImportedTensor *> inputs;
  llvm::SmallVector<ImportedTensor, 1> results;
  Materializer materialize;
  SubgraphImporter &subgraphs;
  llvm::StringSet<> asked;
  bool wrongAttribute = false;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_NODEBUILDER_H
