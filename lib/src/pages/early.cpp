// See early.hpp.
#include "pages/early.hpp"

#include "base/options.hpp"
#include "os/memory.hpp"

namespace sluice::region::early {
namespace {

constexpr size_t units_a_delay = (size_t{32} << 20) / unit_size;  // come in each SLUICE_PURGE_DELAY,
constexpr uint64_t least_delay = 1000;                            // but in no less than so many ms,
constexpr size_t part_saved = 4;                                  // and no more than such a part is saved up
constexpr size_t price_of_hurry = 2;                              // for a unit that is needed again at once

uint64_t whole_delay() noexcept {
  return greater(options.purge_delay, least_delay);
}

void pay(size_t units, uint64_t now) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t have = allowed(now);
  const size_t owed = units - lesser(units, have);
  state.keeping.early_left = have - lesser(units, have);
  state.keeping.early_ms = now + lesser(owed * whole_delay() / units_a_delay, 2 * whole_delay());
}

}  // namespace

size_t most() noexcept {
  return units_a_delay * least_delay / whole_delay() / part_saved;
}

size_t allowed(uint64_t now) noexcept {
  const uint64_t since = state.keeping.early_ms;
  const size_t more = now > since ? lesser(now - since, whole_delay()) * units_a_delay / whole_delay() : 0;
  return lesser(state.keeping.early_left + more, most());
}

size_t take_all(uint64_t now) noexcept {
  const size_t all = allowed(now);
  if (all != state.keeping.early_left) state.keeping.early_ms = now;
  state.keeping.early_left = 0;
  return all;
}

void put_back(size_t units) noexcept {
  state.keeping.early_left = lesser(state.keeping.early_left + units, most());
}

void note_gone_at_look(size_t units, uint64_t now) noexcept {
  state.keeping.gone_at_look = units;
  state.keeping.looked_ms = now;
}

void note_needed(size_t units, uint64_t hurry) noexcept {
  Keeping& k = state.keeping;
  if (k.gone_at_look == 0) return;
  const uint64_t now = os::clock_ms();
  if (now - k.looked_ms > hurry) {
    k.gone_at_look = 0;
    return;
  }
  const size_t part = lesser(units, k.gone_at_look);
  k.gone_at_look -= part;
  pay(part * price_of_hurry, now);
}

}  // namespace sluice::region::early
