// `sluice compare`: what is asked for, and what came out. Open it to add a figure to the comparison;
// compare_command.cpp makes the runs, compare_report.cpp and compare_json.cpp tell of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "allocator_choice.hpp"
#include "measure/allocators.hpp"
#include "measure/machine.hpp"
#include "measure/process.hpp"
#include "measure/statistics.hpp"

namespace sluice::cli {

struct CompareRequest {
  AllocatorChoice allocators;
  std::optional<unsigned> runs;  // none: as many as it takes, see compare_command.cpp
  unsigned warmup = 1;
  double timeout_seconds = 300;
  bool ignore_output = false;
  std::string input;        // file for standard input
  std::string ready, load;  // shell commands, of a service
  std::string stop;         // name or number of a signal; empty: TERM
  std::string metric;       // regular expression whose first group is the load's own figure
  bool latency = false;     // one more run of each, in which every call is timed
  std::string json_file, markdown_file, html_file;
  std::vector<std::string> command_line;  // of this command
  std::vector<std::string> diff;          // two files of earlier comparisons, instead of a program
  std::vector<std::string> command;
};

// The figures of one run.
struct Sample {
  bench::Usage usage;
  double load_seconds = 0;  // of a service
  double load_figure = 0;   // that the load printed itself
};

// One allocator's part of the comparison.
struct Contender {
  bench::Allocator allocator;
  std::vector<std::optional<Sample>> runs = {};  // by round; empty where there was none
  std::string failure = {};                      // why it was given up; empty when it was not
  std::optional<int> status = {};                // as wait() has it, of the first run
  bench::Output output = {};                     // of the first run
  std::size_t outputs = 0;                       // different ones among its runs, warm-ups included
  std::string own_malloc = {};                   // see bench::Run
  bench::Timeline timeline = {};                 // of the first run
  std::optional<bench::Latency> latency = {};    // of the last run, if it was asked for
  std::size_t left_running = 0;                  // runs after which processes had to be ended
  bool differs = false;                          // in exit status or output: it did something else, whatever its time
};

struct Comparison {
  std::vector<std::string> command;
  std::vector<Contender> contenders;
  std::size_t baseline = 0;
  unsigned rounds = 0;  // those that were begun
  unsigned warmup = 0;
  bool interrupted = false;
  bool is_service = false;
  bool has_figure = false;  // of the load
  bool output_ignored = false;
  bool output_varies = false;            // from run to run under one allocator, so that it is not compared
  std::vector<std::string> differences;  // between allocators, in exit status or output: errors, a line each
  std::vector<std::string> remarks;      // worth knowing, no errors
  bench::Machine machine;
  std::vector<std::string> command_line;  // that made it
};

// A figure that is compared, in the order of the tables.
struct Metric {
  const char* name;  // in JSON
  const char* title;
  double (*of)(const Sample&);
  std::string (*text)(double);
  const char* less;  // words of a verdict, as "faster"; null for figures that only explain others
  const char* more;
  const char* best;  // the word for the least of it, as "Fastest"; null where less is not better
  bench::Center center = bench::Center::median;
};
std::vector<Metric> metrics_of(const Comparison& comparison);

// Returns: a contender's samples of a metric, in the order of the rounds.
std::vector<double> samples_of(const Contender& contender, const Metric& metric);
// Returns: the ratio of two contenders, from the rounds that both have.
std::optional<bench::Ratio> ratio_of(const Contender& ours, const Contender& other, const Metric& metric);

// Returns: what a ratio of so many rounds says in words, as "7.3 % faster"; and in figures.
std::string verdict_text(const std::optional<bench::Ratio>& ratio, const Metric& metric, std::size_t rounds);
std::string ratio_text(const std::optional<bench::Ratio>& ratio);

std::string comparison_as_text(const Comparison& comparison, bool colour);
std::string comparison_as_markdown(const Comparison& comparison);
nlohmann::ordered_json comparison_as_json(const Comparison& comparison);

// Effects: runs the program under each allocator and prints how they compare. Returns: whether all runs went well and
// no exit status or output differed. Throws: CommandError.
bool compare(const CompareRequest& request);

// Effects: prints what has changed from one comparison's JSON file to another's. Returns: whether nothing is slower or
// takes more memory. Throws: CommandError.
bool compare_reports(const std::string& before, const std::string& after);

}  // namespace sluice::cli
