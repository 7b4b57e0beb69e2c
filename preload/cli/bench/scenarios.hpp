// The scenarios that `sluice bench` knows. Open it for what a scenario is to the runner, and its .cpp file to add one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/programs.hpp"

namespace bench {

struct Scenario {
  std::string name;                         // as the memory table shows it
  std::string group;                        // the name without the kind of memory
  std::string program;                      // of a built-in one: its file in the folder of scenarios
  std::string memory = {};                  // the kind of memory, also an argument; empty where there is no choice
  std::string component = {};               // that kind of memory which is one of the library's own, if one is
  std::vector<std::string> arguments = {};  // of the program
  std::string summary = {};
  unsigned least_threads = 0;                 // that it takes; 0: their number is not to be chosen
  std::optional<RealProgram> real = {};       // a real program instead of a built-in one
  std::optional<std::uint64_t> threads = {};  // that it runs with, if they were chosen
  std::string curve = {};                     // its name without the number of threads, if it runs with several in turn

  bool takes(std::uint64_t count) const { return least_threads != 0 && count >= least_threads; }
  /// What tells its name, and those of its cases, from those with another number of threads: "@4", or nothing.
  std::string point() const {
    return curve.empty() ? "" : std::string("@").append(std::to_string(threads.value_or(0)));
  }
  /// Whether all its memory comes from malloc: rest and latency are looked at in no other.
  bool is_plain() const { return memory.empty() || memory == "plain"; }
};

/// All that are built in, in the order in which they run, and then the real programs.
std::vector<Scenario> all_scenarios(const std::vector<RealProgram>& programs);

/// Those that the names stand for, each once: a name is that of a scenario, or of a group, which stands for all its
/// scenarios; `built-in` and `programs` stand for all of a kind. Throws std::invalid_argument when a name is none of
/// these.
std::vector<Scenario> scenarios_named(const std::vector<std::string>& names, const std::vector<Scenario>& all);

}  // namespace bench
