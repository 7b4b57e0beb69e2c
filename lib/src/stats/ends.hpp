// Ends of the process that run no destructor: the default action of SIGTERM, SIGINT and SIGHUP, and _exit. Open it when
// a dump is missing at such an end, or a program finds its signals changed.
//
// While statistics are wanted, a handler stands where these signals have their default action. It prints and then lets
// the default action end the process. The program does not see it: the entry points of sigaction() and signal() in the
// preload show it as SIG_DFL, and put it back where the program sets that; programs look at what was there before they
// set handlers of their own (Python takes SIGINT only if it is the default), and raise the signal again after cleaning
// up.
//
//   - The signal interrupted an allocation, or another thread is in the middle of one: it comes again in a millisecond;
//     an allocation of any thread may print before that.
//   - The dump cannot be written, or the signal comes a second time: the process ends without.
//   - Children of vfork, and children of fork that were not asked, end at once.
#pragma once

#include <signal.h>

namespace sluice::stats {

using SigactionFunction = int(int, const struct sigaction*, struct sigaction*);

// libc's. Null where the library has no entry points for signals, as in libsluice.a: nothing is watched then.
extern constinit SigactionFunction* sigaction_of_libc;

// Effects: watches the three signals where they have their default action. Called once, when statistics are wanted.
void watch_ends() noexcept;

// Whether the signal's default action prints. Async-signal-safe, as the two below.
bool prints_by_default(int signal) noexcept;

// The action that stands for the default one, and whether it is that.
const struct sigaction& printing_action() noexcept;
bool is_printing(const struct sigaction& action) noexcept;

}  // namespace sluice::stats
