// The report: where and when statistics are printed, as SLUICE_STATS and SLUICE_STATS_SIGNAL ask for. Open it when a
// dump does not appear, appears twice, or lands in the wrong place.
#pragma once

namespace sluice::stats {

// Effects: remembers stderr and the working directory's path for the dump, and installs the signal's handler. Prints
// one line when SLUICE_STATS cannot be understood. Called once, by a constructor.
void start_report() noexcept;

// Effects: prints the statistics if they were asked for, but not in a forked child that was not asked. Called at exit.
void print_report_at_exit() noexcept;

// Effects: writes the statistics to a descriptor. Returns: 0, or an errno value. Thread-safe.
int print_report(int descriptor, bool json) noexcept;

}  // namespace sluice::stats
