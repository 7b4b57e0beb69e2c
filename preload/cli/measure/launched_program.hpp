// A program under sluice-launch: started, watched, waited for, and ended with all that it has started. Open it when a
// run hangs or leaves something behind.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "descriptor.hpp"
#include "memory_timeline.hpp"
#include "process.hpp"

namespace bench {

using Time = std::chrono::steady_clock::time_point;

/// Whether the user has asked to stop since `listen_for_interruption`, which begins to take the signals in
/// `stop_signals` for that. The actions that they had go to `earlier`, for `stop_listening`.
bool is_interrupted();
constexpr std::array stop_signals = {SIGINT, SIGTERM, SIGHUP};
using SignalActions = std::array<struct sigaction, stop_signals.size()>;
void listen_for_interruption(SignalActions& earlier);
void stop_listening(const SignalActions& earlier);

/// Makes what launchers leave behind children of this process, to be ended; those that it has already are spared.
void adopt_orphans();

/// While one exists, this child of the process is not taken for what a launcher has left.
class Spared {
 public:
  explicit Spared(pid_t launcher);
  ~Spared();
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;
};

/// Ended with all that it has started if nobody waits for it.
class LaunchedProgram {
 public:
  /// Memory is read into `timeline`, unless that is null, whenever this or another program is waited for with it.
  /// Throws: RunError.
  LaunchedProgram(const std::filesystem::path& launcher, const Command& command, std::vector<std::string> environment,
                  const std::string& folder, MemoryTimeline* timeline);
  ~LaunchedProgram();
  LaunchedProgram(const LaunchedProgram&) = delete;
  LaunchedProgram& operator=(const LaunchedProgram&) = delete;

  /// The program's process, once it has become the program. Throws: RunError, also at `deadline`; Interrupted.
  pid_t program(Time deadline);

  pid_t launcher() const noexcept { return pid_; }

  /// Whether the program has ended.
  bool has_ended();

  /// What the program has used, after its end. Throws: RunError, also at `deadline`; Interrupted.
  Run finish(Time deadline);

  /// The last line on standard error.
  std::string complaint() const;

 private:
  bool read_more(Time deadline);
  void stop();
  void wait();
  RunError lost();

  std::shared_ptr<Descriptor> output_;
  Descriptor complaints_;
  Descriptor report_;
  std::string lines_;
  pid_t pid_ = 0;
  MemoryTimeline* timeline_;
};

}  // namespace bench
