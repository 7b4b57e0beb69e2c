// See hardened_report.hpp. Compiled into libsluice-secure.so alone.
#include "heap/hardened_report.hpp"

#include "base/check.hpp"
#include "heap/hardened_block.hpp"
#include "heap/large.hpp"
#include "heap/region.hpp"
#include "heap/slab.hpp"

namespace sluice::hardened {
namespace {

// "double free: 0x7f… is a block of 48 bytes"
void report(const char* what, const void* address, const char* is, size_t bytes) noexcept {
  Corruption(what)
      .out()
      .text(": 0x")
      .hexadecimal(reinterpret_cast<uintptr_t>(address))
      .text(is)
      .decimal(bytes)
      .text(" bytes");
}

}  // namespace

void report_small(const void* address, bool resized) noexcept {
  const Place place = place_of(address, class_bytes()[unit_index_of(address)]);
  const uint16_t state = place.state_now();
  const bool never_handed_out = state == state_new || state == state_clear;
  if (place.begins && !never_handed_out)
    return report(resized ? "realloc of a freed block" : "double free", address, " is a freed block of the class of ",
                  place.class_size);
  Corruption line(resized ? "invalid realloc" : "invalid free");
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

void report_overflow(const void* block, size_t size) noexcept {
  report("overflow", block, " was written to behind its end, a block of ", size);
}

void report_write_to_free(const void* block) noexcept {
  const unsigned byte = class_bytes()[unit_index_of(block)];
  report("write to free memory", block, " was written to while it was free, a block of the class of ",
         class_sizes[is_slab(byte) ? byte / bin_stride : 0]);
}

void report_large(const void* address, bool resized) noexcept {
  const size_t index = unit_index_of(address);
  const Unit* unit = region::unit_at(index);
  const bool known = index >= region::first_index() && index < region::limit();
  if (known && region::address_of(index) == address && unit->state == UnitState::Large &&
      class_bytes()[index] == class_byte_none)
    return report(resized ? "realloc of a freed block" : "double free", address, " is a freed large block of ",
                  large::requested_bytes(*unit) - canary_size);
  report_corruption(resized ? "invalid realloc: no block begins" : "invalid free: no block begins", address);
}

}  // namespace sluice::hardened
