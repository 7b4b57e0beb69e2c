// See slot.hpp.
#include "guarded/slot.hpp"

#include "os/memory.hpp"

namespace sluice::guarded {
namespace {

constexpr size_t slots_per_piece = unit_size / sizeof(Slot);

constinit Slot* pieces[most_slots / slots_per_piece + 1]{};
constinit std::atomic<size_t> made{0};  // written under the pool's lock

}  // namespace

char* span_of(const Slot& slot) noexcept {
  return region::address_of(slot.unit);
}
char* data_of(const Slot& slot) noexcept {
  return span_of(slot) + slot.data_page * os::page_size();
}
size_t data_bytes(const Slot& slot) noexcept {
  return slot.data_pages * os::page_size();
}

Slot& slot_at(const void* address) noexcept {
  return slot_of_index(region::unit_at(unit_index_of(address))->guarded.index);
}
size_t slot_count() noexcept {
  return made.load(std::memory_order_acquire);
}
Slot& slot_of_index(size_t index) noexcept {
  return pieces[index / slots_per_piece][index % slots_per_piece];
}

Slot* add_slot() noexcept {
  const size_t index = made.load(std::memory_order_relaxed);
  Slot*& piece = pieces[index / slots_per_piece];
  if (piece == nullptr) piece = static_cast<Slot*>(region::allocate_metadata(slots_per_piece * sizeof(Slot)));
  if (piece == nullptr) return nullptr;
  Slot& slot = piece[index % slots_per_piece];
  slot.index = static_cast<uint32_t>(index);
  made.store(index + 1, std::memory_order_release);
  return &slot;
}

}  // namespace sluice::guarded
