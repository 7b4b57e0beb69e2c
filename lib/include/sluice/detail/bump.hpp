// What stacks and arenas on one block share: the padding in front of an aligned address, and, checked, the watch over
// memory that was given back. Open it to change how they look at memory; it works without an operating system.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/detail/checks.hpp"
#include "sluice/detail/reporter.hpp"

namespace sluice::detail {

// Returns: how many bytes lie between an address and the next multiple of `align`, a power of two.
constexpr std::size_t padding(std::uintptr_t address, std::size_t align) noexcept {
  return -address & (align - 1);
}

// The part of a block that was in use and is free again: [cursor, high_) holds poison. It remembers no cursor, but is
// told each move of it.
template <class Checks, bool = Checks::enabled>
class free_watch {
 public:
  explicit free_watch(const std::byte* begin) noexcept : high_(begin) {}

  // Effects: reports a write to [from, to), which is about to be handed out, since its release.
  void take(const std::byte* from, const std::byte* to, const reporter<Checks>& report) {
    check(from, to, report);
    if (to > high_) high_ = to;
  }
  void give_back(std::byte* from, std::byte* to) noexcept {
    if (to > from) fill(from, static_cast<std::size_t>(to - from), poison_byte);
  }
  void check(const std::byte* from, const std::byte* to, const reporter<Checks>& report) const {
    if (to > high_) to = high_;
    if (to > from && !is_filled(from, static_cast<std::size_t>(to - from), poison_byte))
      report.block(violation_kind::write_after_release, from);
  }
  void check_all(const std::byte* cursor, const reporter<Checks>& report) const { check(cursor, high_, report); }
  // Returns: whether an address beyond the cursor was in use before.
  bool was_used(std::uintptr_t address) const noexcept { return address < reinterpret_cast<std::uintptr_t>(high_); }

 private:
  const std::byte* high_;
};
template <class Checks>
class free_watch<Checks, false> {
 public:
  explicit free_watch(const std::byte*) noexcept {}
  void take(const std::byte*, const std::byte*, const reporter<Checks>&) noexcept {}
  void give_back(std::byte*, std::byte*) noexcept {}
  void check_all(const std::byte*, const reporter<Checks>&) const noexcept {}
  bool was_used(std::uintptr_t) const noexcept { return false; }
};

}  // namespace sluice::detail
