// The scenarios that sluice-bench knows. Open it for what a scenario is to the runner, and its .cpp file to add one.
#pragma once

#include <string>
#include <vector>

namespace bench {

struct Scenario {
  std::string name;                    // as the memory table shows it
  std::string group;                   // the name without the kind of memory
  std::string program;                 // its file in the folder of programs
  std::string memory;                  // the kind of memory, also among the arguments; empty where there is no choice
  std::string component;               // that kind of memory which is one of the library's own; empty where none is
  std::vector<std::string> arguments;  // of the program
  std::string summary;
};

/// All of them, in the order in which they run.
const std::vector<Scenario>& all_scenarios();

/// Those that the names stand for, each once: a name is that of a scenario, or of a group or a program, which stands
/// for all its scenarios. Throws std::invalid_argument when a name is none of these.
std::vector<Scenario> scenarios_named(const std::vector<std::string>& names);

}  // namespace bench
