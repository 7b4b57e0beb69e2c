// `sluice top`: what the processes on Sluice hold and allocate, again and again. Open it to add a column.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "../command.hpp"
#include "attach.hpp"
#include "channel.hpp"
#include "measure/tables.hpp"
#include "measure/terminal.hpp"
#include "profile/file.hpp"
#include "profile/sites.hpp"
#include "profile/symbolize.hpp"
#include "profile/text.hpp"
#include "screen.hpp"

namespace sluice::cli::attach {
namespace {

using Clock = std::chrono::steady_clock;
using bench::Grid;

constexpr std::chrono::seconds patience{2};
constexpr size_t most_sites = 5;
constexpr int updates_between_sites = 5;  // a profile is written and read for them

struct Counts {
  double live = 0, threads = 0, profile_rate = 0;
  std::optional<double> mallocs, frees;  // where they are counted
  Clock::time_point at;
};

struct Process {
  pid_t pid = 0;
  std::string program;
  double resident = 0;
  Counts now;
  std::optional<double> mallocs_a_second, frees_a_second;
  std::string problem;  // why it has no figures
  std::vector<std::string> sites;
};

Counts counts_in(const std::string& text) {
  Counts counts;
  counts.at = Clock::now();
  std::istringstream lines(text);
  std::string name;
  for (double value = 0; lines >> name >> value;) {
    if (name == "live_bytes") counts.live = value;
    if (name == "threads") counts.threads = value;
    if (name == "profile_rate") counts.profile_rate = value;
    if (name == "mallocs") counts.mallocs = value;
    if (name == "frees") counts.frees = value;
  }
  return counts;
}

double resident_of(pid_t pid) {
  double size = 0, resident = 0;
  std::istringstream(process_file(pid, "statm")) >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

bool is_owned_by(pid_t pid, uid_t user) {
  struct stat folder {};
  return stat(fmt::format("/proc/{}", pid).c_str(), &folder) == 0 && folder.st_uid == user;
}

// What another user's process says of the files that its functions lie in is not for root to follow.
std::vector<std::string> top_sites(const Place& place, pid_t pid) {
  if (!is_owned_by(pid, geteuid())) return {};
  const Response response = ask(place, "profile dump", pid, patience);
  if (response.outcome != Response::Outcome::ok) return {};
  try {
    profile::Profile read = profile::parsed_profile(fmt::format("process {}", pid), response.text);
    (void)profile::symbolize(read);
    const profile::Stacks stacks = profile::stacks_of(read);
    std::vector<std::string> lines;
    for (const profile::Site& site : profile::sites_of(stacks, profile::Measure::inuse)) {
      if (lines.size() == most_sites || !(site.values[profile::inuse_bytes] > 0)) break;
      lines.push_back(fmt::format("{:>10}  {}", profile::bytes_text(site.values[profile::inuse_bytes]),
                                  profile::place_text(stacks.function_of(site.frame), stacks.frames[site.frame].line)));
    }
    return lines;
  } catch (const CommandError&) {
    return {};  // the table goes on without
  }
}

// What was seen at the last update, by process.
class View {
 public:
  void update(bool with_sites) {
    std::vector<Process> found;
    for (const Place& place : find_places())
      if (std::optional<Process> process = look_at(place, with_sites)) found.push_back(std::move(*process));
    processes_ = std::move(found);
  }

  bool counts_any() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Process& each) { return each.now.mallocs.has_value(); });
  }

  void sort(std::string_view key) {
    const auto value = [key](const Process& each) -> double {
      if (key == "live") return each.now.live;
      if (key == "mallocs") return each.mallocs_a_second.value_or(-1);
      if (key == "frees") return each.frees_a_second.value_or(-1);
      if (key == "threads") return each.now.threads;
      if (key == "pid") return -each.pid;
      return each.resident;
    };
    std::stable_sort(processes_.begin(), processes_.end(),
                     [&value](const Process& a, const Process& b) { return value(a) > value(b); });
  }

  std::string text(size_t width) const {
    const bench::Look look{false, width, false};
    if (processes_.empty()) return "no process that can be attached; SLUICE_ATTACH=1 opens one at its start\n";
    Grid grid{{"pid", "program", "resident", "live", "mallocs/s", "frees/s", "threads", "profile"}};
    for (const Process& each : processes_)
      grid.push_back(row_of(each));
    std::string text = bench::text_table(grid, look, {}, {1, 2, 3});
    for (const Process& each : processes_) {
      if (each.sites.empty()) continue;
      text += fmt::format("\nalive in {} {}, by the profile\n", each.pid, each.program);
      for (const std::string& site : each.sites)
        text += (width == 0 || site.size() <= width ? site : site.substr(0, width)) + '\n';
    }
    return text;
  }

 private:
  std::optional<Process> look_at(const Place& place, bool with_sites) {
    const auto earlier = earlier_.find(place.name);
    Process process = earlier != earlier_.end() ? earlier->second : Process{};
    if (process.pid == 0) process.pid = listener_of(place);
    if (process.pid == 0) return std::nullopt;  // another user's
    if (is_stopped(process.pid)) {
      process.problem = "stopped";
    } else if (is_sandboxed_since(place, process.pid)) {
      process.problem = "in a sandbox";
    } else {
      const Response response = ask(place, "figures", process.pid, patience);
      if (response.outcome == Response::Outcome::gone) return std::nullopt;
      const bool is_new = earlier == earlier_.end();
      if (response.outcome == Response::Outcome::refused && is_new) return std::nullopt;  // has changed its user
      process.problem = response.outcome == Response::Outcome::ok ? "" : "no answer";
      if (process.problem.empty()) take(process, counts_in(response.text), !is_new);
    }
    process.program = program_of(process.pid);
    process.resident = resident_of(process.pid);
    if (process.now.profile_rate == 0)
      process.sites.clear();
    else if (with_sites && process.problem.empty())
      process.sites = top_sites(place, process.pid);
    earlier_[place.name] = process;
    return process;
  }

  static void take(Process& process, const Counts& now, bool is_known) {
    const double seconds = std::chrono::duration<double>(now.at - process.now.at).count();
    const auto rate = [&](const std::optional<double>& before, const std::optional<double>& after) {
      return is_known && before && after && seconds > 0 ? std::optional((*after - *before) / seconds) : std::nullopt;
    };
    process.mallocs_a_second = rate(process.now.mallocs, now.mallocs);
    process.frees_a_second = rate(process.now.frees, now.frees);
    process.now = now;
  }

  static std::vector<std::string> row_of(const Process& each) {
    const auto count = [](const std::optional<double>& value) {
      return value ? profile::count_text(std::round(*value)) : std::string("-");
    };
    if (!each.problem.empty() && each.now.threads == 0)
      return {
          std::to_string(each.pid), each.program, profile::bytes_text(each.resident), each.problem, "-", "-", "-", "-"};
    const std::string profile = each.now.profile_rate == 0 ? "-" : profile::bytes_text(each.now.profile_rate);
    return {std::to_string(each.pid),
            each.program,
            profile::bytes_text(each.resident),
            each.problem.empty() ? profile::bytes_text(each.now.live) : each.problem,
            count(each.mallocs_a_second),
            count(each.frees_a_second),
            profile::count_text(each.now.threads),
            profile};
  }

  std::map<std::string, Process> earlier_;
  std::vector<Process> processes_;
};

constexpr std::array<std::string_view, 6> sort_keys = {"resident", "live", "mallocs", "frees", "threads", "pid"};

void print_once(const TopRequest& request) {
  View view;
  view.update(false);
  if (view.counts_any()) std::this_thread::sleep_for(std::chrono::duration<double>(request.interval));
  view.update(request.sites);
  view.sort(request.sort);
  StandardOutput out;
  out.text(view.text(bench::terminal_columns(STDOUT_FILENO)));
}

int show_live(const TopRequest& request) {
  Screen screen;
  View view;
  std::string sort = request.sort;
  auto next = Clock::now();
  for (int updates = 0; !screen.is_over();) {
    if (Clock::now() >= next) {
      view.update(request.sites && updates++ % updates_between_sites == 0);
      next = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(request.interval * 1000));
    }
    view.sort(sort);
    const std::string heading = fmt::format("sluice top   by {}   r l m f t p: order   q: quit\n\n", sort);
    screen.show(heading + view.text(bench::terminal_columns(STDOUT_FILENO)));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    const std::optional<char> key = screen.wait_for_key(static_cast<int>(std::max<int64_t>(left, 0)));
    if (key.value_or(0) == 'q') break;
    for (const std::string_view each : sort_keys)
      if (key == each.front()) sort = each;
  }
  return screen.ending_signal();
}

}  // namespace

CLI::App* add_top(CLI::App& app, TopRequest& request) {
  CLI::App* top = app.add_subcommand("top", "Show what the running processes on Sluice hold and allocate, live");
  top->add_option("--sort", request.sort, "The order: resident, live, mallocs, frees, threads or pid")
      ->type_name("KEY")
      ->check(CLI::IsMember(std::vector<std::string>(sort_keys.begin(), sort_keys.end())))
      ->capture_default_str();
  top->add_option("--interval", request.interval, "Seconds between two updates")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  top->add_flag("--once", request.once, "Print one table and end, as where there is no terminal");
  top->add_flag("!--no-sites", request.sites, "Leave out the top sites of processes that are profiled");
  return top;
}

void show_top(const TopRequest& request) {
  if (request.once || isatty(STDIN_FILENO) == 0 || !bench::is_smart_terminal(STDOUT_FILENO)) return print_once(request);
  if (const int signal = show_live(request)) {
    (void)std::signal(signal, SIG_DFL);
    (void)raise(signal);
  }
}

}  // namespace sluice::cli::attach
