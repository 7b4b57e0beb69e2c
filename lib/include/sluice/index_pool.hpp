// sluice::index_pool: N objects inside one object, each addressed by an index of the smallest integer type. Open it
// when the maximum number is known, and others refer to objects by index: a sprite by one byte, an entity by two.
//
//   sluice::index_pool<Sprite, 256> sprites;
//   if (const std::optional<std::uint8_t> hero = sprites.create("hero.png")) {  // empty when all 256 are in use
//     sprites[*hero].move(3, 4);
//     sprites.destroy(*hero);
//   }
//
// When not: pointers are as good (stack_pool), the objects lie elsewhere (index_stack), or their number is not known
// (pool).
//
// Complexity: all functions take constant time, the constructor and clear() too when unchecked: nothing is written to a
// slot that was never handed out. Unchecked, an object whose bytes are all zero is an empty pool, so that a static one
// lies in .bss.
// Memory per element: sizeof(T) and sizeof(Index) bytes (8 * sizeof(Index) bits, 8 for N up to 256); two counters for
// all. Any size and alignment of T will do.
// Order: what is released last is acquired first; slots that were never handed out follow from 0 upwards.
// Validity: objects do not move; indices and references are valid until the object is destroyed or released. The pool
// is neither copied nor moved.
// Checked (violation.hpp): indices that are not handed out, in destroy(), release() and [], leaks at destruction,
// writes behind an object and to a released one; costs 8 bytes (rounded up to the alignment) and a bit an element, and
// time in proportion to its size. Damage is reported when the element is released or acquired again, or the pool ends;
// the operation then goes on.
// Thread-safety: none.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/detail/slot_array.hpp"
#include "sluice/detail/smallest_uint.hpp"
#include "sluice/index_stack.hpp"
#include "sluice/violation.hpp"

namespace sluice {

// Index is an integer or an enumeration that holds N - 1.
template <class T, std::size_t N, class Index = detail::smallest_uint<N - 1>, class Checks = default_checks>
class index_pool {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>);

 public:
  using value_type = T;
  using index_type = Index;

  // Effects: all slots are free.
  constexpr index_pool() noexcept : index_pool("") {}
  constexpr explicit index_pool(const char* name) noexcept : slots_("index_pool", this, name) {}
  // Requires: all objects are destroyed; none is destroyed here.
  constexpr ~index_pool() = default;
  index_pool(const index_pool&) = delete;
  index_pool& operator=(const index_pool&) = delete;

  // Returns: the index of an object made from the arguments; nothing when all slots are handed out.
  // Throws what the constructor throws; nothing has changed then.
  template <class... Arguments>
  constexpr std::optional<Index> create(Arguments&&... arguments) {
    const std::optional<Index> index = try_acquire();
    if (index)
      detail::construct(
          slots_.at(place(*index)), [&](T*) { release(*index); }, std::forward<Arguments>(arguments)...);
    return index;
  }
  // Effects: ends an object that create() made, and takes its slot back.
  constexpr void destroy(Index index) noexcept {
    if constexpr (Checks::enabled)
      if (!slots_.check(place(index), violation_kind::double_release)) return;
    std::destroy_at(slots_.at(place(index)));
    release(index);  // looks again: the destructor may have released it
  }

  // Returns: the index of a slot in which no object lives yet; nothing when all are handed out.
  [[nodiscard]] constexpr std::optional<Index> try_acquire() noexcept {
    const std::optional<Index> index = free_.pop();
    if constexpr (Checks::enabled)
      if (index) slots_.hand_out(place(*index));
    return index;
  }
  // Effects: takes a slot back. Requires: it is handed out, and no object lives in it.
  constexpr void release(Index index) noexcept {
    if constexpr (Checks::enabled)
      if (!slots_.check(place(index), violation_kind::double_release)) return;
    take_back(index);
  }
  // Effects: takes all slots back, as in a new pool. Objects end without a destructor's call.
  constexpr void clear() noexcept requires std::is_trivially_destructible_v<T> {
    if constexpr (Checks::enabled) slots_.take_back_all();
    free_.clear();
  }

  // Returns: the object, or the slot's storage when no object lives in it. Requires: the slot is handed out.
  // Checked, an index that is not is reported; what is returned then is not to be used.
  [[nodiscard]] constexpr T& operator[](Index index) noexcept { return *slots_.at(checked_place(index)); }
  [[nodiscard]] constexpr const T& operator[](Index index) const noexcept { return *slots_.at(checked_place(index)); }
  // Returns: the index of an object. Requires: it lies in this pool. Checked, 0 when it does not, after a report.
  [[nodiscard]] constexpr Index index_of(const T& object) const noexcept {
    if constexpr (Checks::enabled)
      if (!slots_.check(std::addressof(object), violation_kind::foreign)) return Index{};
    return static_cast<Index>(slots_.place_of(std::addressof(object)));
  }

  // Returns: how many slots are handed out.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return free_.in_use(); }
  // Returns: how many slots are free.
  [[nodiscard]] constexpr std::size_t available() const noexcept { return free_.size(); }
  [[nodiscard]] static constexpr std::size_t capacity() noexcept { return N; }
  // Returns: whether no slot is handed out.
  [[nodiscard]] constexpr bool empty() const noexcept { return free_.full(); }
  // Returns: whether all slots are handed out.
  [[nodiscard]] constexpr bool full() const noexcept { return free_.empty(); }

 private:
  static constexpr std::size_t place(Index index) noexcept { return static_cast<std::size_t>(index); }
  constexpr std::size_t checked_place(Index index) const noexcept {
    if constexpr (Checks::enabled)
      if (!slots_.check(place(index), violation_kind::foreign)) return place(index) < N ? place(index) : 0;
    return place(index);
  }
  constexpr void take_back(Index index) noexcept {
    if constexpr (Checks::enabled) slots_.take_back(place(index));
    free_.push(index);
  }

  detail::slot_array<T, N, Checks> slots_;
  index_stack<N, Index, unchecked> free_;
};

}  // namespace sluice
