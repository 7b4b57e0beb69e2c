// See long_lists.hpp.
#include "heap/long_lists.hpp"

#include <atomic>

#include "base/options.hpp"
#include "os/memory.hpp"

namespace sluice::long_lists {
namespace {

constexpr int32_t most_blocks = 1024;            // in a list
constexpr uint32_t kib_of_one = 8 * 1024;        // that both lists may hold in a program of one thread…
constexpr uint32_t kib_of_several = 4 * 1024;    // …and in all threads together where there are several
constexpr uint32_t flushes_to_learn = 64;        // for lists twice as long…
constexpr uint32_t refills_to_learn = 16;        // …and refills from slabs among them, at least…
constexpr uint32_t learns_within_ms = 4;         // …within this time
constexpr size_t part_in_the_way = 4;            // of what they may hold, when others need that…
constexpr size_t least_in_the_way = 512 * 1024;  // …and so many bytes at least, by more requests than one
constexpr uint8_t most_doublings = 10;           // of the steps for which a thread does without after that
constexpr uint64_t part_of_delay = 2;            // for which they may lie unused
constexpr uint32_t times_its_part = 2;           // that a thread may have since others began

constinit std::atomic<uint32_t> live{1};     // threads
constinit std::atomic<uint32_t> all_kib{0};  // that the lists of all may hold

uint32_t most_kib(uint32_t threads) noexcept {
  return threads == 1 ? kib_of_one : kib_of_several;
}

uint32_t part_of_one() noexcept {
  const uint32_t threads = live.load(std::memory_order_relaxed);
  return most_kib(threads) / threads;
}

}  // namespace

void note_live(size_t threads) noexcept {
  live.store(threads > 0 ? static_cast<uint32_t>(threads) : 1, std::memory_order_relaxed);
}

void note_fork(uint32_t kib) noexcept {
  all_kib.store(kib, std::memory_order_relaxed);
}

int32_t wanted(unsigned k, int32_t least, size_t used) noexcept {
  if (delays_reuse || options.cache < usual_cache || used <= 2 * static_cast<size_t>(least)) return least;
  const size_t demand = used / 2 + used / 8 + 1;
  const size_t within = (size_t{part_of_one()} << 10) / 2 / class_sizes[k];
  const size_t blocks = demand < within ? demand : within;
  return blocks <= static_cast<size_t>(least) ? least
         : blocks < most_blocks               ? static_cast<int32_t>(blocks)
                                              : most_blocks;
}

bool are_worth_it(ThreadCache& c) noexcept {
  if (++c.short_flushes % flushes_to_learn != 0) return false;
  const uint32_t from = c.short_from_ms, refills = c.short_refills;
  c.short_from_ms = static_cast<uint32_t>(os::clock_ms());
  c.short_refills = 0;
  if (c.short_from_ms - from > learns_within_ms || refills < refills_to_learn) return false;
  if (c.steps_without == 0) return true;
  --c.steps_without;
  return false;
}

bool lengthen(ThreadCache& c, unsigned k, int32_t blocks) noexcept {
  const auto kib = static_cast<uint32_t>(2 * static_cast<size_t>(blocks) * class_sizes[k] >> 10);
  const uint32_t more = kib > c.long_kib ? kib - c.long_kib : 0;
  const uint32_t most = most_kib(live.load(std::memory_order_relaxed));
  if (all_kib.fetch_add(more, std::memory_order_relaxed) + more > most) {
    all_kib.fetch_sub(more, std::memory_order_relaxed);
    return false;
  }
  if (c.long_class == 0) c.long_ends = false;  // a signal handler may have been about to end the former ones
  c.long_kib += more;
  c.long_class = static_cast<uint8_t>(k);
  c.long_seen_ms = static_cast<uint32_t>(os::clock_ms());
  c.uses[k].earned = static_cast<uint16_t>(blocks);
  return true;
}

void end(ThreadCache& c, int32_t usual) noexcept {
  ClassUse& use = c.uses[c.long_class];
  if (use.earned > usual) use.earned = static_cast<uint16_t>(usual);
  all_kib.fetch_sub(c.long_kib, std::memory_order_relaxed);
  c.long_kib = 0;
  c.long_class = 0;
  c.long_ends = false;
}

bool are_in_the_way(ThreadCache& c, size_t units) noexcept {
  const bool is_first = c.others_units == 0;
  c.others_units += static_cast<uint32_t>(units);
  const size_t needed = size_t{c.others_units} * unit_size, held = size_t{c.long_kib} << 10;
  if (needed <= held && (is_first || needed <= held / part_in_the_way || needed <= least_in_the_way)) return false;
  c.steps_without = static_cast<uint16_t>(1u << c.times_in_the_way);
  if (c.times_in_the_way < most_doublings) ++c.times_in_the_way;
  return true;
}

bool are_over(ThreadCache& c) noexcept {
  const uint32_t used_at = c.uses[c.long_class].used_at;
  const auto now = static_cast<uint32_t>(os::clock_ms());
  if (used_at != c.long_seen_at) {
    c.long_seen_at = used_at;
    c.long_seen_ms = now;
  }
  return now - c.long_seen_ms > options.purge_delay / part_of_delay || c.long_kib > times_its_part * part_of_one();
}

bool are_more_than_shared(const ThreadCache& c) noexcept {
  return c.long_kib > kib_of_several / 2;
}

}  // namespace sluice::long_lists
