// A block of a slab as libsluice-secure.so sees it: its place and state, its ends, and what of it is cleared. Open it
// to see what a block carries, and what the fast path of secure/hardened.cpp computes. Compiled in secure builds alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "base/size_class.hpp"
#include "pages/canary.hpp"
#include "pages/region.hpp"

namespace sluice::hardened {

// Class bytes up to this one are of slabs of one unit, and what is cleared of their blocks is the first 48 bytes: the
// fast path. 0 with SLUICE_ZERO_ON_FREE.
inline constexpr unsigned last_of_one_unit = first_class_of(unit_size / slab_min_blocks);
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

void clear_rest(char* block, size_t class_size) noexcept;

// Clears the first 48 bytes of a block, or all.
inline void clear_block(void* block, size_t class_size) noexcept {
  const size_t last = class_size - sizeof(Granule);
  for (const size_t offset : {size_t{0}, size_t{16}, size_t{32}})
    granule_at(block, lesser(offset, last)) = Granule{};
  if (clear_all) clear_rest(static_cast<char*>(block), class_size);
}

// The same for the fast path.
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

// Whether a live block's canaries hold.
inline __attribute__((always_inline)) bool ends_hold(const void* block, size_t size, size_t class_size) noexcept {
  const uint64_t canary = canary_of(block);
  return last_canary_holds(block, class_size, canary) && canary_holds(static_cast<const char*>(block) + size, canary);
}

// Effects: checks the ends of a block whose life has ended and clears it, by the fast path if there is a row. False
// when it must not be used again.
inline __attribute__((always_inline)) bool check_and_clear(void* block, const ClassRow* row, size_t class_size,
                                                           uint16_t state) noexcept {
  if (!ends_hold(block, class_size - state, class_size)) [[unlikely]]
    return report_overflow(block, class_size - state), false;
  if (row != nullptr)
    clear_plain(block, *row);
  else
    clear_block(block, class_size);
  return true;
}

// Effects: as hardened::end. Requires: the class byte of the block's unit.
inline __attribute__((always_inline)) bool end_waiting(WaitingBlock waiting, unsigned byte) noexcept {
  if (byte <= last_plain_byte) [[likely]]
    return check_and_clear(waiting.block(), &row_of(byte), row_of(byte).size, waiting.state());
  return check_and_clear(waiting.block(), nullptr, class_sizes[byte / bin_stride], waiting.state());
}

// Effects: checks the ends of a block that waits for that and clears it. False when it must not be used again.
bool end(WaitingBlock waiting) noexcept;

// For slabs. Effects: prepares blocks that are carved, one behind the other; checks those of a slab that goes.
void prepare(char* first, State* states, size_t count, unsigned size_class) noexcept;
void retire(char* first, State* states, size_t count, unsigned size_class) noexcept;

// Effects: draws the process's secrets. Called once, before the first block exists.
void start() noexcept;

}  // namespace sluice::hardened
