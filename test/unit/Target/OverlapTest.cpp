//===- OverlapTest.cpp - Parts of a buffer against all their bytes --------===//

#include "Overlap.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"

#include <random>
#include <set>

using namespace mlir;
using namespace memplan;

namespace {

class OverlapTest : public testing::Test {
protected:
  OverlapTest() : builder(&context) {
    for (int i = 0; i < 2; ++i)
      scalars.addArgument(builder.getIndexType(), builder.getUnknownLoc());
  }

  BufferRef makeRef(Type type, ArrayRef<int64_t> shape,
                    ArrayRef<int64_t> strides, int64_t offset = 0,
                    ArrayRef<int64_t> factors = {}) {
    BufferRef ref;
    ref.elementType = type;
    ref.shape.assign(shape.begin(), shape.end());
    ref.strides.assign(strides.begin(), strides.end());
    ref.byteOffset = offset;
    for (auto [i, factor] : llvm::enumerate(factors))
      EXPECT_TRUE(ref.addToOffset(scalars.getArgument(i), factor));
    return ref;
  }

  Overlap overlap(const BufferRef &a, const BufferRef &b) {
    return computeOverlap(a, a.byteOffset, b, b.byteOffset);
  }

  MLIRContext context;
  OpBuilder builder;
  Block scalars;
};

void collect(const BufferRef &ref, int64_t at, size_t dim,
             std::set<int64_t> &bytes) {
  if (dim == ref.shape.size()) {
    for (int64_t i = 0; i < ref.getElementBytes(); ++i)
      bytes.insert(at + i);
    return;
  }
  for (int64_t i = 0; i < ref.shape[dim]; ++i)
    collect(ref, at + i * ref.strides[dim] * ref.getElementBytes(), dim + 1,
            bytes);
}

bool sharesBytes(const BufferRef &a, int64_t atA, const BufferRef &b,
                 int64_t atB) {
  std::set<int64_t> bytesA, bytesB;
  collect(a, atA, 0, bytesA);
  collect(b, atB, 0, bytesB);
  return llvm::any_of(bytesA,
                      [&](int64_t byte) { return bytesB.count(byte) != 0; });
}

TEST_F(OverlapTest, RowsOfOneBuffer) {
  Type f32 = builder.getF32Type();
  BufferRef row = makeRef(f32, {4}, {1}, 0, {16});
  // Row t - 1 ends where row t begins.
  Overlap before = overlap(row, makeRef(f32, {4}, {1}, -16, {16}));
  EXPECT_FALSE(before.canStartTogether);
  EXPECT_FALSE(before.canBeShifted);
  // Row u is row t or apart from it.
  BufferRef other = makeRef(f32, {4}, {1});
  ASSERT_TRUE(other.addToOffset(scalars.getArgument(1), 16));
  EXPECT_TRUE(overlap(row, other).canStartTogether);
  EXPECT_FALSE(overlap(row, other).canBeShifted);
  // Two rows from t on and two from u on may share one.
  BufferRef two = makeRef(f32, {2, 4}, {4, 1}, 0, {16});
  BufferRef others = makeRef(f32, {2, 4}, {4, 1});
  ASSERT_TRUE(others.addToOffset(scalars.getArgument(1), 16));
  EXPECT_TRUE(overlap(two, others).canBeShifted);
}

TEST_F(OverlapTest, ColumnsInterleave) {
  Type f32 = builder.getF32Type();
  BufferRef column = makeRef(f32, {4, 1}, {8, 1}, 0, {4});
  Overlap next = overlap(column, makeRef(f32, {4, 1}, {8, 1}, 4, {4}));
  EXPECT_FALSE(next.canStartTogether || next.canBeShifted);
  // 8 columns on lies the next row.
  EXPECT_TRUE(
      overlap(column, makeRef(f32, {4, 1}, {8, 1}, 32, {4})).canBeShifted);
}

TEST_F(OverlapTest, EmptyPartsMeetNothing) {
  Type f32 = builder.getF32Type();
  Overlap none = overlap(makeRef(f32, {0, 4}, {4, 1}), makeRef(f32, {4}, {1}));
  EXPECT_FALSE(none.canStartTogether || none.canBeShifted);
}

TEST_F(OverlapTest, SumsAreTakenApart) {
  // t * 16 + t * -16 is nothing, and no term is left.
  BufferRef ref = makeRef(builder.getF32Type(), {4}, {1}, 8, {16});
  ASSERT_TRUE(ref.addToOffset(scalars.getArgument(0), -16));
  EXPECT_TRUE(ref.terms.empty());
  EXPECT_EQ(ref.byteOffset, 8);
  EXPECT_FALSE(ref.isAligned(16));
  EXPECT_TRUE(ref.isAligned(8));
  // The greatest common divisor of 8, 24 and the base's 256 decides.
  ASSERT_TRUE(ref.addToOffset(scalars.getArgument(0), 24));
  EXPECT_TRUE(ref.isAligned(8));
  EXPECT_FALSE(ref.isAligned(16));
}

TEST_F(OverlapTest, RandomPartsAgainstTheirBytes) {
  std::mt19937 random(1);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Type types[] = {builder.getI8Type(), builder.getIntegerType(16),
                  builder.getF32Type()};
  auto drawRef = [&] {
    SmallVector<int64_t> shape, strides;
    for (int64_t dims = draw(0, 3); dims > 0; --dims) {
      shape.push_back(draw(1, 3));
      strides.push_back(draw(0, 6));
    }
    return makeRef(types[draw(0, 2)], shape, strides, draw(-12, 12));
  };
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    BufferRef a = drawRef(), b = drawRef();
    // The unknown part of the distance: multiples of gcd(|factors|).
    int64_t factorA = draw(-4, 4) * draw(0, 4);
    int64_t factorB = draw(-4, 4) * draw(0, 4);
    ASSERT_TRUE(a.addToOffset(scalars.getArgument(0), factorA));
    ASSERT_TRUE(b.addToOffset(scalars.getArgument(1), factorB));
    Overlap expected = {false, false};
    for (int64_t s = -40; s <= 40; ++s)
      for (int64_t t = -40; t <= 40; ++t) {
        int64_t atA = a.byteOffset + s * factorA;
        int64_t atB = b.byteOffset + t * factorB;
        if (std::abs(atA - atB) > 200)
          continue; // no part is so long
        expected.canStartTogether |= atA == atB;
        expected.canBeShifted |=
            atA != atB && !expected.canBeShifted && sharesBytes(a, atA, b, atB);
        if (factorB == 0)
          break;
      }
    Overlap found = overlap(a, b);
    EXPECT_EQ(found.canStartTogether, expected.canStartTogether);
    EXPECT_EQ(found.canBeShifted, expected.canBeShifted);
  }
}

} // namespace
