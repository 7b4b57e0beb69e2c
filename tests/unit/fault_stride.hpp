// Which of the calls that may fail a test lets fail: each one in turn is a process of its own, and such calls are many.
// Open it for a test that lets the n-th call fail, for n from 1 on. FAULT_TESTS_ALL=1 in the environment leaves none
// out.
#pragma once

#include <cstdlib>
#include <string_view>

namespace sluice::test {

// Under a sanitizer, where a child takes long to start, seven times as many are left out. Returns: what to add to n.
inline unsigned fault_stride(unsigned usual) {
  const char* const all = std::getenv("FAULT_TESTS_ALL");
  if (all != nullptr && std::string_view(all) == "1") return 1;
#if defined(SLUICE_TEST_SANITIZER)
  return usual * 7;
#else
  return usual;
#endif
}

}  // namespace sluice::test
