// Work that comes again at intervals: one thread does it, however long it takes.
#include <string>

#include <gtest/gtest.h>

#include "heap/regular.hpp"
#include "in_child.hpp"

namespace {

using namespace sluice;

int entered = 0;

bool enter_and_look() noexcept {
  if (++entered < 3) regular::look();
  return true;
}

TEST(Regular, work_in_progress_is_not_entered_again) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              regular::start(enter_and_look, 0);
              regular::look();
              if (entered != 1) return "entered " + std::to_string(entered) + " times";
              regular::look();
              return entered == 2 ? "" : "it does not come again";
            }),
            "");
}

TEST(Regular, a_forked_child_begins_anew_or_ends_it) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              regular::start(
                  []() noexcept {
                    regular::start_in_child(true);
                    if (regular::until_due() == regular::never) return ++entered, true;
                    regular::start_in_child(false);
                    if (regular::until_due() != regular::never) ++entered;
                    return true;
                  },
                  0);
              regular::look();
              return entered == 0 ? "" : "what the parent was at goes on in the child";
            }),
            "");
}

}  // namespace
