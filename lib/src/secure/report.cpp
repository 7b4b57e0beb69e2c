// See report.hpp. Compiled into libsluice-secure.so alone.
#include "secure/report.hpp"

#include "base/check.hpp"
#include "heap/block_state.hpp"
#include "heap/large.hpp"
#include "heap/slab.hpp"
#include "pages/canary.hpp"
#include "pages/region.hpp"
#include "secure/zero.hpp"

namespace sluice::hardened {
namespace {

const char* of_freed(Call call) noexcept {
  constexpr const char* names[] = {"double free", "realloc of a freed block", "size query of a freed block"};
  return names[static_cast<unsigned char>(call)];
}
const char* invalid(Call call) noexcept {
  constexpr const char* names[] = {"invalid free", "invalid realloc", "invalid size query"};
  return names[static_cast<unsigned char>(call)];
}

void report_no_block(const void* address, Call call, const char* where) noexcept {
  Corruption(invalid(call)).out().text(where).text(" at 0x").hexadecimal(reinterpret_cast<uintptr_t>(address));
}

}  // namespace

void report_small(const void* address, Call call) noexcept {
  const Place place = place_of(address, class_bytes()[unit_index_of(address)]);
  const uint16_t state = place.state_now();
  const bool never_handed_out = state == state_new || state == state_clear;
  if (place.begins && !never_handed_out)
    return report(of_freed(call), address, " is a freed block of the class of ", place.class_size);
  Corruption line(invalid(call));
  line.out().text(": 0x").hexadecimal(reinterpret_cast<uintptr_t>(address));
  if (never_handed_out) {
    line.out().text(" lies in memory of the heap that was never handed out");
    return;
  }
  const Unit* s = slab::of(address);
  const char* const block = slab::block_at(s, slab::number_of(s, address));
  line.out().text(" lies ").decimal(static_cast<size_t>(static_cast<const char*>(address) - block));
  line.out().text(" bytes into a block of ").decimal(is_live(state) ? place.class_size - state : place.class_size);
  line.out().text(" bytes at 0x").hexadecimal(reinterpret_cast<uintptr_t>(block));
  line.out().text(is_live(state) ? "" : ", which was freed");
}

void report_wrong_size(const void* block, size_t size, size_t said) noexcept {
  Corruption line("sized free of the wrong size");
  line.out().text(": 0x").hexadecimal(reinterpret_cast<uintptr_t>(block)).text(" is a block of ").decimal(size);
  line.out().text(" bytes, not of ").decimal(said);
}

void report_foreign(const void* address, Call call) noexcept {
  report_no_block(address, call, ": no block of the heap begins");
}

void report_large(const void* address, Call call) noexcept {
  if (zero::covers(address) && reinterpret_cast<uintptr_t>(address) % min_alignment == 0 &&
      zero::state_of(address).load(std::memory_order_relaxed) == state_freed)
    return report(of_freed(call), address, " is a freed block of ", 0);
  const size_t index = unit_index_of(address);
  const Unit* unit = region::unit_at(index);
  const bool known = index >= region::first_index() && index < region::limit();
  if (known && region::address_of(index) == address && unit->use() == UnitState::Large && !large::is_live(*unit))
    return report(of_freed(call), address, " is a freed large block of ", large::requested_bytes(*unit) - canary_size);
  const bool in_frame = region::use_of(index) == UnitState::Frame;
  report_no_block(address, call, in_frame ? ": memory of a frame lies" : ": no block begins");
}

}  // namespace sluice::hardened
