// Starts a scenario and reads what it says, or what a real program used. Open it with runs.hpp.
#include "bench/runs.hpp"

#include <fmt/core.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <system_error>
#include <utility>

#include "bench/plan.hpp"
#include "measure/figure.hpp"
#include "measure/names.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

// More than any scenario prints.
constexpr std::size_t longest_report = 1 << 16;

std::string with_complaint(const Run& run) {
  const std::string status = status_text(run.status);
  return run.complaint.empty() ? status : fmt::format("{}: {}", status, run.complaint);
}

Sample sample_in(const std::string& text) {
  try {
    const nlohmann::json line = nlohmann::json::parse(text);
    Sample sample;
    sample.peak_rss_kib = line.at("peak_rss_kib").get<std::int64_t>();
    if (line.contains("quiet_rss_kib")) sample.quiet_rss_kib = line.at("quiet_rss_kib").get<std::int64_t>();
    if (line.contains("figures")) sample.figures = line.at("figures").get<std::map<std::string, double>>();
    sample.ops = line.at("ops").get<std::uint64_t>();
    sample.memory_in_effect = line.value("memory_in_effect", true);
    for (const nlohmann::json& entry : line.at("cases")) {
      sample.cases.push_back({entry.at("name").get<std::string>(), entry.at("ops").get<std::uint64_t>(),
                              entry.at("ns_per_op").get<double>()});
    }
    return sample;
  } catch (const nlohmann::json::exception& problem) {
    throw RunError(fmt::format("its output is not a report: {}", problem.what()));
  }
}

/// A server that runs as another user finds its way into it.
fs::path open_folder() {
  fs::path folder = temporary_folder("sluice-bench");
  fs::permissions(folder, fs::perms(0755));
  return folder;
}

/// Whom a server runs as that refuses to run as root.
std::string unprivileged_user() {
  if (geteuid() == 0) return "nobody";
  const passwd* const entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

}  // namespace

/// A real program's folder and what is known from its earlier runs.
struct ScenarioRunner::Workplace {
  Workplace(const RealProgram& description, const fs::path& data, unsigned port)
      : folder(open_folder()), program(placed(description, {data, folder, port, unprivileged_user()})) {}
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  fs::path folder;
  RealProgram program;
  std::string trouble;                                     // why it could not be prepared
  std::optional<std::pair<std::uint64_t, int>> first_run;  // digest of the output, and status
  std::string first_allocator;
};

ScenarioRunner::ScenarioRunner(Runner& runner, fs::path folder, const RunSettings& settings)
    : runner_(runner), folder_(std::move(folder)), settings_(settings) {}

ScenarioRunner::~ScenarioRunner() = default;

Sample ScenarioRunner::run(const Scenario& scenario, const Allocator& allocator, Observation observed,
                           std::optional<std::uint64_t> ops) {
  return scenario.real ? run_real(scenario, allocator, observed) : run_built_in(scenario, allocator, observed, ops);
}

Sample ScenarioRunner::run_built_in(const Scenario& scenario, const Allocator& allocator, Observation observed,
                                    std::optional<std::uint64_t> ops) {
  Command command{folder_ / scenario.program, {scenario.program}, {}};
  command.arguments.insert(command.arguments.end(), scenario.arguments.begin(), scenario.arguments.end());
  const auto add = [&](const char* name, std::optional<std::uint64_t> value) {
    if (value) command.arguments.insert(command.arguments.end(), {name, std::to_string(*value)});
  };
  add("--ops", ops ? ops : settings_.ops);
  add("--seed", settings_.seed);
  add("--threads", scenario.threads);
  const bool has_rest = observed == Observation::memory && rests(scenario, settings_);
  if (has_rest) add("--quiesce", static_cast<std::uint64_t>(settings_.quiet.count()));
  Run run = runner_.run(command, allocator, settings_.limit + (has_rest ? settings_.quiet : settings_.quiet.zero()),
                        nullptr, observed);
  if (run.status != 0) throw RunError(with_complaint(run));
  Sample sample = sample_in(tail_of(*run.output.file, longest_report));
  sample.timeline = std::move(run.timeline);
  if (observed == Observation::latency) sample.latency = std::move(run.latency);
  return sample;
}

ScenarioRunner::Workplace& ScenarioRunner::workplace_of(const RealProgram& program) {
  std::unique_ptr<Workplace>& place = workplaces_[program.name];
  if (place == nullptr) {
    place = std::make_unique<Workplace>(program, folder_ / "programs", free_port());
    if (!place->program.prepare.empty()) {
      // Until it is known to be prepared, also when that took too long: no allocator runs on half of its data.
      place->trouble = "could not be prepared";
      const Run prepared = runner_.run_shell(place->program.prepare, steady_clock::now() + settings_.limit);
      place->trouble = prepared.status == 0 ? "" : fmt::format("could not be prepared: {}", with_complaint(prepared));
    }
  }
  if (!place->trouble.empty()) throw RunError(place->trouble);
  return *place;
}

Sample ScenarioRunner::run_real(const Scenario& scenario, const Allocator& allocator, Observation observed) {
  Workplace& place = workplace_of(*scenario.real);
  const RealProgram& program = place.program;
  if (!program.before.empty()) {
    const Run before = runner_.run_shell(program.before, steady_clock::now() + settings_.limit);
    if (before.status != 0) throw RunError(fmt::format("its \"before\" failed: {}", with_complaint(before)));
  }
  std::error_code error;
  if (!program.input.empty() && !fs::is_regular_file(program.input, error))
    throw RunError(fmt::format("its input {} is not there", program.input));
  const Command command{program.command.front(), program.command, program.input};
  const Service service{program.ready, program.load, signal_named(program.stop.empty() ? "TERM" : program.stop)};
  Run run = runner_.run(command, allocator, settings_.limit, program.load.empty() ? nullptr : &service, observed);
  if (program.load.empty()) {
    if (run.status != 0) throw RunError(with_complaint(run));
    const std::pair<std::uint64_t, int> now(run.output.digest, run.status);
    if (!place.first_run) {
      place.first_run = now;
      place.first_allocator = allocator.name;
    } else if (now != *place.first_run && !program.varies) {
      throw RunError(fmt::format("printed something else than under {}", place.first_allocator));
    }
  }
  const double seconds = program.load.empty() ? run.usage.wall_seconds : run.load.wall_seconds;
  double ns_per_op = 0;
  if (program.rate.empty()) {
    ns_per_op = seconds * 1e9 / program.operations;
  } else {
    const double rate = figure_in(run.load.output, std::regex(program.rate, std::regex::multiline), "\"rate\"").value;
    if (rate <= 0) throw RunError("its load reached nothing");
    ns_per_op = 1e9 / rate;
  }
  Sample sample;
  sample.cases.push_back({scenario.name, static_cast<std::uint64_t>(program.operations), ns_per_op});
  sample.peak_rss_kib = run.usage.peak_all_kib;
  sample.largest_kib = run.usage.peak_kib;
  if (run.usage.mean_all_kib > 0) sample.mean_kib = run.usage.mean_all_kib;
  sample.timeline = std::move(run.timeline);
  if (observed == Observation::latency) sample.latency = std::move(run.latency);
  return sample;
}

}  // namespace bench
