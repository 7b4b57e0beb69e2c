// A hash set with room for N keys inside the object, which goes on to a memory resource beyond that. Open it for the
// many small sets of a program: tags of an entity, neighbours of a node, words seen in a line.
//
//   void collect(sluice::set_base<std::string>& seen, std::string_view word) { seen.insert(word); }  // whatever N
//   sluice::inline_set<std::string, 16> seen;
//   collect(seen, "tile");
//   if (seen.contains("tile")) …  // no std::string is made
//
// set_base<K> is the set without its N, to be passed by reference; inline_set<K, N> adds the room and constructors.
//
// When to use it: sets that mostly have few keys, or many, where std::unordered_set's nodes are too slow. When not:
// where keys must keep their addresses while the set grows, or stay in order; where N would be so large that the object
// does not fit its place (an inline_set moves key by key while it is inline); where keys are chosen by an adversary.
//
// Interface: that of std::unordered_set with std::pmr::polymorphic_allocator, without buckets and node handles.
// Lookup, insertion and erasure accept any type that Hash and Equal do when both are transparent, as they are by
// default for strings; a key is made only when it is inserted.
//
// Complexity: find, insert and erase are constant on average, begin() and clear() linear in the capacity. Iteration
// costs the capacity and the size. There are no tombstones: no number of insertions and erasures makes a set slower.
// The room inside is used to its last slot: with an N of hundreds, searches in vain take longer when it is nearly full.
// Memory: N keys, 16 bytes for each 13 of them (12 if a key has 4 bytes), and 64 bytes; beyond N a block, at least 2/5
// of which is filled when it has grown.
//
// Invalidation: erasure invalidates iterators and references to what was erased. Insertion invalidates all when the set
// grows (size() would be over capacity()), none otherwise. Moving and swapping invalidate all.
// Thread-safety: as the standard containers: many may read, or one may write.
//
// Errors: std::bad_alloc and std::length_error, and what keys, Hash and Equal throw. An insertion that fails leaves the
// set as it was. The exceptions to this: growth that moves keys whose moves may throw, and which cannot be copied, or a
// Hash that throws during growth (it is asked for each key again); then the set loses keys, but stays a valid set. A
// merge that fails leaves each key in one of the two sets, with the same exceptions. An assignment or a swap that fails
// leaves valid sets with some of the keys; none that was moved from stays in any.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "sluice/detail/table.hpp"
#include "sluice/detail/table_kind.hpp"
#include "sluice/hash.hpp"

namespace sluice {

template <class K, class Hash = hash<K>, class Equal = equal_to<K>>
class set_base : public detail::table<detail::set_kind<K>, Hash, Equal> {
  using table = detail::table<detail::set_kind<K>, Hash, Equal>;

 public:
  using typename table::const_iterator;
  using typename table::iterator;

  // A set takes the other's keys, Hash and Equal, and keeps its own memory resource. From an rvalue it takes the block
  // if there is one and the resources are equal, else key by key; the other is empty afterwards.
  set_base& operator=(const set_base& other) {
    this->copy_assign(other);
    return *this;
  }
  set_base& operator=(set_base&& other) {  // NOLINT: it may take memory, and throw
    this->move_assign(other);
    return *this;
  }
  set_base& operator=(std::initializer_list<K> keys) {
    this->clear();
    insert(keys);
    return *this;
  }

  // Effects: inserts the key unless it is there. Returns: where it is, and whether it was inserted.
  std::pair<iterator, bool> insert(const K& key) { return result(this->insert_key(key, key)); }
  std::pair<iterator, bool> insert(K&& key) { return result(this->insert_key(key, std::move(key))); }
  // Makes a key of `from` only if it is not there.
  template <detail::finds_key<K, Hash, Equal> Other>
  requires(std::is_constructible_v<K, Other> &&
           !std::is_convertible_v<Other, const_iterator>) std::pair<iterator, bool> insert(Other&& from) {
    return result(this->insert_key(from, std::forward<Other>(from)));
  }
  iterator insert(const_iterator, const K& key) { return insert(key).first; }
  iterator insert(const_iterator, K&& key) { return insert(std::move(key)).first; }
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  void insert(Iterator first, Sentinel last) {
    this->insert_each(std::move(first), last,
                      [this](auto&& from) { this->emplace(std::forward<decltype(from)>(from)); });
  }
  void insert(std::initializer_list<K> keys) { insert(keys.begin(), keys.end()); }

  // Effects: inserts a key made of the arguments unless it is there. It is made first, if it cannot be looked up else.
  template <class... Arguments>
  std::pair<iterator, bool> emplace(Arguments&&... arguments) {
    if constexpr (sizeof...(Arguments) == 1 && ((std::is_same_v<std::remove_cvref_t<Arguments>, K> ||
                                                 detail::finds_key<Arguments, K, Hash, Equal>)&&...))
      return result(this->insert_key(arguments..., std::forward<Arguments>(arguments)...));
    else
      return result(this->insert_made(std::forward<Arguments>(arguments)...));
  }
  template <class... Arguments>
  iterator emplace_hint(const_iterator, Arguments&&... arguments) {
    return emplace(std::forward<Arguments>(arguments)...).first;
  }

  // Effects: moves those keys of the other set here that are not here.
  void merge(set_base& other) { this->take_missing(other); }
  void merge(set_base&& other) { this->take_missing(other); }

  // Effects: exchanges the contents, Hash and Equal; each keeps its memory resource. Takes memory, and can throw, where
  // one of the two is inline and its keys do not fit inside the other, or both are inline and of different N.
  void swap(set_base& other) { this->swap_with(other); }     // NOLINT(bugprone-exception-escape)
  friend void swap(set_base& a, set_base& b) { a.swap(b); }  // NOLINT(bugprone-exception-escape)

  friend bool operator==(const set_base& a, const set_base& b) { return a.equals(b); }

 protected:
  using table::table;
  ~set_base() = default;

 private:
  static std::pair<iterator, bool> result(const std::pair<detail::table_place<K>, bool>& inserted) noexcept {
    return {iterator(inserted.first), inserted.second};
  }
};

// Effects: removes the keys for which condition(key). Returns: how many.
template <class K, class Hash, class Equal, class Condition>
std::size_t erase_if(set_base<K, Hash, Equal>& set, Condition condition) {
  return set.erase_where(std::move(condition));
}

template <class K, std::size_t N, class Hash = hash<K>, class Equal = equal_to<K>>
class inline_set : public set_base<K, Hash, Equal> {
  using base = set_base<K, Hash, Equal>;
  using layout = detail::table_layout<K>;

 public:
  using typename base::allocator_type;

  // Those without an allocator take memory from std::pmr::get_default_resource(), asked when it is first needed. An
  // allocator can be a pointer to a std::pmr::memory_resource. Throws: what inserting the keys throws.
  inline_set() : inline_set(static_cast<std::pmr::memory_resource*>(nullptr), Hash(), Equal()) {}
  explicit inline_set(const allocator_type& allocator) : inline_set(allocator.resource(), Hash(), Equal()) {}
  explicit inline_set(const Hash& hash, const Equal& equal = Equal())
      : inline_set(static_cast<std::pmr::memory_resource*>(nullptr), hash, equal) {}
  inline_set(const Hash& hash, const Equal& equal, const allocator_type& allocator)
      : inline_set(allocator.resource(), hash, equal) {}
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  inline_set(Iterator first, Sentinel last, const Hash& hash = Hash(), const Equal& equal = Equal())
      : inline_set(static_cast<std::pmr::memory_resource*>(nullptr), hash, equal) {
    this->insert(std::move(first), last);
  }
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  inline_set(Iterator first, Sentinel last, const allocator_type& allocator) : inline_set(allocator) {
    this->insert(std::move(first), last);
  }
  inline_set(std::initializer_list<K> keys, const Hash& hash = Hash(), const Equal& equal = Equal())
      : inline_set(keys.begin(), keys.end(), hash, equal) {}
  inline_set(std::initializer_list<K> keys, const allocator_type& allocator)
      : inline_set(keys.begin(), keys.end(), allocator) {}

  inline_set(const inline_set& other) : inline_set(static_cast<const base&>(other)) {}
  inline_set(const base& other)  // NOLINT(google-explicit-constructor): a set of another N is as good
      : inline_set(static_cast<std::pmr::memory_resource*>(nullptr), other.hash_function(), other.key_eq()) {
    this->copy_from(other);
  }
  inline_set(const base& other, const allocator_type& allocator)
      : inline_set(allocator.resource(), other.hash_function(), other.key_eq()) {
    this->copy_from(other);
  }
  // Effects: as the move assignment, with the resource of `other` unless there is an allocator.
  inline_set(inline_set&& other) noexcept(moves_without_throwing)  // NOLINT: the elements decide
      : inline_set(static_cast<base&&>(other)) {}
  inline_set(base&& other)  // NOLINT(google-explicit-constructor)
      : inline_set(base::resource_of(other), other.hash_function(), other.key_eq()) {
    this->take_from(other);
  }
  inline_set(base&& other, const allocator_type& allocator)
      : inline_set(allocator.resource(), other.hash_function(), other.key_eq()) {
    this->take_from(other);
  }
  ~inline_set() { this->finish(); }

  inline_set& operator=(const inline_set& other) {
    this->copy_assign(other);
    return *this;
  }
  inline_set& operator=(inline_set&& other) {  // NOLINT: it may take memory, and throw
    this->move_assign(other);
    return *this;
  }
  using base::operator=;

 private:
  // Of the same N: to the same slots, or with the block.
  static constexpr bool moves_without_throwing =
      detail::set_kind<K>::relocates_nothrow && !detail::set_kind<K>::takes_allocator &&
      std::is_nothrow_copy_constructible_v<Hash> && std::is_nothrow_copy_constructible_v<Equal>;

  inline_set(std::pmr::memory_resource* resource, const Hash& hash, const Equal& equal) : base(resource, hash, equal) {
    this->template open_inline<N>(room_.start());
  }

  [[no_unique_address]] detail::table_room<N == 0 ? 0 : layout::bytes(layout::inline_shape(N)), layout::align> room_;
};

}  // namespace sluice
