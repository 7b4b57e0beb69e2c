// The profile's file: when it is written, and where. Open it when a profile does not appear, or when a child writes
// over its parent's. SLUICE_PROFILE and its relatives ask for it; report.hpp says when a process's end is seen.
#pragma once

#include <cstdint>

namespace sluice::stats {

// Effects: starts the profile if the options ask for one, and remembers the file; one line on stderr says why where
// that cannot be. Installs the handler of SLUICE_PROFILE_SIGNAL. Returns: whether there is a profile. Called once, by a
// constructor.
bool start_profile() noexcept;

// Effects: no profile will tell what is leaked, for this reason. Called by a constructor, before start_profile().
void leaks_are_unknown(const char* reason) noexcept;

// Whether a process writes a profile at its end: forked children only where the file's name has the pid in it, so that
// none writes over another's.
bool writes_profile(bool is_forked_child) noexcept;

// Effects: writes the file. Without `wait` it may fail: another thread, or this one, is in the profile. Returns: false
// then, and nothing has been written. What else goes wrong is said in one line. Async-signal-safe without `wait`.
bool write_profile(bool wait) noexcept;

// The profile on request, whether or not the options ask for one. All return 0 or an errno value, and leave errno
// alone. Not for signal handlers.

// Effects: does beforehand what only some threads may do at a start: it asks the loader. Called by a constructor.
void prepare_profile() noexcept;

// Effects: starts the profile in all threads. `rate`: bytes between samples, on average; 0: SLUICE_PROFILE_RATE.
int start_profile_now(uint64_t rate) noexcept;

// Effects: stops it. What is alive stays known.
int stop_profile_now() noexcept;

// Effects: writes it to a file, in whose name %p is the pid.
int dump_profile_now(const char* path) noexcept;

}  // namespace sluice::stats
