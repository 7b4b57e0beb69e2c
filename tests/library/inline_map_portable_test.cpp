// Tables behave the same where sixteen bytes cannot be compared at once.
#define SLUICE_TABLE_PORTABLE 1
#include <string>

#include "table_model.hpp"

namespace {

using library_test::AllEqual;
using library_test::GoodHash;

TEST(inline_map_portable, ControlBytesMeanWhatTheySay) {
  library_test::control_bytes_mean_what_they_say();
}

TEST(inline_map_portable, MapsBehaveAsInTheStandard) {
  library_test::run_maps<int, GoodHash>(3000, 60);
  library_test::run_maps<int, AllEqual>(2000, 100);
  library_test::run_maps<std::string, GoodHash>(2000, 300);
}

}  // namespace
