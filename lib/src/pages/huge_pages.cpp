// See huge_pages.hpp.
#include "pages/huge_pages.hpp"

#include <algorithm>

#include "base/options.hpp"
#include "os/memory.hpp"
#include "pages/mappings.hpp"
#include "pages/nodes.hpp"
#include "pages/reservation.hpp"

namespace sluice::region {
namespace {

constexpr size_t chunk_units = (size_t{64} << 20) / unit_size;       // what is counted together…
constexpr size_t chunks = 16'384;                                    // …in so much of the heap, a TiB
constexpr size_t counted = 4096;                                     // bytes
constexpr size_t most_gone = chunk_units * unit_size / counted / 8;  // of these that may go before a chunk asks no more
constexpr uint32_t most_apart = 4'000;  // extents that do not follow another: each takes two of the process's mappings
// What huge pages may cost, and what small ones in place of one would take at least, in ns.
constexpr int64_t most_lost = 8'000'000;
constexpr int64_t most_lost_again = most_lost / 4;  // after a pause
constexpr int64_t saved_by_one = 500'000;
constexpr uint64_t first_pause = 1000;  // ms; then twice as long each time

constinit uint16_t gone[chunks] SLUICE_GUARDED_BY(state.lock) = {};  // so many times `counted` of each chunk went back
constinit std::atomic<bool> ended{false};                            // for good
constinit std::atomic<uint64_t> paused_until{0};                     // ms
constinit std::atomic<uint64_t> next_pause{first_pause};
constinit std::atomic<bool> has_forked{false};
constinit std::atomic<bool> splits{false};  // whether the system was seen to split pages
constinit std::atomic<int64_t> left_to_lose{most_lost};
constinit std::atomic<uint32_t> untouched{unit_index_none};  // the extent that was opened last
constinit std::atomic<uint32_t> open[most_nodes]{};          // by memory node; written under the lock
constinit uint32_t apart SLUICE_GUARDED_BY(state.lock) = 0;

bool is_paused() noexcept {
  const uint64_t until = paused_until.load(std::memory_order_relaxed);
  return until != 0 && os::clock_ms() < until;
}

bool serves() noexcept SLUICE_REQUIRES(state.lock) {
  return os::can_advise_huge_pages && options.huge_slabs && !options.huge_pages && os::page_size() == 4096 &&
         !guards_spans && !ended.load(std::memory_order_relaxed) && !is_limited() && apart < most_apart && !is_paused();
}

void end() noexcept {
  ended.store(true, std::memory_order_relaxed);
}

// The first unit of the extent that a unit lies in.
size_t extent_of(size_t index) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(address_of(index));
  return index - lesser(address % extent_bytes / unit_size, index);
}

// Where the first whole extent of a span begins, or its end.
size_t first_extent_in(size_t span) noexcept {
  const size_t end = span + region_units[span].units;
  const auto address = reinterpret_cast<uintptr_t>(address_of(span));
  const size_t start = span + (round_up(address, extent_bytes) - address) / unit_size;
  return start + extent_units <= end ? start : end;
}

bool has_extent(size_t span) noexcept {
  return span != unit_index_none && first_extent_in(span) != span + region_units[span].units;
}

// A clean span that has a whole extent; none where a shorter one serves for `units`.
size_t find_extent(size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  constexpr size_t enough = 2 * extent_units - 1;
  size_t span = state.spans.find_clean(units);
  if (has_extent(span)) return span;
  if (span != unit_index_none && span + region_units[span].units != limit()) return unit_index_none;
  span = state.spans.find_clean(enough);
  // By no more than that where the program has locked what will come.
  if (span == unit_index_none && grow_commit(units)) span = state.spans.find_clean(enough);
  return span;
}

// Whether the system takes all that will be asked of it. The pages were never written to.
bool is_willing(void* extent) noexcept {
  if (!splits.load(std::memory_order_relaxed)) {
    if (!os::drop_lazily(extent, extent_bytes)) return false;
    splits.store(true, std::memory_order_relaxed);
  }
  return os::advise_huge_pages(extent, extent_bytes);
}

// Opens another extent, and asks for huge pages there.
bool open_extent(size_t units, unsigned node) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t span = find_extent(units);
  if (span == unit_index_none) return false;
  const size_t start = first_extent_in(span);
  if (!is_willing(address_of(start))) {
    end();
    return false;
  }
  note_needed(start, extent_units);
  const size_t end = span + region_units[span].units;
  if (start == state.first || advice_of(start - 1) != PageAdvice::Huge) ++apart;
  state.spans.remove(span);
  begin_span(start, extent_units, UnitState::Extent);
  if (span < start) state.spans.insert(span, start - span, true, 0);
  if (start + extent_units < end) state.spans.insert(start + extent_units, end - start - extent_units, true, 0);
  for (size_t i = start; i < start + extent_units; ++i)
    set_advice(i, PageAdvice::Huge, true);
  os::call_counts.huge_bytes.fetch_add(extent_bytes, std::memory_order_relaxed);
  open[node].store(static_cast<uint32_t>(start), std::memory_order_relaxed);
  untouched.store(static_cast<uint32_t>(start), std::memory_order_relaxed);
  return true;
}

// Tells the system not to make huge pages in a chunk by itself.
void ask_no_more(size_t chunk) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t start = greater(extent_of(chunk * chunk_units), state.first);
  const size_t end = lesser(extent_of((chunk + 1) * chunk_units), limit());
  // Called back under the lock, which the analysis does not see.
  const auto ask = [](size_t from, size_t units, PageAdvice advice) SLUICE_UNCHECKED_LOCKS {
    if (advice != PageAdvice::Huge) return;
    (void)os::advise_small_pages(address_of(from), units * unit_size);
    for (size_t i = from; i < from + units; ++i)
      set_advice(i, PageAdvice::Small, is_whole(i));
  };
  for_each_advice(start, end, ask);
  if (chunk < chunks) gone[chunk] = 0;
}

inline size_t units_in_extent(unsigned node) noexcept {
  const size_t index = open[node].load(std::memory_order_relaxed);
  return index != unit_index_none ? region_units[index].units : 0;
}

__attribute__((cold)) size_t units_in_several() noexcept {
  size_t units = 0;
  for (unsigned node = 0; node < nodes::count.load(std::memory_order_relaxed); ++node)
    units += units_in_extent(node);
  return units;
}

void close_extent(unsigned node) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t index = open[node].exchange(unit_index_none, std::memory_order_relaxed);
  if (index == unit_index_none) return;
  nodes::set(index, node);
  state.spans.insert(index, region_units[index].units, false, os::clock_ms());
}

}  // namespace

size_t units_in_extents() noexcept {
  return nodes::are_several() ? units_in_several() : units_in_extent(0);
}

size_t take_from_extent(size_t units, unsigned node) noexcept {
  if (units > extent_units || !serves()) return unit_index_none;
  if (units > units_in_extent(node)) {
    close_extent(node);
    if (!open_extent(units, node)) return unit_index_none;
  }
  const size_t index = open[node].load(std::memory_order_relaxed);
  const size_t rest = region_units[index].units - units;
  if (rest != 0) begin_span(index + units, rest, UnitState::Extent);
  open[node].store(rest != 0 ? static_cast<uint32_t>(index + units) : unit_index_none, std::memory_order_relaxed);
  nodes::set(index, node);
  return index;
}

void close_extents() noexcept {
  close_extent(0);
  for (unsigned node = 1; node < nodes::count.load(std::memory_order_relaxed); ++node)
    close_extent(node);
}

void forget_extents() noexcept {
  for (auto& first : open)
    first.store(unit_index_none, std::memory_order_relaxed);
}

void touch_extent(size_t index) noexcept {
  if (index != untouched.load(std::memory_order_relaxed)) return;
  untouched.store(unit_index_none, std::memory_order_relaxed);
  const auto took = static_cast<int64_t>(os::touch(address_of(index)));
  const int64_t left = left_to_lose.load(std::memory_order_relaxed) + saved_by_one - took;
  left_to_lose.store(left < 0 ? most_lost_again : std::min(left, most_lost), std::memory_order_relaxed);
  if (left >= most_lost) next_pause.store(first_pause, std::memory_order_relaxed);
  if (left >= 0) return;
  const uint64_t pause = next_pause.load(std::memory_order_relaxed);
  next_pause.store(2 * pause, std::memory_order_relaxed);
  paused_until.store(os::clock_ms() + pause, std::memory_order_relaxed);
  os::call_counts.huge_pauses.fetch_add(1, std::memory_order_relaxed);
}

void end_huge_pages() noexcept {
  if (!any_advice()) return;
  end();
  has_forked.store(true, std::memory_order_relaxed);
}

bool is_whole_huge_page(size_t index) noexcept {
  return any_advice() && is_whole(index);
}

void split_huge_page(void* address, size_t bytes) noexcept {
  if (!os::drop_lazily(address, bytes)) end();  // that splits it, and dropping does not
}

void note_split(size_t index) noexcept {
  if (has_forked.load(std::memory_order_relaxed)) return;  // perhaps it was not: it is tried again
  const size_t first = extent_of(index);
  for (size_t i = greater(first, state.first); i < lesser(first + extent_units, limit()); ++i)
    set_advice(i, advice_of(i), false);
}

Ends note_ends(size_t index, size_t units) noexcept {
  Ends ends{0, 0};
  if (!any_advice()) return ends;
  const size_t end = index + units;
  const size_t first = extent_of(index);
  const size_t last = extent_of(end - 1);
  if (is_whole(index) && (first != index || first + extent_units > end)) {
    ends.front = lesser(first + extent_units, end) - index;
    note_split(index);
  }
  if (last != first && last + extent_units > end && is_whole(end - 1)) {
    ends.back = end - last;
    note_split(end - 1);
  }
  return ends;
}

void note_gone(size_t index, size_t bytes) noexcept {
  if (!any_advice()) return;
  const size_t end = index + (bytes + unit_size - 1) / unit_size;
  for (size_t from = index, left = bytes; from < end;) {
    const size_t chunk = from / chunk_units;
    const size_t to = lesser((chunk + 1) * chunk_units, end);
    const size_t part = lesser(left, (to - from) * unit_size);
    const size_t so_far = chunk < chunks ? gone[chunk] + part / counted : most_gone;
    if (chunk < chunks) gone[chunk] = static_cast<uint16_t>(lesser(so_far, most_gone));
    if (so_far >= most_gone) ask_no_more(chunk);
    left -= part;
    from = to;
  }
  // What is taken there again is whole.
  for (size_t from = extent_of(index + extent_units - 1); from + extent_units <= end; from += extent_units)
    for (size_t i = from; i < from + extent_units; ++i)
      if (advice_of(i) == PageAdvice::Huge) set_advice(i, PageAdvice::Huge, true);
}

void note_needed(size_t index, size_t units) noexcept {
  const size_t chunk = index / chunk_units;
  if (!any_advice() || chunk >= chunks || gone[chunk] == 0 || advice_of(index) != PageAdvice::Huge) return;
  gone[chunk] = static_cast<uint16_t>(gone[chunk] - lesser(units * (unit_size / counted), gone[chunk]));
}

}  // namespace sluice::region
