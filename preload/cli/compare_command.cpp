// `sluice compare`: chooses the allocators, makes the runs in turn, and finds what differs. Open it to change the order
// of the runs or what counts as a difference.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/core.h>

#include "command.hpp"
#include "compare.hpp"
#include "html_report.hpp"
#include "installation.hpp"
#include "json_parts.hpp"
#include "measure/figure.hpp"
#include "measure/names.hpp"
#include "measure/progress.hpp"
#include "output_file.hpp"
#include "program.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using bench::Allocator;

bench::Command command_of(const CompareRequest& request) {
  bench::Command command;
  command.program = find_program(request.command.front());
  command.arguments = request.command;
  if (!request.input.empty()) {
    // A pipe could be read once only, and opening one may take forever.
    std::error_code error;
    if (access(request.input.c_str(), R_OK) != 0 ||
        !(fs::is_regular_file(request.input, error) || fs::is_character_file(request.input, error)))
      throw CommandError(exit_usage, fmt::format("compare: --input {}: no file that can be read", request.input));
    command.input = fs::absolute(request.input);
  }
  return command;
}

// Throws: CommandError when it names no signal.
int signal_of(const std::string& name) {
  const int number = bench::signal_named(name.empty() ? "TERM" : name);
  if (number == 0) throw CommandError(exit_usage, fmt::format("compare: --stop {}: no such signal", name));
  return number;
}

// What is asked for beside the runs of a program that ends by itself. Throws: CommandError.
std::optional<bench::Service> service_of(const CompareRequest& request) {
  if (request.load.empty()) {
    for (const auto& [option, value] : {std::pair{"--ready", &request.ready}, std::pair{"--stop", &request.stop}})
      if (!value->empty()) throw CommandError(exit_usage, fmt::format("compare: {} needs --load", option));
    return std::nullopt;
  }
  return bench::Service{request.ready, request.load, signal_of(request.stop)};
}

// Throws: CommandError when one is no regular expression with a group.
std::vector<std::regex> expressions_of(const CompareRequest& request) {
  if (request.metrics.empty() && request.direction != bench::Better::unknown)
    throw CommandError(exit_usage, fmt::format("compare: --metric-{}-is-better needs --metric",
                                               request.direction == bench::Better::more ? "more" : "less"));
  std::vector<std::regex> expressions;
  for (const MetricRequest& each : request.metrics) {
    try {
      expressions.emplace_back(each.expression, std::regex::ECMAScript | std::regex::multiline);
    } catch (const std::regex_error& problem) {
      throw CommandError(exit_usage, fmt::format("compare: --metric {}: {}", each.expression, problem.what()));
    }
    if (expressions.back().mark_count() == 0)
      throw CommandError(exit_usage,
                         fmt::format("compare: --metric {}: it has no group, as in 'took ([0-9.]+)'", each.expression));
  }
  return expressions;
}

// Returns: the figures that are asked for, each with a title of its own.
std::vector<OwnFigure> figures_of(const CompareRequest& request) {
  std::vector<OwnFigure> figures;
  for (const MetricRequest& each : request.metrics) {
    std::string title = printable(bench::figure_title(each.expression));
    const bool is_taken =
        std::any_of(figures.begin(), figures.end(), [&](const auto& other) { return other.title == title; });
    if (title.empty() || is_taken) {
      if (!title.empty()) title += ", ";
      title = request.metrics.size() == 1 ? "own figure" : fmt::format("{}own figure {}", title, figures.size() + 1);
    }
    figures.push_back({each.expression, std::move(title), each.better});
  }
  return figures;
}

// Finds the figures in what was printed, in the units that they had first. Throws: RunError.
std::vector<double> read_figures(const std::string& printed, const std::vector<std::regex>& expressions, bool by_load,
                                 std::vector<OwnFigure>& figures) {
  std::vector<double> values;
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    const bench::Figure found =
        bench::figure_in(printed, expressions[i], "--metric", by_load ? "the load" : "the program");
    OwnFigure& figure = figures[i];
    const bench::Unit unit = bench::unit_of(found.after);
    if (!figure.unit) figure.unit = unit;
    if (figure.better == bench::Better::unknown) figure.better = bench::better_direction(found.before, found.after);
    values.push_back(found.value * (unit.is_time == figure.unit->is_time ? unit.factor / figure.unit->factor : 1));
  }
  return values;
}

std::chrono::milliseconds limit_of(const CompareRequest& request) {
  return std::chrono::milliseconds(std::llround(std::ceil(request.timeout_seconds * 1000)));
}

// Takes what one run has shown into the contender's account; its figures go to `place`, unless that is null.
void account(Contender& contender, const bench::Run& run, std::vector<std::uint64_t>& digests,
             std::optional<Sample>* place, std::vector<double> figures) {
  contender.left_running += run.left_running != 0;
  contender.memory_gap = std::max(contender.memory_gap, run.memory_gap);
  contender.own_malloc = run.own_malloc;
  if (!contender.status) {
    contender.status = run.status;
    contender.output = run.output;
  } else if (run.status != *contender.status) {
    contender.failure =
        fmt::format("{} at first, then {}", bench::status_text(*contender.status), bench::status_text(run.status));
    if (!run.complaint.empty()) contender.failure += fmt::format(": {}", run.complaint);
    return;
  }
  const std::uint64_t digest = run.output.digest ^ run.output.bytes;
  if (std::find(digests.begin(), digests.end(), digest) == digests.end()) digests.push_back(digest);
  contender.outputs = digests.size();
  if (place != nullptr) *place = Sample{run.usage, run.load.wall_seconds, std::move(figures)};
}

// Without --runs there are so many, and more while they tell too little: when to stop depends on how sure the ratios
// are, not on what they say, so that it makes no difference out of none.
constexpr unsigned fewest_runs = 20, most_runs = 100, runs_between_looks = 5;
constexpr double wanted_precision = 0.02;
constexpr std::chrono::seconds patience{60};

bool are_ratios_known(const Comparison& comparison) {
  const Contender& baseline = comparison.contenders[comparison.baseline];
  const Metric metric = deciding_metric(comparison);
  return std::all_of(comparison.contenders.begin(), comparison.contenders.end(), [&](const Contender& each) {
    if (&each == &baseline || !each.failure.empty()) return true;
    const std::optional<bench::Ratio> ratio = ratio_of(each, baseline, metric);
    return !ratio || std::log(ratio->high / ratio->low) / 2 <= wanted_precision;
  });
}

// Makes the runs in rounds, of every allocator once. Each round begins with another one, so that a machine that slows
// down or warms up meets all of them alike. An allocator that fails is given up.
class Rounds {
  static constexpr std::size_t longest_printed = 1 << 20;

 public:
  Rounds(bench::Runner& runner, Comparison& comparison, const CompareRequest& request, const bench::Command& command,
         const std::optional<bench::Service>& service, const std::vector<std::regex>& metrics)
      : runner_(runner),
        comparison_(comparison),
        request_(request),
        command_(command),
        service_(service),
        metrics_(metrics),
        progress_(comparison.contenders.size() * (request.warmup + request.runs.value_or(fewest_runs))),
        digests_(comparison.contenders.size()) {}

  void make_all() {
    try {
      for (unsigned i = 0; i < request_.warmup; ++i)
        make(true);
      begin_ = std::chrono::steady_clock::now();
      while (is_another_wanted())
        make(false);
    } catch (const bench::Interrupted&) {
      comparison_.interrupted = true;
    }
  }

 private:
  bool is_another_wanted() const {
    const unsigned made = comparison_.rounds;
    if (made < request_.runs.value_or(fewest_runs)) return true;
    if (request_.runs || made >= most_runs || std::chrono::steady_clock::now() - begin_ > patience) return false;
    return made % runs_between_looks != 0 || !are_ratios_known(comparison_);
  }

  void make(bool is_warmup) {
    const std::size_t count = comparison_.contenders.size();
    if (!is_warmup) {
      ++comparison_.rounds;
      for (Contender& each : comparison_.contenders)
        each.runs.emplace_back();
    }
    for (std::size_t place = 0; place < count; ++place) {
      const std::size_t index = (turn_ + place) % count;
      Contender& contender = comparison_.contenders[index];
      progress_.next(fmt::format("{}{}", contender.allocator.name, is_warmup ? ", warm-up" : ""));
      if (contender.failure.empty()) run_one(contender, digests_[index], is_warmup);
    }
    ++turn_;
  }

  void run_one(Contender& contender, std::vector<std::uint64_t>& digests, bool is_warmup) {
    const bool is_first = turn_ == 0;
    const bench::Observation observed = is_first ? bench::Observation::memory : bench::Observation::nothing;
    try {
      bench::Run run =
          runner_.run(command_, contender.allocator, limit_of(request_), service_ ? &*service_ : nullptr, observed);
      if (is_first) contender.timeline = std::move(run.timeline);
      account(contender, run, digests, is_warmup ? nullptr : &contender.runs.back(), figures_in(run));
    } catch (const bench::RunError& problem) {
      contender.failure = problem.what();
    }
  }

  std::vector<double> figures_in(const bench::Run& run) {
    if (metrics_.empty()) return {};
    const std::string printed = service_ ? run.load.output : bench::tail_of(*run.output.file, longest_printed);
    return read_figures(printed, metrics_, service_.has_value(), comparison_.figures);
  }

  bench::Runner& runner_;
  Comparison& comparison_;
  const CompareRequest& request_;
  const bench::Command& command_;
  const std::optional<bench::Service>& service_;
  const std::vector<std::regex>& metrics_;
  bench::Progress progress_;
  std::vector<std::vector<std::uint64_t>> digests_;  // of outputs, by contender
  std::chrono::steady_clock::time_point begin_;
  std::size_t turn_ = 0;
};

// One more run of each allocator that did not fail, in which every call of malloc and free is timed.
void measure_latency(bench::Runner& runner, Comparison& comparison, const CompareRequest& request,
                     const bench::Command& command, const std::optional<bench::Service>& service) {
  bench::Progress progress(comparison.contenders.size());
  for (Contender& each : comparison.contenders) {
    progress.next(fmt::format("{}, latency", each.allocator.name));
    if (!each.failure.empty()) continue;
    try {
      each.latency = runner
                         .run(command, each.allocator, limit_of(request), service ? &*service : nullptr,
                              bench::Observation::latency)
                         .latency;
    } catch (const bench::Interrupted&) {
      comparison.interrupted = true;
      return;
    } catch (const bench::RunError& problem) {
      comparison.remarks.push_back(
          fmt::format("{}: its latency is not known: {}", each.allocator.name, problem.what()));
    }
  }
}

// Returns: the number of the first line in which two files differ, and that line of both.
std::string first_difference(const bench::Output& ours, const bench::Output& others) {
  std::ifstream left(fmt::format("/proc/self/fd/{}", ours.file->number()));
  std::ifstream right(fmt::format("/proc/self/fd/{}", others.file->number()));
  for (std::size_t number = 1;; ++number) {
    std::string one, other;
    const bool has_one = !std::getline(left, one).fail();
    const bool has_other = !std::getline(right, other).fail();
    if (!has_one && !has_other) return "the last line ends differently";
    if (has_one == has_other && one == other) continue;
    constexpr std::size_t most = 60;
    const auto shown = [](bool has, const std::string& line) {
      return has ? fmt::format("'{}{}'", printable(line.substr(0, most)), line.size() > most ? "…" : "") : "nothing";
    };
    return fmt::format("line {} is {}, not {}", number, shown(has_one, one), shown(has_other, other));
  }
}

// Compares the contenders' first runs with that of the baseline, or of the first one that ran.
void find_differences(Comparison& comparison) {
  std::vector<Contender*> ran;
  for (Contender& each : comparison.contenders) {
    if (each.status) ran.push_back(&each);
    comparison.output_varies = comparison.output_varies || each.outputs > 1;
  }
  if (ran.empty()) return;
  const Contender& chosen = comparison.contenders[comparison.baseline];
  const Contender& reference = chosen.status ? chosen : *ran.front();
  for (Contender* const each : ran) {
    if (each == &reference) continue;
    if (*each->status != *reference.status) {
      each->differs = true;
      comparison.differences.push_back(fmt::format("{} ended with {}, {} with {}", each->allocator.name,
                                                   bench::status_text(*each->status), reference.allocator.name,
                                                   bench::status_text(*reference.status)));
    }
    if (comparison.output_ignored || comparison.output_varies) continue;
    if (each->output.bytes != reference.output.bytes || each->output.digest != reference.output.digest) {
      each->differs = true;
      comparison.differences.push_back(fmt::format("{} printed something else than {}: {}", each->allocator.name,
                                                   reference.allocator.name,
                                                   first_difference(each->output, reference.output)));
    }
  }
}

void find_remarks(Comparison& comparison, const CompareRequest& request) {
  if (comparison.interrupted) {
    comparison.remarks.push_back(
        request.runs ? fmt::format("interrupted: only {} of {} rounds were begun", comparison.rounds, *request.runs)
                     : fmt::format("interrupted after {} rounds were begun", comparison.rounds));
  }
  if (comparison.output_varies && !comparison.output_ignored)
    comparison.remarks.emplace_back("the output differs from run to run under the same allocator, and is not compared");
  for (const Contender& each : comparison.contenders) {
    if (!each.own_malloc.empty()) {
      comparison.remarks.push_back(
          fmt::format("{}: the program brings a malloc of its own, {}", each.allocator.name, each.own_malloc));
    }
    if (each.left_running != 0) {
      comparison.remarks.push_back(fmt::format("{}: after {} of its runs processes were left, and were ended",
                                               each.allocator.name, each.left_running));
    }
  }
  for (const OwnFigure& each : comparison.figures) {
    if (each.better == bench::Better::unknown && each.unit)
      comparison.remarks.push_back(
          fmt::format("whether more or less of '{}' is better is not known, and nobody is ranked by it; "
                      "--metric-more-is-better or --metric-less-is-better says it",
                      each.title));
  }
  const Contender& baseline = comparison.contenders[comparison.baseline];
  if (baseline.status && *baseline.status != 0 && !comparison.is_service)
    comparison.remarks.push_back(fmt::format("the program ends with {}", bench::status_text(*baseline.status)));
}

}  // namespace

PreparedComparison prepared_comparison(const CompareRequest& request, const char* subcommand) {
  PreparedComparison prepared;
  prepared.service = service_of(request);
  prepared.expressions = expressions_of(request);
  prepared.command = command_of(request);
  Comparison& comparison = prepared.comparison;
  std::vector<Allocator> allocators = chosen_allocators(request.allocators, subcommand);
  for (const Allocator& each : allocators) {
    if (!each.library.empty()) check_can_preload(request.command.front(), prepared.command.program, each.library);
    comparison.contenders.push_back({each});
  }
  comparison.baseline = baseline_among(allocators, request.allocators, subcommand);
  comparison.command = request.command;
  comparison.command_line = request.command_line;
  comparison.warmup = request.warmup;
  comparison.is_service = prepared.service.has_value();
  comparison.figures = figures_of(request);
  comparison.output_ignored = request.ignore_output || prepared.service;
  comparison.machine = bench::this_machine();
  return prepared;
}

void make_runs(bench::Runner& runner, PreparedComparison& prepared, const CompareRequest& request) {
  Comparison& comparison = prepared.comparison;
  Rounds(runner, comparison, request, prepared.command, prepared.service, prepared.expressions).make_all();
  if (request.latency && !comparison.interrupted)
    measure_latency(runner, comparison, request, prepared.command, prepared.service);
  find_differences(comparison);
  find_remarks(comparison, request);
}

bool compare(const CompareRequest& request) {
  occupy_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a report that grows too large is an error like a full disk
  check_different({request.json_file, request.html_file, request.markdown_file});
  PreparedComparison prepared = prepared_comparison(request, "compare");
  const Comparison& comparison = prepared.comparison;
  // First, and to the end: from here on a signal ends the runs, and leaves no file behind.
  bench::Runner runner(helper_folder());
  // A bad path shows before the runs, not after.
  OutputFile json(request.json_file), markdown(request.markdown_file), html(request.html_file);

  make_runs(runner, prepared, request);
  const auto has_run = [](const Contender& each) { return each.status.has_value(); };
  if (comparison.interrupted && std::none_of(comparison.contenders.begin(), comparison.contenders.end(), has_run))
    throw_interrupted("compare");
  std::signal(SIGPIPE, SIG_IGN);  // the files are written even if nobody reads the tables
  fmt::print("{}", comparison_as_text(comparison, bench::look_of_output(request.wide, request.explain)));
  const nlohmann::ordered_json document = comparison_as_json(comparison);
  json.write(bench::json_text(document));
  html.write(report_as_html(document));
  markdown.write(comparison_as_markdown(comparison));
  const auto failed = [](const Contender& each) { return !each.failure.empty(); };
  return !comparison.interrupted && comparison.differences.empty() &&
         std::none_of(comparison.contenders.begin(), comparison.contenders.end(), failed);
}

}  // namespace sluice::cli
