// A heap profile as text for a terminal: a summary, and the top sites as a table; or what changed between two. Open it
// to change how they look.
#pragma once

#include <cstddef>
#include <string>

#include "measure/terminal.hpp"
#include "model.hpp"
#include "sites.hpp"

namespace sluice::cli::profile {

struct TextOptions {
  Measure order = Measure::inuse;
  size_t top = 20;
  bench::Look look = {};
};

std::string report_text(const Profile& profile, const Stacks& stacks, const TextOptions& options);

struct Compared {
  std::string source;
  const Profile* profile;
  const Stacks* stacks;
};

// Returns: the sites whose measure changed, those that changed most first. Sites are the same if function and file are;
// the lines of a function may have moved.
std::string difference_text(const Compared& before, const Compared& after, const TextOptions& options);

// 12.3 MiB; what no integer holds is cut to the largest.
std::string bytes_text(double bytes);
// 1,234
std::string count_text(double count);
// 1.23 s, 12.3 ms, 2 min 3 s
std::string duration_text(double milliseconds);
// "parse  parse.cpp:12", without control characters.
std::string place_text(const StackFunction& function, int64_t line);

}  // namespace sluice::cli::profile
