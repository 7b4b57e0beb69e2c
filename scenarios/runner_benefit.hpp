// What scopes and frames gain over malloc and free for each object. Open it to change the tables of the benefit.
#pragma once

#include "runner_results.hpp"
#include "runner_tables.hpp"

namespace bench {

/// The benefit in time and in memory, one row for each case that ran with several kinds of memory: the best of the
/// other allocators with malloc and free, and what sluice makes of each kind. Empty grids when there is nothing to
/// compare: no variants were run, or not under sluice.
struct Benefit {
  Grid time;
  Grid memory;
};

Benefit benefit_of(const Results& results);

/// What the figures of both tables mean, in one sentence or two.
std::string benefit_legend();

}  // namespace bench
