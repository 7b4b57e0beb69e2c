// What inline_set and inline_map have in common: lookup, erasure and capacity of a hash table that begins inside the
// object. Open it to change the part of their interface that does not depend on how elements are given.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "sluice/detail/table_core.hpp"

namespace sluice::detail {

// Whether Other can be looked up in a table of K without a K being made of it.
template <class Other, class K, class Hash, class Equal>
concept finds_key = !std::is_same_v<std::remove_cvref_t<Other>, K> && requires {
  typename Hash::is_transparent;
  typename Equal::is_transparent;
}
&&std::is_invocable_v<const Hash&, const Other&>&& std::is_invocable_v<const Equal&, const K&, const Other&>;

template <class Kind, class Hash, class Equal>
class table : public table_core<Kind, Hash, Equal> {
  using core = table_core<Kind, Hash, Equal>;

 protected:
  using typename core::area;
  using typename core::layout;

 public:
  using typename core::key_type;
  using typename core::value_type;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using hasher = Hash;
  using key_equal = Equal;
  using allocator_type = std::pmr::polymorphic_allocator<value_type>;
  using reference = value_type&;
  using const_reference = const value_type&;
  using pointer = value_type*;
  using const_pointer = const value_type*;
  using iterator = table_iterator<value_type, Kind::constant>;
  using const_iterator = table_iterator<value_type, true>;

  iterator begin() noexcept { return iterator::first(area_.groups()); }
  iterator end() noexcept { return iterator(); }
  const_iterator begin() const noexcept { return const_iterator::first(area_.groups()); }
  const_iterator end() const noexcept { return const_iterator(); }
  const_iterator cbegin() const noexcept { return begin(); }
  const_iterator cend() const noexcept { return end(); }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] size_type size() const noexcept { return size_; }
  [[nodiscard]] size_type max_size() const noexcept { return layout::most_elements; }
  // Returns: how many elements there may be before the table grows.
  [[nodiscard]] size_type capacity() const noexcept { return area_.limit(); }
  // Returns: whether the elements are inside the object, so that they took no memory.
  [[nodiscard]] bool is_inline() const noexcept { return !on_heap_; }
  // Returns: how many elements fit inside the object.
  [[nodiscard]] size_type inline_capacity() const noexcept { return inline_capacity_; }
  // Returns: where memory comes from when the elements do not fit inside.
  [[nodiscard]] std::pmr::memory_resource* resource() const noexcept { return this->own_resource(); }
  [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(resource()); }
  [[nodiscard]] hasher hash_function() const { return hash_; }
  [[nodiscard]] key_equal key_eq() const { return equal_; }

  // Returns: the element with the key, or end(). Complexity: constant on average.
  iterator find(const key_type& wanted) { return iterator(this->place_of(wanted)); }
  const_iterator find(const key_type& wanted) const { return const_iterator(this->place_of(wanted)); }
  template <finds_key<key_type, Hash, Equal> Other>
  iterator find(const Other& wanted) {
    return iterator(this->place_of(wanted));
  }
  template <finds_key<key_type, Hash, Equal> Other>
  const_iterator find(const Other& wanted) const {
    return const_iterator(this->place_of(wanted));
  }
  [[nodiscard]] bool contains(const key_type& wanted) const { return static_cast<bool>(this->place_of(wanted)); }
  template <finds_key<key_type, Hash, Equal> Other>
  [[nodiscard]] bool contains(const Other& wanted) const {
    return static_cast<bool>(this->place_of(wanted));
  }
  [[nodiscard]] size_type count(const key_type& wanted) const { return contains(wanted) ? 1 : 0; }
  template <finds_key<key_type, Hash, Equal> Other>
  [[nodiscard]] size_type count(const Other& wanted) const {
    return contains(wanted) ? 1 : 0;
  }
  std::pair<iterator, iterator> equal_range(const key_type& wanted) { return range_at(find(wanted)); }
  std::pair<const_iterator, const_iterator> equal_range(const key_type& wanted) const { return range_at(find(wanted)); }
  template <finds_key<key_type, Hash, Equal> Other>
  std::pair<iterator, iterator> equal_range(const Other& wanted) {
    return range_at(find(wanted));
  }
  template <finds_key<key_type, Hash, Equal> Other>
  std::pair<const_iterator, const_iterator> equal_range(const Other& wanted) const {
    return range_at(find(wanted));
  }

  // Effects: removes the element. Returns: the one behind it. Other iterators and references stay valid.
  // Throws: what the hash function throws, and then nothing has changed.
  iterator erase(const_iterator at) {
    this->erase_place(at.place());
    return ++iterator(at.place());
  }
  iterator erase(iterator at) requires(!std::is_same_v<iterator, const_iterator>) { return erase(const_iterator(at)); }
  iterator erase(const_iterator first, const_iterator last) {
    while (first != last)
      first = erase(first);
    return iterator(last.place());
  }
  // Returns: how many elements had the key. The key may be in the element that is removed.
  size_type erase(const key_type& wanted) { return this->erase_key(wanted); }
  template <finds_key<key_type, Hash, Equal> Other>
  requires(!std::is_convertible_v<const Other&, const_iterator>) size_type erase(const Other& wanted) {
    return this->erase_key(wanted);
  }
  // Effects: removes the elements for which condition(element). Returns: how many.
  template <class Condition>
  size_type erase_where(Condition condition) {
    const size_type before = size_;
    area_.for_each([&](const typename area::place& at) {
      if (condition(std::as_const(*at.element()))) this->erase_place(at);
    });
    return before - size_;
  }
  using core::clear;
  using core::reserve;
  // Effects: a capacity for `elements`, or for those that are here if they are more; 0 means inline if they fit.
  void rehash(size_type elements) { this->change_shape(elements < size_ ? size_ : elements); }
  // Effects: takes as little memory as it can, none if the elements fit inside. Throws: as reserve.
  void shrink_to_fit() { this->change_shape(size_); }

 protected:
  using core::core;
  ~table() = default;

  using core::area_;
  using core::size_;

 private:
  template <class Iterator>
  std::pair<Iterator, Iterator> range_at(Iterator found) const {
    Iterator behind = found;
    if (found != Iterator()) ++behind;
    return {found, behind};
  }

  using core::equal_;
  using core::hash_;
  using core::inline_capacity_;
  using core::on_heap_;
};

}  // namespace sluice::detail
