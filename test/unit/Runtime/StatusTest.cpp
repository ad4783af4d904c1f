//===- StatusTest.cpp - the C part, called from C -------------------------===//
//
// Also a second file that includes the umbrella header: nothing in it may be
// defined twice.
//
//===----------------------------------------------------------------------===//

#include "memplan/Runtime/Runtime.h"

#include <gtest/gtest.h>

#include <thread>

extern "C" const char *statusNameFromC(void);

namespace {

TEST(Status, LinksFromC) {
  EXPECT_STREQ(statusNameFromC(), "MEMPLAN_ERROR_FILE");
}

TEST(Status, MessagesBelongToTheirThread) {
  memplan::rt::fail(MEMPLAN_ERROR_FILE, "mine: %d", 7);
  std::thread([] {
    EXPECT_STREQ(memplan_last_error(), "");
    memplan::rt::fail(MEMPLAN_ERROR_FILE, "%s",
                      std::string(5000, 'x').c_str()); // is cut
    EXPECT_EQ(std::string(memplan_last_error()), std::string(1023, 'x'));
  }).join();
  EXPECT_STREQ(memplan_last_error(), "mine: 7");
}

TEST(Unchecked, TheGuardIsEmpty) {
  memplan::rt::ArenaGuard guard;
  EXPECT_EQ(guard.begin(nullptr, 7, "outside everything"), MEMPLAN_OK);
  EXPECT_TRUE(std::is_empty_v<memplan::rt::ArenaGuard>);
}

} // namespace
