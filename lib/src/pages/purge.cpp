// See purge.hpp.
#include "pages/purge.hpp"

#include "base/options.hpp"
#include "os/memory.hpp"

namespace sluice::region {
namespace {

constexpr size_t least_allowance = size_t{2} << 20;  // bytes that a small heap may keep dirty
constexpr unsigned purge_batch = 16;                 // spans purged for one release of the lock

// Returns the pages of the oldest dirty spans while `wanted(span, dirty bytes)` says so. Lets go of the lock meanwhile.
template <typename Wanted>
size_t purge_while(Wanted wanted) noexcept SLUICE_REQUIRES(state.lock) {
  size_t purged = 0;
  for (bool more = true; more;) {
    uint32_t batch[purge_batch];
    unsigned count = 0;
    while (count < purge_batch && state.spans.oldest() != unit_index_none) {
      const uint32_t index = state.spans.oldest();
      if (!wanted(region_units[index], state.spans.dirty_units() * unit_size)) break;
      state.spans.remove(index);
      region_units[index].state = UnitState::Busy;
      region_units[index + region_units[index].units - 1].state = UnitState::Busy;
      region_units[index].busy_thread = thread_token();
      batch[count++] = index;
    }
    more = count == purge_batch;
    if (count == 0) break;
    state.busy_spans += count;
    state.lock.unlock();
    bool gone[purge_batch];
    for (unsigned i = 0; i < count; ++i)
      gone[i] = os::purge(address_of(batch[i]), region_units[batch[i]].units * unit_size);
    state.lock.lock();
    state.busy_spans -= lesser(count, state.busy_spans);  // a fork may have given them up
    state.purge_refused = false;
    for (unsigned i = 0; i < count; ++i) {
      const size_t units = region_units[batch[i]].units;
      state.spans.insert(batch[i], units, gone[i], os::clock_ms());
      if (gone[i]) {
        purged += units * unit_size;
      } else {
        more = false;
        state.purge_refused = true;
        state.refused_ms = os::clock_ms();
      }
    }
  }
  return purged;
}

size_t units_in_use() noexcept {
  return limit() - state.first - state.gap_units - state.spans.clean_units() - state.spans.dirty_units();
}

// How much may stay dirty: what the heap needed a short while ago and may need again, so that keeping pages never makes
// it larger than it was, by more than a little.
size_t dirty_allowance() noexcept {
  const size_t asked = kept_free.load(std::memory_order_relaxed);
  if (asked != as_options_say) return asked;
  const size_t in_use = units_in_use();
  const uint64_t now = os::clock_ms();
  if (now - state.peak_ms >= options.purge_delay) {
    state.recent_peak /= 2;
    state.peak_ms = now;
  }
  if (state.recent_peak < in_use) state.recent_peak = in_use;
  const size_t share = (state.recent_peak - in_use) * unit_size + least_allowance;
  return share < options.retain ? share : options.retain;
}

}  // namespace

bool may_purge(uint64_t now) noexcept {
  return !state.purge_refused || now - state.refused_ms >= options.purge_delay;
}

size_t purge_down_to(size_t bytes) noexcept {
  return purge_while([bytes](Unit&, size_t dirty_bytes) { return dirty_bytes > bytes; });
}

size_t purge_older(uint64_t now) noexcept {
  return purge_while([now](Unit& span, size_t) { return now - span.freed_at >= options.purge_delay; });
}

uint64_t next_purge(uint64_t now) noexcept {
  constexpr uint64_t after_refusal = 60'000;  // what is refused stays so: memory that the program has locked
  const uint32_t oldest = state.spans.oldest();
  if (oldest == unit_index_none) return UINT64_MAX;
  if (state.purge_refused) return after_refusal;
  const uint64_t age = now - region_units[oldest].freed_at;
  return age < options.purge_delay ? options.purge_delay - age : 0;
}

void purge_excess() noexcept {
  if (!may_purge(os::clock_ms())) return;
  const size_t allowance = dirty_allowance();
  if (state.spans.dirty_units() * unit_size > allowance) (void)purge_down_to(allowance);
}

void join_as_dirty() noexcept {
  for (size_t index; (index = state.spans.find_clean(1)) != unit_index_none;) {
    const size_t units = region_units[index].units;
    state.spans.remove(index);
    state.spans.insert(index, units, false, os::clock_ms());
  }
}

void note_use() noexcept {
  if (const size_t in_use = units_in_use(); in_use > state.recent_peak) state.recent_peak = in_use;
}

}  // namespace sluice::region
