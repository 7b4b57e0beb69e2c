// What of a span can be touched, in secure builds: pages that cannot are its guard. Open it when a guard is missing or
// costs a mapping too many. Functions belong to whoever has the span; sizes are in bytes.
#pragma once

#include <cstddef>

namespace sluice::region {

// Effects: nobody can touch the span at `index` from the first page behind `bytes` on. Requires: all pages in front of
// it can be touched. False where there are too many guards (16,000): the span is as it was then; or where the system
// refuses: some of the pages may be a guard then.
bool guard(size_t index, size_t bytes) noexcept;
// Effects: nobody can touch the span. False when the system refuses.
bool shut(size_t index) noexcept;
// Effects: the whole span can be touched. False when the system refuses.
bool open(size_t index) noexcept;
// Effects: the pages in front of `bytes` can be touched; the others are as they were. False when the system refuses.
bool open_front(size_t index, size_t bytes) noexcept;

}  // namespace sluice::region
