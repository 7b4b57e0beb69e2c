// inline_map begins and ends each element once, and takes elements that only move or ask for an alignment.
#include <string>

#include "table_model.hpp"

namespace {

using library_test::Aligned;
using library_test::GoodHash;
using library_test::Pointed;
using library_test::run_maps;
using library_test::ThrowingMove;
using library_test::Tracked;
using library_test::Tracking;

TEST(inline_map_elements, EveryElementLivesOnce) {
  const Tracking tracking;
  run_maps<Tracked, GoodHash>(800, 80);
  run_maps<ThrowingMove, GoodHash>(800, 80);
}
TEST(inline_map_elements, KeysThatOnlyMoveAreKeys) {
  run_maps<Pointed, GoodHash>(2000, 100);
}
TEST(inline_map_elements, KeysAreAlignedAsTheyAskFor) {
  run_maps<Aligned, GoodHash>(2000, 100);
}

// Erasure leaves holes between the elements of a group; what is copied slot by slot has them as well.
template <class K, std::size_t N>
void elements_around_holes_are_kept() {
  using Map = sluice::inline_map<K, int, N, GoodHash, std::equal_to<K>>;
  using Key = library_test::KeyOf<K>;
  SCOPED_TRACE(N);
  for (unsigned kept = 0; kept < 64; ++kept) {
    Map map;
    std::unordered_map<int, int> model;
    const int count = static_cast<int>(N);
    for (int i = 0; i < count; ++i)
      map.try_emplace(Key::make(i), i);
    for (int i = 0; i < count; ++i) {
      if ((kept >> i % 6 & 1) != 0)
        model.emplace(i, i);
      else
        map.erase(Key::make(i));
    }
    library_test::expect_same(map, model);
    Map moved(std::move(map));
    library_test::expect_same(moved, model);
    Map other;
    other.try_emplace(Key::make(1000), 1);
    other.swap(moved);
    library_test::expect_same(other, model);
    library_test::expect_same(moved, {{1000, 1}});
    if constexpr (std::is_copy_constructible_v<K>) {
      Map copy(other);
      library_test::expect_same(copy, model);
      for (int i = 0; copy.size() < N; ++i) {  // to the last slot
        copy.try_emplace(Key::make(2000 + i), i);
        model.emplace(2000 + i, i);
      }
      library_test::expect_same(copy, model);
      EXPECT_TRUE(copy.is_inline());
    }
  }
}
TEST(inline_map_elements, ElementsAroundHolesAreKept) {
  elements_around_holes_are_kept<int, 13>();
  elements_around_holes_are_kept<int, 16>();
  elements_around_holes_are_kept<std::string, 8>();
  elements_around_holes_are_kept<std::string, 14>();
  elements_around_holes_are_kept<std::string, 28>();
  elements_around_holes_are_kept<Pointed, 15>();
  const Tracking tracking;
  elements_around_holes_are_kept<Tracked, 27>();
}

}  // namespace
