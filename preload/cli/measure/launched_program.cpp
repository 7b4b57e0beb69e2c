// Starts sluice-launch and reads its report. Open it with launched_program.hpp.
#include "launched_program.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long sluice-launch has to end the processes of a run that is stopped.
constexpr milliseconds time_to_end{5000};
constexpr std::size_t longest_complaint = 2000;

volatile sig_atomic_t interrupted = 0;  // the signal's number

// Children of this process that are not to be ended with what a launcher leaves: those that it had from the start, as
// a shell that became it may leave them, and the launcher of a service while its load runs.
std::vector<pid_t> spared_children;

void on_interrupt(int signal) {
  interrupted = signal;
}

std::string error_text(int error) {
  return std::generic_category().message(error);
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
      if (std::find(spared_children.begin(), spared_children.end(), pid) != spared_children.end()) continue;
      is_any = true;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, WNOHANG);
    }
    if (!is_any) return;
  }
}

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r'))
    text.pop_back();
  const std::size_t end = text.find_last_of("\n\r");
  return end == std::string::npos ? text : text.substr(end + 1);
}

}  // namespace

bool is_interrupted() {
  return interrupted != 0;
}

int interrupting_signal() {
  return interrupted;
}

void listen_for_interruption(SignalActions& earlier) {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigset_t heard;
  sigemptyset(&heard);
  for (std::size_t i = 0; i < stop_signals.size(); ++i) {
    sigaction(stop_signals[i], &action, &earlier[i]);
    sigaddset(&heard, stop_signals[i]);
  }
  if (earlier.back().sa_handler == SIG_IGN) signal(SIGHUP, SIG_IGN);  // nohup
  sigprocmask(SIG_UNBLOCK, &heard, nullptr);
}

void stop_listening(const SignalActions& earlier) {
  for (std::size_t i = 0; i < stop_signals.size(); ++i)
    sigaction(stop_signals[i], &earlier[i], nullptr);
}

void adopt_orphans() {
  signal(SIGCHLD, SIG_DFL);  // who ignores it is not told how a child ended
  spared_children = children();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Spared::Spared(pid_t launcher) {
  spared_children.push_back(launcher);
}

Spared::~Spared() {
  spared_children.pop_back();
}

LaunchedProgram::LaunchedProgram(const fs::path& launcher, const Command& command, std::vector<std::string> environment,
                                 const std::string& folder, MemoryTimeline* timeline)
    : output_(std::make_shared<Descriptor>(temporary_file(folder))),
      complaints_(temporary_file(folder)),
      timeline_(timeline) {
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

LaunchedProgram::~LaunchedProgram() {
  if (pid_ > 0) stop();
}

pid_t LaunchedProgram::program(Time deadline) {
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

bool LaunchedProgram::has_ended() {
  pollfd wanted{report_.number(), POLLIN, 0};
  return poll(&wanted, 1, 0) > 0;
}

Run LaunchedProgram::finish(Time deadline) {
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

std::string LaunchedProgram::complaint() const {
  return last_line(tail_of(complaints_, longest_complaint));
}

/// Returns: false at the end of the report.
bool LaunchedProgram::read_more(Time deadline) {
  for (;;) {
    if (is_interrupted()) throw Interrupted();
    const milliseconds left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    pollfd wanted{report_.number(), POLLIN, 0};
    // Not longer at once, for a signal that comes just before the call does not interrupt it. What has been said is
    // taken even when it is late: this process may have been stopped meanwhile, by a key, and the program not.
    milliseconds wait = std::clamp(left, milliseconds(0), milliseconds(200));
    if (timeline_ != nullptr) wait = std::min(wait, timeline_->until_due());
    const int ready = poll(&wanted, 1, static_cast<int>(wait.count()));
    if (timeline_ != nullptr) timeline_->read_if_due();
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

void LaunchedProgram::stop() {
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

void LaunchedProgram::wait() {
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

/// The launcher has ended without its report; what it looked after is ours to end, for we inherit it.
RunError LaunchedProgram::lost() {
  if (pid_ > 0) wait();
  end_orphans();
  return RunError("sluice-launch was ended from outside");
}

}  // namespace bench
