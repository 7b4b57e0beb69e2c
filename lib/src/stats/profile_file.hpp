// The profile's file: when it is written, and where. Open it when a profile does not appear, or when a child writes
// over its parent's. SLUICE_PROFILE and its relatives ask for it; report.hpp says when a process's end is seen.
#pragma once

namespace sluice::stats {

// Effects: starts the profile if the options ask for one, and remembers the file; one line on stderr says why where
// that cannot be. Installs the handler of SLUICE_PROFILE_SIGNAL. Returns: whether there is a profile. Called once, by a
// constructor.
bool start_profile() noexcept;

// Whether a process writes a profile at its end: forked children only where the file's name has the pid in it, so that
// none writes over another's.
bool writes_profile(bool is_forked_child) noexcept;

// Effects: writes the file. Without `wait` it may fail: another thread, or this one, is in the profile. Returns: false
// then, and nothing has been written. What else goes wrong is said in one line. Async-signal-safe without `wait`.
bool write_profile(bool wait) noexcept;

}  // namespace sluice::stats
