// `sluice compare`: what is asked for, and what came out. Open it to add a figure to the comparison;
// compare_command.cpp makes the runs, compare_report.cpp and compare_json.cpp tell of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "allocator_choice.hpp"
#include "measure/allocators.hpp"
#include "measure/direction.hpp"
#include "measure/machine.hpp"
#include "measure/process.hpp"
#include "measure/statistics.hpp"
#include "measure/terminal.hpp"

namespace sluice::cli {

// A figure that the load prints, or the program where there is no load.
struct MetricRequest {
  std::string expression;  // a regular one, whose first group is the figure
  bench::Better better = bench::Better::unknown;
};

struct CompareRequest {
  AllocatorChoice allocators;
  std::optional<unsigned> runs;  // none: as many as it takes, see compare_command.cpp
  unsigned warmup = 1;
  double timeout_seconds = 300;
  bool ignore_output = false;
  std::string input;        // file for standard input
  std::string ready, load;  // shell commands, of a service
  std::string stop;         // name or number of a signal; empty: TERM
  std::vector<MetricRequest> metrics;
  bench::Better direction = bench::Better::unknown;  // given before the first of them
  bool latency = false;                              // one more run of each, in which every call is timed
  bool wide = false;                                 // tables as wide as they need to be
  bool explain = false;                              // with what the figures mean
  std::string json_file, markdown_file, html_file;
  std::vector<std::string> command_line;  // of this command
  std::vector<std::string> diff;          // two files of earlier comparisons, instead of a program
  std::vector<std::string> command;
};

// The figures of one run.
struct Sample {
  bench::Usage usage;
  double load_seconds = 0;           // of a service
  std::vector<double> figures = {};  // that were printed, in the order of --metric
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
  std::chrono::milliseconds memory_gap{};        // the longest of all runs, see bench::Run
  std::size_t left_running = 0;                  // runs after which processes had to be ended
  bool differs = false;                          // in exit status or output: it did something else, whatever its time
};

// What is known of a figure of the user's own, in the order of --metric.
struct OwnFigure {
  std::string expression;
  std::string title;
  bench::Better better = bench::Better::unknown;
  std::optional<bench::Unit> unit = {};  // in which it was first seen
};

struct Comparison {
  std::vector<std::string> command;
  std::vector<Contender> contenders;
  std::size_t baseline = 0;
  unsigned rounds = 0;  // those that were begun
  unsigned warmup = 0;
  bool interrupted = false;
  bool is_service = false;
  std::vector<OwnFigure> figures;
  bool output_ignored = false;
  bool output_varies = false;            // from run to run under one allocator, so that it is not compared
  std::vector<std::string> differences;  // between allocators, in exit status or output: errors, a line each
  std::vector<std::string> remarks;      // worth knowing, no errors
  bench::Machine machine;
  std::vector<std::string> command_line;  // that made it
};

// A figure that is compared, in the order of the tables.
struct Metric {
  std::string name;  // in JSON
  std::string title;
  std::function<double(const Sample&)> of;
  std::string (*text)(double);
  const char* less = nullptr;  // words of a verdict, as "faster"; null for figures that only explain others
  const char* more = nullptr;
  bench::Better better = bench::Better::unknown;
  std::string noun = {};  // "time"
  std::string best = {};  // what the best of it is called, as "Fastest"; empty where nobody is
  bench::Center center = bench::Center::median;
};
std::vector<Metric> metrics_of(const Comparison& comparison);
// Returns: that by which the allocators are ranked: the first own figure of which it is known whether more or less is
// better, else the time.
Metric deciding_metric(const Comparison& comparison);

// Returns: for how long nobody looked at memory at most; a process that lived for less may have been missed.
std::chrono::milliseconds memory_gap_of(const Comparison& comparison);

// Returns: a contender's samples of a metric, in the order of the rounds.
std::vector<double> samples_of(const Contender& contender, const Metric& metric);
// Returns: the ratio of two contenders, from the rounds that both have.
std::optional<bench::Ratio> ratio_of(const Contender& ours, const Contender& other, const Metric& metric);

// Returns: for each contender how many are surely better, plus one: nobody is better than those with 1. Nothing for
// those that failed or did something else, and for all where there are too few samples to tell.
std::vector<std::optional<unsigned>> places_of(const Comparison& comparison, const Metric& metric);
// Returns: whether this is the only one with place 1.
bool is_best(const std::vector<std::optional<unsigned>>& places, std::size_t contender);

// Returns: what a ratio of so many rounds says in words, as "7.3 % faster"; and in figures.
std::string verdict_text(const std::optional<bench::Ratio>& ratio, const Metric& metric, std::size_t rounds);
std::string ratio_text(const std::optional<bench::Ratio>& ratio);

// Returns: who is best at what, a line each: "Fastest: sluice, then system." Empty when there are too few runs to tell.
std::vector<std::string> summary_of(const Comparison& comparison);

std::string comparison_as_text(const Comparison& comparison, const bench::Look& look);
std::string comparison_as_markdown(const Comparison& comparison);
nlohmann::ordered_json comparison_as_json(const Comparison& comparison);

// A comparison before its runs: all that can be wrong with a request is found by then.
struct PreparedComparison {
  bench::Command command;
  std::optional<bench::Service> service;
  std::vector<std::regex> expressions;  // of --metric
  Comparison comparison;
};

// Returns: what the request asks for. Throws: CommandError, in the name of the subcommand.
PreparedComparison prepared_comparison(const CompareRequest& request, const char* subcommand);
// Effects: makes the runs, and finds what differs.
void make_runs(bench::Runner& runner, PreparedComparison& prepared, const CompareRequest& request);

// Effects: runs the program under each allocator and prints how they compare. Returns: whether all runs went well and
// no exit status or output differed. Throws: CommandError.
bool compare(const CompareRequest& request);

// Effects: prints what has changed from one comparison's JSON file to another's. Returns: whether nothing is slower or
// takes more memory. Throws: CommandError.
bool compare_reports(const std::string& before, const std::string& after, const bench::Look& look);

}  // namespace sluice::cli
