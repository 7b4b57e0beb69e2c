// inline_map begins and ends each element once, and takes elements that only move or ask for an alignment.
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

}  // namespace
