// What machine this is, as reports say it. Open it to say more.
#pragma once

#include <string>

namespace bench {

struct Machine {
  std::string system;  // kernel and architecture
  std::string processor;
  long processors;
  long memory_mib;
  std::string huge_pages;  // the setting for transparent ones; empty when it is not known
};

Machine this_machine();

/// How many processors this process and those that it starts may run on: those it was not bound away from.
long processors_at_hand();

/// One line.
std::string machine_text(const Machine& machine);

}  // namespace bench
