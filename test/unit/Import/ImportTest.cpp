//===- ImportTest.cpp - Importing files, whole and damaged ----------------===//

#include "memplan/Import/ONNX/Import.h"

#include "ProtoWriter.h"
#include "memplan/Dialect/MemPlanDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <optional>

using namespace mlir;
using namespace memplan;

/// A float tensor type with fixed dims, as ValueInfoProto.
static ProtoWriter valueInfo(const std::string &name,
                             std::initializer_list<uint64_t> dims) {
  ProtoWriter shape;
  for (uint64_t dim : dims)
    shape.message(1, ProtoWriter().varint(1, dim));
  ProtoWriter tensor = ProtoWriter().varint(1, 1).message(2, shape);
  return ProtoWriter().bytes(1, name).message(2,
                                              ProtoWriter().message(1, tensor));
}

static const std::string kBytes = {0, 0, '\x80', '\x3f', 0, 0, 0, '\x40'};

/// y = Relu(x + w), w = [1, 2] as raw bytes.
static std::string smallModel() {
  ProtoWriter weight =
      ProtoWriter().varint(1, 2).varint(2, 1).bytes(8, "w").bytes(9, kBytes);
  ProtoWriter add = ProtoWriter()
                        .bytes(1, "x")
                        .bytes(1, "w")
                        .bytes(2, "s")
                        .bytes(3, "sum")
                        .bytes(4, "Add");
  ProtoWriter relu = ProtoWriter().bytes(1, "s").bytes(2, "y").bytes(4, "Relu");
  ProtoWriter graph = ProtoWriter()
                          .message(1, add)
                          .message(1, relu)
                          .bytes(2, "g")
                          .message(5, weight)
                          .message(11, valueInfo("x", {3, 2}))
                          .message(12, valueInfo("y", {3, 2}));
  return ProtoWriter()
      .varint(1, 8)
      .message(7, graph)
      .message(8, ProtoWriter().varint(2, 17))
      .str();
}

static ProtoWriter graphAttribute(const std::string &name,
                                  const ProtoWriter &graph) {
  return ProtoWriter().bytes(1, name).message(6, graph).varint(20, 5);
}

static std::string modelOf(const ProtoWriter &graph) {
  return ProtoWriter()
      .varint(1, 8)
      .message(7, graph)
      .message(8, ProtoWriter().varint(2, 17))
      .str();
}

/// y = x carried through 3 iterations of h = h + x.
static std::string loopModel() {
  ProtoWriter same =
      ProtoWriter().bytes(1, "c").bytes(2, "d").bytes(4, "Identity");
  ProtoWriter add =
      ProtoWriter().bytes(1, "h").bytes(1, "x").bytes(2, "n").bytes(4, "Add");
  ProtoWriter body = ProtoWriter().message(1, same).message(1, add);
  for (const char *name : {"i", "c", "h"})
    body.message(11, ProtoWriter().bytes(1, name));
  for (const char *name : {"d", "n"})
    body.message(12, ProtoWriter().bytes(1, name));
  ProtoWriter loop = ProtoWriter()
                         .bytes(1, "m")
                         .bytes(1, "")
                         .bytes(1, "x")
                         .bytes(2, "y")
                         .bytes(3, "steps")
                         .bytes(4, "Loop")
                         .message(5, graphAttribute("body", body));
  ProtoWriter trips = ProtoWriter().varint(2, 7).varint(7, 3).bytes(8, "m");
  return modelOf(ProtoWriter()
                     .message(1, loop)
                     .message(5, trips)
                     .message(11, valueInfo("x", {3, 2}))
                     .message(12, valueInfo("y", {3, 2})));
}

/// An If whose branches are, `depth` deep, an If of the same condition.
static std::string nestedModel(int depth) {
  ProtoWriter leaf = ProtoWriter().bytes(1, "x").bytes(2, "y").bytes(4, "Relu");
  ProtoWriter graph =
      ProtoWriter().message(1, leaf).message(12, ProtoWriter().bytes(1, "y"));
  ProtoWriter small = graph;
  ProtoWriter node;
  for (int i = 0; i < depth; ++i) {
    node = ProtoWriter()
               .bytes(1, "c")
               .bytes(2, "y")
               .bytes(4, "If")
               .message(5, graphAttribute("then_branch", graph))
               .message(5, graphAttribute("else_branch", small));
    graph =
        ProtoWriter().message(1, node).message(12, ProtoWriter().bytes(1, "y"));
  }
  ProtoWriter condition = ProtoWriter().varint(2, 9).varint(5, 1).bytes(8, "c");
  return modelOf(ProtoWriter()
                     .message(1, node)
                     .message(5, condition)
                     .message(11, valueInfo("x", {3, 2}))
                     .message(12, valueInfo("y", {3, 2})));
}

namespace {
class Import : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("memplan", "onnx", path));
    context.disableMultithreading();
  }
  void TearDown() override { llvm::sys::fs::remove(path); }

  /// Imports a file of these bytes; messages go to `messages`.
  FailureOr<OwningOpRef<ModuleOp>> import(const std::string &bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << bytes;
    EXPECT_FALSE(error);
    messages.clear();
    kind.reset();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return success();
    });
    ImportErrorKind found = ImportErrorKind::Internal;
    auto module = importONNX(path, context, {}, &found);
    if (failed(module))
      kind = found;
    return module;
  }

  MLIRContext context;
  llvm::SmallString<128> path;
  std::string messages;
  std::optional<ImportErrorKind> kind;
};
} // namespace

TEST_F(Import, PointsAtTheWeightsBytesInTheFile) {
  std::string bytes = smallModel();
  auto module = import(bytes);
  ASSERT_TRUE(succeeded(module)) << messages;
  auto globals = llvm::to_vector((*module)->getOps<memref::GlobalOp>());
  ASSERT_EQ(globals.size(), 1u);
  auto weight = globals[0]->getAttrOfType<WeightAttr>(kWeightAttr);
  ASSERT_TRUE(weight);
  EXPECT_EQ(weight.getFile(), path.str());
  EXPECT_EQ(weight.getBytes(), 8);
  EXPECT_EQ(bytes.substr(weight.getOffset(), weight.getBytes()), kBytes);
}

// Fields of the graph come before the opset, so every cut loses something.
TEST_F(Import, RefusesEveryTruncation) {
  for (const std::string &whole : {smallModel(), loopModel()})
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_TRUE(failed(import(whole.substr(0, size)))) << size;
      EXPECT_EQ(kind, ImportErrorKind::InvalidModel) << size << messages;
      EXPECT_NE(messages.find(path.c_str()), std::string::npos) << size;
    }
}

TEST_F(Import, BoundsTheNestingOfSubgraphs) {
  EXPECT_TRUE(succeeded(import(nestedModel(32)))) << messages;
  for (int depth : {33, 100, 2000}) {
    EXPECT_TRUE(failed(import(nestedModel(depth)))) << depth;
    EXPECT_EQ(kind, ImportErrorKind::Unsupported) << depth << messages;
    EXPECT_NE(messages.find("nested more than 32 deep"), std::string::npos);
  }
}

// A changed byte may still be a model; it must never be a crash, an internal
// error or silence.
TEST_F(Import, SurvivesEveryChangedByte) {
  for (const std::string &whole : {smallModel(), loopModel()})
    for (size_t at = 0; at < whole.size(); ++at)
      for (int mask : {0x01, 0x02, 0x04, 0x08, 0x20, 0x80, 0xff}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ mask);
        if (succeeded(import(changed)))
          continue;
        EXPECT_FALSE(messages.empty()) << at << " ^ " << mask;
        EXPECT_NE(kind, ImportErrorKind::Internal)
            << at << " ^ " << mask << ": " << messages;
      }
}

TEST_F(Import, MissingFileIsAnIOError) {
  ImportErrorKind found = ImportErrorKind::Internal;
  ScopedDiagnosticHandler handler(&context,
                                  [](Diagnostic &) { return success(); });
  EXPECT_TRUE(failed(importONNX("/nowhere/model.onnx", context, {}, &found)));
  EXPECT_EQ(found, ImportErrorKind::IO);
}
