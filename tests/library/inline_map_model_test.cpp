// inline_map behaves as the standard's map does, whatever happens to it in whatever order.
#include <string>

#include "table_model.hpp"

namespace {

using library_test::AllEqual;
using library_test::GoodHash;
using library_test::Identity;
using library_test::run_maps;

TEST(inline_map_model, ControlBytesMeanWhatTheySay) {
  library_test::control_bytes_mean_what_they_say();
}
TEST(inline_map_model, IntegersBehaveAsInTheStandard) {
  run_maps<int, GoodHash>(4000, 60);
  run_maps<int, GoodHash>(4000, 1500);
}
TEST(inline_map_model, StringsBehaveAsInTheStandard) {
  run_maps<std::string, GoodHash>(3000, 200);
}
TEST(inline_map_model, AHashThatIsTheIdentityIsMixed) {
  run_maps<int, Identity>(4000, 200);
}
TEST(inline_map_model, AHashThatIsAlwaysTheSameIsSurvived) {
  run_maps<int, AllEqual>(3000, 120);
}
}  // namespace
