// Tries options and other allocators, measures again what looks promising, and asks the profile about the code. Open it
// with advise.hpp.
#include "advise/advise.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "../profile/file.hpp"
#include "../profile/symbolize.hpp"
#include "advise/code.hpp"
#include "command.hpp"
#include "compare.hpp"
#include "installation.hpp"
#include "json_parts.hpp"
#include "measure/descriptor.hpp"
#include "measure/tables.hpp"
#include "option_table.hpp"
#include "output_file.hpp"
#include "sluice/sluice.h"

namespace sluice::cli::advise {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// What is tried, each by itself: options that trade time for memory, in steps that a user would take.
constexpr const char* tried_options[] = {"CACHE=16K",       "CACHE=256K",        "CACHE=1M",      "RETAIN=0",
                                         "PURGE_DELAY=100", "PURGE_DELAY=10000", "HUGE_PAGES=on", "BACKGROUND=on"};
constexpr unsigned screening_runs = 6;
// What cannot be better by so much, as far as the screening can tell, is not measured again.
constexpr double worth_it = 0.02;

const char* page_of(const std::string& name) {
  if (name.find("RETAIN") != std::string::npos || name.find("PURGE_DELAY") != std::string::npos ||
      name.find("BACKGROUND") != std::string::npos)
    return "lib/docs/memory.md";
  return name.find(':') != std::string::npos ? "lib/docs/options.md" : "lib/docs/command.md";
}

CompareRequest comparison_request(const AdviseRequest& request, std::vector<std::string> with, unsigned runs) {
  CompareRequest comparison;
  comparison.allocators = {std::move(with), "sluice", request.library};
  comparison.runs = runs;
  comparison.timeout_seconds = request.timeout_seconds;
  comparison.input = request.input;
  comparison.ready = request.ready;
  comparison.load = request.load;
  comparison.command_line = request.command_line;
  comparison.command = request.command;
  return comparison;
}

std::vector<std::string> candidates(const AdviseRequest& request) {
  std::vector<std::string> with;
  for (const bench::Allocator& each : chosen_allocators({{}, {}, request.library}, "advise"))
    with.push_back(each.name);
  const auto sluice = std::find(with.begin(), with.end(), "sluice");
  std::rotate(with.begin(), sluice, sluice + 1);
  for (const char* const option : tried_options)
    with.push_back(fmt::format("sluice:{}", option));
  return with;
}

bool is_comparable(const Contender& contender) {
  return contender.failure.empty() && !contender.differs;
}

// The metrics of which somebody can be best: time or the like, and memory.
std::vector<Metric> deciding_metrics(const Comparison& comparison) {
  std::vector<Metric> metrics;
  for (Metric& each : metrics_of(comparison))
    if (!each.best.empty()) metrics.push_back(std::move(each));
  return metrics;
}

// How a ratio is to be read, so that below 1 is better.
std::optional<bench::Ratio> cost_of(const Contender& contender, const Contender& baseline, const Metric& metric) {
  std::optional<bench::Ratio> ratio = ratio_of(contender, baseline, metric);
  if (ratio && metric.better == bench::Better::more) ratio = {1 / ratio->value, 1 / ratio->high, 1 / ratio->low};
  return ratio;
}

// Early stopping: whom the screening leaves a chance.
std::vector<std::string> promising(const Comparison& screening) {
  std::vector<std::string> names = {"sluice"};
  const Contender& baseline = screening.contenders[screening.baseline];
  const std::vector<Metric> metrics = deciding_metrics(screening);
  for (const Contender& each : screening.contenders) {
    if (&each == &baseline || !is_comparable(each)) continue;
    const bool has_chance = std::any_of(metrics.begin(), metrics.end(), [&](const Metric& metric) {
      const std::optional<bench::Ratio> cost = cost_of(each, baseline, metric);
      return cost && cost->low < 1 - worth_it && cost->value < 1;
    });
    if (has_chance) names.push_back(each.allocator.name);
  }
  return names;
}

// A candidate's option, as "CACHE=1M"; empty for an allocator as it is.
std::string option_of(const std::string& name) {
  const std::size_t colon = name.find(':');
  return colon == std::string::npos ? std::string() : name.substr(colon + 1);
}

bool is_combination(const std::string& name) {
  return name.find('+') != std::string::npos;
}

// Whether several options at once are surely better at something than each of them that was measured beside them.
bool is_better_than_its_parts(const Comparison& measured, const Contender& whole) {
  const std::vector<Metric> metrics = deciding_metrics(measured);
  const std::string options = "+" + option_of(whole.allocator.name) + "+";
  return std::all_of(measured.contenders.begin(), measured.contenders.end(), [&](const Contender& each) {
    const std::string option = option_of(each.allocator.name);
    const bool is_part = !option.empty() && &each != &whole && options.find("+" + option + "+") != std::string::npos;
    return !is_part || !is_comparable(each) || std::any_of(metrics.begin(), metrics.end(), [&](const Metric& metric) {
      return bench::verdict_of(cost_of(whole, each, metric)) == bench::Verdict::less;
    });
  });
}

// What one candidate is better at, and at what price.
struct Advice {
  std::string name, page;
  std::vector<std::string> gains, prices;  // each with its interval
};

std::optional<Advice> advice_of(const Comparison& measured, const Contender& contender) {
  const Contender& baseline = measured.contenders[measured.baseline];
  Advice advice{contender.allocator.name, page_of(contender.allocator.name), {}, {}};
  if (&contender == &baseline || !is_comparable(contender)) return std::nullopt;
  for (const Metric& metric : deciding_metrics(measured)) {
    const std::optional<bench::Ratio> cost = cost_of(contender, baseline, metric);
    const std::optional<bench::Ratio> ratio = ratio_of(contender, baseline, metric);
    const bench::Verdict verdict = bench::verdict_of(cost);
    const std::string text =
        fmt::format("{}: {}, ratio {}", metric.noun, verdict_text(ratio, metric, measured.rounds), ratio_text(ratio));
    if (verdict == bench::Verdict::less && cost->value <= 1 - worth_it / 2) advice.gains.push_back(text);
    if (verdict == bench::Verdict::more) advice.prices.push_back(text);
  }
  if (advice.gains.empty()) return std::nullopt;
  if (is_combination(advice.name) && !is_better_than_its_parts(measured, contender)) return std::nullopt;
  return advice;
}

std::vector<Advice> all_advice(const Comparison& measured) {
  std::vector<Advice> all;
  for (const Contender& each : measured.contenders)
    if (std::optional<Advice> advice = advice_of(measured, each)) all.push_back(std::move(*advice));
  std::stable_sort(all.begin(), all.end(), [](const Advice& a, const Advice& b) {
    return a.prices.empty() != b.prices.empty() ? a.prices.empty() : a.gains.size() > b.gains.size();
  });
  return all;
}

// The profile of the process that allocated most. Returns: nothing, and why, when there is none.
std::optional<profile::Profile> profile_of(bench::Runner& runner, const PreparedComparison& prepared,
                                           const AdviseRequest& request, std::string& why) {
  const bench::TemporaryFolder folder("sluice-advise");
  bench::Allocator profiled = prepared.comparison.contenders[prepared.comparison.baseline].allocator;
  profiled.variables = {{"SLUICE_PROFILE", (folder.path() / "%p").string()}, {"SLUICE_PROFILE_RATE", request.rate}};
  try {
    runner.run(prepared.command, profiled,
               std::chrono::milliseconds(static_cast<std::int64_t>(request.timeout_seconds * 1000)),
               prepared.service ? &*prepared.service : nullptr);
  } catch (const bench::RunError& problem) {
    why = problem.what();
    return std::nullopt;
  }
  std::optional<profile::Profile> best;
  double most = -1;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path())) {
    profile::Profile each = profile::read_profile(entry.path().string());
    const double bytes = profile::stacks_of(each).total[profile::alloc_bytes];
    if (bytes <= most) continue;
    most = bytes;
    best = std::move(each);
  }
  if (!best) why = "the program wrote none";
  if (best) profile::symbolize(*best);
  return best;
}

// The options that help, each with the value that helps most, and all of them at once, as the last: what is measured
// then beside sluice. Empty where it is one option.
std::vector<std::string> combined(const Comparison& measured, const std::vector<Advice>& advice) {
  struct Choice {
    std::string name;
    double cost;
  };
  std::map<std::string, Choice> best;  // by the option's name
  const Contender& baseline = measured.contenders[measured.baseline];
  const std::vector<Metric> metrics = deciding_metrics(measured);
  for (const Contender& each : measured.contenders) {
    const std::string& name = each.allocator.name;
    const std::string option = option_of(name);
    if (option.empty() || std::none_of(advice.begin(), advice.end(), [&](const Advice& a) { return a.name == name; }))
      continue;
    double least = 1;
    for (const Metric& metric : metrics)
      if (const std::optional<bench::Ratio> cost = cost_of(each, baseline, metric))
        least = std::min(least, cost->value);
    const auto [known, is_new] = best.try_emplace(option.substr(0, option.find('=')), Choice{name, least});
    if (!is_new && least < known->second.cost) known->second = {name, least};
  }
  if (best.size() < 2) return {};
  std::vector<std::string> names = {"sluice"};
  std::string all;
  for (const auto& [option, choice] : best) {
    names.push_back(choice.name);
    all += fmt::format("{}{}", all.empty() ? "sluice:" : "+", option_of(choice.name));
  }
  names.push_back(all);
  return names;
}

// All that came out.
struct Result {
  std::vector<std::string> tried, again, combined;
  std::optional<Comparison> measured, measured_combined;
  std::vector<Advice> advice;
  std::vector<Finding> findings;
  std::string no_profile;  // why
  bool interrupted = false;
};

bool is_option(const Advice& advice) {
  return advice.name.find(':') != std::string::npos;
}

std::string setting_of(const std::string& name) {
  std::string setting = option_of(name);
  if (setting.empty()) return name;
  for (std::size_t at = 0; (at = setting.find('+', at)) != std::string::npos;)
    setting.replace(at, 1, " SLUICE_");
  return "SLUICE_" + setting;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& each : words)
    text += fmt::format("{}{}", text.empty() ? "" : between, each);
  return text;
}

std::string section_of(const Result& result, const char* title, bool options) {
  std::string text;
  for (const Advice& each : result.advice) {
    if (is_option(each) != options) continue;
    text += fmt::format("  {}: {}\n", setting_of(each.name), joined(each.gains, "; "));
    if (!each.prices.empty()) text += fmt::format("      at the price of {}\n", joined(each.prices, "; "));
    text += fmt::format("      see {}\n", each.page);
  }
  return text.empty() ? text : fmt::format("\n{}\n{}", title, text);
}

std::string code_section(const Result& result) {
  if (!result.no_profile.empty()) return fmt::format("\nThe code: no profile ({})\n", printable(result.no_profile));
  if (result.findings.empty()) return {};
  std::string text = "\nThe code: what the profile saw (changes were not tried)\n";
  constexpr std::size_t shown = 12;
  for (std::size_t i = 0; i < std::min(shown, result.findings.size()); ++i) {
    const Finding& each = result.findings[i];
    text += fmt::format("  {}\n{}\n      see {}\n", each.site, "      " + bench::wrapped(each.seen, 100, 6), each.page);
  }
  if (result.findings.size() > shown)
    text += fmt::format("  and {} more; --json has all\n", result.findings.size() - shown);
  return text;
}

std::string result_as_text(const AdviseRequest& request, const Result& result) {
  std::string text = fmt::format(
      "advice for {}\n{}\n", printable(joined(request.command, " ")),
      bench::wrapped(
          fmt::format("Tried {} settings and allocators against sluice in {} rounds{}. Intervals "
                      "hold with 99 % confidence.",
                      result.tried.size() - 1, screening_runs,
                      result.again.size() > 1
                          ? fmt::format(", and {} that might help again, in {}: {}", result.again.size() - 1,
                                        request.runs, joined({result.again.begin() + 1, result.again.end()}, ", "))
                          : std::string(result.interrupted ? "" : "; none of them might help")),
          100));
  text += section_of(result, "Options that help", true);
  text += section_of(result, "Other allocators that are better at something", false);
  text += code_section(result);
  if (result.interrupted) return text + "\nInterrupted: nothing else is known.\n";
  if (result.advice.empty())
    text += "\nNo option and no other allocator is measurably better here than sluice as it is.\n";
  if (result.findings.empty() && result.no_profile.empty())
    text += "\nThe profile shows no site where the code would gain much by allocating otherwise.\n";
  return text;
}

ordered_json result_as_json(const AdviseRequest& request, const Result& result) {
  ordered_json advice = ordered_json::array(), findings = ordered_json::array();
  for (const Advice& each : result.advice)
    advice.push_back({{"name", each.name},
                      {"kind", is_option(each) ? "option" : "allocator"},
                      {"setting", is_option(each) ? ordered_json(setting_of(each.name)) : ordered_json(nullptr)},
                      {"gains", each.gains},
                      {"prices", each.prices},
                      {"page", each.page}});
  for (const Finding& each : result.findings)
    findings.push_back({{"kind", each.kind},
                        {"site", each.site},
                        {"seen", each.seen},
                        {"page", each.page},
                        {"weight", each.weight},
                        {"figures", each.figures}});
  return {{"schema", "sluice-advice 1"},
          {"sluice_version", SLUICE_VERSION},
          {"command", request.command},
          {"date", bench::date_text()},
          {"partial", result.interrupted},
          {"tried", result.tried},
          {"measured_again", result.again},
          {"advice", advice},
          {"code", findings},
          {"no_profile", result.no_profile.empty() ? ordered_json(nullptr) : ordered_json(result.no_profile)},
          {"comparison", result.measured ? comparison_as_json(*result.measured) : ordered_json(nullptr)},
          {"measured_at_once", result.combined},
          {"comparison_at_once",
           result.measured_combined ? comparison_as_json(*result.measured_combined) : ordered_json(nullptr)}};
}

Comparison measured_again(bench::Runner& runner, const AdviseRequest& request, const std::vector<std::string>& names) {
  const CompareRequest again = comparison_request(request, names, request.runs);
  PreparedComparison prepared = prepared_comparison(again, "advise");
  make_runs(runner, prepared, again);
  return std::move(prepared.comparison);
}

void measure(bench::Runner& runner, const AdviseRequest& request, PreparedComparison& screening,
             const CompareRequest& screening_request, Result& result) {
  make_runs(runner, screening, screening_request);
  const Contender& baseline = screening.comparison.contenders[screening.comparison.baseline];
  if (screening.comparison.interrupted && !baseline.status) throw_interrupted("advise");
  if (!baseline.failure.empty())
    throw CommandError(exit_failure, fmt::format("advise: under sluice: {}", baseline.failure));
  result.interrupted = screening.comparison.interrupted;
  if (result.interrupted) return;
  const std::optional<profile::Profile> profile = profile_of(runner, screening, request, result.no_profile);
  if (profile) result.findings = findings_of(profile::stacks_of(*profile));
  result.again = promising(screening.comparison);
  if (result.again.size() < 2) return;
  // Anew, with samples that had no part in the choice: the best of many by chance does not stay the best.
  result.measured = measured_again(runner, request, result.again);
  result.interrupted = result.measured->interrupted;
  result.advice = all_advice(*result.measured);
  if (!result.interrupted) result.combined = combined(*result.measured, result.advice);
  if (result.combined.empty()) return;
  result.measured_combined = measured_again(runner, request, result.combined);
  result.interrupted = result.measured_combined->interrupted;
  for (const Contender& each : result.measured_combined->contenders) {
    if (!is_combination(each.allocator.name)) continue;
    if (std::optional<Advice> advice = advice_of(*result.measured_combined, each))
      result.advice.insert(result.advice.begin(), std::move(*advice));
  }
}

}  // namespace

CLI::App* add_advise(CLI::App& app, AdviseRequest& request) {
  CLI::App* advise = app.add_subcommand(
      "advise", "Run a program, and say which options, which allocator and which changes of its code would help");
  advise->add_option("--input", request.input, "File for the program's standard input (default: empty)")
      ->type_name("FILE");
  advise
      ->add_option(
          "--load", request.load,
          "For a server: a shell command that puts load on it, whose time is measured. SIGTERM ends the server")
      ->type_name("COMMAND");
  advise->add_option("--ready", request.ready, "A shell command that succeeds once the program serves")
      ->type_name("COMMAND");
  advise
      ->add_option("--timeout", request.timeout_seconds, "Stop a run, and all that it started, after this many seconds")
      ->type_name("S")
      ->check(CLI::Range(0.001, 1e7))
      ->capture_default_str();
  advise->add_option("--runs", request.runs, "Runs of each setting that is measured again")
      ->type_name("N")
      ->check(CLI::Range(5, 10000))
      ->capture_default_str();
  advise->add_option("--rate", request.rate, "Bytes between two samples of the profile (default: 64K)")
      ->type_name("SIZE");
  advise->add_option("--lib", request.library, "The libsluice.so to measure, instead of the one installed")
      ->type_name("PATH");
  advise->add_flag("--text", request.text, "Print the text, though --json is written, too");
  advise->add_option("--json", request.json_file, "Write the advice here, with every sample")->type_name("FILE");
  return advise;
}

bool advise(const AdviseRequest& asked) {
  occupy_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a report that grows too large is an error like a full disk
  AdviseRequest request = asked;
  if (request.rate.empty()) request.rate = "64K";
  check_value(find_option("PROFILE_RATE"), request.rate);
  Result result;
  result.tried = candidates(request);
  const CompareRequest first = comparison_request(request, result.tried, screening_runs);
  PreparedComparison screening = prepared_comparison(first, "advise");
  // First, and to the end: from here on a signal ends the runs, and leaves no file behind.
  bench::Runner runner(helper_folder());
  OutputFile json(request.json_file);
  measure(runner, request, screening, first, result);
  std::signal(SIGPIPE, SIG_IGN);  // the file is written even if nobody reads the text
  if (request.text || request.json_file.empty()) fmt::print("{}", result_as_text(request, result));
  json.write(bench::json_text(result_as_json(request, result)));
  return !result.interrupted;
}

}  // namespace sluice::cli::advise
