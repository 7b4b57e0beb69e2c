// sluice-bench: runs each scenario under each allocator in turn and prints how they compare. Open it for the
// command line and the order in which the runs are made.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "measure/allocators.hpp"
#include "measure/names.hpp"
#include "measure/progress.hpp"
#include "runner_process.hpp"
#include "runner_report.hpp"
#include "runner_results.hpp"
#include "runner_scenarios.hpp"

namespace {

namespace fs = std::filesystem;
using bench::Allocator;
using bench::Progress;
using bench::Scenario;

struct Settings {
  bool list = false;
  std::vector<std::string> scenarios;
  unsigned rounds = 5;
  unsigned limit_seconds = 120;
  std::vector<std::string> with;
  std::vector<std::string> only;
  std::string sluice;
  std::string json_file;
  std::string markdown_file;
};

/// The places of `wanted` among `known`, each once, in the order wanted.
std::vector<std::size_t> indices_of(const std::vector<std::string>& wanted, const std::vector<std::string>& known,
                                    std::string_view kind) {
  std::vector<std::size_t> indices;
  for (const std::string& name : wanted) {
    const std::size_t index = bench::index_of(name, known, kind);
    if (std::find(indices.begin(), indices.end(), index) == indices.end()) indices.push_back(index);
  }
  return indices;
}

/// Every allocator there is, then the chosen ones. A missing libsluice.so is left out with a line, unless it
/// was asked for.
std::vector<Allocator> chosen_allocators(const Settings& settings, const fs::path& binaries) {
  std::vector<Allocator> all = {{"system", {}}};
  const bool asked = !settings.sluice.empty() ||
                     std::find(settings.only.begin(), settings.only.end(), "sluice") != settings.only.end();
  const fs::path sluice =
      settings.sluice.empty() ? binaries.parent_path() / "lib" / "libsluice.so" : fs::absolute(settings.sluice);
  if (fs::is_regular_file(sluice)) {
    all.push_back({"sluice", sluice});
  } else if (asked) {
    throw std::invalid_argument(fmt::format("{}: no such file", sluice.string()));
  } else if (settings.only.empty()) {
    fmt::print(stderr, "sluice-bench: {} does not exist; running without sluice\n", sluice.string());
  }
  for (Allocator& allocator : bench::installed_allocators())
    all.push_back(std::move(allocator));
  for (const std::string& text : settings.with) {
    Allocator extra = bench::parse_allocator(text);
    const auto same = [&](const Allocator& known) { return known.name == extra.name; };
    if (std::any_of(all.begin(), all.end(), same)) {
      throw std::invalid_argument(fmt::format("--with {}: the name '{}' is taken", text, extra.name));
    }
    all.push_back(std::move(extra));
  }
  if (settings.only.empty()) return all;
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const Allocator& allocator : all)
    names.push_back(allocator.name);
  std::vector<Allocator> chosen;
  for (const std::size_t index : indices_of(settings.only, names, "allocator"))
    chosen.push_back(all[index]);
  return chosen;
}

/// Runs everything, each scenario under all allocators before the next one, and the allocators in an order
/// that moves on by one from run to run: a machine that slows down or warms up meets all of them alike. An
/// allocator that fails a scenario is not tried there again, nor is one under which the scenario's kind of memory has
/// no effect. Returns whether nothing failed.
bool run_all(const std::vector<Scenario>& scenarios, const Settings& settings, const fs::path& programs,
             bench::Results& results) {
  const std::size_t columns = results.allocators.size();
  std::vector<bool> done(scenarios.size() * columns, false);
  Progress progress(scenarios.size() * columns * settings.rounds);
  bool all_well = true;
  for (unsigned round = 0; round < settings.rounds; ++round) {
    for (std::size_t s = 0; s < scenarios.size(); ++s) {
      const Scenario& scenario = scenarios[s];
      for (std::size_t turn = 0; turn < columns; ++turn) {
        const std::size_t column = (turn + round + s) % columns;
        const Allocator& allocator = results.allocators[column];
        progress.next(fmt::format("round {}: {} under {}", round + 1, scenario.name, allocator.name));
        if (done[s * columns + column]) continue;
        try {
          const std::chrono::seconds limit{settings.limit_seconds};
          const bench::Sample sample =
              bench::run_scenario(programs / scenario.program, scenario.arguments, allocator, limit);
          if (sample.memory_in_effect) {
            results.add(scenario, column, sample);
          } else {
            results.without_effect.emplace(scenario.name, column);
            done[s * columns + column] = true;
          }
        } catch (const std::runtime_error& problem) {
          progress.clear();
          fmt::print(stderr, "sluice-bench: {} under {}: {}\n", scenario.name, allocator.name, problem.what());
          done[s * columns + column] = true;
          all_well = false;
        }
      }
    }
  }
  return all_well;
}

/// Tells of the scenarios that are in no table because their kind of memory had no effect under any allocator.
void report_unmeasured(const std::vector<Scenario>& scenarios, const bench::Results& results) {
  for (const Scenario& scenario : scenarios) {
    std::size_t without = 0;
    for (std::size_t column = 0; column < results.allocators.size(); ++column)
      without += results.without_effect.count({scenario.name, column});
    if (without != results.allocators.size()) continue;
    fmt::print(stderr, "sluice-bench: {} is left out: none of these allocators has scopes in effect\n", scenario.name);
  }
}

/// Opens an output file before the runs, so that a wrong path shows at once and not after minutes.
std::optional<std::ofstream> open_output(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::ofstream file(path);
  if (!file) throw std::invalid_argument(fmt::format("cannot write {}", path));
  return file;
}

void write_output(std::optional<std::ofstream>& file, const std::string& path, const std::string& text) {
  if (!file) return;
  *file << text << std::flush;
  if (!*file) throw std::runtime_error(fmt::format("cannot write {}", path));
}

int run(const Settings& settings) {
  if (settings.list) {
    for (const Scenario& scenario : bench::all_scenarios())
      fmt::print("{:<28} {}\n", scenario.name, scenario.summary);
    return 0;
  }
  const fs::path binaries = fs::canonical("/proc/self/exe").parent_path();
  const std::vector<Scenario> scenarios =
      settings.scenarios.empty() ? bench::all_scenarios() : bench::scenarios_named(settings.scenarios);
  bench::Results results(chosen_allocators(settings, binaries), settings.rounds);
  std::optional<std::ofstream> json = open_output(settings.json_file);
  std::optional<std::ofstream> markdown = open_output(settings.markdown_file);
  const bool all_well = run_all(scenarios, settings, binaries / "scenarios", results);
  report_unmeasured(scenarios, results);
  fmt::print("{}", bench::as_text(results));
  write_output(json, settings.json_file, bench::as_json(results));
  write_output(markdown, settings.markdown_file, bench::as_markdown(results));
  return all_well ? 0 : 1;
}

void describe(CLI::App& app, Settings& settings) {
  app.set_version_flag("--version", "sluice-bench " SLUICE_VERSION);
  app.add_flag("--list", settings.list, "List the scenarios and stop");
  app.add_option("--scenario", settings.scenarios, "Run these scenarios only, or all of a group or program")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--rounds", settings.rounds, "Runs of each scenario under each allocator; medians are shown")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--with", settings.with, "Compare this library too; may be repeated")->type_name("NAME=PATH");
  app.add_option("--only", settings.only, "Compare these allocators only")->delimiter(',')->type_name("NAME,...");
  app.add_option("--sluice", settings.sluice, "The libsluice.so to measure (default: ../lib/libsluice.so from here)")
      ->type_name("PATH");
  app.add_option("--timeout", settings.limit_seconds, "Stop a run that takes longer than this")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str()
      ->type_name("SECONDS");
  app.add_option("--json", settings.json_file, "Write every sample, median and ratio here")->type_name("FILE");
  app.add_option("--markdown", settings.markdown_file, "Write the tables here in Markdown")->type_name("FILE");
  app.footer("Exit status: 0 all runs well, 1 a run failed or was refused, 2 bad usage.");
}

int run_command_line(int argc, char** argv) {
  Settings settings;
  CLI::App app("Runs the scenarios under each allocator that is installed and compares them.", "sluice-bench");
  describe(app, settings);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  }
  return run(settings);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_command_line(argc, argv);
  } catch (const CLI::ParseError& problem) {
    std::fprintf(stderr, "sluice-bench: %s\n", problem.what());
    return 2;
  } catch (const std::invalid_argument& problem) {
    std::fprintf(stderr, "sluice-bench: %s\n", problem.what());
    return 2;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "sluice-bench: %s\n", problem.what());
    return 1;
  }
}
