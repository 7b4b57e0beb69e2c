// Starts the program, waits, and reads what it left. Open it with run.hpp.
#include "run.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include "file.hpp"
#include "installation.hpp"
#include "measure/descriptor.hpp"
#include "program.hpp"

namespace sluice::cli::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_start = "profile.";

volatile sig_atomic_t child_to_signal = 0;

void hand_on(int number) {
  const int error = errno;
  if (child_to_signal != 0) kill(child_to_signal, number);
  errno = error;
}

// While one exists, signals are the program's: the terminal sends it those of the keyboard itself.
class SignalsForProgram {
 public:
  SignalsForProgram() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    struct sigaction handler {};
    handler.sa_handler = hand_on;
    handler.sa_flags = SA_RESTART;
    for (size_t i = 0; i < count; ++i)
      sigaction(numbers[i], i < from_keyboard ? &ignore : &handler, &earlier_[i]);
  }
  ~SignalsForProgram() { restore(); }
  SignalsForProgram(const SignalsForProgram&) = delete;
  SignalsForProgram& operator=(const SignalsForProgram&) = delete;

  // For the child, whose signals are as they were.
  void restore() const noexcept {
    for (size_t i = 0; i < count; ++i)
      sigaction(numbers[i], &earlier_[i], nullptr);
  }

 private:
  static constexpr int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  static constexpr size_t count = sizeof numbers / sizeof numbers[0];
  static constexpr size_t from_keyboard = 2;
  struct sigaction earlier_[count] = {};
};

// In the child. The parent learns by the pipe that it was no program that ended.
[[noreturn]] void become(const RunRequest& request, int failure_pipe) {
  ExitCode code = exit_failure;
  try {
    run_program(request);
  } catch (const CommandError& error) {
    code = error.code();
    fmt::print(stderr, "sluice: {}\n", printable(error.what()));
  } catch (const std::exception& error) {
    fmt::print(stderr, "sluice: {}\n", printable(error.what()));
  }
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(failure_pipe, &byte, 1);
  _exit(code);
}

void set_variable(const char* name, const std::string& value) {
  if (setenv(name, value.c_str(), 1) != 0)
    throw CommandError(exit_failure, fmt::format("cannot set {}: {}", name, std::strerror(errno)));
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      throw CommandError(exit_failure, fmt::format("cannot wait for the program: {}", std::strerror(errno)));
  return status;
}

void start_and_wait(const RunRequest& request, ProfiledRun& run) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw CommandError(exit_failure, fmt::format("no pipe: {}", std::strerror(errno)));
  const SignalsForProgram signals;
  sigset_t handed_on, earlier;
  sigemptyset(&handed_on);
  sigaddset(&handed_on, SIGTERM);
  sigaddset(&handed_on, SIGHUP);
  sigprocmask(SIG_BLOCK, &handed_on, &earlier);  // until it is known to whom
  run.pid = fork();
  if (run.pid == 0) {
    signals.restore();
    sigprocmask(SIG_SETMASK, &earlier, nullptr);
    become(request, ends[1]);
  }
  const int fork_error = errno;
  child_to_signal = std::max(run.pid, 0);
  sigprocmask(SIG_SETMASK, &earlier, nullptr);
  close(ends[1]);
  if (run.pid > 0) run.status = wait_for(run.pid);
  child_to_signal = 0;
  char byte = 0;
  const bool has_failed = read(ends[0], &byte, 1) == 1;
  close(ends[0]);
  if (run.pid < 0)
    throw CommandError(exit_failure, fmt::format("cannot start the program: {}", std::strerror(fork_error)));
  if (has_failed) throw ProgramNotStarted(WEXITSTATUS(run.status));
}

void read_profiles(const std::string& folder, ProfiledRun& run) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    if (!name.starts_with(file_start)) continue;
    const char* const end = name.data() + name.size();
    const auto number = std::from_chars(name.data() + file_start.size(), end, pid);
    if (number.ec != std::errc() || number.ptr != end) continue;  // one that is being written
    try {
      run.processes.push_back({pid, read_profile(entry.path().string())});
    } catch (const CommandError& error) {
      run.damaged.emplace_back(error.what());
    }
  }
  std::sort(run.processes.begin(), run.processes.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
}

}  // namespace

ProfiledRun run_profiled(const RunRequest& request, const std::string& rate, bool finds_leaks) {
  const std::string& name = request.command.front();
  check_can_preload(name, find_program(name), find_library(request.library));
  const bench::TemporaryFolder folder("sluice-profile");
  set_variable("SLUICE_PROFILE", fmt::format("{}/{}%p", folder.path().string(), file_start));
  if (!rate.empty()) set_variable("SLUICE_PROFILE_RATE", rate);
  if (finds_leaks) set_variable("SLUICE_PROFILE_LEAKS", "1");
  ProfiledRun run;
  start_and_wait(request, run);
  read_profiles(folder.path(), run);
  return run;
}

int pass_on(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  const rlimit no_core = {0, 0};  // the program's own tells of it
  setrlimit(RLIMIT_CORE, &no_core);
  struct sigaction fatal {};
  fatal.sa_handler = SIG_DFL;
  sigaction(number, &fatal, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  kill(getpid(), number);
  return exit_interrupted + number;
}

}  // namespace sluice::cli::profile
