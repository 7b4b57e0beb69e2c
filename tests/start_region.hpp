// Starts the region for a suite that makes slabs of its own, with owners that no thread uses.
#pragma once

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "pages/region.hpp"

namespace sluice::test {

// Once in a process, which may run several suites.
inline void start_region() {
  if (region_base != nullptr) return;
  options.reserve = size_t{256} << 20;
  ASSERT_TRUE(region::initialize());
}

}  // namespace sluice::test
