// A model of processors with caches: which accesses must wait for a line of another processor. Threads of a test each
// stand for one; instrumented.cpp tells it of each access of the heap. Open it to change what counts.
//
// Caches have no end and nothing is ever dropped from them, so that what is counted is what the protocol between
// threads costs, whatever the machine. A line is held by any number of processors, or has been written by one. An
// access *moves* a line if another processor holds it: a read of what this one does not hold, a write of what others
// hold. First touches count nothing. 64 processors at most, and one of them runs at a time: who runs threads sees to
// that.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::contention {

inline constexpr unsigned most_processors = 64;
inline constexpr unsigned line_shift = 6;

// Where a line that moved lies.
enum class Area : uint8_t { Blocks, ClassBytes, Descriptors, Bitmaps, OwnCache, OtherCache, Globals };
inline constexpr unsigned areas = 7;

struct Counts {
  uint64_t moves[areas];    // accesses that waited for another processor
  uint64_t atomics;         // read-modify-writes
  uint64_t moving_atomics;  // of those, which moved a line
  uint64_t all_moves() const noexcept {
    uint64_t sum = 0;
    for (const uint64_t each : moves)
      sum += each;
    return sum;
  }
};

// What the calling thread does counts as this processor's; none: it is not seen.
inline constexpr unsigned no_processor = most_processors;
extern thread_local unsigned processor;

// Whether its moves and atomics are counted; the lines are followed in any case.
extern thread_local bool is_counted;

enum class Access : uint8_t { Read, Write, Update };  // Update: a read-modify-write

void access(const volatile void* address, size_t bytes, Access kind) noexcept;

const Counts& counts() noexcept;
void forget_counts() noexcept;

}  // namespace sluice::contention
