// Who allocates: the samples of a profile with their stacks as functions, and summed up by site. Open it to change what
// a site is, or to add a figure of one.
//
// A *site* is the innermost function of a stack, with its line, that does not only hand memory on (names.hpp) and is no
// part of libsluice.so. Where all of a stack do, it is the innermost one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model.hpp"

namespace sluice::cli::profile {

enum Value : size_t {
  alloc_blocks,
  alloc_bytes,
  inuse_blocks,
  inuse_bytes,
  peak_blocks,
  peak_bytes,
  freed_elsewhere,
  short_lived,
  lifetime_ms,
  value_count
};

// What sites are ordered by, and what a flame graph shows.
enum class Measure { inuse, peak, alloc, short_lived };
inline constexpr std::array all_measures = {Measure::inuse, Measure::peak, Measure::alloc, Measure::short_lived};

// What is summed up for a measure: bytes, or blocks of the short-lived ones.
Value value_of(Measure measure) noexcept;
// "alive at the end", "alive at the peak", "allocated", "short-lived".
const char* title_of(Measure measure) noexcept;

// Estimates; doubles, since a damaged file may hold numbers whose sum no integer holds.
struct Values {
  std::array<double, value_count> of = {};
  std::array<double, all_measures.size()> variance = {};  // of each measure's value

  double operator[](Value value) const noexcept { return of[value]; }
  double operator[](Measure measure) const noexcept { return of[value_of(measure)]; }
  void add(const Values& other) noexcept;
  // Returns: half the interval of 95 % confidence as a part of the value; 0 where the value is.
  double error(Measure measure) const noexcept;
  // Returns: the mean lifetime of the blocks that were freed; 0 where there are none.
  double mean_lifetime_ms() const noexcept;
};

struct Frame {
  size_t function = none;  // in Stacks::functions
  int64_t line = 0;
  bool operator<(const Frame& other) const noexcept {
    return function != other.function ? function < other.function : line < other.line;
  }
};

struct StackFunction {
  std::string name, full_name, file, module;
  bool hands_on = false;
  std::string module_path = {};
  bool is_of_allocator = false;  // of libsluice.so, or of a program that libsluice.a is linked into
};

struct Stack {
  std::vector<size_t> frames;  // in Stacks::frames, the innermost first
  Values values = {};
  int64_t block_size = 0;  // 0: unknown
  std::string thread = {};
};

struct Stacks {
  std::vector<StackFunction> functions = {};
  std::vector<Frame> frames = {};
  std::vector<Stack> stacks = {};
  std::array<bool, value_count> is_known = {};  // whether the profile has such values
  Values total = {};

  const StackFunction& function_of(size_t frame) const { return functions[frames[frame].function]; }
  // Returns: the place in stack.frames of the site; requires that there are any.
  size_t site_in(const Stack& stack) const;
};

// What says most unless something else is asked for: what is alive at the end; at the peak if that is ten times as
// much; what was allocated if neither is known.
Measure usual_order(const Stacks& stacks) noexcept;

// Requires: each location has lines. A sample without a stack gets a function of its own, "unknown".
Stacks stacks_of(const Profile& profile);

struct Site {
  size_t frame = none;  // in Stacks::frames
  Values values = {};
  std::map<std::string, Values> threads = {};
  std::map<int64_t, Values> sizes = {};
  std::vector<size_t> via =
      {};  // of the stack that allocated most: the frames between the site and malloc, from the site on
  double most_through_via = -1;
  std::vector<size_t> callers = {};  // of that stack: the frames outside of the site, the nearest first
};

// Returns: the sites, those with most of the measure first; those with nothing of any value are left out.
std::vector<Site> sites_of(const Stacks& stacks, Measure order);

}  // namespace sluice::cli::profile
