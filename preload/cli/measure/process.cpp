// Starts a program by way of sluice-launch, waits, and checks what the probe wrote. Open it when a run is refused or
// hangs.
#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

extern char** environ;

namespace bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Time = steady_clock::time_point;

// What the C library may have served before the allocator was there, or for itself; more than that is a malloc that
// serves the program.
constexpr std::uint64_t libc_may_serve = 64 << 10;
// How long sluice-launch has to end the processes of a run that is stopped.
constexpr milliseconds time_to_end{5000};
constexpr std::size_t longest_complaint = 2000;
constexpr std::size_t longest_load_output = 1 << 20;

volatile sig_atomic_t interrupted = 0;

// Children of this process that are not to be ended with what a launcher leaves: those that it had from the start, as
// a shell that became it may leave them, and the launcher of a service while its load runs.
std::vector<pid_t> kept_children;

class Kept {
 public:
  explicit Kept(pid_t launcher) { kept_children.push_back(launcher); }
  ~Kept() { kept_children.pop_back(); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
};

void on_interrupt(int) {
  interrupted = 1;
}

// What asks this process to stop: keys, kill, and the end of the terminal.
constexpr std::array stop_signals = {SIGINT, SIGTERM, SIGHUP};

std::string error_text(int error) {
  return std::generic_category().message(error);
}

/// This process's environment without any preload.
std::vector<std::string> plain_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (!variable.starts_with("LD_PRELOAD=") && !variable.starts_with("LIBSLUICE_PROBE=") &&
        !variable.starts_with("SLUICE_LAUNCH_PRELOAD="))
      environment.emplace_back(variable);
  }
  return environment;
}

/// The same for the measured program, in which it finds the probe's file; LD_PRELOAD is the launcher's business.
std::vector<std::string> measured_environment(const Allocator& allocator, const fs::path& probe,
                                              const fs::path& records) {
  std::vector<std::string> environment = plain_environment();
  const std::string library = allocator.library.string();
  environment.push_back(
      fmt::format("SLUICE_LAUNCH_PRELOAD={}{}{}", probe.string(), library.empty() ? "" : ":", library));
  environment.push_back(fmt::format("LIBSLUICE_PROBE={}", records.string()));
  return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  void open_input(const char* path) { posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, path, O_RDONLY, 0); }
  void give(const Descriptor& file, int number) { posix_spawn_file_actions_adddup2(&actions_, file.number(), number); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::vector<pid_t> children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", getpid()));
  std::vector<pid_t> found;
  for (pid_t pid = 0; file >> pid;)
    found.push_back(pid);
  return found;
}

/// Ends what a launcher that died has left to this process.
void end_orphans() {
  for (const auto end = steady_clock::now() + time_to_end; steady_clock::now() < end; usleep(1000)) {
    bool is_any = false;
    for (const pid_t pid : children()) {
      if (std::find(kept_children.begin(), kept_children.end(), pid) != kept_children.end()) continue;
      is_any = true;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, WNOHANG);
    }
    if (!is_any) return;
  }
}

/// The size and the FNV-1a hash of a file's bytes.
Output digested(std::shared_ptr<Descriptor> file) {
  Output output{std::move(file), 0, 0xcbf29ce484222325};
  std::vector<char> part(1 << 16);
  for (;;) {
    const ssize_t got = pread(output.file->number(), part.data(), part.size(), static_cast<off_t>(output.bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::runtime_error(fmt::format("cannot read a temporary file: {}", error_text(errno)));
    if (got == 0) return output;
    for (ssize_t i = 0; i < got; ++i)
      output.digest = (output.digest ^ static_cast<unsigned char>(part[static_cast<std::size_t>(i)])) * 0x100000001b3;
    output.bytes += static_cast<std::uint64_t>(got);
  }
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  const std::size_t end = text.find_last_of("\n\r");
  return end == std::string::npos ? text : text.substr(end + 1);
}

/// As it is in the launcher's report: one line, without blanks at its start.
std::string printed_name(std::string name) {
  std::replace(name.begin(), name.end(), '\n', '?');
  const std::size_t start = name.find_first_not_of(" \t\v\f\r");
  return start == std::string::npos ? std::string() : name.substr(start);
}

std::string after_colon(const std::string& text) {
  return text.empty() ? text : ": " + text;
}

fs::path required(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw std::runtime_error(fmt::format("{} is missing: the installation is not complete", path.string()));
  return fs::absolute(path);
}

fs::path temporary_folder() {
  const char* const wanted = std::getenv("TMPDIR");
  std::string name = fmt::format("{}/sluice-compare.XXXXXX", wanted != nullptr && *wanted != '\0' ? wanted : "/tmp");
  if (mkdtemp(name.data()) == nullptr)
    throw std::runtime_error(fmt::format("cannot make a temporary folder {}: {}", name, error_text(errno)));
  return fs::absolute(name);
}

}  // namespace

/// A program under sluice-launch; ended with all that it has started if nobody waits for it.
class Launch {
 public:
  /// Throws: RunError.
  Launch(const fs::path& launcher, const Command& command, std::vector<std::string> environment,
         const std::string& folder)
      : output_(std::make_shared<Descriptor>(temporary_file(folder))), complaints_(temporary_file(folder)) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("pipe: {}", error_text(errno)));
    report_ = Descriptor(ends[0]);
    const Descriptor report_end(ends[1]);

    // The launcher's own descriptor for its report, which no program has a use for.
    constexpr int report_number = 3;
    FileActions actions;
    actions.open_input(command.input.empty() ? "/dev/null" : command.input.c_str());
    actions.give(*output_, STDOUT_FILENO);
    actions.give(complaints_, STDERR_FILENO);
    actions.give(report_end, report_number);
    std::vector<std::string> arguments = {launcher.string(), std::to_string(report_number), command.program.string()};
    arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
    const int error = posix_spawn(&pid_, launcher.c_str(), actions.get(), nullptr, pointers_to(arguments).data(),
                                  pointers_to(environment).data());
    if (error != 0) {
      pid_ = 0;
      throw RunError(fmt::format("cannot start {}: {}", launcher.string(), error_text(error)));
    }
  }
  ~Launch() {
    if (pid_ > 0) stop();
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// The program's process, once it has become the program. Throws: RunError, also at `deadline`; Interrupted.
  pid_t program(Time deadline) {
    while (lines_.find('\n') == std::string::npos)
      if (!read_more(deadline)) break;
    std::istringstream words(lines_);
    std::string word;
    int number = 0;
    words >> word >> number;
    if (word == "started") return number;
    if (word.empty()) throw lost();
    throw RunError(fmt::format("cannot be started: {}: {}", word, error_text(number)));
  }

  pid_t launcher() const noexcept { return pid_; }

  /// Whether the program has ended.
  bool has_ended() {
    pollfd wanted{report_.number(), POLLIN, 0};
    return poll(&wanted, 1, 0) > 0;
  }

  /// What the program has used, after its end. Throws: RunError, also at `deadline`; Interrupted.
  Run finish(Time deadline) {
    while (read_more(deadline)) {
    }
    wait();
    std::istringstream words(lines_.substr(std::min(lines_.find('\n'), lines_.size() - 1) + 1));
    std::string word;
    pid_t program = 0;
    Run run;
    Usage& usage = run.usage;
    words >> word >> program >> run.status >> usage.wall_seconds >> usage.user_seconds >> usage.system_seconds >>
        usage.peak_kib >> usage.minor_faults >> usage.major_faults >> usage.voluntary_switches >>
        usage.involuntary_switches >> run.left_running;
    if (!words || word != "ended") throw lost();
    std::getline(words >> std::ws, run.last_name);
    usage.wall_seconds /= 1e9;
    usage.user_seconds /= 1e6;
    usage.system_seconds /= 1e6;
    run.output.file = output_;
    run.complaint = complaint();
    return run;
  }

  /// The last line on standard error.
  std::string complaint() const { return last_line(tail_of(complaints_, longest_complaint)); }

 private:
  /// Returns: false at the end of the report.
  bool read_more(Time deadline) {
    for (;;) {
      if (interrupted != 0) throw Interrupted();
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
      pollfd wanted{report_.number(), POLLIN, 0};
      // Not longer at once, for a signal that comes just before the call does not interrupt it. What has been said is
      // taken even when it is late: this process may have been stopped meanwhile, by a key, and the program not.
      const int ready = poll(&wanted, 1, static_cast<int>(std::clamp<milliseconds::rep>(left.count(), 0, 200)));
      if (ready <= 0 && left.count() <= 0) throw RunError("stopped, since it took too long (--timeout)");
      if (ready <= 0) continue;
      char part[512];
      const ssize_t length = read(report_.number(), part, sizeof part);
      if (length == 0) return false;
      if (length < 0) continue;
      lines_.append(part, static_cast<std::size_t>(length));
      return true;
    }
  }

  void stop() {
    kill(pid_, SIGTERM);
    for (const auto end = steady_clock::now() + time_to_end; steady_clock::now() < end;) {
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = 0;
        return;
      }
      usleep(1000);
    }
    kill(pid_, SIGKILL);
    wait();
    end_orphans();
  }

  void wait() {
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }

  /// The launcher has ended without its report; what it looked after is ours to end, for we inherit it.
  RunError lost() {
    if (pid_ > 0) wait();
    end_orphans();
    return RunError("sluice-launch was ended from outside");
  }

  std::shared_ptr<Descriptor> output_;
  Descriptor complaints_;
  Descriptor report_;
  std::string lines_;
  pid_t pid_ = 0;
};

Runner::Runner(const fs::path& helpers)
    : launcher_(required(helpers / "sluice-launch")),
      probe_(required(helpers / "libsluice-probe.so")),
      folder_(temporary_folder()),
      records_(folder_ / "records") {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigset_t heard;
  sigemptyset(&heard);
  for (std::size_t i = 0; i < stop_signals.size(); ++i) {
    sigaction(stop_signals[i], &action, &earlier_actions_[i]);
    sigaddset(&heard, stop_signals[i]);
  }
  if (earlier_actions_.back().sa_handler == SIG_IGN) signal(SIGHUP, SIG_IGN);  // nohup
  signal(SIGCHLD, SIG_DFL);  // who ignores it is not told how a child ended
  sigprocmask(SIG_UNBLOCK, &heard, nullptr);
  kept_children = children();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Runner::~Runner() {
  for (std::size_t i = 0; i < stop_signals.size(); ++i)
    sigaction(stop_signals[i], &earlier_actions_[i], nullptr);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Run Runner::run_shell(const std::string& line, Time deadline) {
  Launch launch(launcher_, {"/bin/sh", {"sh", "-c", line}, {}}, plain_environment(), folder_);
  launch.program(deadline);
  return launch.finish(deadline);
}

void Runner::serve(Launch& launch, const Service& service, Time deadline, Run& run) {
  const pid_t program = launch.program(deadline);
  const Kept kept(launch.launcher());
  const auto check_alive = [&](const char* when) {
    if (!launch.has_ended()) return;
    const int status = launch.finish(deadline).status;
    throw RunError(fmt::format("ended {} by {}{}", when, status_text(status), after_colon(launch.complaint())));
  };
  while (!service.ready.empty()) {
    check_alive("before it was ready");
    const Run ready = run_shell(service.ready, deadline);
    if (ready.status == 0) break;
    std::this_thread::sleep_for(milliseconds(20));
  }
  const Run load = run_shell(service.load, deadline);
  check_alive("during the load");
  if (load.status != 0)
    throw RunError(fmt::format("the load ended with {}{}", status_text(load.status), after_colon(load.complaint)));
  run.load = {load.usage.wall_seconds, tail_of(*load.output.file, longest_load_output)};
  kill(program, service.stop_signal);
}

Run Runner::run(const Command& command, const Allocator& allocator, milliseconds limit, const Service* service) {
  if (interrupted != 0) throw Interrupted();
  const Time deadline = steady_clock::now() + limit;
  std::ofstream(records_, std::ios::trunc).close();
  Launch launch(launcher_, command, measured_environment(allocator, probe_, records_), folder_);
  const pid_t program = launch.program(deadline);
  Load load;
  if (service != nullptr) {
    Run served;
    serve(launch, *service, deadline, served);
    load = std::move(served.load);
  }
  Run run = launch.finish(deadline);
  run.load = std::move(load);
  const bool stopped = service != nullptr && WIFSIGNALED(run.status) && WTERMSIG(run.status) == service->stop_signal;
  if (WIFSIGNALED(run.status) && !stopped)
    throw RunError(fmt::format("ended by {}{}", status_text(run.status), after_colon(run.complaint)));
  run.own_malloc = check_origin(program, run, allocator);
  run.output = digested(std::move(run.output.file));
  return run;
}

// Returns: the library that malloc came from, if that is neither the allocator's nor the C library. Throws: RunError
// when the allocator did not serve every process that wrote a record.
std::string Runner::check_origin(pid_t pid, const Run& run, const Allocator& allocator) const {
  std::ifstream records(records_);
  std::string own;
  bool is_found = false;
  bool has_end = false;
  std::string name;  // that the program had when it loaded what was preloaded
  const auto word = [&] {
    std::string text;
    std::getline(records, text, '\0');
    return text;
  };
  for (std::string kind = word(); !kind.empty(); kind = word()) {
    const std::string process = word();
    const bool is_program = process == std::to_string(pid);
    if (is_program) has_end = kind == "end";
    if (kind == "end") {
      const std::uint64_t bytes = std::strtoull(word().c_str(), nullptr, 10);
      if (!allocator.library.empty() && bytes > libc_may_serve) {
        throw RunError(fmt::format("refused: the C library's own malloc served {} bytes of process {}, not {}", bytes,
                                   process, allocator.library.string()));
      }
      continue;
    }
    const std::array origins = {word(), word()};  // in this order
    const std::string name_now = word();
    if (is_program) name = name_now;
    is_found = is_found || is_program;
    for (const std::string& origin : origins) {
      std::error_code error;
      if (allocator.library.empty()) {
        const std::string file = fs::path(origin).filename();
        const bool is_libc = file.starts_with("libc.") || file.starts_with("libc-") || file.starts_with("ld-musl-");
        if (is_program && !is_libc) own = origin;
      } else if (!fs::equivalent(origin, allocator.library, error)) {
        throw RunError(fmt::format("refused: malloc or free of process {} came from {}, not from {}", process, origin,
                                   allocator.library.string()));
      }
    }
  }
  if (!is_found)
    throw RunError(
        "refused: the program did not load what was preloaded (it is static, privileged, or drops LD_PRELOAD)");
  // A program that execs another and drops the environment leaves the record of its own start only.
  if (!has_end && WIFEXITED(run.status) && !run.last_name.empty() && run.last_name != printed_name(name)) {
    throw RunError(fmt::format("refused: the program became {}, which did not load what was preloaded", run.last_name));
  }
  return own;
}

std::string status_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace bench
