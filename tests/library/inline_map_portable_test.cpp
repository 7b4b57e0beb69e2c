// Tables behave the same where sixteen bytes cannot be compared at once.
#define SLUICE_TABLE_PORTABLE 1
#include <random>
#include <string>

#include "table_model.hpp"

namespace {

using library_test::AllEqual;
using library_test::GoodHash;

TEST(inline_map_portable, MasksHaveABitForEachSlotOfTheKind) {
  using group = sluice::detail::table_group;
  std::mt19937 random(7);
  for (int round = 0; round < 10000; ++round) {
    alignas(16) unsigned char control[16];
    for (unsigned char& byte : control)
      byte = random() % 3 == 0 ? static_cast<unsigned char>(random() % 4) : static_cast<unsigned char>(random());
    const std::uint64_t hash = static_cast<std::uint64_t>(random() % 256) << 56;
    unsigned matches = 0, empties = 0, taken = 0;
    for (unsigned i = 0; i < 16; ++i) {
      matches |= static_cast<unsigned>(control[i] == group::mark_of(hash)) << i;
      empties |= static_cast<unsigned>(control[i] == group::empty) << i;
      taken |= static_cast<unsigned>(control[i] >= group::lowest_mark) << i;
    }
    ASSERT_EQ(group::matches(control, group::pattern_of(hash)), matches) << round;
    ASSERT_EQ(group::empties(control), empties) << round;
    ASSERT_EQ(group::taken(control), taken) << round;
    const unsigned slot = random() % 16;
    unsigned char expected[16];
    std::memcpy(expected, control, 16);
    expected[slot] = 77;
    group::set(control, slot, 77);
    ASSERT_EQ(std::memcmp(control, expected, 16), 0) << round;
  }
}

TEST(inline_map_portable, MapsBehaveAsInTheStandard) {
  library_test::run_maps<int, GoodHash>(3000, 60);
  library_test::run_maps<int, AllEqual>(2000, 100);
  library_test::run_maps<std::string, GoodHash>(2000, 300);
}

}  // namespace
