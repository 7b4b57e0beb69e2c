// Hashes by which a scenario compares what it made of its texts with what it should have made, and finds keys in tables
// of its own. Open it to change what a text is reduced to.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "sluice/hash.hpp"

namespace scenario {

inline std::uint64_t hash_of(std::string_view text) {
  return sluice::hash<std::string_view>()(text);
}

/// One hash of two numbers, whose order counts.
inline std::uint64_t mixed(std::uint64_t first, std::uint64_t second) {
  return sluice::hash<std::pair<std::uint64_t, std::uint64_t>>()({first, second});
}

}  // namespace scenario
