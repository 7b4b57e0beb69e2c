// A hash map with room for N elements inside the object, which goes on to a memory resource beyond that. Open it for
// the many small maps of a program: attributes of a node, open files of a session, counters of a line.
//
//   void count(sluice::map_base<std::string, int>& seen, std::string_view word) { ++seen[word]; }  // whatever N
//   sluice::inline_map<std::string, int, 16> seen;
//   count(seen, "tile");
//   if (auto at = seen.find("tile"); at != seen.end()) …  // no std::string is made
//
// map_base<K, V> is the map without its N, to be passed by reference; inline_map<K, V, N> adds the room and
// constructors.
//
// When to use it: maps that mostly have few elements, or many, where std::unordered_map's nodes are too slow. When not:
// where elements must keep their addresses while the map grows, or stay in order; where N would be so large that the
// object does not fit its place (an inline_map moves element by element while it is inline); where keys are chosen by
// an adversary.
//
// Interface: that of std::unordered_map with std::pmr::polymorphic_allocator, without buckets and node handles.
// Lookup, insertion and erasure accept any type that Hash and Equal do when both are transparent, as they are by
// default for strings; a key is made only when it is inserted.
//
// Complexity: find, insert and erase are constant on average, begin() and clear() linear in the capacity. Iteration
// costs the capacity and the size. There are no tombstones: no number of insertions and erasures makes a map slower.
// The room inside is used to its last slot: with an N of hundreds, searches in vain take longer when it is nearly full.
// Memory: N elements, 16 bytes for each 13 of them (12 if an element has 4 bytes), and 64 bytes; beyond N a block, at
// least 2/5 of which is filled when it has grown.
//
// Invalidation: erasure invalidates iterators and references to what was erased. Insertion invalidates all when the map
// grows (size() would be over capacity()), none otherwise. Moving and swapping invalidate all.
// Thread-safety: as the standard containers: many may read, or one may write.
//
// Errors: std::bad_alloc and std::length_error, std::out_of_range (at), and what K, V, Hash and Equal throw. An
// insertion that fails leaves the map as it was. The exceptions to this: growth that moves elements whose moves may
// throw, and which cannot be copied, or a Hash that throws during growth (it is asked for each key again); then the map
// loses elements, but stays a valid map. A merge that fails leaves each element in one of the two maps, with the same
// exceptions. An assignment or a swap that fails leaves valid maps with some of the elements; none whose key was moved
// from stays in any.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory_resource>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sluice/detail/failure.hpp"
#include "sluice/detail/table.hpp"
#include "sluice/detail/table_kind.hpp"
#include "sluice/hash.hpp"

namespace sluice {

template <class K, class V, class Hash = hash<K>, class Equal = equal_to<K>>
class map_base : public detail::table<detail::map_kind<K, V>, Hash, Equal> {
  using table = detail::table<detail::map_kind<K, V>, Hash, Equal>;
  using place = detail::table_place<std::pair<const K, V>>;

  template <class Other>
  static constexpr bool finds =
      std::is_same_v<std::remove_cvref_t<Other>, K> || detail::finds_key<Other, K, Hash, Equal>;
  template <class Other>
  static constexpr bool makes_key = detail::finds_key<Other, K, Hash, Equal>&& std::is_constructible_v<K, Other> &&
                                    !std::is_convertible_v<Other, typename table::const_iterator>;

 public:
  using mapped_type = V;
  using typename table::const_iterator;
  using typename table::iterator;
  using typename table::value_type;

  // A map takes the other's elements, Hash and Equal, and keeps its own memory resource. From an rvalue it takes the
  // block if there is one and the resources are equal, else element by element; the other is empty afterwards.
  map_base& operator=(const map_base& other) {
    this->copy_assign(other);
    return *this;
  }
  map_base& operator=(map_base&& other) {  // NOLINT: it may take memory, and throw
    this->move_assign(other);
    return *this;
  }
  map_base& operator=(std::initializer_list<value_type> elements) {
    this->clear();
    insert(elements);
    return *this;
  }

  // Effects: inserts the key with a value made of the arguments, unless the key is there; then nothing is moved from.
  // Returns: where the element is, and whether it was inserted.
  template <class... Arguments>
  std::pair<iterator, bool> try_emplace(const K& key, Arguments&&... arguments) {
    return insert_value(key, std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  std::pair<iterator, bool> try_emplace(K&& key, Arguments&&... arguments) {
    return insert_value(std::move(key), std::forward<Arguments>(arguments)...);
  }
  template <class Other, class... Arguments>
  requires makes_key<Other> std::pair<iterator, bool> try_emplace(Other&& key, Arguments&&... arguments) {
    return insert_value(std::forward<Other>(key), std::forward<Arguments>(arguments)...);
  }
  template <class... Arguments>
  iterator try_emplace(const_iterator, const K& key, Arguments&&... arguments) {
    return try_emplace(key, std::forward<Arguments>(arguments)...).first;
  }
  template <class... Arguments>
  iterator try_emplace(const_iterator, K&& key, Arguments&&... arguments) {
    return try_emplace(std::move(key), std::forward<Arguments>(arguments)...).first;
  }

  // Effects: inserts the element, or assigns the value to the one that has the key.
  template <class Value>
  std::pair<iterator, bool> insert_or_assign(const K& key, Value&& value) {
    return assign_value(key, std::forward<Value>(value));
  }
  template <class Value>
  std::pair<iterator, bool> insert_or_assign(K&& key, Value&& value) {
    return assign_value(std::move(key), std::forward<Value>(value));
  }
  template <class Other, class Value>
  requires makes_key<Other> std::pair<iterator, bool> insert_or_assign(Other&& key, Value&& value) {
    return assign_value(std::forward<Other>(key), std::forward<Value>(value));
  }

  // Effects: inserts the element unless its key is there.
  std::pair<iterator, bool> insert(const value_type& element) {
    return result(this->insert_key(element.first, element));
  }
  std::pair<iterator, bool> insert(value_type&& element) {
    return result(this->insert_key(element.first, std::move(element)));
  }
  template <class Pair>
  requires std::is_constructible_v<value_type, Pair> std::pair<iterator, bool> insert(Pair&& pair) {
    return emplace(std::forward<Pair>(pair));
  }
  iterator insert(const_iterator, const value_type& element) { return insert(element).first; }
  iterator insert(const_iterator, value_type&& element) { return insert(std::move(element)).first; }
  template <class Pair>
  requires std::is_constructible_v<value_type, Pair> iterator insert(const_iterator, Pair&& pair) {
    return insert(std::forward<Pair>(pair)).first;
  }
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  void insert(Iterator first, Sentinel last) {
    this->insert_each(std::move(first), last,
                      [this](auto&& from) { this->emplace(std::forward<decltype(from)>(from)); });
  }
  void insert(std::initializer_list<value_type> elements) { insert(elements.begin(), elements.end()); }

  // Effects: inserts an element made of the arguments unless its key is there. It is made first, unless the arguments
  // are a key and something to make a value of, or a pair of them.
  template <class... Arguments>
  std::pair<iterator, bool> emplace(Arguments&&... arguments) {
    if constexpr (sizeof...(Arguments) == 1)
      return emplace_pair(std::forward<Arguments>(arguments)...);
    else if constexpr (sizeof...(Arguments) == 2)
      return emplace_two(std::forward<Arguments>(arguments)...);
    else
      return result(this->insert_made(std::forward<Arguments>(arguments)...));
  }
  template <class... Arguments>
  iterator emplace_hint(const_iterator, Arguments&&... arguments) {
    return emplace(std::forward<Arguments>(arguments)...).first;
  }

  // Returns: the value of the key, which is inserted with V() if it is not there.
  V& operator[](const K& key) { return try_emplace(key).first->second; }
  V& operator[](K&& key) { return try_emplace(std::move(key)).first->second; }
  template <class Other>
  requires makes_key<Other> V& operator[](Other&& key) { return try_emplace(std::forward<Other>(key)).first->second; }

  // Returns: the value of the key. Throws std::out_of_range if it is not there.
  V& at(const K& key) { return value_at(this->place_of(key)); }
  const V& at(const K& key) const { return value_at(this->place_of(key)); }
  template <detail::finds_key<K, Hash, Equal> Other>
  V& at(const Other& key) {
    return value_at(this->place_of(key));
  }
  template <detail::finds_key<K, Hash, Equal> Other>
  const V& at(const Other& key) const {
    return value_at(this->place_of(key));
  }

  // Effects: moves those elements of the other map here whose keys are not here.
  void merge(map_base& other) { this->take_missing(other); }
  void merge(map_base&& other) { this->take_missing(other); }

  // Effects: exchanges the contents, Hash and Equal; each keeps its memory resource. Takes memory, and can throw, where
  // one of the two is inline and its elements do not fit inside the other, or both are inline and of different N.
  void swap(map_base& other) { this->swap_with(other); }     // NOLINT(bugprone-exception-escape)
  friend void swap(map_base& a, map_base& b) { a.swap(b); }  // NOLINT(bugprone-exception-escape)

  friend bool operator==(const map_base& a, const map_base& b) { return a.equals(b); }

 protected:
  using table::table;
  ~map_base() = default;

 private:
  static std::pair<iterator, bool> result(const std::pair<place, bool>& inserted) noexcept {
    return {iterator(inserted.first), inserted.second};
  }
  static V& value_at(const place& at) {
    if (!at) detail::throw_out_of_range("at: the map has no such key");
    return at.element()->second;
  }

  template <class Key, class... Arguments>
  std::pair<iterator, bool> insert_value(Key&& key, Arguments&&... arguments) {
    return result(this->insert_key(key, std::piecewise_construct, std::forward_as_tuple(std::forward<Key>(key)),
                                   std::forward_as_tuple(std::forward<Arguments>(arguments)...)));
  }
  template <class Key, class Value>
  std::pair<iterator, bool> assign_value(Key&& key, Value&& value) {
    const std::pair<iterator, bool> inserted = insert_value(std::forward<Key>(key), std::forward<Value>(value));
    if (!inserted.second) inserted.first->second = std::forward<Value>(value);
    return inserted;
  }
  template <class Key, class Value>
  std::pair<iterator, bool> emplace_two(Key&& key, Value&& value) {
    if constexpr (finds<Key> && std::is_constructible_v<V, Value>)
      return insert_value(std::forward<Key>(key), std::forward<Value>(value));
    else
      return result(this->insert_made(std::forward<Key>(key), std::forward<Value>(value)));
  }
  template <class Pair>
  std::pair<iterator, bool> emplace_pair(Pair&& pair) {
    if constexpr (requires { pair.first, pair.second; }) {
      if constexpr (finds<decltype(pair.first)>)
        return result(this->insert_key(pair.first, std::forward<Pair>(pair)));
      else
        return result(this->insert_made(std::forward<Pair>(pair)));
    } else {
      return result(this->insert_made(std::forward<Pair>(pair)));
    }
  }
};

// Effects: removes the elements for which condition(element). Returns: how many.
template <class K, class V, class Hash, class Equal, class Condition>
std::size_t erase_if(map_base<K, V, Hash, Equal>& map, Condition condition) {
  return map.erase_where(std::move(condition));
}

template <class K, class V, std::size_t N, class Hash = hash<K>, class Equal = equal_to<K>>
class inline_map : public map_base<K, V, Hash, Equal> {
  using base = map_base<K, V, Hash, Equal>;
  using kind = detail::map_kind<K, V>;
  using layout = detail::table_layout<std::pair<const K, V>>;

 public:
  using typename base::allocator_type;
  using typename base::value_type;

  // Those without an allocator take memory from std::pmr::get_default_resource(), asked when it is first needed. An
  // allocator can be a pointer to a std::pmr::memory_resource. Throws: what inserting the elements throws.
  inline_map() : inline_map(static_cast<std::pmr::memory_resource*>(nullptr), Hash(), Equal()) {}
  explicit inline_map(const allocator_type& allocator) : inline_map(allocator.resource(), Hash(), Equal()) {}
  explicit inline_map(const Hash& hash, const Equal& equal = Equal())
      : inline_map(static_cast<std::pmr::memory_resource*>(nullptr), hash, equal) {}
  inline_map(const Hash& hash, const Equal& equal, const allocator_type& allocator)
      : inline_map(allocator.resource(), hash, equal) {}
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  inline_map(Iterator first, Sentinel last, const Hash& hash = Hash(), const Equal& equal = Equal())
      : inline_map(static_cast<std::pmr::memory_resource*>(nullptr), hash, equal) {
    this->insert(std::move(first), last);
  }
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  inline_map(Iterator first, Sentinel last, const allocator_type& allocator) : inline_map(allocator) {
    this->insert(std::move(first), last);
  }
  inline_map(std::initializer_list<value_type> elements, const Hash& hash = Hash(), const Equal& equal = Equal())
      : inline_map(elements.begin(), elements.end(), hash, equal) {}
  inline_map(std::initializer_list<value_type> elements, const allocator_type& allocator)
      : inline_map(elements.begin(), elements.end(), allocator) {}

  inline_map(const inline_map& other) : inline_map(static_cast<const base&>(other)) {}
  inline_map(const base& other)  // NOLINT(google-explicit-constructor): a map of another N is as good
      : inline_map(static_cast<std::pmr::memory_resource*>(nullptr), other.hash_function(), other.key_eq()) {
    this->copy_from(other);
  }
  inline_map(const base& other, const allocator_type& allocator)
      : inline_map(allocator.resource(), other.hash_function(), other.key_eq()) {
    this->copy_from(other);
  }
  // Effects: as the move assignment, with the resource of `other` unless there is an allocator.
  inline_map(inline_map&& other) noexcept(moves_without_throwing)  // NOLINT: the elements decide
      : inline_map(static_cast<base&&>(other)) {}
  inline_map(base&& other)  // NOLINT(google-explicit-constructor)
      : inline_map(base::resource_of(other), other.hash_function(), other.key_eq()) {
    this->take_from(other);
  }
  inline_map(base&& other, const allocator_type& allocator)
      : inline_map(allocator.resource(), other.hash_function(), other.key_eq()) {
    this->take_from(other);
  }
  ~inline_map() { this->finish(); }

  inline_map& operator=(const inline_map& other) {
    this->copy_assign(other);
    return *this;
  }
  inline_map& operator=(inline_map&& other) {  // NOLINT: it may take memory, and throw
    this->move_assign(other);
    return *this;
  }
  using base::operator=;

 private:
  // Of the same N: to the same slots, or with the block.
  static constexpr bool moves_without_throwing = kind::relocates_nothrow && !kind::takes_allocator &&
                                                 std::is_nothrow_copy_constructible_v<Hash> &&
                                                 std::is_nothrow_copy_constructible_v<Equal>;

  inline_map(std::pmr::memory_resource* resource, const Hash& hash, const Equal& equal) : base(resource, hash, equal) {
    this->template open_inline<N>(room_.start());
  }

  [[no_unique_address]] detail::table_room<N == 0 ? 0 : layout::bytes(layout::inline_shape(N)), layout::align> room_;
};

}  // namespace sluice
