// inline_set behaves as the standard's set does, whatever happens to it in whatever order.
#include <cstdint>
#include <string>

#include "table_model.hpp"

namespace {

using library_test::Aligned;
using library_test::AllEqual;
using library_test::GoodHash;
using library_test::Identity;
using library_test::Pointed;
using library_test::run_set;

TEST(inline_set_model, KeysOfAllKindsBehaveAsInTheStandard) {
  run_set<int, 8, GoodHash>(1, 3000, 50);
  run_set<int, 40, AllEqual>(2, 3000, 90);
  run_set<std::string, 16, Identity>(3, 3000, 50);
  run_set<Pointed, 0, GoodHash>(4, 3000, 70);
  run_set<Aligned, 1, GoodHash>(5, 3000, 40);
}

// Hashes of which only some bits differ: those that choose the home, those of the mark, those of the bits that say
// whether a search goes on.
template <int Shift, int Bits>
struct FewBits {
  using is_avalanching = void;
  template <class K>
  std::size_t operator()(const K& key) const {
    const auto number = static_cast<std::uint64_t>(library_test::KeyOf<K>::number(key));
    return static_cast<std::size_t>((number & ((std::uint64_t{1} << Bits) - 1)) << Shift);
  }
};
TEST(inline_set_model, HashesThatDifferInFewBitsAreSurvived) {
  run_set<int, 16, FewBits<0, 8>>(6, 2000, 60);
  run_set<int, 15, FewBits<0, 32>>(7, 2000, 200);
  run_set<std::uint64_t, 28, FewBits<53, 8>>(8, 2000, 60);
  run_set<std::uint64_t, 1, FewBits<53, 8>>(9, 2000, 90);
  run_set<std::uint64_t, 40, FewBits<61, 3>>(10, 2000, 90);
  run_set<std::string, 14, FewBits<56, 8>>(11, 2000, 90);
}
TEST(inline_set_model, SetsOfAnyNBehaveAsInTheStandard) {
  run_set<int, 12, GoodHash>(12, 2000, 20);
  run_set<std::uint64_t, 13, GoodHash>(13, 2000, 20);
  run_set<std::uint64_t, 26, GoodHash>(14, 2000, 50);
  run_set<std::uint64_t, 27, GoodHash>(15, 2000, 50);
  run_set<std::uint64_t, 100, GoodHash>(16, 3000, 130);
  run_set<std::uint64_t, 1000, GoodHash>(17, 3000, 1500);
}

// The room inside is filled to the last slot, so that some elements are not where they are looked for first.
TEST(inline_set_model, ElementsAreSpreadOverAllTheRoomInside) {
  struct Set : sluice::inline_set<std::uint64_t, 1600> {
    std::size_t displaced() const { return this->area_.displaced(); }
  } set;
  for (std::uint64_t i = 0; i < 1600; ++i)
    set.insert(i);
  EXPECT_TRUE(set.is_inline());
  EXPECT_LT(set.displaced(), 500u);
}

}  // namespace
