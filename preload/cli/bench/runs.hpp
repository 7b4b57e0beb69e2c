// Runs one scenario under one allocator and reads its figures. Open it to change what a scenario is told or what is
// made of what it says.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/scenarios.hpp"
#include "bench/threads.hpp"
#include "measure/allocators.hpp"
#include "measure/process.hpp"

namespace bench {

struct CaseSample {
  std::string name;
  std::uint64_t ops;
  double ns_per_op;
};

/// What one run of a scenario showed.
struct Sample {
  std::vector<CaseSample> cases = {};
  std::int64_t peak_rss_kib = 0;                   // of a real program: of all its processes
  std::optional<std::int64_t> largest_kib = {};    // of its largest one
  std::optional<double> mean_kib = {};             // of all its processes, on the average of the time
  std::optional<std::int64_t> quiet_rss_kib = {};  // after a rest
  std::map<std::string, double> figures = {};      // that the scenario has of its own
  std::uint64_t ops = 0;                           // that it was asked for
  bool memory_in_effect = true;  // false: the kind of memory asked for was plain malloc under this allocator
  Timeline timeline = {};
  std::optional<Latency> latency = {};
};

/// What all runs of the scenarios have in common.
struct RunSettings {
  ThreadCounts threads;  // that were asked for; each scenario has its own
  std::optional<std::uint64_t> seed, ops;
  std::chrono::milliseconds limit{};
  std::chrono::milliseconds quiet{};  // the rest after the work of a run whose memory is observed
};

/// Runs scenarios; a real program gets a folder of its own for all its runs, prepared before the first.
class ScenarioRunner {
 public:
  /// `folder` holds the programs of the built-in scenarios, and in `programs` the descriptions of the others.
  ScenarioRunner(Runner& runner, std::filesystem::path folder, const RunSettings& settings);
  ~ScenarioRunner();
  ScenarioRunner(const ScenarioRunner&) = delete;
  ScenarioRunner& operator=(const ScenarioRunner&) = delete;

  /// `ops` takes the place of the settings'. Throws: RunError with one line when it cannot be started, fails, takes too
  /// long, was served by another malloc or printed something else than before; Interrupted.
  Sample run(const Scenario& scenario, const Allocator& allocator, Observation observed,
             std::optional<std::uint64_t> ops = {});

 private:
  struct Workplace;

  Sample run_built_in(const Scenario& scenario, const Allocator& allocator, Observation observed,
                      std::optional<std::uint64_t> ops);
  Sample run_real(const Scenario& scenario, const Allocator& allocator, Observation observed);
  Workplace& workplace_of(const RealProgram& program);

  Runner& runner_;
  std::filesystem::path folder_;
  RunSettings settings_;
  std::map<std::string, std::unique_ptr<Workplace>> workplaces_;  // by the program's name
};

}  // namespace bench
