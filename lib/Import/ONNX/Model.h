//===- Model.h - An ONNX model as its file states it ------------*- C++ -*-===//
//
// Plain structs with the fields of onnx.proto that the importer uses. Strings
// and bytes are pieces of the mapped file and live as long as its `ModelFile`.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_LIB_IMPORT_ONNX_MODEL_H
#define MEMPLAN_LIB_IMPORT_ONNX_MODEL_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace memplan::onnx {

struct Graph;
struct ValueInfo;

/// TensorProto.
struct Tensor {
  llvm::StringRef name;
  int64_t dataType = 0;
  llvm::SmallVector<int64_t> dims;
  /// `raw_data`; for float_data and double_data in one packed piece, that
  /// piece, which has the same form.
  std::optional<llvm::StringRef> raw;
  /// int32_data, int64_data or uint64_data, one entry an element.
  std::vector<int64_t> ints;
  /// float_data or double_data that is not one packed piece, little-endian.
  std::string scattered;
  /// The number of the typed field that has data, 0 for none; and how many of
  /// the fields of this message have data.
  int64_t typedField = 0, numForms = 0;
  bool isExternal = false, isSegment = false, hasStrings = false;
  llvm::SmallVector<std::pair<llvm::StringRef, llvm::StringRef>> external;
};

/// AttributeProto. `type` has the values of AttributeProto.AttributeType.
struct NodeAttribute {
  enum Type {
    Undefined,
    Float,
    Int,
    String,
    Tensor_,
    Graph_,
    Floats,
    Ints,
    Strings,
    TypeProto = 13
  };
  llvm::StringRef name;
  /// In a function: the attribute of its call that gives the value.
  llvm::StringRef reference;
  int64_t type = Undefined;
  float f = 0;
  int64_t i = 0;
  llvm::StringRef s;
  std::optional<Tensor> t;
  /// A subgraph; absent as well when it is nested too deep (see `Model`).
  std::shared_ptr<const Graph> g;
  std::shared_ptr<const ValueInfo> tp;
  llvm::SmallVector<float> floats;
  llvm::SmallVector<int64_t> ints;
  llvm::SmallVector<llvm::StringRef> strings;
};

/// NodeProto.
struct Node {
  llvm::StringRef name, opType, domain, overload;
  llvm::SmallVector<llvm::StringRef> inputs, outputs;
  llvm::SmallVector<NodeAttribute, 0> attributes;
};

/// One dim of a TensorShapeProto: a size, a name, or neither.
struct Dim {
  std::optional<int64_t> size;
  llvm::StringRef param;
};

/// ValueInfoProto.
struct ValueInfo {
  llvm::StringRef name;
  /// What kind of type: "tensor", another word, or empty when none is given.
  llvm::StringRef kind;
  /// What an optional or a sequence is of: "tensor", or "sequence" and then
  /// "tensor". Element type and shape are those of the tensor.
  llvm::SmallVector<llvm::StringRef, 0> inner;
  int64_t dataType = 0;
  std::optional<llvm::SmallVector<Dim>> shape;
};

/// GraphProto.
struct Graph {
  llvm::StringRef name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs, valueInfos;
  bool hasSparseInitializers = false;
};

/// Tensors of higher rank come from no model; what is built for each dim would
/// make much of a small file.
inline constexpr int64_t kHighestRank = 64;

/// Subgraphs within subgraphs up to this depth are decoded.
inline constexpr int kDeepestSubgraph = 32;

/// A domain and its version.
using OpsetList = llvm::SmallVector<std::pair<llvm::StringRef, int64_t>>;

/// FunctionProto: an operator that the model defines itself.
struct Function {
  llvm::StringRef name, domain, overload;
  /// Attributes that a call may give; `defaults` have a value otherwise.
  llvm::SmallVector<llvm::StringRef> attributes;
  llvm::SmallVector<NodeAttribute, 0> defaults;
  OpsetList opsets;
  /// Its inputs and outputs have names alone.
  Graph body;
};

/// ModelProto.
struct Model {
  std::optional<int64_t> irVersion;
  OpsetList opsets;
  std::vector<Function> functions;
  std::optional<Graph> graph;
  /// Set when a subgraph is deeper than kDeepestSubgraph.
  bool nestsTooDeep = false;
};

} // namespace memplan::onnx

#endif // MEMPLAN_LIB_IMPORT_ONNX_MODEL_H
