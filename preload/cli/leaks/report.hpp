// What is alive or leaked, by site. Open it to change what counts as a leak, or to add a figure.
//
// A block is leaked *directly* when no pointer to it is found, or only such of blocks that it leads to itself, and
// *indirectly* when only leaked blocks point to it. Everything else that is alive can still be reached.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../profile/sites.hpp"
#include "profile/model.hpp"
#include "suppressions.hpp"

namespace sluice::cli::leaks {

struct Amount {
  double blocks = 0, bytes = 0;
  void add(const Amount& other) noexcept {
    blocks += other.blocks;
    bytes += other.bytes;
  }
};

struct LeakSite {
  size_t frame = profile::none;  // in Stacks::frames
  Amount alive = {};             // all of it, leaked or not
  double variance = 0;           // of the bytes
  Amount direct = {}, indirect = {};
  Amount held = {};  // leaked indirectly, and only found through blocks that this site leaks directly

  // Of the stack that holds most: the frames between the site and malloc, from the site on, and those that called it,
  // the nearest first.
  std::vector<size_t> via = {}, callers = {};
  double most_of_a_stack = -1;

  bool is_leaked() const noexcept { return direct.blocks > 0 || indirect.blocks > 0; }
  // Half the interval of 95 % confidence as a part of what is alive.
  double error() const noexcept;
};

struct LeakReport {
  profile::Stacks stacks = {};
  std::vector<LeakSite> sites = {};  // those that leak most first, then those with most alive
  Amount alive = {}, direct = {}, indirect = {}, suppressed = {};
  double variance = 0;  // of the bytes alive
  bool is_exact = false;
  bool is_known = false;     // whether what is leaked is
  std::string unknown = {};  // why not, where somebody asked

  bool has_leaks() const noexcept { return direct.blocks > 0 || indirect.blocks > 0; }
  Amount reachable() const noexcept {
    return {alive.blocks - direct.blocks - indirect.blocks, alive.bytes - direct.bytes - indirect.bytes};
  }
};

// `born_since`: only blocks that were born after so many profiles had been written. Requires: each location has lines.
LeakReport report_of(const profile::Profile& profile, const Suppressions& suppressions, int64_t born_since);

}  // namespace sluice::cli::leaks
