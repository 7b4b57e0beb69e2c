// `sluice bench`: what is asked for. Open it to add an option; bench_command.cpp makes the runs, the folder bench holds
// the scenarios, their results and reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator_choice.hpp"
#include "bench/threads.hpp"

namespace sluice::cli {

struct BenchRequest {
  std::vector<std::string> names;  // of scenarios
  bool all = false;                // instead of names
  AllocatorChoice allocators;
  unsigned rounds = 5;
  double timeout_seconds = 120;
  double quiet_seconds = 10;
  bool no_latency = false;
  std::optional<double> seconds;  // about, of each run
  bench::ThreadCounts threads;    // several: each scenario with each of them
  std::optional<std::uint64_t> seed, ops;
  bool wide = false;     // tables as wide as they need to be
  bool explain = false;  // with what the figures mean
  std::string json_file, markdown_file, html_file;
  std::vector<std::string> command_line;  // of this command
};

// Effects: prints the scenarios that there are, and which of the real programs are not installed.
void list_scenarios();

// Effects: runs the scenarios under each allocator and prints how they compare. Returns: whether every run went well.
// Throws: CommandError.
bool run_scenarios(const BenchRequest& request);

}  // namespace sluice::cli
