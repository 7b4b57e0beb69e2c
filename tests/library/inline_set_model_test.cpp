// inline_set behaves as the standard's set does, whatever happens to it in whatever order.
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

}  // namespace
