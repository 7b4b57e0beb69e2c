// How long a stress test runs.
#pragma once

#include <cstdlib>

namespace sluice::test {

// STRESS_PERCENT (100 when unset) of `rounds`, and at least one.
inline int rounds(int rounds) {
  static const int percent = [] {
    const char* text = std::getenv("STRESS_PERCENT");
    return text != nullptr ? std::atoi(text) : 100;
  }();
  const auto scaled = static_cast<int>(static_cast<long>(rounds) * percent / 100);
  return scaled > 0 ? scaled : 1;
}

}  // namespace sluice::test
