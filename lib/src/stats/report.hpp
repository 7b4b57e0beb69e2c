// The report: where and when statistics are printed, as SLUICE_STATS and SLUICE_STATS_SIGNAL ask for. Open it when a
// dump does not appear, appears twice, or lands in the wrong place.
//
// No lock is held while a dump is written, and none is held for it but the heap's, for its snapshot: a reader that does
// not come holds up who prints, and nobody else. Nothing here is a cancellation point.
#pragma once

#include "base/print.hpp"

namespace sluice::stats {

// Effects: remembers stderr and the working directory's path for the dump, and installs the signal's handler. Prints
// one line when SLUICE_STATS cannot be understood. Called once, by a constructor.
void start_report() noexcept;

// Effects: prints the statistics if they were asked for, but not in a forked child that was not asked, nor in a child
// of vfork, and once only. Called at exit.
void print_report_at_exit() noexcept;

// Effects: as print_report_at_exit, where the heap may have been interrupted by a signal on this very thread: in that
// case says so in one line, after a quarter of a second.
void print_report_at_direct_exit() noexcept;

// The same in two steps, for an end that may be put off. begin_last_report() says whether this process has a report to
// print that nobody has begun; take_back_last_report() lets it be begun again. Async-signal-safe, and so is
// try_print_last_report(), which returns false when a lock of the heap is held.
bool begin_last_report() noexcept;
void take_back_last_report() noexcept;
void print_last_report() noexcept;
bool try_print_last_report() noexcept;

// Effects: writes the statistics to a descriptor. Returns: 0, or an errno value. Thread-safe.
int print_report(int descriptor, bool json) noexcept;
int write_report(PrintSink sink, void* context, bool json) noexcept;  // to where `sink` takes it

}  // namespace sluice::stats
