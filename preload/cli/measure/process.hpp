// Runs a program once under an allocator, and says what it used, what it printed, and which malloc served it. Open it
// to change how a measured program is started, stopped or checked.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "allocators.hpp"
#include "descriptor.hpp"
#include "latency.hpp"
#include "memory_timeline.hpp"

namespace bench {

class LaunchedProgram;

/// What a program used, its descendants that it waited for included.
struct Usage {
  double wall_seconds = 0;
  double user_seconds = 0;
  double system_seconds = 0;
  std::int64_t peak_kib = 0;      // of the largest process
  std::int64_t peak_all_kib = 0;  // of all at once, see MemoryTimeline; at least that of the largest
  double mean_all_kib = 0;        // on the average of the time, see MemoryTimeline
  std::int64_t minor_faults = 0;
  std::int64_t major_faults = 0;
  std::int64_t voluntary_switches = 0;
  std::int64_t involuntary_switches = 0;
};

/// Standard output of a run, in a file without a name.
struct Output {
  std::shared_ptr<Descriptor> file;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;
};

/// What a client saw of a service.
struct Load {
  double wall_seconds = 0;
  std::string output;  // the end of what it printed
};

struct Run {
  int status = 0;  // as wait() has it
  Usage usage = {};
  int left_running = 0;  // processes that outlived the program and had to be ended
  Output output = {};
  std::string complaint = {};   // the last line on standard error
  Load load = {};               // of a service
  std::string last_name = {};   // of its process, which exec changes
  std::string own_malloc = {};  // the library that the program brings its malloc from, run without an allocator
  Timeline timeline = {};       // if it was observed
  std::chrono::milliseconds memory_gap{};  // longest time in which nobody looked at memory
  Latency latency = {};                    // if it was observed
};

/// A run that gives no figures: it could not be started, took too long, or was not served by the allocator.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user has asked to stop, by SIGINT, SIGTERM or SIGHUP.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// The last signal that has ended the runs of a Runner; 0 if there was none.
int interrupting_signal();

struct Command {
  std::filesystem::path program;       // where it lies
  std::vector<std::string> arguments;  // with its name first
  std::filesystem::path input;         // what it reads on standard input
};

/// How a program is measured that does not end by itself: once `ready` succeeds, `load` is run, and then the program
/// gets the signal. Both are for the shell, and run without the allocator.
struct Service {
  std::string ready;  // tried again and again; empty: at once
  std::string load;
  int stop_signal;
};

/// What is looked at beside the usual figures, in a run whose times it disturbs.
enum class Observation { nothing, memory, latency };

/// Starts programs one at a time, each in a session of its own, without a terminal. While one exists, SIGINT, SIGTERM
/// and SIGHUP end the run in progress and nothing else. What a run leaves behind becomes a child of this process, to be
/// ended.
class Runner {
 public:
  /// `helpers` is the folder of sluice-launch and the libraries beside it. Throws std::runtime_error when they are
  /// missing, or when there is no place for temporary files.
  explicit Runner(const std::filesystem::path& helpers);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs a program to its end, or a service as it says, within `limit`. Throws: RunError, Interrupted;
  /// std::runtime_error when this machine does not let it run anything.
  Run run(const Command& command, const Allocator& allocator, std::chrono::milliseconds limit,
          const Service* service = nullptr, Observation observed = Observation::nothing);

  /// Runs a line of shell without the allocator. Throws: RunError, also at `deadline`; Interrupted.
  Run run_shell(const std::string& line, std::chrono::steady_clock::time_point deadline);

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::vector<std::string> environment_for(const Allocator& allocator, Observation observed) const;
  void serve(LaunchedProgram& launch, const Service& service, Time deadline, Run& run);
  std::string check_origin(pid_t pid, const Run& run, const Allocator& allocator) const;

  std::filesystem::path launcher_, probe_, latency_;
  std::filesystem::path folder_;     // temporary, ours
  std::filesystem::path records_;    // what the probe writes
  std::filesystem::path latencies_;  // what libsluice-latency.so writes
  MemoryTimeline memory_;
  MemoryTimeline* timeline_ = nullptr;  // that, while it is read
  std::array<struct sigaction, 3> earlier_actions_;
};

/// "exit status 3" or "signal 11 (Segmentation fault)".
std::string status_text(int status);

}  // namespace bench
