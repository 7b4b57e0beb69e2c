// inline_map against other maps, with numbers and strings as keys. The cases stand in hash_micro.hpp.
#include <unordered_map>

#include "hash_micro.hpp"
#include "sluice/inline_map.hpp"

#if MICRO_ABSL
#include <absl/container/flat_hash_map.h>
#endif
#if MICRO_BOOST
#include <boost/container/flat_map.hpp>
#endif
#if MICRO_LLVM
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/StringMap.h>
#endif

namespace micro {

#if MICRO_LLVM
template <class Map>
struct LlvmAccess {
  using Key = typename Map::key_type;
  static void insert(Map& map, Key key) { map.try_emplace(key, 1); }
  static std::uint64_t find(const Map& map, Key key) {
    const auto place = map.find(key);
    return place == map.end() ? 0 : place->second;
  }
  static void erase(Map& map, Key key) { map.erase(key); }
  static std::uint64_t sum(const Map& map) {
    std::uint64_t total = 0;
    for (const auto& element : map)
      total += element.first + element.second;
    return total;
  }
};
template <>
struct Access<llvm::DenseMap<std::uint64_t, std::uint64_t>> : LlvmAccess<llvm::DenseMap<std::uint64_t, std::uint64_t>> {
};
template <unsigned N>
struct Access<llvm::SmallDenseMap<std::uint64_t, std::uint64_t, N>>
    : LlvmAccess<llvm::SmallDenseMap<std::uint64_t, std::uint64_t, N>> {};

template <>
struct Access<llvm::StringMap<std::uint64_t>> {
  using Key = std::string;
  using Map = llvm::StringMap<std::uint64_t>;
  static void insert(Map& map, const Key& key) { map.try_emplace(key, 1); }
  static std::uint64_t find(const Map& map, const Key& key) {
    const auto place = map.find(key);
    return place == map.end() ? 0 : place->second;
  }
  static void erase(Map& map, const Key& key) { map.erase(key); }
  static std::uint64_t sum(const Map& map) {
    std::uint64_t total = 0;
    for (const auto& element : map)
      total += element.first().size() + element.second;
    return total;
  }
};
#endif

namespace {

template <class Key>
void add_maps() {
  using Value = std::uint64_t;
  const std::string component = "inline_map";
  add_cases<sluice::inline_map<Key, Value, 8>>(component, "sluice::inline_map", 4);
  add_cases<sluice::inline_map<Key, Value, 8>>(component, "sluice::inline_map", 8);
  add_cases<sluice::inline_map<Key, Value, 16>>(component, "sluice::inline_map", 16);
  for (const std::size_t count : large_counts)
    add_cases<sluice::inline_map<Key, Value, 8>>(component, "sluice::inline_map", count);
#if MICRO_ABSL
  add_any_count<absl::flat_hash_map<Key, Value>>(component, "absl::flat_hash_map");
#endif
#if MICRO_LLVM
  if constexpr (std::is_same_v<Key, std::string>) {
    add_any_count<llvm::StringMap<Value>>(component, "llvm::DenseMap or StringMap");
  } else {
    // A quarter of the places of a DenseMap stay free.
    add_cases<llvm::SmallDenseMap<Key, Value, 16>>(component, "llvm::DenseMap or StringMap", 4);
    add_cases<llvm::SmallDenseMap<Key, Value, 16>>(component, "llvm::DenseMap or StringMap", 8);
    add_cases<llvm::SmallDenseMap<Key, Value, 32>>(component, "llvm::DenseMap or StringMap", 16);
    for (const std::size_t count : large_counts)
      add_cases<llvm::DenseMap<Key, Value>>(component, "llvm::DenseMap or StringMap", count);
  }
#endif
#if MICRO_BOOST
  for (const std::size_t count : small_counts)
    add_cases<boost::container::flat_map<Key, Value>>(component, "boost::flat_map", count);
  for (const std::size_t count : {100, 1000})  // building a large one takes time with the square
    add_cases<boost::container::flat_map<Key, Value>>(component, "boost::flat_map", count);
#endif
  add_any_count<std::unordered_map<Key, Value>>(component, "std::unordered_map");
}

}  // namespace

void add_all() {
  add_maps<std::uint64_t>();
  add_maps<std::string>();
}

}  // namespace micro
