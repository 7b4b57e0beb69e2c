// How many pages this process has faulted so far. Open it for tests of memory that is to be there already.
#pragma once

#include <sys/resource.h>

namespace sluice::test {

inline long page_faults() {
  rusage usage{};
  (void)getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

}  // namespace sluice::test
