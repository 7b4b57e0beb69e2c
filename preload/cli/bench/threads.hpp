// The numbers of threads that `sluice bench --threads` asks for. Open it to change what such a list may hold, or how a
// scenario becomes one for each number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/scenarios.hpp"

namespace bench {

/// The most that the programs of the scenarios take.
constexpr std::uint64_t most_threads = 256;

/// Numbers of threads, each once and in ascending order.
using ThreadCounts = std::vector<std::uint64_t>;

/// Reads "4" or "1,8,2". Throws: std::invalid_argument that says what is wrong with the list.
ThreadCounts parse_thread_counts(const std::string& list);

/// "1, 2 and 8".
std::string counts_text(const ThreadCounts& counts);

/// The scenario once for each of several numbers that it takes, as a point of a curve: "pair@2" is pair with 2 threads.
/// With one number, or none, it keeps its name, and has the number if it takes it.
std::vector<Scenario> with_threads(const Scenario& scenario, const ThreadCounts& counts);

}  // namespace bench
