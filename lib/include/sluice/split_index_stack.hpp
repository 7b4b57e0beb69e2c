// sluice::split_index_stack: a stack of numbers of any width from 1 to 32 bits that takes no more than that many bits
// for each. Open it when there are very many free indices or handles, and 16 bits are too few but 32 too many.
//
//   sluice::split_index_stack<18, 262'144> free_blocks;        // 576 KiB where 32-bit integers take 1,024
//   free_blocks.fill_with_all();                               // 0 … 262,143, in constant time
//   if (const std::optional<std::uint32_t> block = free_blocks.pop()) free_blocks.push(*block);
//
// When not: the width is 8, 16 or 32 bits (index_stack, which finds more mistakes), or memory does not matter.
//
// Memory per element: Bits bits: 24 as 16 + 8, 18 as 16 + 2 with sixteen of the 2-bit parts in 32 bits, 21 as 16 + 5
// with eight of the 5-bit parts in five bytes; detail/packed_stack.hpp has them all. Two counters for all, and 8 bytes
// when the width is no multiple of 8.
// Complexity: constant for all functions, the constructor too. Unchecked, an object whose bytes are all zero is an
// empty stack, so that a static one lies in .bss. Checked, fill_with_all() and clear() take time in proportion to N.
// Errors: a value of more than Bits bits is refused as if the stack were full.
// Checked (violation.hpp): such a value, or one that is in the stack already. The latter takes a bit an element for
// values below N, and looks through the stack for others. That values are missing at the end is no mistake: nothing is
// lost with them.
// Thread-safety: none. Copies are independent of each other.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/detail/checks.hpp"
#include "sluice/detail/packed_stack.hpp"
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
    if (size() == N || value > max_value) return false;
    if constexpr (Checks::enabled)
      if (value < N) present_.set(value);
    pushed_values_.push(pushed_, value);
    ++pushed_;
    return true;
  }
  // Effects: takes the value on top off the stack and puts it into `value`. Returns: false, and nothing has changed,
  // when the stack is empty.
  constexpr bool pop(std::uint32_t& value) noexcept {
    if (const counter pushed = pushed_; pushed != 0) [[likely]] {
      value = pushed_values_.pop(pushed);
      pushed_ = pushed - 1;
    } else {
      if (implied_ == 0) return false;
      value = next_implied();
      --implied_;
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
    if (pushed_ != 0) return pushed_values_.get(pushed_, pushed_ - 1u);
    return implied_ != 0 ? std::optional<std::uint32_t>(next_implied()) : std::nullopt;
  }
  // Effects: the stack is empty.
  constexpr void clear() noexcept {
    forget_pushed();
    implied_ = 0;
    present_.clear();
  }
  // Effects: the stack is full of the numbers below N, 0 on top and N - 1 at the bottom.
  constexpr void fill_with_all() noexcept requires(N - 1 <= max_value) {
    forget_pushed();
    implied_ = N;
    if constexpr (Checks::enabled)
      for (std::size_t i = 0; i < N; ++i)
        present_.set(i);
  }

  [[nodiscard]] constexpr std::size_t size() const noexcept { return pushed_ + implied_; }
  [[nodiscard]] static constexpr std::size_t capacity() noexcept { return N; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] constexpr bool full() const noexcept { return size() == N; }

 private:
  constexpr void forget_pushed() noexcept {
    pushed_values_.clear();
    pushed_ = 0;
  }
  constexpr std::uint32_t next_implied() const noexcept { return static_cast<std::uint32_t>(N - implied_); }
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
    for (std::size_t i = 0; i < pushed_; ++i)
      if (pushed_values_.get(pushed_, i) == value) return true;
    return false;
  }

  // At the bottom are as many of fill_with_all()'s values as were not popped yet, which are not written down, and above
  // them those that were pushed. pushed_ + implied_ <= N.
  using counter = detail::counter_to<N>;
  detail::packed_stack<Bits, N> pushed_values_;
  counter pushed_ = 0;
  counter implied_ = 0;
  [[no_unique_address]] detail::occupancy<N, Checks> present_;  // of the values below N
  [[no_unique_address]] detail::object_name<Checks> name_;
};

}  // namespace sluice
