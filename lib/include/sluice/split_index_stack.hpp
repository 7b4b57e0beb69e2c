// sluice::split_index_stack: a stack of numbers of any width from 1 to 32 bits that takes no more than that many bits
// for each. Open it when there are very many free indices or handles, and 16 bits are too few but 32 too many.
//
//   sluice::split_index_stack<18, 262'144> free_blocks;        // 576 KiB where 32-bit integers take 1,024
//   free_blocks.fill_with_all();                               // 0 … 262,143, in constant time
//   if (const std::optional<std::uint32_t> block = free_blocks.pop()) free_blocks.push(*block);
//
// When not: the width is 8, 16 or 32 bits (index_stack, which finds more mistakes), or memory does not matter: each
// term of the width's sum costs a few instructions.
//
// Memory per element: Bits bits, in parallel tables whose widths are powers of two: 24 = 16 + 8, 18 = 16 + 2 with
// sixteen of the 2-bit parts in a 32-bit word, 12 = 8 + 4, 5 = 4 + 1; detail/packed_table.hpp has them all. Two
// counters for all.
// Complexity: constant for all functions but the constructor, which clears the packed tables (at most 7 * N / 8 bytes).
// Unchecked, an object whose bytes are all zero is an empty stack, so that a static one lies in .bss. Checked,
// fill_with_all() and clear() take time in proportion to N.
// Errors: a value of more than Bits bits is refused as if the stack were full.
// Checked (violation.hpp): such a value, or one that is in the stack already. The latter takes a bit an element for
// values below N, and looks through the stack for others. That values are missing at the end is no mistake: nothing is
// lost with them.
// Thread-safety: none. Copies are independent of each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/detail/checks.hpp"
#include "sluice/detail/packed_table.hpp"
#include "sluice/detail/smallest_uint.hpp"
#include "sluice/violation.hpp"

namespace sluice {

template <unsigned Bits, std::size_t N, class Checks = default_checks>
class split_index_stack {
  static_assert(Bits >= 1 && Bits <= 32, "a width of 1 to 32 bits");
  static_assert(N > 0, "a stack of no value");

 public:
  using value_type = std::uint32_t;
  static constexpr std::uint32_t max_value = static_cast<std::uint32_t>((std::uint64_t{1} << Bits) - 1);

  // Effects: the stack is empty.
  constexpr split_index_stack() noexcept : split_index_stack("") {}
  constexpr explicit split_index_stack(const char* name) noexcept : name_(name) {}

  // Effects: the value is on top. Returns: false, and nothing has changed, when the stack is full or the value is
  // larger than max_value. Requires: it is not larger, and not in the stack.
  constexpr bool push(std::uint32_t value) noexcept {
    if constexpr (Checks::enabled)
      if (!check_push(value)) return false;
    if (size_ == N || value > max_value) return false;
    if constexpr (Checks::enabled)
      if (value < N) present_.set(value);
    table_.set(size_, value);
    ++size_;
    return true;
  }
  // Effects: takes the value on top off the stack and puts it into `value`. Returns: false, and nothing has changed,
  // when the stack is empty.
  constexpr bool pop(std::uint32_t& value) noexcept {
    if (size_ == 0) return false;
    --size_;
    if (size_ >= implied_) {
      value = table_.get(size_);
    } else {
      value = implied(size_);
      implied_ = size_;
    }
    if constexpr (Checks::enabled)
      if (value < N) present_.reset(value);
    return true;
  }
  // Returns: the value that was on top, and is there no more; nothing when the stack is empty.
  constexpr std::optional<std::uint32_t> pop() noexcept {
    std::uint32_t value = 0;
    return pop(value) ? std::optional<std::uint32_t>(value) : std::nullopt;
  }
  // Returns: the value on top; nothing when the stack is empty.
  [[nodiscard]] constexpr std::optional<std::uint32_t> top() const noexcept {
    if (size_ == 0) return std::nullopt;
    return at(size_ - 1u);
  }
  // Effects: the stack is empty.
  constexpr void clear() noexcept {
    size_ = implied_ = 0;
    present_.clear();
  }
  // Effects: the stack is full of the numbers below N, 0 on top and N - 1 at the bottom.
  constexpr void fill_with_all() noexcept requires(N - 1 <= max_value) {
    size_ = implied_ = N;
    if constexpr (Checks::enabled)
      for (std::size_t i = 0; i < N; ++i)
        present_.set(i);
  }

  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] static constexpr std::size_t capacity() noexcept { return N; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr bool full() const noexcept { return size_ == N; }

 private:
  static constexpr std::uint32_t implied(std::size_t place) noexcept {
    return static_cast<std::uint32_t>(N - 1 - place);
  }
  constexpr std::uint32_t at(std::size_t place) const noexcept {
    return place >= implied_ ? table_.get(place) : implied(place);
  }
  constexpr bool check_push(std::uint32_t value) const noexcept {
    if (value > max_value) {
      detail::report(violation_kind::foreign, "split_index_stack", name_, this, value);
      return false;
    }
    if (!contains(value)) return true;
    detail::report(violation_kind::double_release, "split_index_stack", name_, this, value);
    return false;
  }
  constexpr bool contains(std::uint32_t value) const noexcept {
    if (value < N) return present_.test(value);
    for (std::size_t i = implied_; i < size_; ++i)
      if (table_.get(i) == value) return true;
    return false;
  }

  // Values from implied_ on are in the table; those below it are as fill_with_all() puts them. implied_ <= size_ <= N.
  using counter = detail::counter_to<N>;
  detail::packed_table<Bits, N> table_;
  counter size_ = 0;
  counter implied_ = 0;
  [[no_unique_address]] detail::occupancy<N, Checks> present_;  // of the values below N
  [[no_unique_address]] detail::object_name<Checks> name_;
};

}  // namespace sluice
