// A block of a slab as libsluice-secure.so sees it: its place and state, its canaries, and what of it is cleared. Open
// it to see what a block carries, and what the short way of hardened.cpp computes. Compiled in secure builds alone.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "base/size_class.hpp"
#include "heap/link.hpp"
#include "heap/region.hpp"
#include "heap/slab.hpp"
#include "heap/thread_cache.hpp"

namespace sluice::hardened {

inline constexpr size_t cleared_size = 48;  // bytes of a freed block; all with SLUICE_ZERO_ON_FREE

// SLUICE_ZERO_ON_FREE as it was at start: an option that is read later must not change what blocks that were freed
// before are checked for.
extern bool clear_all __attribute__((visibility("hidden")));

// Class bytes up to this one are of slabs of one unit, and what is cleared of their blocks is the first 48 bytes: the
// short way. 0 with SLUICE_ZERO_ON_FREE.
inline constexpr unsigned last_of_one_unit = size_class_of(unit_size / slab_min_blocks);
extern unsigned last_plain_byte __attribute__((visibility("hidden")));

using State = std::atomic<uint16_t>;

inline bool is_slab(unsigned byte) noexcept {
  return byte != class_byte_none && byte < class_byte_large;
}

// Where a block of a slab has its state. That is read and written by whoever has the block; the order comes from how
// the program hands blocks from thread to thread, and from the heap's own locks.
struct Place {
  State* state;
  size_t class_size;
  bool begins;  // the address is a block's first

  uint16_t state_now() const noexcept { return state->load(std::memory_order_relaxed); }
  void set_state(size_t value, std::memory_order order = std::memory_order_relaxed) const noexcept {
    state->store(static_cast<uint16_t>(value), order);
  }
};
inline bool is_live(uint16_t state) noexcept {
  return state >= canary_size;
}

constexpr ClassRow row_of_class(unsigned size_class) noexcept {
  const uint32_t size = class_sizes[size_class];
  ClassRow row{};
  row.reciprocal = static_cast<uint32_t>(((uint64_t{1} << 32) + size - 1) / size);
  row.size = static_cast<uint16_t>(size);
  for (uint32_t i = 0; i < 2; ++i)
    row.granules[i] = static_cast<uint8_t>(size >= 16 * (i + 2) ? 16 * (i + 1) : size - 16);
  row.keeps_last = size > cleared_size ? -1 : 0;
  return row;
}
inline constexpr auto class_rows = [] {
  std::array<ClassRow, size_class_count> rows{};
  for (unsigned k = 1; k < rows.size(); ++k)
    rows[k] = row_of_class(k);
  return rows;
}();
static_assert(unit_size == size_t{1} << 16 && unit_size / slab_min_blocks <= size_t{1} << 13);

inline const ClassRow& row_of(size_t byte) noexcept {
  return class_rows[byte / bin_stride];
}

// What an attached cache has of a class. Class bytes count words, and of a class there are two of each kind: one
// address reaches them all.
class ClassPart {
 public:
  ClassPart(ThreadCache* c, size_t byte) noexcept : at_(reinterpret_cast<char*>(c) + byte * sizeof(void*)) {
    asm("" : "+r"(at_));  // or it would be computed once for each of them
  }
  Bin& bin() const noexcept { return *reinterpret_cast<Bin*>(at_ + offsetof(ThreadCache, bins)); }
  Reuse& reuse() const noexcept { return *reinterpret_cast<Reuse*>(at_ + secure_at + offsetof(SecureCache, reuse)); }
  const ClassRow& row() const noexcept {
    return *reinterpret_cast<const ClassRow*>(at_ + secure_at + offsetof(SecureCache, rows));
  }

 private:
  static_assert(sizeof(Bin) == sizeof(Reuse) && sizeof(Bin) == sizeof(ClassRow));
  static constexpr size_t secure_at = offsetof(ThreadCache, secure_part);
  char* at_;
};

Place place_in_long_slab(const void* address, unsigned size_class) noexcept;

// Requires: the address's unit, and the row of its class byte, which is at most last_plain_byte.
inline __attribute__((always_inline)) Place place_of(const void* address, const ClassRow& row, size_t unit) noexcept {
  const uint64_t quotient = reinterpret_cast<uintptr_t>(address) % unit_size * row.reciprocal;
  return {region::block_states_at(unit) + (quotient >> 32), row.size, static_cast<uint32_t>(quotient) < row.reciprocal};
}
inline __attribute__((always_inline)) Place place_of(const void* address, const ClassRow& row) noexcept {
  return place_of(address, row, unit_index_of(address));
}
// Requires: the class byte of the address's unit, of a slab.
inline Place place_of(const void* address, unsigned byte) noexcept {
  if (byte > class_byte_of(last_of_one_unit)) return place_in_long_slab(address, byte / bin_stride);
  return place_of(address, row_of(byte));
}

// A block's canary. No byte is 0, so that a string's end is found too. What a product spreads best, its highest bits,
// are the first byte.
inline uint64_t canary_of(const void* block) noexcept {
  const uint64_t mixed = (secrets.canary + reinterpret_cast<uintptr_t>(block)) * secrets.factor;
  return __builtin_bswap64(mixed) | secrets.marks;
}

// Each byte of a canary has its place in a word, so that two that overlap agree.
inline uint64_t rotated_for(const char* at, uint64_t canary) noexcept {
  unsigned bits = 8 * static_cast<unsigned>(reinterpret_cast<uintptr_t>(at));
  asm("" : "+r"(bits));  // or a remainder would be taken that the processor takes itself
  return std::rotr(canary, static_cast<int>(bits % (8 * sizeof canary)));
}
inline void write_canary(char* at, uint64_t canary) noexcept {
  canary = rotated_for(at, canary);
  __builtin_memcpy(at, &canary, sizeof canary);
}
inline bool canary_holds(const char* at, uint64_t canary) noexcept {
  uint64_t found;
  __builtin_memcpy(&found, at, sizeof found);
  return found == rotated_for(at, canary);
}

// The last word of a block's class.
inline char* last_word(void* block, size_t class_size) noexcept {
  return static_cast<char*>(__builtin_assume_aligned(block, min_alignment)) + class_size - canary_size;
}
inline void write_last_canary(void* block, size_t class_size, uint64_t canary) noexcept {
  *reinterpret_cast<uint64_t*>(last_word(block, class_size)) = canary;
}
inline bool last_canary_holds(const void* block, size_t class_size, uint64_t canary) noexcept {
  return *reinterpret_cast<const uint64_t*>(last_word(const_cast<void*>(block), class_size)) == canary;
}

// 16 bytes at once.
using Granule = uint64_t __attribute__((vector_size(16), may_alias));
inline Granule& granule_at(const void* block, size_t offset) noexcept {
  return *reinterpret_cast<Granule*>(const_cast<char*>(static_cast<const char*>(block)) + offset);
}
inline size_t lesser(size_t a, size_t b) noexcept {
  return a < b ? a : b;
}

void clear_rest(char* block, size_t class_size) noexcept;

// Clears the first 48 bytes of a block, or all.
inline void clear_block(void* block, size_t class_size) noexcept {
  const size_t last = class_size - sizeof(Granule);
  for (const size_t offset : {size_t{0}, size_t{16}, size_t{32}})
    granule_at(block, lesser(offset, last)) = Granule{};
  if (clear_all) clear_rest(static_cast<char*>(block), class_size);
}

// The same for the short way.
inline __attribute__((always_inline)) void clear_plain(void* block, const ClassRow& row) noexcept {
  granule_at(block, 0) = granule_at(block, row.granules[0]) = granule_at(block, row.granules[1]) = Granule{};
}

// What a freed block's last word differs in from what it was left as; class_size is row.size, which the caller has at
// hand.
inline __attribute__((always_inline)) uint64_t last_word_changes(const void* block, const ClassRow& row,
                                                                 size_t class_size, uint64_t canary) noexcept {
  uint64_t last;
  __builtin_memcpy(&last, last_word(const_cast<void*>(block), class_size), sizeof last);
  return last ^ (canary & static_cast<uint64_t>(int64_t{row.keeps_last}));
}

// Whether a block on a stack is as check_and_clear left it.
inline __attribute__((always_inline)) bool is_clear(const void* block, const ClassRow& row, size_t class_size,
                                                    uint64_t canary) noexcept {
  const Granule words = granule_at(block, 0) | granule_at(block, row.granules[0]) | granule_at(block, row.granules[1]);
  return (words[0] | words[1] | last_word_changes(block, row, class_size, canary)) == 0;
}

// Whether a block that is not live is as its free left it, but for the word of a list's link.
bool is_untouched(const void* block, size_t class_size, uint64_t canary) noexcept;
// Also clears the first granule, which of a block of 16 bytes is read again.
inline __attribute__((always_inline)) bool clear_if_untouched(void* block, const ClassRow& row, size_t class_size,
                                                              uint64_t canary) noexcept {
  const uint64_t second = static_cast<const uint64_t*>(block)[1];
  granule_at(block, 0) = Granule{};
  const Granule words = granule_at(block, row.granules[0]) | granule_at(block, row.granules[1]);
  return (second | words[0] | words[1] | last_word_changes(block, row, class_size, canary)) == 0;
}

}  // namespace sluice::hardened
