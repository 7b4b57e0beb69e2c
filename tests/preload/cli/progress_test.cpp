// How long is left of what is done in steps, some of which rest for a known time.
#include "measure/progress.hpp"

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(Progress, RestsCountAsLongAsTheyAre) {
  // Ten steps, of which the first five rest for 10 s and all work for 1 s.
  EXPECT_DOUBLE_EQ(seconds_left({10, 50}, 1, 10, 11), 9 * 1 + 40);
  EXPECT_DOUBLE_EQ(seconds_left({10, 50}, 5, 50, 55), 5);
  EXPECT_DOUBLE_EQ(seconds_left({10, 50}, 10, 50, 60), 0);
}

TEST(Progress, BeforeTheFirstStepTheRestsAreKnown) {
  EXPECT_DOUBLE_EQ(seconds_left({10, 50}, 0, 0, 0), 50);
  EXPECT_DOUBLE_EQ(seconds_left({10, 0}, 0, 0, 0), 0);
}

TEST(Progress, StepsWithoutRestsAreAsLongAsThoseBefore) {
  EXPECT_DOUBLE_EQ(seconds_left({4, 0}, 1, 0, 3), 9);
  EXPECT_DOUBLE_EQ(seconds_left({4, 0}, 6, 0, 3), 0) << "more steps than were known of";
  EXPECT_DOUBLE_EQ(seconds_left({4, 20}, 1, 10, 9), 10) << "a rest that was cut short takes no time of the others";
}

TEST(Progress, TimesAreInMinutesFromOneOn) {
  EXPECT_EQ(time_left_text(59), "59 s");
  EXPECT_EQ(time_left_text(170), "2:50 min");
}

}  // namespace
}  // namespace bench
