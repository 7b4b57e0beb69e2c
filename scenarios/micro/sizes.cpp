// Prints how large objects of the library and of its peers are, as JSON for scripts/bench-library. Open it to add one.
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sluice/handle_stack.hpp"
#include "sluice/index_pool.hpp"
#include "sluice/index_stack.hpp"
#include "sluice/inline_buffer.hpp"
#include "sluice/inline_map.hpp"
#include "sluice/inline_set.hpp"
#include "sluice/inline_stream.hpp"
#include "sluice/inline_string.hpp"
#include "sluice/inline_vector.hpp"
#include "sluice/pool.hpp"
#include "sluice/split_index_stack.hpp"
#include "sluice/stack_pool.hpp"

#if MICRO_BOOST
#include <boost/container/small_vector.hpp>
#include <boost/container/static_vector.hpp>
#endif
#if MICRO_ABSL
#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>
#endif
#if MICRO_LLVM
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/SmallVector.h>
#endif
#if MICRO_FMT
#include <fmt/format.h>
#endif

namespace {

const char* separator = "";

/// `capacity` is what fits inside; of a stack or a pool the bits for each of those are of interest.
template <class T>
void print(const char* name, std::size_t capacity, bool stack) {
  std::printf("%s\n {\"name\": \"%s\", \"capacity\": %zu, \"bytes\": %zu, \"bits\": %.4f}", separator, name, capacity,
              sizeof(T), stack ? static_cast<double>(sizeof(T)) * 8 / static_cast<double>(capacity) : 0.0);
  separator = ",";
}
template <class T>
void print_stack(const char* name, std::size_t capacity) {
  print<T>(name, capacity, true);
}
template <class T>
void print_container(const char* name, std::size_t capacity) {
  print<T>(name, capacity, false);
}

struct Tile {
  std::uint8_t x, y;
  std::uint16_t page;
};
struct Block64 {
  std::uint64_t words[8];
};
using Key = std::uint64_t;

}  // namespace

int main() {
  std::printf("[");
  print_stack<sluice::index_stack<256>>("index_stack<256>", 256);
  print_stack<sluice::index_stack<65536>>("index_stack<65536>", 65536);
  print_stack<sluice::split_index_stack<12, 4096>>("split_index_stack<12, 4096>", 4096);
  print_stack<sluice::split_index_stack<18, 262144>>("split_index_stack<18, 262144>", 262144);
  print_stack<sluice::split_index_stack<21, 262144>>("split_index_stack<21, 262144>", 262144);
  print_stack<sluice::split_index_stack<24, 262144>>("split_index_stack<24, 262144>", 262144);
  print_stack<std::uint32_t[262144]>("uint32_t[262144]", 262144);
  print_stack<sluice::handle_stack<Tile, 4096>>("handle_stack<Tile, 4096>", 4096);
  print_stack<sluice::index_pool<Block64, 1024>>("index_pool<64 bytes, 1024>", 1024);
  print_stack<sluice::stack_pool<Block64, 1024>>("stack_pool<64 bytes, 1024>", 1024);
  print_container<sluice::pool<Block64>>("pool<64 bytes> (blocks outside)", 0);

  print_container<sluice::inline_vector<int, 8>>("inline_vector<int, 8>", 8);
#if MICRO_LLVM
  print_container<llvm::SmallVector<int, 8>>("llvm::SmallVector<int, 8>", 8);
#endif
#if MICRO_BOOST
  print_container<boost::container::small_vector<int, 8>>("boost::small_vector<int, 8>", 8);
#endif
#if MICRO_ABSL
  print_container<absl::InlinedVector<int, 8>>("absl::InlinedVector<int, 8>", 8);
#endif
  print_container<std::vector<int>>("std::vector<int>", 0);

  print_container<sluice::inline_set<Key, 8>>("inline_set<uint64, 8>", 8);
  print_container<sluice::inline_map<Key, Key, 8>>("inline_map<uint64, uint64, 8>", 8);
#if MICRO_LLVM
  print_container<llvm::SmallDenseMap<Key, Key, 16>>("llvm::SmallDenseMap<uint64, uint64, 16>", 11);
#endif
#if MICRO_ABSL
  print_container<absl::flat_hash_map<Key, Key>>("absl::flat_hash_map<uint64, uint64>", 0);
#endif
  print_container<std::unordered_map<Key, Key>>("std::unordered_map<uint64, uint64>", 0);

  print_container<sluice::inline_string<23>>("inline_string<23>", 23);
  print_container<sluice::inline_string<32>>("inline_string<32>", 32);
#if MICRO_LLVM
  print_container<llvm::SmallString<32>>("llvm::SmallString<32>", 32);
#endif
  print_container<std::string>("std::string", 15);

  print_container<sluice::inline_buffer<256>>("inline_buffer<256>", 256);
#if MICRO_FMT
  print_container<fmt::basic_memory_buffer<char, 256>>("fmt::basic_memory_buffer<char, 256>", 256);
#endif
  print_container<sluice::inline_stream<256>>("inline_stream<256>", 256);
  print_container<std::stringstream>("std::stringstream", 0);
  std::printf("\n]\n");
}
