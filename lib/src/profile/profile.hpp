// The heap profile: which sites allocate what, what of it is alive, and how long it lives. Open it to see what becomes
// of a sample; which allocations are sampled is decided in heap/sampling.hpp, the arithmetic is in estimate.hpp, the
// file is written by stats/profile_file.hpp.
//
// Everything is in tables of fixed size that are mapped at start (sites.hpp, records.hpp); what they have no room for
// is dropped and counted. One lock protects them. A signal handler that interrupts its holder, or that of the region's
// lock, takes no samples, and what it frees waits for the next call.
//
// Sizes are in bytes. All functions are thread-safe; none throws, allocates by malloc or changes errno.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "profile/blocks.hpp"
#include "profile/records.hpp"
#include "profile/sites.hpp"

namespace sluice::profile {

// Effects: maps the tables, the first time. `rate`: of the samples that will come. After a stop a new profile begins:
// what was sampled before and is alive is alive in it, and was not allocated in it. Not for signal handlers.
enum class Started : uint8_t { Yes, Already, NoMemory, Abandoned };
Started start(uint64_t rate) noexcept;

// Effects: no more samples are taken. The tables stay, so that the blocks can end and the profile can be read. Returns:
// whether there was a profile that took some. Not for signal handlers.
bool stop() noexcept;

// The rate that start() was given; 0: there is no profile, or it was stopped.
uint64_t rate() noexcept;

// Whether a profile was ever started: there is something to read.
bool exists() noexcept;

// When something happens, and to whom: the thread, by a number of its own, and how many bytes the process has
// allocated.
struct Moment {
  uint32_t thread;
  uint64_t allocated_bytes;
};

// A sample that has been taken.
struct Sample {
  Moment moment;
  uint64_t taken_ns;  // by the system's monotonic clock
  size_t size;        // that was asked for
  const uintptr_t* frames;
  unsigned frame_count;
  bool complete;
  uint64_t rate;       // at which it was drawn
  const char* thread;  // its name: os::thread_name_capacity bytes, zeroes behind its end
};

// Effects: takes a block of the class for the sample; null when there is none: the sample is dropped, and counted.
void* allocate(const Sample& sample, unsigned size_class) noexcept;

// Effects: notes a sample whose block lies elsewhere. Returns: no_record where it is dropped.
RecordNumber begin(const Sample& sample) noexcept;

// Effects: the block of a record ends. Requires: it came from begin(), and has not ended.
void end(RecordNumber record, const Moment& moment) noexcept;

// Effects: ends a block that allocate() has given. Returns: false where none is alive. Requires: covers(block).
bool free(const void* block, const Moment& moment) noexcept;

// Whether a block that allocate() has given begins there, and is alive. Requires: covers(block).
bool is_live(const void* block) noexcept;

// Effects: a block has another size from now on. Requires: it is alive.
void resize(RecordNumber record, size_t size) noexcept;

// The site of a block that is alive; null for no_record. What never changes of it may be read.
const Site* site_of(RecordNumber record) noexcept;

// A sample that could not be taken.
void count_dropped() noexcept;

// Work that a signal handler left for the next sample of any thread; taken by an exchange, null when there is none.
using DeferredWork = void (*)() noexcept;
extern constinit std::atomic<DeferredWork> deferred_work;
void do_deferred_work() noexcept;  // after a sample, outside of all locks

// What the profile says of all sites together.
struct Point {
  uint64_t ms;  // since the start
  double live_bytes;
};
inline constexpr unsigned most_points = 512;
struct Totals {
  uint64_t rate;  // the last one
  uint64_t samples, dropped;
  uint64_t truncated;   // stacks that did not reach the outermost call
  uint64_t started_ns;  // of the system's monotonic clock
  uint64_t peak_ns;     // since the start
  uint64_t peak;        // the number of the latest peak
  uint16_t generation;  // how many profiles were written
  Tally live;
  unsigned point_count;
  const Point* points;
};

// Holds the profile still, to be read. Without `wait` it may fail, and always where this thread is in the profile.
class Reading {
 public:
  explicit Reading(bool wait) noexcept SLUICE_UNCHECKED_LOCKS;
  ~Reading() SLUICE_UNCHECKED_LOCKS;
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  explicit operator bool() const noexcept { return holds_; }
  Totals totals() const noexcept;
  const Sites& sites() const noexcept;
  const Records& records() const noexcept;

  // Effects: a profile is written: blocks that are born from now on belong to the next generation.
  void begin_generation() noexcept;

 private:
  bool holds_;
};

// What was live at a site when most was live. Requires: `peak` is that of Totals, read under the same Reading.
inline const Tally& at_peak(const Site& site, uint64_t peak) noexcept {
  return site.seen_peak == peak ? site.at_peak : site.live;
}

// Sampled blocks of a class, and units for them. Requires the lock.
struct ClassFigures {
  size_t live_blocks, units;
};
ClassFigures figures(unsigned size_class) noexcept;

// In the child of a fork, whose parent had a thread in the middle of a change here: no more samples are taken. Blocks
// that are alive stay so until they are freed.
void abandon() noexcept;

// The lock. In the order of locks it stands between that of guarded blocks and the region's.
Mutex& mutex() noexcept;

}  // namespace sluice::profile
