// What is known about a guarded block, kept far from it, and the table of it. pool.cpp uses the slots, report.cpp tells
// about them. Open it to add something that a report should say.
//
// Life of a slot:
//
//   Idle ──▶ Busy ──▶ Live ──▶ Busy ──▶ Freed ──▶ Busy ──▶ …
//           allocate           free      └─ in a queue, oldest first
//
// A slot that is Busy belongs to the thread that is at work on it; Live to Busy is one compare and exchange, so that of
// two frees of one block one is the second.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "os/diagnosis.hpp"
#include "pages/region.hpp"

namespace sluice::guarded {

inline constexpr unsigned most_frames = 16;

struct Trace {
  uint32_t thread;
  uint32_t count;
  uintptr_t frames[most_frames];

  __attribute__((always_inline)) void capture() noexcept {
    thread = os::thread_id();
    count = os::capture_trace(frames, most_frames);
  }
};

enum class SlotState : uint8_t { Idle, Busy, Live, Freed };

struct Slot {
  std::atomic<SlotState> state;
  std::atomic<bool> reported;  // of the block that it holds or held: its faults are not reported again
  std::atomic<bool> exposed;   // pages that should be inaccessible are not: after a report, or the system refused
  uint16_t data_page;          // where the block's pages begin in the span…
  uint16_t data_pages;         // …and how many there are
  uint32_t index;              // of the slot
  uint32_t unit, units;        // the span; unit_index_none: a slot without one
  uint32_t next;               // in a queue, or among those that signal handlers freed
  uint32_t record;             // of the profile; 0: the block is not sampled by bytes. Its user's
  char* block;
  size_t size;
  Trace allocated, freed;
};

// Whether the address lies in a slot's span, in use or not.
inline bool covers(const void* address) noexcept {
  const size_t unit = unit_index_of(address);
  return unit < region_range_units && class_bytes()[unit] == class_byte_guarded;
}

char* span_of(const Slot& slot) noexcept;
char* data_of(const Slot& slot) noexcept;
size_t data_bytes(const Slot& slot) noexcept;

// The slot that the address lies in. Requires: covers(address).
Slot& slot_at(const void* address) noexcept;

// Slots made so far have indices below slot_count().
size_t slot_count() noexcept;
Slot& slot_of_index(size_t index) noexcept;

inline constexpr size_t most_slots = 16384;

// A slot more, without a span; null when there is no memory. Requires: the pool's lock, slot_count() < most_slots.
Slot* add_slot() noexcept;

}  // namespace sluice::guarded
