// What an element of a set and of a map is, to the hash table that both are. Open it to change how elements are moved.
#pragma once

#include <cstring>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

namespace sluice::detail {

template <class T>
inline constexpr bool wants_resource = std::uses_allocator_v<T, std::pmr::polymorphic_allocator<>>;

template <class K>
struct set_kind {
  using key_type = K;
  using value_type = K;
  static constexpr bool constant = true;
  static constexpr bool takes_allocator = wants_resource<K>;
  static constexpr bool moves_as_bytes = std::is_trivially_copyable_v<K>;
  static constexpr bool relocates_nothrow = moves_as_bytes || std::is_nothrow_move_constructible_v<K>;
  static constexpr bool copyable = std::is_copy_constructible_v<K>;
  // Whether a table that grows moves its elements; else it copies them, so that nothing is lost half-way.
  static constexpr bool moves_to_grow = relocates_nothrow || !copyable;

  static const K& key(const K& element) noexcept { return element; }
  static bool same_value(const K&, const K&) noexcept { return true; }
  static K&& movable(K& element) noexcept { return std::move(element); }
  static const K& copied(const K& element) noexcept { return element; }
  // Effects: the element lives at `to`, and no more at `from`.
  static void relocate(K* to, K* from) {
    if constexpr (moves_as_bytes) {
      std::memcpy(static_cast<void*>(to), static_cast<const void*>(from), sizeof(K));
    } else {
      std::construct_at(to, std::move(*from));
      std::destroy_at(from);
    }
  }
};

template <class K, class V>
struct map_kind {
  using key_type = K;
  using value_type = std::pair<const K, V>;
  static constexpr bool constant = false;
  static constexpr bool takes_allocator = wants_resource<K> || wants_resource<V>;
  static constexpr bool moves_as_bytes = std::is_trivially_copyable_v<K> && std::is_trivially_copyable_v<V>;
  static constexpr bool relocates_nothrow =
      moves_as_bytes || (std::is_nothrow_move_constructible_v<K> && std::is_nothrow_move_constructible_v<V>);
  static constexpr bool copyable = std::is_copy_constructible_v<K> && std::is_copy_constructible_v<V>;
  static constexpr bool moves_to_grow = relocates_nothrow || !copyable;

  static const K& key(const value_type& element) noexcept { return element.first; }
  static bool same_value(const value_type& a, const value_type& b) { return a.second == b.second; }
  // A key is const so that users do not change it; here its life is about to end.
  static std::pair<K&&, V&&> movable(value_type& element) noexcept {
    return {std::move(const_cast<K&>(element.first)), std::move(element.second)};
  }
  static const value_type& copied(const value_type& element) noexcept { return element; }
  static void relocate(value_type* to, value_type* from) {
    if constexpr (moves_as_bytes) {
      std::memcpy(static_cast<void*>(to), static_cast<const void*>(from), sizeof(value_type));
    } else {
      std::construct_at(to, movable(*from));
      std::destroy_at(from);
    }
  }
};

}  // namespace sluice::detail
