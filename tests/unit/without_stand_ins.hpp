// Included by tests that look at what one class does: no other class stands in for its first blocks then
// (stand_ins_test.cpp has the tests of that).
#pragma once

#include "heap/thread_cache.hpp"

namespace sluice::test {

inline const bool without_stand_ins = [] {
  cache::most_stood_in = 0;
  return true;
}();

}  // namespace sluice::test
