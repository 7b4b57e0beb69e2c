// What the gate lets take the fast paths in each mode of a thread's cache.
#include "heap/gate.hpp"

#include <gtest/gtest.h>

#include "../preload/golden/stepped_instructions.hpp"

namespace sluice {
namespace {

ThreadCache c{};
char memory[2];

void put_window(size_t unit) {
  c.window.limit = &memory[unit - 1];
  c.window.unit = unit;
}

// As if a thread had just taken it, with room in its bins.
class GateTest : public testing::Test {
 protected:
  void SetUp() override {
    set(CacheMode{});
    put_window(1);
    for (unsigned k = 1; k < size_class_count; ++k)
      c.bins[k].room = static_cast<int32_t>(k);
  }
  void TearDown() override { set(CacheMode{}); }

  static void set(CacheMode mode) {
    const MutexLock held(c.lock);
    cache::set_gate(c, mode);
  }
};

TEST_F(GateTest, each_fast_path_is_open_in_the_modes_that_it_serves) {
  for (uint8_t bits = 0; bits < 16; ++bits) {
    const CacheMode mode{bits};
    set(mode);
    const bool counting = mode.has(CacheMode::Counting);
    const bool routing = mode.has(CacheMode::Routing);
    const bool sampling = mode.has(CacheMode::Sampling);
    EXPECT_EQ(c.mode, mode);
    EXPECT_EQ(c.small_limit, bits == 0 ? small_limit_when_open : 0) << int{bits};
    EXPECT_EQ(c.sampled_limit, bits == CacheMode::Sampling ? max_direct_size + 1 : 0) << int{bits};
    EXPECT_EQ(c.window.open_limit, routing && !counting && !sampling ? memory : nullptr) << int{bits};
    EXPECT_EQ(c.window.sampled_end, routing && !counting && sampling ? memory : nullptr) << int{bits};
    EXPECT_EQ(c.window.open_unit, counting ? size_t{unit_index_none} : 1) << int{bits};
    EXPECT_EQ(c.window.open_owner, counting ? nullptr : &c) << int{bits};
    for (unsigned k = 1; k < size_class_count; ++k)
      ASSERT_EQ(c.bins[k].room, counting ? 0 : static_cast<int32_t>(k)) << int{bits};
  }
}

TEST_F(GateTest, the_profile_has_a_shorter_way_where_no_blocks_are_guarded) {
  if (!profiles_blocks) GTEST_SKIP() << "this build does not profile";
  for (const bool guards : {true, false}) {
    c.until_guarded = guards ? 5 : never_due;
    for (uint8_t bits = 0; bits < 16; ++bits) {
      set(CacheMode{bits});
      EXPECT_EQ(c.profile.limit, bits == CacheMode::Sampling && !guards ? max_direct_size + 1 : 0)
          << int{bits} << ' ' << guards;
    }
  }
  c.until_guarded = 0;
}

TEST_F(GateTest, a_change_of_the_window_shuts_its_fast_paths) {
  set({CacheMode::Routing});
  cache::shut_window(c);
  EXPECT_EQ(c.window.open_limit, nullptr);
  EXPECT_EQ(c.window.sampled_end, nullptr);
  EXPECT_EQ(c.window.open_unit, size_t{unit_index_none});
  EXPECT_EQ(c.window.open_owner, nullptr);
}

#if defined(__x86_64__) && !defined(SLUICE_THREAD_SANITIZER)

unsigned until_moved;  // instructions

// What an allocation in a signal handler does that does not fit the window.
void move_window_in_time(int) {
  if (until_moved == 0 || --until_moved != 0) return;
  cache::shut_window(c);
  put_window(2);
  cache::set_gate(c, c.mode);
}

TEST_F(GateTest, a_signal_handler_may_move_the_window_at_any_instruction) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = move_window_in_time;
  ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
  const CacheMode modes[] = {{}, {CacheMode::Routing}, {CacheMode::Routing | CacheMode::Sampling}};
  for (const CacheMode mode : modes) {
    bool moved = true;
    for (unsigned at = 1; moved; ++at) {
      put_window(1);
      cache::set_gate(c, {});
      until_moved = at;
      stepped::set_trap_flag();
      cache::set_gate(c, mode);
      stepped::clear_trap_flag();
      moved = until_moved == 0;
      until_moved = 0;
      char* const limit = moved ? &memory[1] : &memory[0];
      ASSERT_EQ(c.window.open_limit, mode.bits == CacheMode::Routing ? limit : nullptr) << at;
      ASSERT_EQ(c.window.sampled_end, mode.has(CacheMode::Sampling) ? limit : nullptr) << at;
      ASSERT_EQ(c.window.open_unit, moved ? 2U : 1U) << at;
      ASSERT_EQ(c.window.open_owner, &c) << at;
      ASSERT_EQ(c.small_limit, mode.bits == 0 ? small_limit_when_open : 0) << at;
    }
  }
  (void)sigaction(SIGTRAP, &before, nullptr);
}

#endif

}  // namespace
}  // namespace sluice
