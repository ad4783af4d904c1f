//===- ControlFlow.cpp - What operators with subgraphs share --------------===//

#include "ControlFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

LogicalResult memplan::onnx::checkCondition(NodeBuilder &n,
                                            const ImportedTensor &tensor,
                                            const Twine &what) {
  if (tensor.dtype.isBool() && tensor.numElements() == 1)
    return success();
  return n.invalid() << what << " is " << quoted(tensor.name) << " ("
                     << typeText(tensor.dtype, tensor.shape())
                     << "); one bool is accepted";
}

Attribute memplan::onnx::knownElement(const ImportedTensor &tensor) {
  if (!tensor.isKnown() || tensor.numElements() != 1)
    return {};
  DenseElementsAttr elements =
      tensor.constant
          ? tensor.constant
          : readElements(tensor.dtype, tensor.type, tensor.inFile->bytes);
  return *elements.value_begin<Attribute>();
}

std::optional<bool> memplan::onnx::knownBool(const ImportedTensor &tensor) {
  auto element = dyn_cast_or_null<IntegerAttr>(knownElement(tensor));
  if (!element)
    return std::nullopt;
  return !element.getValue().isZero();
}

Value memplan::onnx::readScalar(NodeBuilder &n, ImportedTensor &tensor) {
  SmallVector<Value> zeros;
  for (int64_t i = 0; i < tensor.rank(); ++i)
    zeros.push_back(arith::ConstantIndexOp::create(n.b, n.loc, 0));
  return tensor::ExtractOp::create(n.b, n.loc, n.value(tensor), zeros);
}

namespace {
/// Offsets, sizes and strides of a row.
struct RowSlice {
  RowSlice(OpBuilder &b, RankedTensorType type, OpFoldResult index,
           int64_t axis)
      : offsets(type.getRank(), b.getIndexAttr(0)),
        sizes(getAsIndexOpFoldResult(b.getContext(), type.getShape())),
        strides(type.getRank(), b.getIndexAttr(1)) {
    offsets[axis] = index;
    sizes[axis] = b.getIndexAttr(1);
  }
  SmallVector<OpFoldResult> offsets, sizes, strides;
};
} // namespace

Value memplan::onnx::extractRow(NodeBuilder &n, Value tensor,
                                OpFoldResult index, int64_t axis) {
  auto type = cast<RankedTensorType>(tensor.getType());
  RowSlice slice(n.b, type, index, axis);
  return tensor::ExtractSliceOp::create(
      n.b, n.loc, RankedTensorType::Builder(type).dropDim(axis), tensor,
      slice.offsets, slice.sizes, slice.strides);
}

Value memplan::onnx::insertRow(NodeBuilder &n, Value row, Value tensor,
                               OpFoldResult index, int64_t axis) {
  RowSlice slice(n.b, cast<RankedTensorType>(tensor.getType()), index, axis);
  return tensor::InsertSliceOp::create(n.b, n.loc, row, tensor, slice.offsets,
                                       slice.sizes, slice.strides);
}

LogicalResult
memplan::onnx::buildBlock(NodeBuilder &n, Region &region, ArrayRef<Type> types,
                          function_ref<LogicalResult(Block &)> body) {
  OpBuilder::InsertionGuard guard(n.b);
  Block *block = n.b.createBlock(&region, region.end(), types,
                                 SmallVector<Location>(types.size(), n.loc));
  return body(*block);
}

void memplan::onnx::spliceBlock(NodeBuilder &n, Block &block) {
  n.b.getInsertionBlock()->getOperations().splice(n.b.getInsertionPoint(),
                                                  block.getOperations());
}

ImportedTensor *memplan::onnx::keepValue(NodeBuilder &n, Value value,
                                         DType dtype, StringRef name) {
  ImportedTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.type = cast<RankedTensorType>(value.getType());
  tensor.value = value;
  return n.keep(std::move(tensor));
}

ImportedTensor *memplan::onnx::keepConstant(NodeBuilder &n,
                                            DenseElementsAttr elements,
                                            DType dtype, StringRef name) {
  ImportedTensor tensor;
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.type = cast<RankedTensorType>(elements.getType());
  tensor.constant = elements;
  return n.keep(std::move(tensor));
}

LogicalResult memplan::onnx::checkCounts(NodeBuilder &n, StringRef attribute,
                                         const Graph &graph, size_t numInputs,
                                         size_t numOutputs) {
  size_t inputs = givenInputs(graph).size(), outputs = graph.outputs.size();
  if (inputs != numInputs)
    return n.invalid() << "the graph " << quoted(attribute) << " has " << inputs
                       << " inputs; " << numInputs << " are given to it";
  if (outputs != numOutputs)
    return n.invalid() << "the graph " << quoted(attribute) << " has "
                       << outputs << " outputs; " << numOutputs
                       << " are accepted";
  return success();
}
