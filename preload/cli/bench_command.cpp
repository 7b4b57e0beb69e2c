// `sluice bench`: chooses scenarios and allocators, and makes the runs in turn. Open it to change the order of the
// runs.
#include "bench_command.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/core.h>

#include "bench/plan.hpp"
#include "bench/report.hpp"
#include "bench/results.hpp"
#include "bench/runs.hpp"
#include "bench/threads.hpp"
#include "command.hpp"
#include "html_report.hpp"
#include "installation.hpp"
#include "json_parts.hpp"
#include "measure/progress.hpp"
#include "measure/tables.hpp"
#include "output_file.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using bench::Observation;
using bench::Results;
using bench::Sample;
using bench::Scenario;

std::vector<Scenario> known_scenarios(const fs::path& folder) {
  try {
    return bench::all_scenarios(bench::read_programs(folder / "programs"));
  } catch (const std::runtime_error& problem) {
    throw CommandError(exit_usage, fmt::format("bench: {}", problem.what()));
  }
}

// Returns: why a scenario cannot run here; empty when it can.
std::string obstacle_of(const Scenario& scenario, const fs::path& folder) {
  if (scenario.real) {
    const std::string missing = bench::missing_command(*scenario.real);
    if (missing.empty()) return {};
    std::string packages;
    for (const std::string& each : scenario.real->packages)
      packages += " " + each;
    return fmt::format("{} is not installed{}", missing, packages.empty() ? "" : " (Debian:" + packages + ")");
  }
  std::error_code ignored;
  return fs::is_regular_file(folder / scenario.program, ignored) ? "" : "it was left out when this was built";
}

bool is_named(const BenchRequest& request, const Scenario& scenario) {
  const auto& names = request.names;
  return std::find(names.begin(), names.end(), scenario.name) != names.end() ||
         std::find(names.begin(), names.end(), scenario.group) != names.end();
}

bool takes_any(const BenchRequest& request, const Scenario& scenario) {
  const bench::ThreadCounts& counts = request.threads;
  return std::any_of(counts.begin(), counts.end(), [&](std::uint64_t count) { return scenario.takes(count); });
}

// Throws: CommandError, when a scenario that was named cannot run as was asked for.
void refuse_unsuitable(const BenchRequest& request, const Scenario& scenario, const std::string& obstacle) {
  const auto refuse = [](const std::string& why) { throw CommandError(exit_usage, "bench: " + why); };
  if (!obstacle.empty()) refuse(fmt::format("{} cannot be run: {}", scenario.name, obstacle));
  if (!request.threads.empty() && !takes_any(request, scenario))
    refuse(scenario.least_threads == 0
               ? fmt::format("{} takes no --threads", scenario.name)
               : fmt::format("{} needs --threads of at least {}", scenario.name, scenario.least_threads));
  if ((request.ops || request.seed) && scenario.real)
    refuse(fmt::format("{} is a real program and takes no --ops or --seed", scenario.name));
}

// Adds the scenario, once for each of several numbers of threads that it takes, and tells of those that it does not.
void add_with_threads(const BenchRequest& request, const Scenario& scenario, std::vector<Scenario>& runnable) {
  for (Scenario& each : bench::with_threads(scenario, request.threads))
    runnable.push_back(std::move(each));
  if (request.threads.size() < 2) return;
  bench::ThreadCounts too_few = request.threads;
  std::erase_if(too_few, [&](std::uint64_t count) { return scenario.takes(count); });
  if (!too_few.empty())
    fmt::print(stderr, "sluice: bench: {} is left out with {} thread{}: it needs {}\n", scenario.name,
               bench::counts_text(too_few), too_few == bench::ThreadCounts{1} ? "" : "s", scenario.least_threads);
}

// Tells of the scenarios, by group, that are not run since several numbers of threads were asked for.
void report_without_threads(const std::vector<std::string>& groups) {
  if (groups.empty()) return;
  std::string text = "sluice: bench: left out, since they take no --threads:";
  for (const std::string& group : groups)
    text += fmt::format(" {}{}", group, &group == &groups.back() ? "" : ",");
  fmt::print(stderr, "{}\n", bench::wrapped(text, bench::terminal_columns(STDERR_FILENO)));
}

// Returns: those that can run. All of those named must; when all were asked for, the others are told of and left out.
// With several numbers of threads those are left out that take none: what is asked for is how the others scale.
std::vector<Scenario> chosen_scenarios(const BenchRequest& request, const fs::path& folder) {
  std::vector<Scenario> chosen = known_scenarios(folder);
  if (!request.all) {
    try {
      chosen = bench::scenarios_named(request.names, chosen);
    } catch (const std::invalid_argument& problem) {
      throw CommandError(exit_usage, fmt::format("bench: {}", problem.what()));
    }
  }
  std::vector<Scenario> runnable;
  std::vector<std::string> without_threads;
  for (const Scenario& each : chosen) {
    const std::string obstacle = obstacle_of(each, folder);
    if (is_named(request, each)) refuse_unsuitable(request, each, obstacle);
    if (request.threads.size() > 1 && !takes_any(request, each)) {
      if (without_threads.empty() || without_threads.back() != each.group) without_threads.push_back(each.group);
    } else if (obstacle.empty()) {
      add_with_threads(request, each, runnable);
    } else {
      fmt::print(stderr, "sluice: bench: {} is left out: {}\n", each.name, obstacle);
    }
  }
  if (runnable.empty() && !without_threads.empty())
    throw CommandError(exit_usage, "bench: none of these scenarios takes --threads");
  report_without_threads(without_threads);
  if (runnable.empty()) throw CommandError(exit_usage, "bench: none of these scenarios can be run here");
  return runnable;
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::llround(std::ceil(seconds * 1000)));
}

// Makes all runs: each scenario under all allocators before the next one, and the allocators in an order that moves on
// by one from run to run, so that a machine that slows down or warms up meets all of them alike. An allocator that
// fails a scenario is not tried there again, nor is one under which the scenario's kind of memory has no effect.
class Schedule {
 public:
  Schedule(bench::ScenarioRunner& runner, Results& results, const BenchRequest& request)
      : runner_(runner),
        results_(results),
        request_(request),
        progress_(work_of(bench::plan_of(results, !request.no_latency))) {}

  void run() {
    try {
      if (request_.seconds) calibrate();
      // The first pass is not timed: it warms caches up, and is the one in which memory is watched.
      pass(0, Observation::memory, "memory");
      for (unsigned round = 1; round <= request_.rounds; ++round)
        pass(round, Observation::nothing, fmt::format("round {}", round));
      if (!request_.no_latency) pass(request_.rounds + 1, Observation::latency, "latency");
    } catch (const bench::Interrupted&) {
      results_.interrupted = true;
    }
  }

  static bench::Work work_of(const bench::Plan& plan) { return {plan.runs(), plan.rest()}; }

  bool all_well() const { return !results_.interrupted && results_.failures.empty() && !lost_latency_; }

 private:
  // How many operations take about as long as was asked for, under the first allocator.
  void calibrate() {
    for (const Scenario& scenario : results_.scenarios) {
      if (scenario.real) continue;
      progress_.note(fmt::format("{}: how long it takes", scenario.name));
      try {
        const Sample sample = runner_.run(scenario, results_.allocators.front(), Observation::nothing);
        double nanoseconds = 0;
        for (const bench::CaseSample& each : sample.cases)
          nanoseconds += each.ns_per_op * static_cast<double>(each.ops);
        const double ops = static_cast<double>(sample.ops) * *request_.seconds * 1e9 / std::max(nanoseconds, 1.0);
        ops_[scenario.name] = static_cast<std::uint64_t>(std::clamp(ops, 1.0, 4e9));
      } catch (const bench::RunError&) {
        // The first pass will say it.
      }
    }
  }

  void pass(unsigned number, Observation observed, const std::string& what) {
    const std::size_t columns = results_.allocators.size();
    for (std::size_t s = 0; s < results_.scenarios.size(); ++s) {
      for (std::size_t turn = 0; turn < columns; ++turn) {
        const std::size_t column = (turn + number + s) % columns;
        const Scenario& scenario = results_.scenarios[s];
        if (observed == Observation::latency && !scenario.is_plain()) continue;
        const bool has_rest = observed == Observation::memory && bench::rests(scenario, results_.settings);
        const double rest = has_rest ? static_cast<double>(results_.settings.quiet.count()) / 1000 : 0;
        progress_.next(fmt::format("{}: {} under {}{}", what, scenario.name, results_.allocators[column].name,
                                   has_rest ? fmt::format(", {:g} s of rest", rest) : ""),
                       rest);
        if (!results_.is_given_up(scenario, column)) run_one(scenario, column, observed);
      }
    }
  }

  void run_one(const Scenario& scenario, std::size_t column, Observation observed) {
    const bench::Allocator& allocator = results_.allocators[column];
    const auto ops = ops_.find(scenario.name);
    try {
      const Sample sample = runner_.run(scenario, allocator, observed,
                                        ops == ops_.end() ? std::nullopt : std::optional<std::uint64_t>(ops->second));
      if (!sample.memory_in_effect) {
        results_.without_effect[{scenario.name, column}] = true;
      } else if (observed == Observation::nothing) {
        results_.add(scenario, column, sample);
      } else {
        results_.observe(scenario, column, sample);
      }
    } catch (const std::runtime_error& problem) {  // also what the machine refuses: the other figures are kept
      progress_.clear();
      fmt::print(stderr, "sluice: bench: {} under {}: {}\n", scenario.name, allocator.name, printable(problem.what()));
      // Without its latency a scenario keeps its figures.
      if (observed == Observation::latency) {
        lost_latency_ = true;
      } else {
        results_.fail(scenario, column, problem.what());
      }
    }
  }

  bench::ScenarioRunner& runner_;
  Results& results_;
  const BenchRequest& request_;
  bench::Progress progress_;
  bool lost_latency_ = false;
  std::map<std::string, std::uint64_t> ops_;  // by scenario, where they are not those of the settings
};

// Tells of the scenarios that are in no table because their kind of memory had no effect under any allocator.
void report_unmeasured(const Results& results) {
  for (const Scenario& scenario : results.scenarios) {
    std::size_t without = 0;
    for (std::size_t column = 0; column < results.allocators.size(); ++column)
      without += results.without_effect.count({scenario.name, column});
    if (without != results.allocators.size()) continue;
    fmt::print(stderr, "sluice: bench: {} is left out: none of these allocators has scopes in effect\n", scenario.name);
  }
}

// Says what is about to be done, and how long that takes, on standard error: the tables belong to whoever reads on.
void announce(const Results& results, const BenchRequest& request) {
  bench::Plan plan = bench::plan_of(results, !request.no_latency);
  plan.seconds_of_a_run = request.seconds.value_or(plan.seconds_of_a_run);
  const std::size_t columns = bench::terminal_columns(STDERR_FILENO);
  fmt::print(stderr, "{}\n", bench::wrapped(bench::plan_text(results, plan), columns));
}

void check(const BenchRequest& request) {
  check_different({request.json_file, request.html_file, request.markdown_file});
  if (request.all == !request.names.empty())
    throw CommandError(exit_usage, request.all
                                       ? "bench: either scenarios, or --all"
                                       : "bench: which scenarios? (`sluice bench list` shows them, --all is all)");
  if (request.ops && (request.all || request.seconds))
    throw CommandError(exit_usage, request.seconds ? "bench: either --ops or --seconds"
                                                   : "bench: operations are another thing in each scenario; with --all "
                                                     "use --seconds");
}

}  // namespace

void list_scenarios() {
  const fs::path folder = scenario_folder();
  bench::Grid grid = {{"scenario", "threads", "what it does"}};
  for (const Scenario& each : known_scenarios(folder)) {
    const std::string obstacle = obstacle_of(each, folder);
    grid.push_back({each.name, each.least_threads != 0 ? "yes" : "",
                    obstacle.empty() ? each.summary : fmt::format("{}; {}", each.summary, obstacle)});
  }
  std::size_t width = 0;
  for (const auto& row : grid)
    width = std::max(width, row[0].size());
  constexpr std::size_t threads_width = 7;
  const std::size_t columns = bench::terminal_columns(STDOUT_FILENO);
  for (const auto& row : grid) {
    const std::string line = fmt::format("{:<{}}  {:<{}}  ", row[0], width, row[1], threads_width);
    const bool is_room = columns > 2 * line.size();
    fmt::print("{}{}\n", line, bench::wrapped(row[2], is_room ? columns - line.size() : 0, line.size()));
  }
}

bool run_scenarios(const BenchRequest& request) {
  occupy_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a report that grows too large is an error like a full disk
  check(request);
  const fs::path folder = scenario_folder();
  bench::RunSettings settings{request.threads, request.seed, request.ops, milliseconds_of(request.timeout_seconds),
                              milliseconds_of(request.quiet_seconds)};
  Results results(chosen_scenarios(request, folder), chosen_allocators(request.allocators, "bench"), request.rounds,
                  settings);
  results.baseline = baseline_among(results.allocators, request.allocators, "bench");
  results.command_line = request.command_line;
  // First, and to the end: from here on a signal ends the runs, and leaves no file behind.
  bench::Runner runner(helper_folder());
  // A bad path shows before the runs, not after.
  OutputFile json(request.json_file), markdown(request.markdown_file), html(request.html_file);
  announce(results, request);
  bool all_well = false;
  {
    bench::ScenarioRunner scenarios(runner, folder, settings);
    Schedule schedule(scenarios, results, request);
    schedule.run();
    all_well = schedule.all_well();
  }
  if (results.interrupted && results.time.rows().empty() && results.observed.empty()) throw_interrupted("bench");
  report_unmeasured(results);
  std::signal(SIGPIPE, SIG_IGN);  // the files are written even if nobody reads the tables
  // Unlike fmt::print, this does not throw; what failed is told once the files are written.
  std::fputs(bench::results_as_text(results, bench::look_of_output(request.wide, request.explain)).c_str(), stdout);
  const bench::Json document = bench::results_as_json(results);
  json.write(bench::json_text(document));
  markdown.write(bench::results_as_markdown(results));
  html.write(report_as_html(document));
  if (std::ferror(stdout) != 0) throw CommandError(exit_failure, "cannot write to standard output");
  return all_well;
}

}  // namespace sluice::cli
