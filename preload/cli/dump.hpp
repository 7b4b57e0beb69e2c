// A statistics dump read back from JSON. Open it to read more of a dump than the figures of statistics.def.
#pragma once

#include <cstdint>
#include <string>

#include "stats/snapshot.hpp"

namespace sluice::cli {

struct Dump {
  std::string source;  // the file's name, for messages
  std::string program;
  std::string version;
  uint64_t pid = 0;
  stats::Snapshot snapshot{};
};

// Effects: reads a dump; "-" is standard input. Throws: CommandError (usage) that says what is wrong with it.
Dump read_dump(const std::string& file);

}  // namespace sluice::cli
