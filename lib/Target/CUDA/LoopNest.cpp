//===- LoopNest.cpp - Iteration spaces with linear accesses ---------------===//

#include "LoopNest.h"

#include "memplan/Support/CheckedMath.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace memplan {

/// Adds expr * factor to the access.
static bool addLinear(AffineExpr expr, int64_t factor, LinearAccess &access) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    access.coefficients[dim.getPosition()] += factor;
    return true;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    access.constant += constant.getValue() * factor;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), factor, access) &&
           addLinear(binary.getRHS(), factor, access);
  auto scale = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return binary.getKind() == AffineExprKind::Mul && scale &&
         addLinear(binary.getLHS(), factor * scale.getValue(), access);
}

std::optional<LinearAccess> linearize(AffineMap map,
                                      ArrayRef<int64_t> strides) {
  LinearAccess access;
  access.coefficients.assign(map.getNumDims(), 0);
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
    if (!addLinear(expr, stride, access))
      return std::nullopt;
  return access;
}

LoopNest::LoopNest(ArrayRef<int64_t> extents, ArrayRef<LinearAccess> accesses)
    : extents(extents) {
  for (const LinearAccess &access : accesses)
    coefficients.push_back(access.coefficients);
  for (size_t dim = 0; dim < extents.size(); ++dim)
    origin.push_back(dim);
}

LoopNest LoopNest::select(ArrayRef<unsigned> dims) const {
  LoopNest result({}, {});
  result.coefficients.resize(coefficients.size());
  for (unsigned dim : dims) {
    result.extents.push_back(extents[dim]);
    result.origin.push_back(origin[dim]);
    for (auto [to, from] : llvm::zip_equal(result.coefficients, coefficients))
      to.push_back(from[dim]);
  }
  return result;
}

void LoopNest::removeDim(unsigned dim) {
  extents.erase(extents.begin() + dim);
  origin.erase(origin.begin() + dim);
  for (auto &access : coefficients)
    access.erase(access.begin() + dim);
}

void LoopNest::simplify(unsigned lead, ArrayRef<int64_t> pinned) {
  for (unsigned dim = getNumDims(); dim-- > 0;)
    if (extents[dim] == 1)
      removeDim(dim);
  SmallVector<unsigned> order;
  for (unsigned dim = 0; dim < getNumDims(); ++dim)
    order.push_back(dim);
  if (lead < coefficients.size())
    llvm::stable_sort(order, [&](unsigned a, unsigned b) {
      return coefficients[lead][a] > coefficients[lead][b];
    });
  *this = select(order);
  auto isPinned = [&](unsigned dim) {
    return llvm::is_contained(pinned, origin[dim]);
  };
  for (unsigned dim = getNumDims(); dim-- > 1;) {
    unsigned outer = dim - 1;
    if (isPinned(dim) || isPinned(outer) ||
        !llvm::all_of(coefficients, [&](const auto &access) {
          return access[outer] == access[dim] * extents[dim];
        }))
      continue;
    extents[outer] *= extents[dim];
    for (auto &access : coefficients)
      access[outer] = access[dim];
    origin[outer] = -1;
    removeDim(dim);
  }
}

int64_t LoopNest::getNumPoints() const {
  return checkedProduct(extents).value_or(INT64_MAX);
}

bool LoopNest::isNarrow() const {
  constexpr int64_t kLimit = int64_t(1) << 31;
  if (getNumPoints() >= kLimit)
    return false;
  for (const auto &access : coefficients) {
    int64_t last = 0;
    for (auto [coefficient, extent] : llvm::zip_equal(access, extents)) {
      if (coefficient < 0 || coefficient >= kLimit)
        return false;
      last += coefficient * std::max<int64_t>(extent - 1, 0);
    }
    if (last >= kLimit)
      return false;
  }
  return true;
}

std::string sum(ArrayRef<std::string> terms) {
  SmallVector<StringRef> used;
  for (const std::string &term : terms)
    if (!term.empty() && term != "0")
      used.push_back(term);
  return used.empty() ? "0" : llvm::join(used, " + ");
}

void IndexText::decode(StringRef index, int64_t stepOfLast, StringRef indent,
                       bool allRead) {
  step = stepOfLast;
  unsigned rank = nest.getNumDims();
  dims.clear();
  if (rank == 1) {
    dims.push_back(index.str());
    return;
  }
  for (unsigned dim = 0; dim < rank; ++dim)
    dims.push_back(prefix + std::to_string(dim));
  // A dim that is summed over, say, need not be one that an operand has.
  for (unsigned dim = 0; dim < rank; ++dim)
    allRead &= llvm::any_of(nest.coefficients, [&](const auto &access) {
      return access[dim] != 0;
    });
  StringRef maybeUnused = allRead ? "" : "[[maybe_unused]] ";
  auto extentOf = [&](unsigned dim) {
    return nest.extents[dim] / (dim + 1 == rank ? step : 1);
  };
  std::string rest = index.str();
  if (narrow && rank > 1) {
    SmallVector<StringRef> remainders(dims.begin() + 1, dims.end());
    kernel.body +=
        (indent + "unsigned " + llvm::join(remainders, ", ") + ";\n").str();
    for (unsigned dim = rank; dim-- > 1;)
      rest = kernel.number("FastDiv", "extent_" + dims[dim], extentOf(dim)) +
             ".divide(" + rest + ", " + dims[dim] + ")";
    kernel.body += (indent + maybeUnused + "const unsigned " + dims[0] + " = " +
                    rest + ";\n")
                       .str();
    return;
  }
  for (unsigned dim = rank; dim-- > 1;) {
    std::string extent =
        kernel.number("int64_t", "extent_" + dims[dim], extentOf(dim));
    std::string next = dim == 1 ? dims[0] : "above_" + dims[dim];
    kernel.body +=
        (indent + maybeUnused + "const int64_t " + dims[dim] + " = " + rest +
         " % " + extent + ", " + next + " = " + rest + " / " + extent + ";\n")
            .str();
    rest = next;
  }
}

std::string IndexText::offset(unsigned access, StringRef name) const {
  SmallVector<std::string> terms;
  for (unsigned dim = 0; dim < nest.getNumDims(); ++dim) {
    int64_t coefficient = nest.coefficients[access][dim];
    if (coefficient == 0)
      continue;
    bool stepped = dim + 1 == nest.getNumDims() && step != 1;
    if (coefficient == 1)
      terms.push_back(stepped ? std::to_string(step) + " * " + dims[dim]
                              : dims[dim]);
    else
      terms.push_back(dims[dim] + " * " +
                      kernel.number(type(),
                                    name + "_" + prefix + std::to_string(dim),
                                    coefficient * (stepped ? step : 1)));
  }
  return sum(terms);
}

std::string IndexText::dimOf(int64_t original) const {
  for (auto [dim, name] : llvm::zip_equal(nest.origin, dims))
    if (dim == original)
      return name;
  return "0"; // its extent is 1
}

} // namespace memplan
