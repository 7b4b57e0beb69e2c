// Describes the options to CLI11. Open it with comparison_options.hpp.
#include "comparison_options.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fmt/core.h>

namespace sluice::cli {
namespace {

// A number of seconds, and not what strtod takes for one besides.
CLI::Validator seconds_from(double least, double most = 1e7) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool is_number = end != text.c_str() && *end == '\0' && value >= least && value <= most;
        return is_number ? std::string()
                         : fmt::format("{} is no number of seconds from {:g} to {:g}", text, least, most);
      },
      "");
}

void add_allocators(CLI::App& subcommand, AllocatorChoice& choice) {
  subcommand
      .add_option("--with", choice.with,
                  "Compare these allocators only, in this order: system, sluice, secure, mimalloc, jemalloc, "
                  "tcmalloc, snmalloc, rpmalloc, or NAME=/path/to/library.so (default: all that are there but secure, "
                  "the newest of each kind; installed-NAME is an older one). sluice, secure and a path take options of "
                  "Sluice, as sluice:CACHE=1M+RETAIN=0")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  subcommand
      .add_option("--baseline", choice.baseline, "The allocator that the others are compared with (default: the first)")
      ->type_name("NAME");
  subcommand.add_option("--lib", choice.library, "The libsluice.so to measure, instead of the one installed")
      ->type_name("PATH");
}

template <class Request>
void add_reports(CLI::App& subcommand, Request& request) {
  subcommand.add_option("--json", request.json_file, "Write every sample, ratio and verdict here")->type_name("FILE");
  subcommand.add_option("--html", request.html_file, "Write a page with charts here, which needs no network")
      ->type_name("FILE");
  subcommand.add_option("--markdown", request.markdown_file, "Write the tables here, in Markdown")->type_name("FILE");
  subcommand.add_flag("--wide", request.wide,
                      "Show all columns of the tables. Without it, columns that do not fit the terminal are "
                      "left out, starting with the last ones without a verdict");
  subcommand.add_flag("--explain", request.explain, "Say what the figures mean and how they are made");
}

}  // namespace

CLI::App* add_compare(CLI::App& app, CompareRequest& request) {
  CLI::App* compare =
      app.add_subcommand("compare", "Run a program under each allocator installed, and say which one suits it");
  compare->prefix_command();
  add_allocators(*compare, request.allocators);
  compare
      ->add_option("--runs", request.runs,
                   "Measured runs of each allocator (default: 20, and on a noisy machine up to 100, until "
                   "ratios are known to 2 % or a minute is over)")
      ->type_name("N")
      ->check(CLI::Range(1, 10000));
  compare->add_option("--warmup", request.warmup, "Runs before the measured ones")
      ->type_name("N")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  compare
      ->add_option("--timeout", request.timeout_seconds, "Stop a run, and all that it started, after this many seconds")
      ->type_name("S")
      ->check(seconds_from(0.001))
      ->capture_default_str();
  compare->add_option("--input", request.input, "File for the program's standard input (default: empty)")
      ->type_name("FILE");
  compare
      ->add_option("--load", request.load,
                   "For a server: a shell command that puts load on it. Its time is measured, and the server's "
                   "memory and processor time")
      ->type_name("COMMAND");
  compare->add_option("--ready", request.ready, "A shell command that succeeds once the program serves")
      ->type_name("COMMAND");
  compare->add_option("--stop", request.stop, "The signal that ends the program after the load (default: TERM)")
      ->type_name("SIGNAL");
  compare
      ->add_option_function<std::string>(
          "--metric",
          [&request](const std::string& expression) {
            request.metrics.push_back(
                {expression, request.metrics.empty() ? request.direction : bench::Better::unknown});
          },
          "A regular expression whose group is a figure. The first line that matches counts, in the output "
          "of the load, or of the program if there is none. May be repeated. The first figure whose better "
          "direction is known (as for requests/sec or ms) decides, instead of the time")
      ->type_name("REGEX")
      ->trigger_on_parse();
  const auto direct = [&request](bench::Better better) {
    (request.metrics.empty() ? request.direction : request.metrics.back().better) = better;
  };
  compare
      ->add_flag_callback(
          "--metric-more-is-better", [direct] { direct(bench::Better::more); },
          "For the --metric before it, or the first one: more is better")
      ->trigger_on_parse();
  compare
      ->add_flag_callback(
          "--metric-less-is-better", [direct] { direct(bench::Better::less); }, "Likewise: less is better")
      ->trigger_on_parse();
  compare->add_flag("--ignore-output", request.ignore_output, "Do not compare what the program prints");
  compare->add_flag("--latency", request.latency, "Make one more run of each that times every call of malloc and free");
  add_reports(*compare, request);
  compare->add_option("--diff", request.diff, "Run nothing; show what changed between two JSON files of --json")
      ->type_name("OLD NEW")
      ->expected(2);
  return compare;
}

CLI::App* add_bench(CLI::App& app, BenchRequest& request) {
  CLI::App* bench = app.add_subcommand("bench", "Run scenarios that strain an allocator, under each one installed");
  bench->require_subcommand(0, 1);
  bench->add_subcommand("list", "Print the scenarios");
  CLI::App* run = bench->add_subcommand("run", "Run these scenarios");
  run->fallthrough();
  run->add_option("SCENARIO", request.names,
                  "Names that `sluice bench list` prints. A name without its kind of memory stands for all of "
                  "them; `built-in` and `programs` stand for all scenarios of that kind")
      ->required()
      ->type_name("");
  bench->add_flag("--all", request.all, "Run all scenarios, and those of real programs that are installed");
  add_allocators(*bench, request.allocators);
  bench->add_option("--rounds", request.rounds, "Runs of each scenario under each allocator that are timed")
      ->type_name("N")
      ->check(CLI::Range(1, 10000))
      ->take_last()  // scripts/bench has defaults of its own
      ->capture_default_str();
  bench
      ->add_option_function<std::string>(
          "--threads",
          [&request](const std::string& list) {
            try {
              request.threads = bench::parse_thread_counts(list);
            } catch (const std::invalid_argument& problem) {
              throw CLI::ValidationError("--threads", problem.what());
            }
          },
          "Threads, where a scenario lets you choose (default: each one's own). With several numbers, as 1,2,4, each "
          "scenario that takes threads runs with each of them, and the speed-up is told; the others are left out")
      ->type_name("LIST");
  bench->add_option("--seed", request.seed, "Seed of the workload in built-in scenarios (default: each one's own)")
      ->type_name("N")
      ->check(CLI::Range(0ull, 4'000'000'000ull));
  bench
      ->add_option("--ops", request.ops,
                   "Operations in each run; each scenario's --help says what one is (default: each one's own)")
      ->type_name("N")
      ->check(CLI::Range(1ull, 4'000'000'000ull));
  bench
      ->add_option("--seconds", request.seconds,
                   "Instead of --ops: as many operations as take about this long under the first allocator")
      ->type_name("S")
      ->check(seconds_from(0.001));
  bench
      ->add_option("--quiesce", request.quiet_seconds,
                   "Seconds of rest after the work, before memory is read again; 0: none")
      ->type_name("S")
      ->check(seconds_from(0, 600))
      ->take_last()
      ->capture_default_str();
  bench->add_flag("--no-latency", request.no_latency, "Leave out the run in which every malloc and free is timed");
  bench->add_option("--timeout", request.timeout_seconds, "Stop a run after this many seconds")
      ->type_name("S")
      ->check(seconds_from(0.001))
      ->capture_default_str();
  add_reports(*bench, request);
  return bench;
}

}  // namespace sluice::cli
