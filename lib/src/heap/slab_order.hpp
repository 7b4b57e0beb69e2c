// Which blocks a slab hands out next, in which order: new ones, cut off the part never used, or free ones of its
// bitmap. For slab.cpp alone. Open it when a program's blocks lie where its caches do not like them.
//
// Blocks come by rising addresses, so that what is allocated together lies together; a secure build swaps neighbours at
// random. The first page of a slab is handed out from another block on than its first. Decision:
// lib/docs/decisions/040-slabs-begin-with-different-blocks.md.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "heap/block_state.hpp"
#include "heap/link.hpp"
#include "heap/random.hpp"
#include "heap/slab_shape.hpp"
#include "os/memory.hpp"

namespace sluice::slab {

inline uint64_t* free_words(Unit* s) noexcept {
  return s->slab.capacity <= 64 ? &s->slab.free_word : region::free_bitmap_at(region::index_of(s));
}

// The owner of a slab that is known to be alive: it holds a block of the caller's, or the caller has the owner's lock.
inline ThreadCache& owner_of(const Unit* s) noexcept {
  return *s->owner.load(std::memory_order_relaxed);
}

// Puts a list together block by block.
class ListBuilder {
 public:
  void add(void* block) noexcept {
    if (encodes_links && last_ != &first_)
      set_next(last_, block);
    else
      *last_ = block;
    last_ = static_cast<void**>(block);
  }
  void* finish() noexcept {  // requires: something was added
    set_next(last_, nullptr);
    return first_;
  }

 private:
  void* first_ = nullptr;
  void** last_ = &first_;  // where the next block is to be linked
};

// The order in which a secure build hands out blocks: each with its neighbour in random order. What is allocated
// together still lies together, in rising order by and large, or walks over a large heap take several times as long.
inline constexpr uint32_t most_at_once = 128;  // blocks; the rest of a slab stays to be chosen from
struct Order {
  explicit Order(ThreadCache& owner) noexcept : swapped_((cache::random_bits(owner) & first_of_pair) * 3) {}

  // Which of 64 blocks stands at the place `at`.
  unsigned block_at(unsigned at) const noexcept { return at ^ (swapped_ >> at & 1); }

  // The bitmap of places whose blocks `blocks` has.
  uint64_t places_of(uint64_t blocks) const noexcept {
    const uint64_t other = (blocks & first_of_pair) << 1 | (blocks >> 1 & first_of_pair);
    return (other & swapped_) | (blocks & ~swapped_);
  }

 private:
  static constexpr uint64_t first_of_pair = 0x5555555555555555;
  const uint64_t swapped_;  // two bits for each pair
};

inline std::atomic<uint16_t>* states_of(const Unit* s) noexcept {
  return region::block_states_at(region::index_of(s));
}

// Which of the first blocks of a slab is handed out first. Slabs begin at multiples of a unit: if all began with their
// first block, the blocks that a program takes and gives back again and again would lie in the same few sets of a
// processor's first cache, class by class, and loads would wait for stores to other blocks whose addresses end alike.
inline uint32_t first_block_of(const Unit* s, uint32_t count) noexcept {
  constexpr uint32_t golden_ratio = 0x9e3779b9;  // numbers one behind the other lie far from one another
  const uint32_t place = static_cast<uint32_t>(region::index_of(s)) * golden_ratio;
  return static_cast<uint32_t>(uint64_t{place} * count >> 32);
}

// How many blocks are carved at once where that brings no page into memory: each refill costs the same. No more than
// the program has, so that it uses half of what is carved at least; and where they are large no more than 128 KiB, or
// an eighth of what it has.
inline uint32_t worth_a_refill(const Unit* s) noexcept {
  constexpr uint32_t enough = 16, enough_bytes = 2 * unit_size;
  const unsigned k = s->slab.size_class;
  const uint32_t used = owner_of(s).uses[k].used.load(std::memory_order_relaxed);
  const uint32_t few = enough_bytes / class_sizes[k];
  const uint32_t most = used / 8 > few ? used / 8 : few;
  return std::min({used, most, enough});
}

// Cuts blocks off the part never used: what fits a page, and at least one; where their pages are in memory, more, and
// in a secure build, so that there is a choice.
inline BlockList carve(Unit* s, uint32_t most) noexcept {
  const uint32_t size = class_sizes[s->slab.size_class];
  uint32_t count = static_cast<uint32_t>(os::page_size()) / size;
  if (s->slab.has_pages && count < worth_a_refill(s)) count = worth_a_refill(s);
  if (randomizes_order && count < 8) count = 8;
  if (count > most) count = most;
  if (count == 0) count = 1;
  if (count > uint32_t{s->slab.capacity} - s->slab.carved) count = uint32_t{s->slab.capacity} - s->slab.carved;
  char* const first = start_of(s) + size_t{s->slab.carved} * size;
  s->slab.carved = static_cast<uint16_t>(s->slab.carved + count);
  if (checks_blocks)
    hardened::prepare(first, states_of(s) + (uint32_t{s->slab.carved} - count), count, s->slab.size_class);
  if constexpr (randomizes_order) {
    ListBuilder list;
    for (uint32_t i = 0; i < count; i += 64) {
      const Order order(owner_of(s));
      const uint32_t here = count - i < 64 ? count - i : 64;
      for (uint64_t places = order.places_of(~uint64_t{0} >> (64 - here)); places != 0; places &= places - 1)
        list.add(first + (i + order.block_at(static_cast<unsigned>(std::countr_zero(places)))) * size_t{size});
    }
    return {list.finish(), count};
  }
  const auto link = [size](char* block, char* last, char* next) {
    for (; block != last; block += size)
      set_next(block, block + size);
    set_next(last, next);
  };
  char* const last = first + (count - 1) * size_t{size};
  const uint32_t begin = s->slab.carved == count ? first_block_of(s, count) : 0;
  char* const from = first + begin * size_t{size};
  link(from, last, begin != 0 ? first : nullptr);
  if (begin != 0) link(first, from - size, nullptr);
  return {from, count};
}

// Links free blocks in the order of their addresses, of those that `allowed(word)` says. Requires: `most` are free.
template <typename Allowed>
BlockList pick(Unit* s, uint32_t most, Allowed allowed) noexcept {
  const size_t size = class_sizes[s->slab.size_class];
  char* const start = start_of(s);
  uint64_t* const words = free_words(s);
  ListBuilder list;
  size_t word = 0;
  uint32_t left = most;
  for (char* base = start; left != 0; ++word, base += 64 * size) {
    const uint64_t candidates = words[word] & allowed(word);
    uint64_t bits = candidates;
    for (; bits != 0 && left != 0; bits &= bits - 1, --left)
      list.add(base + static_cast<unsigned>(std::countr_zero(bits)) * size);
    words[word] ^= candidates ^ bits;
  }
  s->slab.free_count = static_cast<uint16_t>(s->slab.free_count - most);
  return {list.finish(), most};
}

inline BlockList pick(Unit* s, uint32_t most) noexcept {
  return pick(s, s->slab.free_count < most ? s->slab.free_count : most, [](size_t) { return ~uint64_t{0}; });
}

// The word of a slab's bitmap that is looked at first, by the slab's place and a secret. It does not change from pick
// to pick, so that what is picked lies behind what was picked last.
inline uint32_t first_word_of(const Unit* s) noexcept {
  return static_cast<uint32_t>((region::index_of(s) * secrets.factor >> 32) % words_of(s));
}

// As pick, from that place in the slab on, in random order.
inline BlockList pick_at_random(Unit* s, uint32_t most) noexcept {
  const uint32_t count = s->slab.free_count < most ? s->slab.free_count : most;
  uint64_t* const words = free_words(s);
  const uint32_t all = words_of(s);
  const size_t size = class_sizes[s->slab.size_class];
  uint32_t left = count;
  ListBuilder list;
  for (uint32_t i = first_word_of(s); left != 0; i = i + 1 < all ? i + 1 : 0) {
    if (words[i] == 0) continue;
    const Order order(owner_of(s));
    char* const base = start_of(s) + 64 * size_t{i} * size;
    for (uint64_t places = order.places_of(words[i]); places != 0 && left != 0; places &= places - 1, --left) {
      const unsigned block = order.block_at(static_cast<unsigned>(std::countr_zero(places)));
      words[i] ^= uint64_t{1} << block;
      list.add(base + block * size);
    }
  }
  s->slab.free_count = static_cast<uint16_t>(s->slab.free_count - count);
  return {list.finish(), count};
}

}  // namespace sluice::slab
