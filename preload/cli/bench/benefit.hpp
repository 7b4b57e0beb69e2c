// What the memory besides plain malloc gains over it: scopes, frames, and the pools, arenas and containers of the
// library. Open it to change the tables of the benefit.
#pragma once

#include <string>
#include <vector>

#include "bench/results.hpp"
#include "measure/tables.hpp"

namespace bench {

/// One comparison in time and in memory, with a row for each case that ran with several kinds of memory: the best of
/// the other allocators with malloc and free, and what each kind takes under sluice.
struct Benefit {
  std::string legend;  // what the figures of both tables mean, in a sentence or two
  Grid time;
  Grid memory;
};

/// The comparisons that there is something to show in: that of scopes and frames, and that of the library. None when no
/// variants were run, or not under sluice.
std::vector<Benefit> benefits_of(const Results& results);

}  // namespace bench
