// Runs a program under the profiler and collects the profiles that it and its children write. Open it when a run gives
// no profile, or another exit status than the program's.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include <sys/types.h>

#include "command.hpp"
#include "model.hpp"

namespace sluice::cli::profile {

// The profile of one process.
struct ProcessProfile {
  pid_t pid = 0;
  Profile profile = {};
};

struct ProfiledRun {
  pid_t pid = 0;                               // of the program itself
  int status = 0;                              // as wait() has it
  std::vector<ProcessProfile> processes = {};  // by pid
  std::vector<std::string> damaged = {};       // why files could not be read
};

// The program could not become one; its part of the command has said why.
class ProgramNotStarted : public std::exception {
 public:
  explicit ProgramNotStarted(int code) noexcept : code_(code) {}
  const char* what() const noexcept override { return "the program was not started"; }
  int code() const noexcept { return code_; }

 private:
  int code_;
};

// Effects: runs the program as `sluice run` would, and waits for it. Signals from the keyboard are left to the program;
// SIGTERM and SIGHUP are handed on to it. Its profiles lie in a temporary folder meanwhile. `rate` is a value for
// SLUICE_PROFILE_RATE, or empty; with `finds_leaks` the profiles say what is leaked. Throws: CommandError when the
// program cannot be run, and ProgramNotStarted when the last step fails.
ProfiledRun run_profiled(const RunRequest& request, const std::string& rate, bool finds_leaks = false);

// Effects: ends this process as the program has ended, by the same signal if there was one. Returns: its exit status,
// if it has one.
int pass_on(int status);

}  // namespace sluice::cli::profile
