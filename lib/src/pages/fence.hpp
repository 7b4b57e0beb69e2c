// The span of a large block as libsluice-secure.so sees it: what of it can be touched while the block lives, and what
// becomes of it when the block is freed. Open it to see where a large block's end is guarded, or how a late write to it
// is found. Compiled in secure builds alone.
//
//   | what was asked for … | canary, as much as the page has room for | pages that cannot be touched … |
//
// A freed span is kept closed: nobody can touch it. Opening and closing are two system calls, some microseconds where
// the pages are in memory, so that they have a budget: one span in two milliseconds, and 256 saved up. A program that
// frees large blocks of up to 1 MiB faster than that has some of them watched instead: their first bytes and the canary
// (all bytes with SLUICE_ZERO_ON_FREE) must be as the free left them when they serve again. Then pages behind a block
// may also stay open that its span's last user had.
//
// Functions belong to whoever has the span. Sizes are in bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "os/memory.hpp"

namespace sluice::hardened {

// How many spans may still be closed (or change how much of them is open) now, and after how many milliseconds one more
// is added; 0: never. Tests change both.
struct CallBudget {
  std::atomic<int64_t> left;
  uint64_t ms_per_call;
};
extern CallBudget call_budget __attribute__((visibility("hidden")));

// How many bytes of its span a block needs open, in whole pages: what the program asked for. `bytes` is what was asked
// of the heap, which includes the canary.
size_t needed_bytes(size_t bytes) noexcept;

// How much of a large block's span can be touched, from its first byte on, while it is not closed.
inline size_t touchable(const Unit& span) noexcept {
  return size_t{span.large.touchable_pages} * os::page_size();
}

// For a span that the region gave, or whose length has changed. Effects: its pages from `needed` on cannot be touched,
// if region::guard can do that.
void fence(size_t index, size_t needed) noexcept;

// For the span of a live block. Effects: `needed` bytes can be touched, and no more if that is affordable. False when
// the system refuses.
bool refit(size_t index, size_t needed) noexcept;

// For a span whose block is freed. Effects: its contents are cleared or dropped as far as that is promised, and it is
// closed, `always` or if that is affordable, or watched.
void close(size_t index, bool always) noexcept;

// For a retained span that held something else and serves for a large block from now on. Effects: what can be touched
// of it, all but its guard, is noted.
void note_open(size_t index) noexcept;

// For a span that is kept. Effects: `needed` bytes can be touched; with SLUICE_ZERO_ON_FREE they read as zero if *clean
// says so. `Damaged`: it was written to, that was reported, and it must not be used again.
enum class Reopened : uint8_t { Ready, Damaged, Refused };
Reopened reopen(size_t index, size_t needed, bool* clean) noexcept;

// For a span that is kept and goes back to the region. False when it was written to, which was reported.
bool is_as_left(size_t index) noexcept;

// Effects: the bytes read as zero. Long stretches are dropped where the system lets them be.
void clear(char* at, size_t bytes) noexcept;

// A new large block for which `bytes` were asked of the heap, in a span that holds something. Effects: of that nothing
// is seen in the first bytes; in all of them if it is to be `zeroed`, or with SLUICE_ZERO_ON_FREE.
void clear_new(char* block, size_t bytes, bool zeroed) noexcept;

// The canary behind a large block's `size` bytes.
void write_end(const Unit& span, char* block, size_t size) noexcept;
bool end_holds(const Unit& span, const char* block, size_t size) noexcept;

}  // namespace sluice::hardened
