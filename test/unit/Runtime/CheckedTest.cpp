//===- CheckedTest.cpp - wrong plans are found while they run -------------===//
//
// Built with MEMPLAN_CHECKED. Each test runs kernels under an ArenaGuard as
// emitted code does, with one thing wrong.
//
//===----------------------------------------------------------------------===//

#include "memplan/Runtime/Checked.h"
#include "memplan/Runtime/Memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace memplan::rt;

namespace {

__global__ void addOneKernel(const float *in, float *out, int count) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count)
    out[i] = (in ? in[i] : 0.0f) + 1.0f;
}

class Checked : public testing::Test {
protected:
  static constexpr size_t kBytes = 1024;
  ArenaGuard guard;
  char *arena = nullptr;

  void SetUp() override {
    ASSERT_EQ(
        deviceAllocate("arena", kBytes, reinterpret_cast<void **>(&arena)),
        MEMPLAN_OK);
    ASSERT_EQ(guard.enter(arena, kBytes), MEMPLAN_OK);
  }
  void TearDown() override {
    (void)guard.leave();
    deviceFree(arena);
  }

  float *at(size_t offset) { return reinterpret_cast<float *>(arena + offset); }

  /// A launch of addOneKernel on 16 floats that says what it reads and writes.
  memplan_status step(const char *name, const float *in, float *out) {
    MEMPLAN_TRY(guard.beforeLaunch(name, {{out, 64}}, {{in, in ? 64u : 0u}}));
    MEMPLAN_TRY(
        launch(name, addOneKernel, dim3(1), dim3(16), nullptr, in, out, 16));
    return guard.afterLaunch(name, {{out, 64}});
  }

  static void expectFound(memplan_status status, const char *text) {
    EXPECT_EQ(status, MEMPLAN_ERROR_CHECK);
    EXPECT_NE(std::strstr(memplan_last_error(), text), nullptr)
        << memplan_last_error();
  }
};

TEST_F(Checked, ARightPlanPasses) {
  const float outside[16] = {};
  float output[16];
  ASSERT_EQ(guard.protect(outside, sizeof outside, "input"), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(step("s0", outside, at(0)), MEMPLAN_OK) << memplan_last_error();
  ASSERT_EQ(guard.begin(at(64), 64, "b"), MEMPLAN_OK); // touches a
  ASSERT_EQ(step("s1", at(0), at(64)), MEMPLAN_OK) << memplan_last_error();
  ASSERT_EQ(guard.end(at(0), 64), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(32), 32, "c"), MEMPLAN_OK); // where a was
  ASSERT_EQ(guard.end(at(32), 32), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(0), 64, "d"), MEMPLAN_OK);
  ASSERT_EQ(step("s2", at(64), at(0)), MEMPLAN_OK) << memplan_last_error();
  ASSERT_EQ(step("s3", at(0), at(0)), MEMPLAN_OK) << "in place";
  ASSERT_EQ(step("s4", at(0), output), MEMPLAN_OK) << memplan_last_error();
  ASSERT_EQ(guard.leave(), MEMPLAN_OK);
  EXPECT_EQ(output[7], 5.0f);
}

TEST_F(Checked, FindsBuffersThatOverlap) {
  ASSERT_EQ(guard.begin(at(128), 64, "first"), MEMPLAN_OK);
  expectFound(guard.begin(at(188), 64, "second"), "'second'");
  expectFound(guard.begin(at(100), 64, "second"), "'first'");
  expectFound(guard.begin(at(140), 4, "second"), "live buffer 'first'");
  expectFound(guard.begin(at(64), 512, "second"), "live buffer 'first'");
  EXPECT_EQ(guard.begin(at(192), 64, "third"), MEMPLAN_OK);
  EXPECT_EQ(guard.begin(at(64), 64, "fourth"), MEMPLAN_OK);
}

TEST_F(Checked, FindsBuffersOutsideTheArena) {
  expectFound(guard.begin(at(1000), 32, "late"), "isn't inside the arena");
  expectFound(guard.begin(arena - 4, 4, "early"), "isn't inside the arena");
  ASSERT_EQ(guard.begin(at(960), 64, "last"), MEMPLAN_OK);
  expectFound(guard.beforeLaunch("s", {{at(1020), 8}}), "leaves the arena");
}

TEST_F(Checked, FindsUseAfterTheEndOfALife) {
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(64), 64, "b"), MEMPLAN_OK);
  ASSERT_EQ(step("s0", nullptr, at(0)), MEMPLAN_OK);
  ASSERT_EQ(guard.end(at(0), 64), MEMPLAN_OK);
  expectFound(step("late", at(0), at(64)),
              "'late' reads bytes 0 to 64 of the arena, where no buffer lives");
  expectFound(step("late", nullptr, at(0)), "'late' writes");
}

TEST_F(Checked, FindsReadsOfWhatWasNeverWritten) {
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(64), 64, "b"), MEMPLAN_OK);
  expectFound(step("s0", at(0), at(64)), "in buffer 'a', which was never");
  // Also if only a part was: the first half here, and one column of two there.
  ASSERT_EQ(guard.afterLaunch("half", {{at(0), 32}}), MEMPLAN_OK);
  expectFound(step("s1", at(0), at(64)), "byte 32 of the arena");
  ASSERT_EQ(guard.beforeLaunch("column", {}, {{at(0), 4, 4, 8}}), MEMPLAN_OK);
  ASSERT_EQ(guard.afterLaunch("rows", {{at(32), 4, 4, 8}}), MEMPLAN_OK);
  ASSERT_EQ(guard.beforeLaunch("rows", {}, {{at(32), 4, 4, 8}}), MEMPLAN_OK);
  expectFound(step("s2", at(0), at(64)), "byte 36 of the arena");
}

TEST_F(Checked, ANewLifeHoldsNothing) {
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(step("s0", nullptr, at(0)), MEMPLAN_OK);
  ASSERT_EQ(guard.end(at(0), 64), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(0), 64, "b"), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(64), 64, "c"), MEMPLAN_OK);
  expectFound(step("s1", at(0), at(64)), "in buffer 'b', which was never");
}

#ifndef MEMPLAN_ASAN // which would stop at the access itself
TEST_F(Checked, UndeclaredReadsOfDeadBytesGiveNaN) {
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(step("s0", nullptr, at(0)), MEMPLAN_OK);
  ASSERT_EQ(guard.end(at(0), 64), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(64), 64, "b"), MEMPLAN_OK);
  ASSERT_EQ(guard.beforeLaunch("s1", {{at(64), 64}}), MEMPLAN_OK);
  ASSERT_EQ(
      launch("s1", addOneKernel, dim3(1), dim3(16), nullptr, at(0), at(64), 16),
      MEMPLAN_OK);
  ASSERT_EQ(guard.afterLaunch("s1", {{at(64), 64}}), MEMPLAN_OK);
  for (int i = 0; i < 16; ++i)
    EXPECT_TRUE(std::isnan(at(64)[i]));
}

TEST_F(Checked, FindsWritesIntoDeadBytes) {
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(guard.beforeLaunch("wild", {{at(0), 64}}), MEMPLAN_OK);
  ASSERT_EQ(launch("wild", addOneKernel, dim3(1), dim3(17), nullptr,
                   static_cast<const float *>(nullptr), at(0), 17),
            MEMPLAN_OK);
  expectFound(guard.afterLaunch("wild", {{at(0), 64}}),
              "'wild' changed byte 64 of the arena, where no buffer lives");
}
#endif

TEST_F(Checked, FindsWritesIntoAnotherLiveBuffer) {
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(64), 64, "victim"), MEMPLAN_OK);
  ASSERT_EQ(step("s0", nullptr, at(64)), MEMPLAN_OK);
  ASSERT_EQ(guard.beforeLaunch("wild", {{at(0), 64}}), MEMPLAN_OK);
  ASSERT_EQ(launch("wild", addOneKernel, dim3(1), dim3(20), nullptr,
                   static_cast<const float *>(nullptr), at(4), 16),
            MEMPLAN_OK);
  // The victim's first element was 1 and is 1 again: found is what differs.
  EXPECT_EQ(guard.afterLaunch("wild", {{at(0), 64}}), MEMPLAN_OK);
  ASSERT_EQ(launch("wild", addOneKernel, dim3(1), dim3(20), nullptr, at(4),
                   at(4), 16),
            MEMPLAN_OK);
  expectFound(guard.afterLaunch("wild", {{at(0), 64}}),
              "in live buffer 'victim' (byte 2 of it)"); // 1.0f to 2.0f
}

TEST_F(Checked, FindsWritesThatReachBeyondTheirBuffer) {
  ASSERT_EQ(guard.begin(at(0), 32, "a"), MEMPLAN_OK);
  expectFound(step("s0", nullptr, at(0)), "beyond live buffer 'a'");
}

TEST_F(Checked, FindsLivesThatEndWithoutABeginning) {
  expectFound(guard.end(at(0), 64), "didn't begin");
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  expectFound(guard.end(at(0), 32), "didn't begin");
  expectFound(guard.end(at(32), 32), "didn't begin");
  EXPECT_EQ(guard.end(at(0), 64), MEMPLAN_OK);
}

TEST_F(Checked, FindsChangedInputs) {
  float input[16] = {};
  ASSERT_EQ(guard.protect(input, sizeof input, "image"), MEMPLAN_OK);
  ASSERT_EQ(step("scratch", nullptr, input), MEMPLAN_OK);
  expectFound(guard.leave(), "'image' was changed");
}

TEST_F(Checked, EmptyBuffersAreNothing) {
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  EXPECT_EQ(guard.begin(at(32), 0, "none"), MEMPLAN_OK);
  EXPECT_EQ(guard.beforeLaunch("s", {{at(512), 0}}, {{at(512), 4, 0, 8}}),
            MEMPLAN_OK);
  EXPECT_EQ(guard.end(at(32), 0), MEMPLAN_OK);
}

TEST_F(Checked, AGuardCanBeEnteredAgain) {
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(step("s0", nullptr, at(0)), MEMPLAN_OK);
  ASSERT_EQ(guard.enter(arena, kBytes), MEMPLAN_OK); // a run ended in an error
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  ASSERT_EQ(guard.begin(at(64), 64, "b"), MEMPLAN_OK);
  expectFound(step("s1", at(0), at(64)), "never written");
}

#ifdef MEMPLAN_ASAN
TEST_F(Checked, AddressSanitizerKnowsDeadBytes) {
  EXPECT_TRUE(__asan_address_is_poisoned(at(0)));
  ASSERT_EQ(guard.begin(at(0), 64, "a"), MEMPLAN_OK);
  EXPECT_FALSE(__asan_address_is_poisoned(at(0)));
  ASSERT_EQ(step("s0", nullptr, at(0)), MEMPLAN_OK);
  EXPECT_TRUE(__asan_address_is_poisoned(at(64)));
  ASSERT_EQ(guard.end(at(0), 64), MEMPLAN_OK);
  EXPECT_TRUE(__asan_address_is_poisoned(at(0)));
  ASSERT_EQ(guard.leave(), MEMPLAN_OK);
  EXPECT_FALSE(__asan_address_is_poisoned(at(0)));
}
#endif

} // namespace
