// Starts a scenario, reads its JSON line and checks which malloc it ran on. Open it when a run is refused.
#include "runner_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>

extern char** environ;

namespace bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::string_view preload_name = "LD_PRELOAD=";

/// The runner's environment with LD_PRELOAD naming the allocator's library alone, or absent for the system's
/// malloc.
std::vector<std::string> child_environment(const Allocator& allocator) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(preload_name)) environment.emplace_back(*entry);
  }
  if (!allocator.library.empty()) environment.push_back(std::string(preload_name) + allocator.library.string());
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

struct Child {
  pid_t pid;
  int output;
};

Child start(const fs::path& program, std::vector<std::string> arguments, const Allocator& allocator) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  arguments.insert(arguments.begin(), program.string());
  std::vector<std::string> environment = child_environment(allocator);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, pointers_to(arguments).data(),
                                pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    throw std::runtime_error(fmt::format("cannot start {}: {}", program.string(), std::strerror(error)));
  }
  return {pid, ends[0]};
}

/// Reads until the child closes its output. False when `deadline` came first.
bool read_all(int file, steady_clock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd wanted{file, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    char part[4096];
    const ssize_t length = read(file, part, sizeof part);
    if (length == 0) return true;
    if (length > 0) text.append(part, static_cast<std::size_t>(length));
    if (length < 0 && errno != EINTR) return false;
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Runs the program to its end and returns what it printed.
std::string output_of(const fs::path& program, const std::vector<std::string>& arguments, const Allocator& allocator,
                      std::chrono::seconds limit) {
  const Child child = start(program, arguments, allocator);
  std::string text;
  const bool complete = read_all(child.output, steady_clock::now() + limit, text);
  close(child.output);
  if (!complete) kill(child.pid, SIGKILL);
  const int status = wait_for(child.pid);
  if (!complete) throw std::runtime_error(fmt::format("stopped after {} s", limit.count()));
  if (WIFSIGNALED(status)) {
    throw std::runtime_error(fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))));
  }
  if (WEXITSTATUS(status) != 0) throw std::runtime_error(fmt::format("exit status {}", WEXITSTATUS(status)));
  return text;
}

/// Refuses a run whose `symbol` came from another file than the allocator's library.
void require_origin(const nlohmann::json& line, const char* symbol, const Allocator& allocator) {
  const fs::path origin = line.at(fmt::format("{}_from", symbol)).get<std::string>();
  std::error_code error;
  if (allocator.library.empty()) {
    const std::string file = origin.filename();
    if (file.starts_with("libc.") || file.starts_with("ld-musl-")) return;
  } else if (fs::equivalent(origin, allocator.library, error)) {
    return;
  }
  throw std::runtime_error(fmt::format("refused: its {} came from {}, not from {}", symbol, origin.string(),
                                       allocator.library.empty() ? "the C library" : allocator.library.string()));
}

}  // namespace

Sample run_scenario(const fs::path& program, const std::vector<std::string>& arguments, const Allocator& allocator,
                    std::chrono::seconds limit) {
  const std::string text = output_of(program, arguments, allocator, limit);
  try {
    const nlohmann::json line = nlohmann::json::parse(text);
    require_origin(line, "malloc", allocator);
    require_origin(line, "free", allocator);
    Sample sample{{}, line.at("peak_rss_kib").get<std::int64_t>(), line.value("memory_in_effect", true)};
    for (const nlohmann::json& entry : line.at("cases")) {
      sample.cases.push_back({entry.at("name").get<std::string>(), entry.at("ops").get<std::uint64_t>(),
                              entry.at("ns_per_op").get<double>()});
    }
    return sample;
  } catch (const nlohmann::json::exception& problem) {
    throw std::runtime_error(fmt::format("its output is not a report: {}", problem.what()));
  }
}

}  // namespace bench
