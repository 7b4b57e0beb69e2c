// Several copies of the library in one process: libsluice.so preloaded, libsluice.a in the program or in a library of
// its. One serves the process, the one whose malloc the loader finds first, and this one reports. Open it when a
// program gets two dumps, or one of a heap that nobody uses.
#pragma once

namespace sluice::copies {

// Whether another copy serves this process, so that this one writes no statistics and no profile, guards nothing and
// answers nobody. What calls it all the same, as a library that keeps the names of its own copy to itself, it serves.
// Set once, at load.
extern constinit bool another_serves;

// Effects: looks whose malloc the process has. Where it is another copy's, and the options ask for what that one
// reports, one line on stderr says so; libsluice-secure.so always says it. Called once, at load.
void start() noexcept;

// Whether the options ask for anything that is reported: statistics, a profile, guarded blocks, answers.
bool reports_are_wanted() noexcept;

}  // namespace sluice::copies
