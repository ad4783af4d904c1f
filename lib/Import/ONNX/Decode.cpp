//===- Decode.cpp - Bytes of an ONNX file to a Model ----------------------===//
//
// Field numbers are those of onnx.proto
// (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). Subgraphs are the
// only messages that nest without bound; `Nesting` bounds them.
//
//===----------------------------------------------------------------------===//

#include "Decode.h"
#include "Wire.h"

using namespace memplan::onnx;
using llvm::LogicalResult;
using llvm::StringRef;

/// A repeated field of varints comes one by one or packed.
template <typename Container>
static void appendVarints(WireReader &reader, Container &out) {
  if (reader.type() == WireType::Varint) {
    out.push_back(reader.varint());
    return;
  }
  StringRef packed = reader.bytes();
  while (!packed.empty()) {
    uint64_t value;
    if (!WireReader::takeVarint(packed, value))
      return reader.setMalformed();
    out.push_back(static_cast<int64_t>(value));
  }
}

/// The same for fixed-size elements: a first packed piece is kept as it is,
/// anything else is gathered.
static void appendFixed(WireReader &reader, Tensor &tensor, size_t size) {
  bool isFirst = !tensor.raw && tensor.scattered.empty();
  if (reader.type() == WireType::Bytes) {
    StringRef packed = reader.bytes();
    if (packed.size() % size != 0)
      return reader.setMalformed();
    if (isFirst) {
      tensor.raw = packed;
      return;
    }
    if (tensor.raw)
      tensor.scattered += *tensor.raw;
    tensor.raw.reset();
    tensor.scattered += packed;
    return;
  }
  if (tensor.raw)
    tensor.scattered += *tensor.raw;
  tensor.raw.reset();
  uint64_t bits = size == 4 ? reader.fixed32() : reader.fixed64();
  for (size_t i = 0; i < size; ++i)
    tensor.scattered.push_back(static_cast<char>(bits >> (8 * i)));
}

static std::pair<StringRef, StringRef> decodeEntry(WireReader &outer) {
  std::pair<StringRef, StringRef> entry;
  WireReader reader(outer.bytes());
  while (reader.next()) {
    if (reader.number() == 1)
      entry.first = reader.bytes();
    else if (reader.number() == 2)
      entry.second = reader.bytes();
  }
  if (reader.malformed())
    outer.setMalformed();
  return entry;
}

LogicalResult memplan::onnx::decodeTensor(StringRef bytes, Tensor &tensor) {
  std::optional<StringRef> raw;
  // An empty field says nothing.
  auto noteTyped = [&](WireReader &reader) {
    bool isEmpty = reader.type() == WireType::Bytes && reader.bytes().empty();
    if (isEmpty || tensor.typedField == reader.number())
      return;
    ++tensor.numForms;
    tensor.typedField = reader.number();
  };
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
    case 1:
      appendVarints(reader, tensor.dims);
      break;
    case 2:
      tensor.dataType = reader.varint();
      break;
    case 3:
      tensor.isSegment = true;
      break;
    case 4:
      noteTyped(reader);
      appendFixed(reader, tensor, 4);
      break;
    case 5:
    case 7:
    case 11:
      noteTyped(reader);
      appendVarints(reader, tensor.ints);
      break;
    case 6:
      tensor.hasStrings = true;
      break;
    case 8:
      tensor.name = reader.bytes();
      break;
    case 9:
      raw = reader.bytes();
      break;
    case 10:
      noteTyped(reader);
      appendFixed(reader, tensor, 8);
      break;
    case 13:
      tensor.external.push_back(decodeEntry(reader));
      break;
    case 14:
      tensor.isExternal = reader.varint() == 1;
      break;
    }
  }
  if (raw && !(raw->empty() && (tensor.typedField != 0 || tensor.isExternal))) {
    ++tensor.numForms;
    tensor.raw = raw;
  }
  return llvm::success(!reader.malformed());
}

static Tensor decodeTensor(WireReader &outer) {
  Tensor tensor;
  if (failed(decodeTensor(outer.bytes(), tensor)))
    outer.setMalformed();
  return tensor;
}

namespace {
/// How many subgraphs enclose what is being decoded.
struct Nesting {
  int depth = 0;
  bool isTooDeep = false;
};
} // namespace

static Dim decodeDim(WireReader &outer) {
  Dim dim;
  WireReader reader(outer.bytes());
  while (reader.next()) {
    if (reader.number() == 1)
      dim.size = reader.varint();
    else if (reader.number() == 2)
      dim.param = reader.bytes();
  }
  if (reader.malformed())
    outer.setMalformed();
  return dim;
}

static void decodeTensorType(WireReader &outer, ValueInfo &info) {
  WireReader reader(outer.bytes());
  while (reader.next()) {
    if (reader.number() == 1) {
      info.dataType = reader.varint();
    } else if (reader.number() == 2) {
      info.shape.emplace();
      WireReader shape(reader.bytes());
      while (shape.next())
        if (shape.number() == 1)
          info.shape->push_back(decodeDim(shape));
      if (shape.malformed())
        reader.setMalformed();
    }
  }
  if (reader.malformed())
    outer.setMalformed();
}

/// A TypeProto; `depth` is how many of them enclose it.
static void decodeType(WireReader &outer, ValueInfo &info, int depth = 0) {
  // Deeper types than optional(sequence(tensor)) have no meaning here.
  static constexpr int kDeepest = 4;
  auto addKind = [&](StringRef kind) {
    if (depth == 0)
      info.kind = kind;
    else
      info.inner.push_back(kind);
  };
  auto decodeInner = [&](WireReader &at) {
    WireReader reader(at.bytes());
    while (reader.next())
      if (reader.number() == 1 && depth < kDeepest)
        decodeType(reader, info, depth + 1);
    if (reader.malformed())
      at.setMalformed();
  };
  WireReader type(outer.bytes());
  while (type.next()) {
    switch (type.number()) {
    case 1:
      addKind("tensor");
      decodeTensorType(type, info);
      break;
    case 4:
      addKind("sequence");
      decodeInner(type);
      break;
    case 5:
      addKind("map");
      break;
    case 8:
      addKind("sparse tensor");
      break;
    case 9:
      addKind("optional");
      decodeInner(type);
      break;
    }
  }
  if (type.malformed())
    outer.setMalformed();
}

static ValueInfo decodeValueInfo(WireReader &outer) {
  ValueInfo info;
  WireReader reader(outer.bytes());
  while (reader.next()) {
    if (reader.number() == 1)
      info.name = reader.bytes();
    else if (reader.number() == 2)
      decodeType(reader, info);
  }
  if (reader.malformed())
    outer.setMalformed();
  return info;
}

static Graph decodeGraph(WireReader &outer, Nesting &nesting);

static std::shared_ptr<const Graph> decodeSubgraph(WireReader &outer,
                                                   Nesting &nesting) {
  if (nesting.depth == kDeepestSubgraph) {
    nesting.isTooDeep = true;
    return nullptr;
  }
  ++nesting.depth;
  auto graph = std::make_shared<Graph>(decodeGraph(outer, nesting));
  --nesting.depth;
  return graph;
}

static NodeAttribute decodeAttribute(WireReader &outer, Nesting &nesting) {
  NodeAttribute attribute;
  WireReader reader(outer.bytes());
  while (reader.next()) {
    switch (reader.number()) {
    case 1:
      attribute.name = reader.bytes();
      break;
    case 2:
      attribute.f = reader.float32();
      break;
    case 3:
      attribute.i = reader.varint();
      break;
    case 4:
      attribute.s = reader.bytes();
      break;
    case 5:
      attribute.t = decodeTensor(reader);
      break;
    case 6:
      attribute.g = decodeSubgraph(reader, nesting);
      break;
    case 7: {
      Tensor gathered; // floats have the same two forms as float_data
      appendFixed(reader, gathered, 4);
      StringRef bytes =
          gathered.raw ? *gathered.raw : StringRef(gathered.scattered);
      for (; bytes.size() >= 4; bytes = bytes.drop_front(4)) {
        float value;
        std::memcpy(&value, bytes.data(), 4);
        attribute.floats.push_back(value);
      }
      break;
    }
    case 8:
      appendVarints(reader, attribute.ints);
      break;
    case 9:
      attribute.strings.push_back(reader.bytes());
      break;
    case 14: {
      auto type = std::make_shared<ValueInfo>();
      decodeType(reader, *type);
      attribute.tp = std::move(type);
      break;
    }
    case 20:
      attribute.type = reader.varint();
      break;
    case 21:
      attribute.reference = reader.bytes();
      break;
    }
  }
  if (reader.malformed())
    outer.setMalformed();
  return attribute;
}

static Node decodeNode(WireReader &outer, Nesting &nesting) {
  Node node;
  WireReader reader(outer.bytes());
  while (reader.next()) {
    switch (reader.number()) {
    case 1:
      node.inputs.push_back(reader.bytes());
      break;
    case 2:
      node.outputs.push_back(reader.bytes());
      break;
    case 3:
      node.name = reader.bytes();
      break;
    case 4:
      node.opType = reader.bytes();
      break;
    case 5:
      node.attributes.push_back(decodeAttribute(reader, nesting));
      break;
    case 7:
      node.domain = reader.bytes();
      break;
    case 8:
      node.overload = reader.bytes();
      break;
    }
  }
  if (reader.malformed())
    outer.setMalformed();
  return node;
}

static Graph decodeGraph(WireReader &outer, Nesting &nesting) {
  Graph graph;
  WireReader reader(outer.bytes());
  while (reader.next()) {
    switch (reader.number()) {
    case 1:
      graph.nodes.push_back(decodeNode(reader, nesting));
      break;
    case 2:
      graph.name = reader.bytes();
      break;
    case 5:
      graph.initializers.push_back(decodeTensor(reader));
      break;
    case 11:
      graph.inputs.push_back(decodeValueInfo(reader));
      break;
    case 12:
      graph.outputs.push_back(decodeValueInfo(reader));
      break;
    case 13:
      graph.valueInfos.push_back(decodeValueInfo(reader));
      break;
    case 15:
      graph.hasSparseInitializers = true;
      break;
    }
  }
  if (reader.malformed())
    outer.setMalformed();
  return graph;
}

static std::pair<StringRef, int64_t> decodeOpset(WireReader &outer) {
  std::pair<StringRef, int64_t> opset;
  WireReader reader(outer.bytes());
  while (reader.next()) {
    if (reader.number() == 1)
      opset.first = reader.bytes();
    else if (reader.number() == 2)
      opset.second = reader.varint();
  }
  if (reader.malformed())
    outer.setMalformed();
  return opset;
}

static ValueInfo namedValue(StringRef name) {
  ValueInfo info;
  info.name = name;
  return info;
}

static Function decodeFunction(WireReader &outer, Nesting &nesting) {
  Function function;
  WireReader reader(outer.bytes());
  while (reader.next()) {
    switch (reader.number()) {
    case 1:
      function.name = reader.bytes();
      break;
    case 4:
      function.body.inputs.push_back(namedValue(reader.bytes()));
      break;
    case 5:
      function.body.outputs.push_back(namedValue(reader.bytes()));
      break;
    case 6:
      function.attributes.push_back(reader.bytes());
      break;
    case 7:
      function.body.nodes.push_back(decodeNode(reader, nesting));
      break;
    case 9:
      function.opsets.push_back(decodeOpset(reader));
      break;
    case 10:
      function.domain = reader.bytes();
      break;
    case 11:
      function.defaults.push_back(decodeAttribute(reader, nesting));
      break;
    case 13:
      function.overload = reader.bytes();
      break;
    }
  }
  if (reader.malformed())
    outer.setMalformed();
  return function;
}

LogicalResult memplan::onnx::decodeModel(StringRef bytes, Model &model) {
  WireReader reader(bytes);
  Nesting nesting;
  while (reader.next()) {
    switch (reader.number()) {
    case 1:
      model.irVersion = reader.varint();
      break;
    case 7:
      // Protobuf would merge a repeated submessage; no writer makes one.
      if (model.graph)
        return llvm::failure();
      model.graph = decodeGraph(reader, nesting);
      break;
    case 8:
      model.opsets.push_back(decodeOpset(reader));
      break;
    case 25:
      model.functions.push_back(decodeFunction(reader, nesting));
      break;
    }
  }
  model.nestsTooDeep = nesting.isTooDeep;
  return llvm::success(!reader.malformed());
}
