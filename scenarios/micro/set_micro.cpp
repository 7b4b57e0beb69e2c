// inline_set against other sets, with numbers and strings as keys. The cases stand in hash_micro.hpp.
#include <unordered_set>

#include "hash_micro.hpp"
#include "sluice/inline_set.hpp"

#if MICRO_ABSL
#include <absl/container/flat_hash_set.h>
#endif
#if MICRO_BOOST
#include <boost/container/flat_set.hpp>
#endif
#if MICRO_LLVM
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallSet.h>
#endif

namespace micro {

#if MICRO_LLVM
template <class Set>
struct LlvmAccess {
  static void insert(Set& set, int key) { set.insert(key); }
  static std::uint64_t find(const Set& set, int key) { return set.count(key); }
  static void erase(Set& set, int key) { set.erase(key); }
};
template <>
struct Access<llvm::DenseSet<int>> : LlvmAccess<llvm::DenseSet<int>> {
  using Key = int;
  static std::uint64_t sum(const llvm::DenseSet<int>& set) {
    std::uint64_t total = 0;
    for (const int element : set)
      total += weight(element);
    return total;
  }
};
template <unsigned N>
struct Access<llvm::SmallSet<int, N>> : LlvmAccess<llvm::SmallSet<int, N>> {
  using Key = int;
  static std::uint64_t sum(const llvm::SmallSet<int, N>& set) {
    std::uint64_t total = 0;
    for (const int element : set)
      total += weight(element);
    return total;
  }
};
#endif

namespace {

template <class Key>
void add_sets() {
  const std::string component = "inline_set";
  add_cases<sluice::inline_set<Key, 8>>(component, "sluice::inline_set", 4);
  add_cases<sluice::inline_set<Key, 8>>(component, "sluice::inline_set", 8);
  add_cases<sluice::inline_set<Key, 16>>(component, "sluice::inline_set", 16);
  for (const std::size_t count : large_counts)
    add_cases<sluice::inline_set<Key, 8>>(component, "sluice::inline_set", count);
#if MICRO_ABSL
  add_any_count<absl::flat_hash_set<Key>>(component, "absl::flat_hash_set");
#endif
#if MICRO_LLVM
  if constexpr (std::is_same_v<Key, int>) {
    add_cases<llvm::SmallSet<Key, 8>>(component, "llvm::SmallSet or DenseSet", 4);
    add_cases<llvm::SmallSet<Key, 8>>(component, "llvm::SmallSet or DenseSet", 8);
    add_cases<llvm::SmallSet<Key, 16>>(component, "llvm::SmallSet or DenseSet", 16);
    for (const std::size_t count : large_counts)
      add_cases<llvm::DenseSet<Key>>(component, "llvm::SmallSet or DenseSet", count);
  }
#endif
#if MICRO_BOOST
  for (const std::size_t count : small_counts)
    add_cases<boost::container::flat_set<Key>>(component, "boost::flat_set", count);
  for (const std::size_t count : {100, 1000})  // building a large one takes time with the square
    add_cases<boost::container::flat_set<Key>>(component, "boost::flat_set", count);
#endif
  add_any_count<std::unordered_set<Key>>(component, "std::unordered_set");
}

}  // namespace

void add_all() {
  add_sets<int>();
  add_sets<std::string>();
}

}  // namespace micro
