// One measured run: the environment of the program, a service's load, and the check of what the probe wrote. Open it
// when a run is refused.
#include "process.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "launched_program.hpp"

extern char** environ;

namespace bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What the C library may have served before the allocator was there, or for itself; more than that is a malloc that
// serves the program.
constexpr std::uint64_t libc_may_serve = 64 << 10;
constexpr std::size_t longest_load_output = 1 << 20;

std::string error_text(int error) {
  return std::generic_category().message(error);
}

/// This process's environment without any preload.
std::vector<std::string> plain_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const bool is_ours = variable.starts_with("LD_PRELOAD=") || variable.starts_with("LIBSLUICE_PROBE=") ||
                         variable.starts_with("LIBSLUICE_LATENCY=") || variable.starts_with("SLUICE_LAUNCH_PRELOAD=");
    if (!is_ours) environment.emplace_back(variable);
  }
  return environment;
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

/// As it is in the launcher's report: one line, without blanks at its start.
std::string printed_name(std::string name) {
  std::replace(name.begin(), name.end(), '\n', '?');
  const std::size_t start = name.find_first_not_of(" \t\v\f\r");
  return start == std::string::npos ? std::string() : name.substr(start);
}

/// What the probe wrote when a process loaded it, or when that process ended.
struct ProbeRecord {
  std::string process;  // its number
  bool is_end = false;
  std::uint64_t libc_bytes = 0;        // at the end: what the C library's malloc has served
  std::array<std::string, 2> origins;  // at the start: the libraries that malloc and free come from
  std::string name;                    // at the start: of the program
};

std::vector<ProbeRecord> read_records(const fs::path& path) {
  std::ifstream file(path);
  const auto word = [&] {
    std::string text;
    std::getline(file, text, '\0');
    return text;
  };
  std::vector<ProbeRecord> records;
  for (std::string kind = word(); !kind.empty(); kind = word()) {
    ProbeRecord& record = records.emplace_back();
    record.process = word();
    record.is_end = kind == "end";
    if (record.is_end) {
      record.libc_bytes = std::strtoull(word().c_str(), nullptr, 10);
    } else {
      for (std::string& origin : record.origins)
        origin = word();
      record.name = word();
    }
  }
  return records;
}

/// Throws: RunError when a process took memory from elsewhere than the library.
void check_served_by(const ProbeRecord& record, const fs::path& library) {
  if (record.is_end) {
    if (record.libc_bytes > libc_may_serve)
      throw RunError(fmt::format("refused: the C library's own malloc served {} bytes of process {}, not {}",
                                 record.libc_bytes, record.process, library.string()));
    return;
  }
  for (const std::string& origin : record.origins) {
    std::error_code error;
    if (!fs::equivalent(origin, library, error))
      throw RunError(fmt::format("refused: malloc or free of process {} came from {}, not from {}", record.process,
                                 origin, library.string()));
  }
}

bool is_libc(const std::string& library) {
  const std::string file = fs::path(library).filename();
  return file.starts_with("libc.") || file.starts_with("libc-") || file.starts_with("ld-musl-");
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

}  // namespace

Runner::Runner(const fs::path& helpers)
    : launcher_(required(helpers / "sluice-launch")),
      probe_(required(helpers / "libsluice-probe.so")),
      latency_(required(helpers / "libsluice-latency.so")),
      folder_(temporary_folder("sluice-compare")),
      records_(folder_ / "records"),
      latencies_(folder_ / "latencies") {
  listen_for_interruption(earlier_actions_);
  adopt_orphans();
}

Runner::~Runner() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  stop_listening(earlier_actions_);
}

// The same for the measured program, in which it finds the probe's file; LD_PRELOAD is the launcher's business.
std::vector<std::string> Runner::environment_for(const Allocator& allocator, Observation observed) const {
  std::vector<std::string> environment = plain_environment();
  for (const auto& [name, value] : allocator.variables) {
    std::erase_if(environment, [&name = name](const std::string& entry) { return entry.starts_with(name + "="); });
    environment.push_back(fmt::format("{}={}", name, value));
  }
  std::string preload = probe_.string();
  if (observed == Observation::latency) {
    preload += fmt::format(":{}", latency_.string());
    environment.push_back(fmt::format("LIBSLUICE_LATENCY={}", latencies_.string()));
  }
  if (!allocator.library.empty()) preload += fmt::format(":{}", allocator.library.string());
  environment.push_back(fmt::format("SLUICE_LAUNCH_PRELOAD={}", preload));
  environment.push_back(fmt::format("LIBSLUICE_PROBE={}", records_.string()));
  return environment;
}

Run Runner::run_shell(const std::string& line, Time deadline) {
  LaunchedProgram launch(launcher_, {"/bin/sh", {"sh", "-c", line}, {}}, plain_environment(), folder_, timeline_);
  launch.program(deadline);
  return launch.finish(deadline);
}

void Runner::serve(LaunchedProgram& launch, const Service& service, Time deadline, Run& run) {
  const pid_t program = launch.program(deadline);
  const Spared spared(launch.launcher());
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

Run Runner::run(const Command& command, const Allocator& allocator, milliseconds limit, const Service* service,
                Observation observed) {
  if (is_interrupted()) throw Interrupted();
  const Time deadline = steady_clock::now() + limit;
  for (const fs::path& file : {records_, latencies_})
    std::ofstream(file, std::ios::trunc).close();
  memory_ = {};
  timeline_ = observed == Observation::latency ? nullptr : &memory_;
  LaunchedProgram launch(launcher_, command, environment_for(allocator, observed), folder_, timeline_);
  const pid_t program = launch.program(deadline);
  if (timeline_ != nullptr) memory_.watch(launch.launcher(), observed == Observation::memory);
  Load load;
  if (service != nullptr) {
    Run served;
    serve(launch, *service, deadline, served);
    load = std::move(served.load);
  }
  Run run = launch.finish(deadline);
  memory_.end();
  run.usage.peak_all_kib = std::max<std::int64_t>(run.usage.peak_kib, std::llround(memory_.peak_kib()));
  run.usage.mean_all_kib = memory_.mean_kib();
  run.memory_gap = memory_.longest_gap();
  run.load = std::move(load);
  const bool stopped = service != nullptr && WIFSIGNALED(run.status) && WTERMSIG(run.status) == service->stop_signal;
  if (WIFSIGNALED(run.status) && !stopped)
    throw RunError(fmt::format("ended by {}{}", status_text(run.status), after_colon(run.complaint)));
  run.own_malloc = check_origin(program, run, allocator);
  run.output = digested(std::move(run.output.file));
  if (observed == Observation::memory) run.timeline = memory_.timeline();
  if (observed == Observation::latency) run.latency = read_latency(latencies_);
  return run;
}

// Returns: the library that malloc came from, if that is neither the allocator's nor the C library. Throws: RunError
// when the allocator did not serve every process that wrote a record.
std::string Runner::check_origin(pid_t pid, const Run& run, const Allocator& allocator) const {
  const std::string program = std::to_string(pid);
  std::string own;
  std::string name;  // that the program had when it loaded what was preloaded
  bool has_start = false;
  bool has_end = false;
  for (const ProbeRecord& record : read_records(records_)) {
    if (!allocator.library.empty()) check_served_by(record, allocator.library);
    if (record.process != program) continue;
    has_end = record.is_end;
    if (record.is_end) continue;
    has_start = true;
    name = record.name;
    const auto foreign = std::find_if_not(record.origins.rbegin(), record.origins.rend(), is_libc);
    if (allocator.library.empty() && foreign != record.origins.rend()) own = *foreign;
  }
  if (!has_start)
    throw RunError(
        "refused: the program did not load what was preloaded (it is static, privileged, or drops LD_PRELOAD)");
  // A program that execs another and drops the environment leaves the record of its own start only.
  if (!has_end && WIFEXITED(run.status) && !run.last_name.empty() && run.last_name != printed_name(name))
    throw RunError(fmt::format("refused: the program became {}, which did not load what was preloaded", run.last_name));
  return own;
}

std::string status_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace bench
