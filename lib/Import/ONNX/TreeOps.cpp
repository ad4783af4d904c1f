//===- TreeOps.cpp - Ensembles of decision trees --------------------------===//
//
// A thread a sample and tree walks down from the root, as many steps as the
// deepest tree has: a leaf leads to itself. Then a thread a sample and target
// adds up what the leaves say.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"
#include "Places.h"
#include "PostTransform.h"
#include "TensorOps.h"
#include "memplan/Support/CheckedMath.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace memplan;
using namespace memplan::onnx;

/// Deeper trees have bodies that nobody could read or compile.
static constexpr int64_t kDeepest = 64, kMostNodes = 1 << 22;

namespace {
enum class Mode : int64_t {
  LessEqual,
  Less,
  GreaterEqual,
  Greater,
  Equal,
  Not
};
enum class Aggregate { Sum, Average, Min, Max };

struct TreeNode {
  int64_t feature = 0;
  Mode mode = Mode::LessEqual;
  double split = 0;
  bool tracksMissing = false, isLeaf = false;
  int64_t yes = -1, no = -1; // a leaf's is itself
  SmallVector<std::pair<int64_t, double>, 1> weights;
};

struct Ensemble {
  std::vector<TreeNode> nodes;
  SmallVector<int64_t> roots;
  int64_t numTargets = 1;
  Aggregate aggregate = Aggregate::Sum;
  SmallVector<double> base;
};

class TreeWalker {
public:
  TreeWalker(NodeBuilder &n, Ensemble &ensemble, DType dtype)
      : n(n), ensemble(ensemble), x(n.input(0)), dtype(dtype) {}
  /// The scores, samples x targets, of type `dtype`; null after an error.
  Value build();

private:
  FailureOr<int64_t> measure();
  Value leaves(int64_t depth);
  Value sum(Value leaves);
  template <typename T, typename Fn>
  Value table(Type type, Fn entry) {
    SmallVector<T> values;
    for (const TreeNode &node : ensemble.nodes)
      values.push_back(entry(node));
    return constantTensor<T>(n, static_cast<int64_t>(values.size()), values,
                             type);
  }

  NodeBuilder &n;
  Ensemble &ensemble;
  ImportedTensor &x;
  DType dtype;
};
} // namespace

/// The depth of the deepest tree. Each node has one way to it.
FailureOr<int64_t> TreeWalker::measure() {
  int64_t count = ensemble.nodes.size(), deepest = 0;
  if (count > kMostNodes)
    return n.unsupported() << "the trees have " << count
                           << " nodes; at most 2^22 are accepted";
  std::vector<bool> seen(count, false);
  SmallVector<std::pair<int64_t, int64_t>> open;
  for (int64_t root : ensemble.roots)
    open.push_back({root, 0});
  while (!open.empty()) {
    auto [at, depth] = open.pop_back_val();
    if (at < 0 || at >= count || seen[at])
      return n.invalid() << "node " << at << " of the trees "
                         << (at < 0 || at >= count ? "does not exist"
                                                   : "is reached twice");
    seen[at] = true;
    deepest = std::max(deepest, depth);
    if (depth > kDeepest)
      return n.unsupported() << "a tree is deeper than " << kDeepest;
    const TreeNode &node = ensemble.nodes[at];
    if (node.isLeaf)
      continue;
    if (node.feature < 0 || node.feature >= x.dim(1))
      return n.invalid() << "node " << at << " of the trees asks for feature "
                         << node.feature << " of " << n.inputText(0u);
    open.push_back({node.yes, depth + 1});
    open.push_back({node.no, depth + 1});
  }
  return deepest;
}

/// Which leaf each sample reaches in each tree.
Value TreeWalker::leaves(int64_t depth) {
  Type i64 = n.b.getI64Type(), i8 = n.b.getI8Type();
  Value features =
      table<int64_t>(i64, [](const TreeNode &node) { return node.feature; });
  Value yes =
      table<int64_t>(i64, [](const TreeNode &node) { return node.yes; });
  Value no = table<int64_t>(i64, [](const TreeNode &node) { return node.no; });
  Value modes = table<int8_t>(
      i8, [](const TreeNode &node) { return static_cast<int8_t>(node.mode); });
  Value tracks = table<int8_t>(
      i8, [](const TreeNode &node) { return int8_t(node.tracksMissing); });
  DType compared =
      x.dtype.isFloat() && x.dtype.bits() == 64 ? x.dtype : DType::f32();
  Value splits =
      compared.bits() == 64
          ? table<double>(n.b.getF64Type(),
                          [](const TreeNode &node) { return node.split; })
          : table<float>(n.b.getF32Type(), [](const TreeNode &node) {
              return static_cast<float>(node.split);
            });
  int64_t numTrees = ensemble.roots.size();
  Value roots = constantTensor<int64_t>(n, numTrees, ensemble.roots, i64);
  Value source = n.value(0);
  auto used = [&](Mode mode) {
    return llvm::any_of(ensemble.nodes, [&](const TreeNode &node) {
      return !node.isLeaf && node.mode == mode;
    });
  };
  bool canTrack = llvm::any_of(
      ensemble.nodes, [](const TreeNode &node) { return node.tracksMissing; });
  DType byte = *DType::fromCode(3);
  AffineMap map = AffineMap::get(2, 0, n.b.getAffineDimExpr(1));
  return mapElements(
      n, roots, map, {x.dim(0), numTrees}, i64,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        Scalars s(b, loc, compared), code(b, loc, byte);
        Value at = args[0];
        for (int64_t step = 0; step < depth; ++step) {
          Value element = p.read(source, {p.loop(0), p.read(features, at)});
          Value value = castScalar(b, loc, element, x.dtype, compared);
          Value split = p.read(splits, at), mode = p.read(modes, at);
          Value goes;
          auto add = [&](Mode which, Value holds) {
            if (!used(which))
              return;
            Value isIt =
                code.equal(mode, code.integer(static_cast<int64_t>(which)));
            goes = goes ? p.select(isIt, holds, goes) : holds;
          };
          add(Mode::LessEqual, s.lessOrEqual(value, split));
          add(Mode::Less, s.less(value, split));
          add(Mode::GreaterEqual, s.lessOrEqual(split, value));
          add(Mode::Greater, s.less(split, value));
          add(Mode::Equal, s.equal(value, split));
          add(Mode::Not, s.notEqual(value, split));
          if (canTrack) {
            Value isMissing =
                p.both(s.notEqual(value, value),
                       code.notEqual(p.read(tracks, at), code.integer(0)));
            goes = p.make<arith::OrIOp>(goes, isMissing);
          }
          at = p.select(goes, p.read(yes, at), p.read(no, at));
        }
        return at;
      });
}

/// A target that no leaf speaks of has its base value, or 0.
Value TreeWalker::sum(Value leaves) {
  size_t width = 1;
  for (const TreeNode &node : ensemble.nodes)
    width = std::max(width, node.weights.size());
  int64_t count = ensemble.nodes.size(), columns = width;
  SmallVector<int64_t> targets;
  SmallVector<double> weights;
  for (const TreeNode &node : ensemble.nodes) {
    for (auto [target, weight] : node.weights) {
      targets.push_back(target);
      weights.push_back(weight);
    }
    targets.append(width - node.weights.size(), -1);
    weights.append(width - node.weights.size(), 0);
  }
  Value targetTable =
      constantTensor<int64_t>(n, {count, columns}, targets, n.b.getI64Type());
  Type type = dtype.type(n.context());
  SmallVector<float> narrow(weights.begin(), weights.end());
  Value weightTable =
      type.isF64() ? constantTensor<double>(n, {count, columns}, weights, type)
                   : constantTensor<float>(n, {count, columns}, narrow, type);
  SmallVector<int64_t> shape = {x.dim(0), ensemble.numTargets};
  bool isExtreme = ensemble.aggregate == Aggregate::Min ||
                   ensemble.aggregate == Aggregate::Max;
  bool isMax = ensemble.aggregate == Aggregate::Max;
  // No weight is a NaN: it stands for none yet.
  auto none = n.b.getFloatAttr(type, std::nan(""));
  Value start = filled(n, shape, isExtreme ? none : n.b.getFloatAttr(type, 0));
  AffineMap map = AffineMap::get(
      3, 0, {n.b.getAffineDimExpr(0), n.b.getAffineDimExpr(2)}, n.context());
  Value sums = accumulate(
      n, leaves, map, start, 1,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Places p(b, loc);
        Scalars s(b, loc, dtype);
        Value result = args[1];
        for (int64_t i = 0; i < columns; ++i) {
          Value target = p.read(targetTable, {args[0], p.integer(i)});
          Value weight = p.read(weightTable, {args[0], p.integer(i)});
          Value next = s.add(result, weight);
          if (isExtreme) {
            Value better =
                isMax ? s.less(result, weight) : s.less(weight, result);
            Value isFirst = s.notEqual(result, result);
            next =
                s.select(p.make<arith::OrIOp>(better, isFirst), weight, result);
          }
          result = s.select(p.equal(target, p.loop(1)), next, result);
        }
        return result;
      });
  SmallVector<double> base = ensemble.base;
  base.resize(ensemble.numTargets, 0);
  SmallVector<float> narrowBase(base.begin(), base.end());
  Value baseTable =
      type.isF64()
          ? constantTensor<double>(n, ensemble.numTargets, base, type)
          : constantTensor<float>(n, ensemble.numTargets, narrowBase, type);
  AffineMap maps[] = {n.b.getMultiDimIdentityMap(2),
                      AffineMap::get(2, 0, n.b.getAffineDimExpr(1))};
  return mapElements(n, {sums, baseTable}, maps, shape, type,
                     [&](OpBuilder &b, Location loc, ValueRange args) {
                       Scalars s(b, loc, dtype);
                       Value y = args[0];
                       if (isExtreme)
                         y = s.select(s.notEqual(y, y), s.number(0), y);
                       if (ensemble.aggregate == Aggregate::Average)
                         y = s.div(y, s.integer(ensemble.roots.size()));
                       return s.add(y, args[1]);
                     });
}

Value TreeWalker::build() {
  if (x.rank() != 2 || x.dtype.isBool()) {
    n.invalid() << n.inputText(0u) << "; samples of numbers are accepted";
    return {};
  }
  FailureOr<int64_t> depth = measure();
  if (failed(depth))
    return {};
  if (ensemble.numTargets < 1 || ensemble.roots.empty() ||
      !checkedMul(ensemble.numTargets, x.dim(0)) ||
      static_cast<int64_t>(ensemble.base.size()) > ensemble.numTargets) {
    n.invalid() << "has " << ensemble.numTargets << " targets, "
                << ensemble.roots.size() << " trees and "
                << ensemble.base.size() << " base values";
    return {};
  }
  for (const TreeNode &node : ensemble.nodes)
    for (auto [target, weight] : node.weights)
      if (target < 0 || target >= ensemble.numTargets) {
        n.invalid() << "a leaf is about target " << target << " of "
                    << ensemble.numTargets;
        return {};
      }
  return sum(leaves(*depth));
}

//===----------------------------------------------------------------------===//
// TreeEnsemble
//===----------------------------------------------------------------------===//

/// A tensor attribute as doubles; empty if absent.
static FailureOr<SmallVector<double>> readNumbers(NodeBuilder &n,
                                                  StringRef name) {
  const Tensor *tensor = n.tensorAttr(name);
  SmallVector<double> numbers;
  if (!tensor)
    return numbers;
  FailureOr<TensorData> data = n.tensorData(*tensor);
  if (failed(data))
    return failure();
  DenseElementsAttr values = data->values;
  if (!values && data->inFile)
    values = readElements(data->dtype, data->type, data->inFile->bytes);
  for (Attribute value : values.getValues<Attribute>()) {
    if (auto number = dyn_cast<FloatAttr>(value))
      numbers.push_back(number.getValueAsDouble());
    else
      numbers.push_back(static_cast<double>(
          cast<IntegerAttr>(value).getValue().getZExtValue()));
  }
  return numbers;
}

static LogicalResult buildTreeEnsemble(NodeBuilder &n) {
  auto ints = [&](StringRef name) {
    return n.intsAttr(name).value_or(SmallVector<int64_t>());
  };
  auto features = ints("nodes_featureids"), yes = ints("nodes_truenodeids"),
       no = ints("nodes_falsenodeids"), yesLeafs = ints("nodes_trueleafs"),
       noLeafs = ints("nodes_falseleafs"), targets = ints("leaf_targetids"),
       tracks = ints("nodes_missing_value_tracks_true"),
       roots = ints("tree_roots");
  auto modes = readNumbers(n, "nodes_modes"),
       splits = readNumbers(n, "nodes_splits"),
       weights = readNumbers(n, "leaf_weights"),
       members = readNumbers(n, "membership_values");
  n.ignoreAttr("nodes_hitrates");
  int64_t aggregate = n.intAttr("aggregate_function", 1);
  auto transform = readPostTransform(n, /*isNumber=*/true);
  if (failed(modes) || failed(splits) || failed(weights) || failed(members) ||
      failed(transform))
    return failure();
  size_t count = features.size();
  if (aggregate < 0 || aggregate > 3 || yes.size() != count ||
      no.size() != count || yesLeafs.size() != count ||
      noLeafs.size() != count || modes->size() != count ||
      splits->size() != count || weights->size() != targets.size() ||
      (!tracks.empty() && tracks.size() != count))
    return n.invalid() << "its attributes are of different lengths, or "
                          "'aggregate_function' is none of 0 to 3";
  Ensemble ensemble;
  static constexpr Aggregate kAggregates[] = {
      Aggregate::Average, Aggregate::Sum, Aggregate::Min, Aggregate::Max};
  ensemble.aggregate = kAggregates[aggregate];
  ensemble.numTargets = n.intAttr("n_targets", 1);
  // The leaves come after the nodes, then what sets of members need.
  int64_t numLeaves = targets.size(), next = count + numLeaves;
  ensemble.nodes.resize(next);
  for (int64_t i = 0; i < numLeaves; ++i) {
    TreeNode &leaf = ensemble.nodes[count + i];
    leaf.yes = leaf.no = count + i;
    leaf.isLeaf = true;
    leaf.weights.push_back({targets[i], (*weights)[i]});
  }
  size_t member = 0;
  for (size_t i = 0; i < count; ++i) {
    double mode = (*modes)[i];
    TreeNode node;
    node.feature = features[i];
    node.split = (*splits)[i];
    node.tracksMissing = !tracks.empty() && tracks[i] != 0;
    auto child = [&](int64_t id, int64_t isLeaf) {
      int64_t limit = isLeaf ? numLeaves : count;
      return id < 0 || id >= limit ? -1 : isLeaf ? id + int64_t(count) : id;
    };
    node.yes = child(yes[i], yesLeafs[i]);
    node.no = child(no[i], noLeafs[i]);
    if (mode != 6) {
      if (!(mode >= 0 && mode < 6))
        return n.invalid() << "attribute 'nodes_modes' has entry " << mode;
      node.mode = static_cast<Mode>(static_cast<int64_t>(mode));
      ensemble.nodes[i] = node;
      continue;
    }
    // A set is a chain of comparisons; a NaN ends it. All its ends are leaves
    // or nodes that one way leads to, so each but the first gets a copy of a
    // leaf.
    node.mode = Mode::Equal;
    SmallVector<double> values;
    for (; member < members->size() && !std::isnan((*members)[member]);
         ++member)
      values.push_back((*members)[member]);
    ++member;
    if (values.empty())
      return n.invalid() << "node " << i << " of the trees has no members";
    int64_t at = i;
    for (auto [k, value] : llvm::enumerate(values)) {
      TreeNode link = node;
      link.split = value;
      if (k > 0 && node.yes >= 0) {
        if (!ensemble.nodes[node.yes].isLeaf)
          return n.unsupported()
                 << "node " << i
                 << " of the trees asks for several members and leads to "
                    "another node; a leaf is accepted";
        TreeNode leaf = ensemble.nodes[node.yes];
        leaf.yes = leaf.no = ensemble.nodes.size();
        link.yes = leaf.yes;
        ensemble.nodes.push_back(leaf);
      }
      if (k + 1 < values.size()) {
        link.no = ensemble.nodes.size();
        ensemble.nodes.push_back({});
      }
      ensemble.nodes[at] = link;
      at = link.no;
    }
  }
  // A tree of one leaf is written as a node both of whose ways lead there.
  for (int64_t root : roots) {
    if (root >= 0 && root < int64_t(count) &&
        ensemble.nodes[root].yes == ensemble.nodes[root].no)
      root = ensemble.nodes[root].yes;
    ensemble.roots.push_back(root);
  }
  DType dtype = n.input(0).dtype;
  if (failed(n.floatInput(0)))
    return failure();
  Value y = TreeWalker(n, ensemble, dtype).build();
  if (!y)
    return failure();
  return n.result(postTransform(n, y, dtype, *transform), dtype);
}

//===----------------------------------------------------------------------===//
// TreeEnsembleRegressor and TreeEnsembleClassifier
//===----------------------------------------------------------------------===//

/// The nodes of the older form are named by tree and number.
static LogicalResult readNodes(NodeBuilder &n, Ensemble &ensemble,
                               StringRef prefix) {
  auto ints = [&](const Twine &name) {
    return n.intsAttr(name.str()).value_or(SmallVector<int64_t>());
  };
  auto trees = ints("nodes_treeids"), ids = ints("nodes_nodeids"),
       features = ints("nodes_featureids"), yes = ints("nodes_truenodeids"),
       no = ints("nodes_falsenodeids"),
       tracks = ints("nodes_missing_value_tracks_true");
  auto splits = n.floatsAttr("nodes_values").value_or(SmallVector<float>());
  auto modes = n.stringsAttr("nodes_modes").value_or(SmallVector<StringRef>());
  auto leafTrees = ints(prefix + "_treeids"),
       leafIds = ints(prefix + "_nodeids"), targets = ints(prefix + "_ids");
  auto weights =
      n.floatsAttr((prefix + "_weights").str()).value_or(SmallVector<float>());
  n.ignoreAttr("nodes_hitrates");
  for (StringRef name : {"nodes_values_as_tensor", "base_values_as_tensor"})
    if (n.hasAttr(name))
      return n.unsupported() << "attribute " << quoted(name)
                             << "; the form of floats is accepted";
  size_t count = ids.size();
  if (trees.size() != count || features.size() != count ||
      yes.size() != count || no.size() != count || splits.size() != count ||
      modes.size() != count || (!tracks.empty() && tracks.size() != count) ||
      leafTrees.size() != weights.size() || leafIds.size() != weights.size() ||
      targets.size() != weights.size())
    return n.invalid() << "its attributes are of different lengths";
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < count; ++i)
    if (!places.insert({{trees[i], ids[i]}, int64_t(i)}).second)
      return n.invalid() << "node " << ids[i] << " of tree " << trees[i]
                         << " is there twice";
  static constexpr StringRef kModes[] = {"BRANCH_LEQ", "BRANCH_LT",
                                         "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ"};
  ensemble.nodes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    TreeNode &node = ensemble.nodes[i];
    auto find = [&](int64_t id) {
      auto found = places.find({trees[i], id});
      return found == places.end() ? -1 : found->second;
    };
    // The root of a tree is its first node.
    if (i == 0 || trees[i] != trees[i - 1])
      ensemble.roots.push_back(i);
    if (modes[i] == "LEAF") {
      node.yes = node.no = i;
      node.isLeaf = true;
      continue;
    }
    const StringRef *mode = llvm::find(kModes, modes[i]);
    if (mode == std::end(kModes))
      return n.invalid() << "attribute 'nodes_modes' has entry "
                         << quoted(modes[i]);
    node.mode = static_cast<Mode>(mode - std::begin(kModes));
    node.feature = features[i];
    node.split = splits[i];
    node.tracksMissing = !tracks.empty() && tracks[i] != 0;
    node.yes = find(yes[i]);
    node.no = find(no[i]);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    auto found = places.find({leafTrees[i], leafIds[i]});
    if (found == places.end())
      return n.invalid() << "attribute " << quoted((prefix + "_nodeids").str())
                         << " names no node: " << leafIds[i];
    ensemble.nodes[found->second].weights.push_back({targets[i], weights[i]});
  }
  return success();
}

static LogicalResult buildTreeEnsembleRegressor(NodeBuilder &n) {
  Ensemble ensemble;
  auto transform = readPostTransform(n);
  StringRef aggregate = n.stringAttr("aggregate_function", "SUM");
  static constexpr StringRef kNames[] = {"SUM", "AVERAGE", "MIN", "MAX"};
  const StringRef *found = llvm::find(kNames, aggregate);
  if (found == std::end(kNames))
    return n.invalid() << "attribute 'aggregate_function' is "
                       << quoted(aggregate);
  ensemble.aggregate = static_cast<Aggregate>(found - std::begin(kNames));
  ensemble.numTargets = n.intAttr("n_targets", 1);
  for (float value : n.floatsAttr("base_values").value_or(SmallVector<float>()))
    ensemble.base.push_back(value);
  if (failed(transform) || failed(readNodes(n, ensemble, "target")))
    return failure();
  Value y = TreeWalker(n, ensemble, DType::f32()).build();
  if (!y)
    return failure();
  return n.result(postTransform(n, y, DType::f32(), *transform), DType::f32());
}

static LogicalResult buildTreeEnsembleClassifier(NodeBuilder &n) {
  Ensemble ensemble;
  auto transform = readPostTransform(n);
  auto labels = readClassLabels(n, "classlabels_int64s");
  if (failed(transform) || failed(labels))
    return failure();
  ensemble.numTargets = labels->size();
  for (float value : n.floatsAttr("base_values").value_or(SmallVector<float>()))
    ensemble.base.push_back(value);
  if (failed(readNodes(n, ensemble, "class")))
    return failure();
  Value scores = TreeWalker(n, ensemble, DType::f32()).build();
  if (!scores)
    return failure();
  return classify(n, scores, *labels, *transform);
}

namespace memplan::onnx {
llvm::ArrayRef<OpEntry> treeOps() {
  static constexpr const char *kDomain = "ai.onnx.ml";
  static const OpEntry kOps[] = {
      {"TreeEnsemble", 5, 5, 1, 1, 1, buildTreeEnsemble, kDomain},
      {"TreeEnsembleClassifier", 1, 5, 1, 1, 2, buildTreeEnsembleClassifier,
       kDomain},
      {"TreeEnsembleRegressor", 1, 5, 1, 1, 1, buildTreeEnsembleRegressor,
       kDomain},
  };
  return kOps;
}
} // namespace memplan::onnx
