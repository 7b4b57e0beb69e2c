// N slots for objects inside an object, and, under `checked`, what is known of each: what stack_pool and index_pool
// share. Open it to change how slots are laid out, found and checked.
//
//   unchecked   [T][T][T]…
//   checked     [T][fence][T][fence]… and a bit for each slot: whether it is handed out. A released slot is poison from
//               end to end; one that was never handed out is not looked at.
//
// Constant expressions have neither fences nor poison: the compiler finds what they find. A static pool that objects
// were made in at compile time does without them for those slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "sluice/detail/checks.hpp"
#include "sluice/detail/reporter.hpp"
#include "sluice/detail/slot.hpp"
#include "sluice/violation.hpp"

namespace sluice::detail {

// Returns: the place of the slot that starts at the address, or the number of slots when none does.
template <class Slot, std::size_t N, class T>
constexpr std::size_t find_slot(const Slot (&slots)[N], const T* address) noexcept {
  if (std::is_constant_evaluated()) {
    std::size_t place = 0;
    while (place < N && slots[place].address() != address)
      ++place;
    return place;
  }
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(slots);
  return offset % sizeof(Slot) == 0 && offset / sizeof(Slot) < N ? offset / sizeof(Slot) : N;
}

template <class T, std::size_t N, class Checks, bool = Checks::enabled>
class slot_array {
 public:
  constexpr slot_array(const char*, const void*, const char*) noexcept {}

  constexpr T* at(std::size_t place) noexcept { return slots_[place].address(); }
  constexpr const T* at(std::size_t place) const noexcept { return slots_[place].address(); }
  // Returns: the place of the slot that starts at the address, or N when none does.
  constexpr std::size_t find(const T* address) const noexcept { return find_slot(slots_, address); }
  // Returns: the same, where it is known that there is one.
  constexpr std::size_t place_of(const T* address) const noexcept {
    if (std::is_constant_evaluated()) return find(address);
    return static_cast<std::size_t>(reinterpret_cast<const slot<T>*>(address) - slots_);
  }

 private:
  slot<T> slots_[N];
};

template <class T, std::size_t N, class Checks>
class slot_array<T, N, Checks, true> {
 public:
  constexpr slot_array(const char* component, const void* owner, const char* name) noexcept
      : report_(component, owner, name) {}
  constexpr ~slot_array() {
    if (!std::is_constant_evaluated()) look_for_damage();
    std::size_t leaked = 0;
    for (std::size_t place = 0; place < N; ++place)
      leaked += occupied_.test(place) ? 1 : 0;
    if (leaked != 0) report_.number(violation_kind::leak, leaked);
  }
  slot_array(const slot_array&) = delete;
  slot_array& operator=(const slot_array&) = delete;

  constexpr T* at(std::size_t place) noexcept { return slots_[place].address(); }
  constexpr const T* at(std::size_t place) const noexcept { return slots_[place].address(); }
  constexpr std::size_t find(const T* address) const noexcept { return find_slot(slots_, address); }
  constexpr std::size_t place_of(const T* address) const noexcept { return find(address); }

  // Returns: whether the slot is handed out. Otherwise reports what is wrong: `when_free`, or that there is no such
  // slot.
  constexpr bool check(const T* address, violation_kind when_free) const {
    const std::size_t place = find(address);
    if (place != N && occupied_.test(place)) [[likely]]
      return true;
    refuse(place == N ? violation_kind::foreign : when_free, address);
    return false;
  }
  [[gnu::always_inline]] constexpr bool check(std::size_t place, violation_kind when_free) const {
    if (place < N && occupied_.test(place)) [[likely]]
      return true;
    refuse(place < N ? when_free : violation_kind::foreign, place);
    return false;
  }

  // Damage is reported, and the operation goes on: it is not the one that did it.
  constexpr void hand_out(std::size_t place) {
    occupied_.set(place);
    if (std::is_constant_evaluated()) {
      if (place == touched_) unwatched_ = ++touched_;
      return;
    }
    if (place == touched_)
      ++touched_;
    else
      look_for_write_after_release(place);
    fill(bytes(place) + sizeof(T), stride - sizeof(T), fence_byte);
  }
  constexpr void take_back(std::size_t place) {
    occupied_.reset(place);
    if (std::is_constant_evaluated()) return;
    look_for_write_past_end(place);
    fill(bytes(place), stride, poison_byte);
  }
  // Effects: all slots are free, as in a new array.
  constexpr void take_back_all() {
    if (!std::is_constant_evaluated()) look_for_damage();
    occupied_.clear();
    touched_ = unwatched_ = 0;
  }

 private:
  struct fenced_slot {
    constexpr fenced_slot() noexcept {
      if (std::is_constant_evaluated())  // a constant has no part without a value
        for (unsigned char& each : fence)
          each = 0;
    }
    constexpr T* address() noexcept { return room.address(); }
    constexpr const T* address() const noexcept { return room.address(); }

    slot<T> room;
    unsigned char fence[fence_bytes];  // with the padding around it
  };
  static constexpr std::size_t stride = sizeof(fenced_slot);

  [[gnu::cold, gnu::noinline]] constexpr void refuse(violation_kind kind, const T* address) const {
    report_.block(kind, address);
  }
  [[gnu::cold, gnu::noinline]] constexpr void refuse(violation_kind kind, std::size_t place) const {
    report_.number(kind, place);
  }

  std::byte* bytes(std::size_t place) noexcept { return reinterpret_cast<std::byte*>(slots_) + place * stride; }
  const std::byte* bytes(std::size_t place) const noexcept {
    return reinterpret_cast<const std::byte*>(slots_) + place * stride;
  }
  void look_for_write_past_end(std::size_t place) const {
    if (place >= unwatched_ && !is_filled(bytes(place) + sizeof(T), stride - sizeof(T), fence_byte))
      report_.block(violation_kind::write_past_end, at(place));
  }
  void look_for_write_after_release(std::size_t place) const {
    if (place >= unwatched_ && !is_filled(bytes(place), stride, poison_byte))
      report_.block(violation_kind::write_after_release, at(place));
  }
  void look_for_damage() const {
    for (std::size_t place = 0; place < touched_; ++place)
      if (occupied_.test(place))
        look_for_write_past_end(place);
      else
        look_for_write_after_release(place);
  }

  fenced_slot slots_[N];
  occupancy<N, Checks> occupied_;
  std::size_t touched_ = 0;    // as many were ever handed out, those below it
  std::size_t unwatched_ = 0;  // as many were in a constant expression that began the object: nothing was written there
  reporter<Checks> report_;
};

}  // namespace sluice::detail
