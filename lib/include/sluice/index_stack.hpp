// sluice::index_stack: the free slots of a table, as a stack of indices of the smallest integer type. Open it when
// objects lie in an array of yours, and an index of a byte or two should address them: sprites, voices, connections.
//
//   sluice::index_stack<256> free_sprites;                      // indices are bytes; 264 bytes in all
//   if (const std::optional<std::uint8_t> sprite = free_sprites.pop()) {
//     draw(sprites[*sprite]);
//     free_sprites.push(*sprite);                               // gives it back
//   }
//
// When not: the objects may as well lie in the pool (index_pool) or be named by pointers (stack_pool); an index of 18
// or 24 bits should cost no more than that (split_index_stack); what names an object is not a number from 0
// (handle_stack).
//
// Complexity: all functions, the constructor too, take constant time: an index that was never handed out is not in the
// table yet. Unchecked, an object whose bytes are all zero is a new one, so that a static one lies in .bss.
// Memory per element: 8 * sizeof(Index) bits (8 for N up to 256, 16 up to 65,536), and two counters for all.
// Order: what is given back last is handed out first; indices that were never handed out follow in the order 0, 1, 2 …
// Checked (violation.hpp): double releases and indices that are not from here, when they are given back, for a bit an
// index. That indices are still handed out at the end is no mistake: nothing is lost with them.
// Thread-safety: none. Copies are independent of each other.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "sluice/detail/checks.hpp"
#include "sluice/detail/smallest_uint.hpp"
#include "sluice/violation.hpp"

namespace sluice {

// Index is an integer or an enumeration that holds N - 1.
template <std::size_t N, class Index = detail::smallest_uint<N - 1>, class Checks = default_checks>
class index_stack {
  template <class I, bool = std::is_enum_v<I>>
  struct integer_of {
    using type = I;
  };
  template <class I>
  struct integer_of<I, true> {
    using type = std::underlying_type_t<I>;
  };
  using integer = typename integer_of<Index>::type;
  using counter = detail::counter_to<N>;

  static_assert(N > 0, "a stack of no index");
  static_assert(std::is_integral_v<integer> && !std::is_same_v<integer, bool>);
  static_assert(N - 1 <= static_cast<std::uintmax_t>(std::numeric_limits<integer>::max()),
                "the type of the index cannot name that many");

 public:
  using value_type = Index;

  // Effects: all indices are free.
  constexpr index_stack() noexcept : index_stack("") {}
  constexpr explicit index_stack(const char* name) noexcept : name_(name) {
    if (std::is_constant_evaluated())  // a constant has no part without a value
      for (Index& each : table_)
        each = Index{};
  }

  // Effects: puts a free index into `index`; it is handed out from now on. Returns: false, and nothing has changed,
  // when all are.
  [[nodiscard]] constexpr bool pop(Index& index) noexcept {
    if (const counter released = released_; released != 0) [[likely]] {
      index = detail::initialized(table_[released - 1]);
      released_ = released - 1;
    } else {
      if (fresh_ == N) return false;
      index = static_cast<Index>(fresh_);
      ++fresh_;
    }
    occupied_.set(static_cast<std::size_t>(index));
    return true;
  }
  // Returns: a free index, which is handed out from now on; nothing when all are.
  [[nodiscard]] constexpr std::optional<Index> pop() noexcept {
    Index index{};
    return pop(index) ? std::optional<Index>(index) : std::nullopt;
  }
  // Effects: the index is free again. Requires: it is handed out.
  constexpr void push(Index index) noexcept {
    if constexpr (Checks::enabled)
      if (!check_push(static_cast<std::size_t>(index))) return;
    occupied_.reset(static_cast<std::size_t>(index));
    if (released_ >= N) __builtin_unreachable();  // so that loops need not think of a counter that starts again at 0
    table_[released_] = index;
    ++released_;
  }
  // Effects: all indices are free, as in a new stack.
  constexpr void clear() noexcept {
    released_ = fresh_ = 0;
    occupied_.clear();
  }

  // Returns: how many indices are free.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return N - in_use(); }
  // Returns: how many indices are handed out.
  [[nodiscard]] constexpr std::size_t in_use() const noexcept { return fresh_ - released_; }
  [[nodiscard]] static constexpr std::size_t capacity() noexcept { return N; }
  // Returns: whether no index is free.
  [[nodiscard]] constexpr bool empty() const noexcept { return in_use() == N; }
  // Returns: whether all indices are free.
  [[nodiscard]] constexpr bool full() const noexcept { return in_use() == 0; }

 private:
  constexpr bool check_push(std::size_t index) const noexcept {
    if (index < N && occupied_.test(index)) return true;
    detail::report(index < N ? violation_kind::double_release : violation_kind::foreign, "index_stack", name_, this,
                   index);
    return false;
  }

  // The free indices are table_[0] … table_[released_ - 1], the last of which is handed out next, and then those from
  // fresh_ on. released_ <= fresh_ <= N.
  Index table_[N];
  counter released_ = 0;  // as many were handed out before and are free
  counter fresh_ = 0;     // as many were ever handed out
  [[no_unique_address]] detail::occupancy<N, Checks> occupied_;
  [[no_unique_address]] detail::object_name<Checks> name_;
};

}  // namespace sluice
