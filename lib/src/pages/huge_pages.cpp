// See huge_pages.hpp.
#include "pages/huge_pages.hpp"

#include "base/options.hpp"
#include "os/memory.hpp"
#include "pages/mappings.hpp"
#include "pages/reservation.hpp"

namespace sluice::region {
namespace {

constexpr size_t chunk_units = (size_t{64} << 20) / unit_size;       // what is counted together…
constexpr size_t chunks = 16'384;                                    // …in so much of the heap, a TiB
constexpr size_t counted = 4096;                                     // bytes
constexpr size_t most_gone = chunk_units * unit_size / counted / 8;  // of these that may go before a chunk asks no more
constexpr uint32_t most_apart = 4'000;  // extents that do not follow another: each takes two of the process's mappings
// What huge pages may cost, and what small ones in place of one would take at least, in ns.
constexpr int64_t most_lost = 256'000'000;
constexpr int64_t saved_by_one = 500'000;

constinit uint16_t gone[chunks] SLUICE_GUARDED_BY(state.lock) = {};  // so many times `counted` of each chunk went back
constinit std::atomic<bool> stopped{false};
constinit std::atomic<int64_t> left_to_lose{most_lost};
constinit std::atomic<uint32_t> untouched{unit_index_none};  // the extent that was opened last
constinit std::atomic<uint32_t> open{unit_index_none};       // written under the lock
constinit uint32_t apart SLUICE_GUARDED_BY(state.lock) = 0;

bool serves() noexcept SLUICE_REQUIRES(state.lock) {
  return os::can_advise_huge_pages && options.huge_slabs && !options.huge_pages && os::page_size() == 4096 &&
         !guards_spans && !stopped.load(std::memory_order_relaxed) && !is_limited() && apart < most_apart;
}

// The first unit of the extent that a unit lies in.
size_t extent_of(size_t index) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(address_of(index));
  return index - address % extent_bytes / unit_size;
}

// A clean span that has a whole extent, and where that begins.
size_t find_extent(size_t* start) noexcept SLUICE_REQUIRES(state.lock) {
  constexpr size_t enough = 2 * extent_units - 1;
  size_t span = state.spans.find_clean(enough);
  if (span == unit_index_none && grow_commit(enough)) span = state.spans.find_clean(enough);
  if (span == unit_index_none) return span;
  const auto address = reinterpret_cast<uintptr_t>(address_of(span));
  *start = span + (round_up(address, extent_bytes) - address) / unit_size;
  return span;
}

// Opens another extent, and asks for huge pages there.
bool open_extent() noexcept SLUICE_REQUIRES(state.lock) {
  size_t start = 0;
  const size_t span = find_extent(&start);
  if (span == unit_index_none) return false;
  if (!os::advise_huge_pages(address_of(start), extent_bytes)) {  // the system knows none
    stopped.store(true, std::memory_order_relaxed);
    return false;
  }
  const size_t end = span + region_units[span].units;
  if (start == state.first || advice_of(start - 1) != PageAdvice::Huge) ++apart;
  state.spans.remove(span);
  begin_span(start, extent_units, UnitState::Extent);
  if (span < start) state.spans.insert(span, start - span, true, 0);
  if (start + extent_units < end) state.spans.insert(start + extent_units, end - start - extent_units, true, 0);
  for (size_t i = start; i < start + extent_units; ++i)
    set_advice(i, PageAdvice::Huge, true);
  os::call_counts.huge_bytes.fetch_add(extent_bytes, std::memory_order_relaxed);
  open.store(static_cast<uint32_t>(start), std::memory_order_relaxed);
  untouched.store(static_cast<uint32_t>(start), std::memory_order_relaxed);
  return true;
}

// Tells the system not to make huge pages in a chunk by itself.
void ask_no_more(size_t chunk) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t end = lesser((chunk + 1) * chunk_units, limit());
  // Called back under the lock, which the analysis does not see.
  const auto ask = [](size_t from, size_t units, PageAdvice advice) SLUICE_UNCHECKED_LOCKS {
    if (advice != PageAdvice::Huge) return;
    (void)os::advise_small_pages(address_of(from), units * unit_size);
    for (size_t i = from; i < from + units; ++i)
      set_advice(i, PageAdvice::Small, is_whole(i));
  };
  for_each_advice(greater(chunk * chunk_units, state.first), end, ask);
  if (chunk < chunks) gone[chunk] = 0;
}

}  // namespace

size_t units_in_extent() noexcept {
  const size_t index = open.load(std::memory_order_relaxed);
  return index != unit_index_none ? region_units[index].units : 0;
}

size_t take_from_extent(size_t units) noexcept {
  if (units > extent_units || !serves()) return unit_index_none;
  if (units > units_in_extent()) {
    const size_t shorter = state.spans.find_clean(units);
    if (shorter != unit_index_none && region_units[shorter].units < extent_units &&
        shorter + region_units[shorter].units != limit())
      return unit_index_none;
    close_extent();
    if (!open_extent()) return unit_index_none;
  }
  const size_t index = open.load(std::memory_order_relaxed);
  const size_t rest = region_units[index].units - units;
  if (rest != 0) begin_span(index + units, rest, UnitState::Extent);
  open.store(rest != 0 ? static_cast<uint32_t>(index + units) : unit_index_none, std::memory_order_relaxed);
  return index;
}

void close_extent() noexcept {
  const size_t index = open.exchange(unit_index_none, std::memory_order_relaxed);
  if (index == unit_index_none) return;
  state.spans.insert(index, region_units[index].units, false, os::clock_ms());
}

void forget_extent() noexcept {
  open.store(unit_index_none, std::memory_order_relaxed);
}

void touch_extent(size_t index) noexcept {
  if (index != untouched.load(std::memory_order_relaxed)) return;
  untouched.store(unit_index_none, std::memory_order_relaxed);
  const auto took = static_cast<int64_t>(os::touch(address_of(index)));
  const int64_t left = left_to_lose.load(std::memory_order_relaxed) + saved_by_one - took;
  left_to_lose.store(left < most_lost ? left : most_lost, std::memory_order_relaxed);
  if (left >= 0) return;
  stopped.store(true, std::memory_order_relaxed);
  os::call_counts.huge_stops.store(1, std::memory_order_relaxed);
}

bool is_whole_huge_page(size_t index) noexcept {
  return any_advice() && is_whole(index);
}

void split_huge_page(void* address, size_t bytes) noexcept {
  (void)os::drop_lazily(address, bytes);  // that splits it, and dropping does not
}

void note_split(size_t index) noexcept {
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
}

void note_needed(size_t index, size_t units) noexcept {
  const size_t chunk = index / chunk_units;
  if (!any_advice() || chunk >= chunks || gone[chunk] == 0) return;
  gone[chunk] = static_cast<uint16_t>(gone[chunk] - lesser(units * (unit_size / counted), gone[chunk]));
}

}  // namespace sluice::region
