// What lies in a chunk of a stack arena: objects, each behind a header of 8 bytes. Open it to read or write a header.
//
//   chunk   8                                                    chunk_end
//   | unused | header | object … | header | object … | header | … | unused |
//                      └ objects begin at multiples of 16, headers 8 bytes before
//
// A header's first word holds the bytes from it to the next header (bits 0…15, a multiple of 16, the state in the four
// bits that this leaves), and the bytes back to the previous header (bits 16…31; 0 for the first): the objects form a
// stack. Its second word shows damage in checked builds (check_guard), and is not written in others.
//
// Who writes what: the owner writes headers; the thread that frees another's object stores one byte, the one with the
// state. The owner never writes that byte of a live object that is not its own to free, so that both may write at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/layout.hpp"

namespace sluice::arena {

inline constexpr size_t header_size = 8;            // bytes
inline constexpr size_t most_bytes = 16 * 1024;     // of an object; larger requests go to the heap
inline constexpr size_t most_alignment = 4 * 1024;  // bytes; requests for larger ones go to the heap too
inline constexpr size_t first_offset = min_alignment - header_size;
inline constexpr size_t chunk_end = unit_size - header_size;
inline constexpr size_t chunk_capacity = chunk_end - first_offset;  // bytes for objects with their headers

static_assert(chunk_capacity % min_alignment == 0 && chunk_capacity <= 0xfff0);
static_assert(most_bytes + most_alignment + min_alignment < chunk_capacity);

// Values that an address, a small number or zeroed memory is unlikely to end in.
enum State : uint32_t {
  Live = 0xb,
  Freed = 0x6,           // by its owner, or never an object: what fills a gap
  FreedElsewhere = 0x5,  // by another thread; the owner has not counted it
};

// The bytes from one header to the next for an object of `size` bytes. Requires: size <= most_bytes.
constexpr size_t total_for(size_t size) noexcept {
  return (size + header_size + min_alignment - 1) & ~(min_alignment - 1);
}

using HeaderWord = uint32_t __attribute__((may_alias));
using HeaderHalf = uint16_t __attribute__((may_alias));

inline uint32_t word_at(const char* header) noexcept {
  return __atomic_load_n(reinterpret_cast<const HeaderWord*>(header), __ATOMIC_RELAXED);
}
// Of an object that another thread may have freed: what that thread did with it is done. Sequentially consistent, as
// set_freed_elsewhere(): see free_elsewhere().
inline uint32_t word_of_others(const char* header) noexcept {
  return __atomic_load_n(reinterpret_cast<const HeaderWord*>(header), __ATOMIC_SEQ_CST);
}
constexpr State state_of(uint32_t word) noexcept {
  return static_cast<State>(word & 0xf);
}
constexpr size_t total_of(uint32_t word) noexcept {
  return word & 0xfff0;
}
constexpr size_t distance_of(uint32_t word) noexcept {
  return word >> 16;
}

inline uint32_t guard_of(const char* header) noexcept {
  return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(header) * 0x9e3779b97f4a7c15u) >> 32);
}

inline void write_header(char* header, size_t total, size_t distance, State state) noexcept {
  const auto word = static_cast<uint32_t>((total + state) + (distance << 16));
  __atomic_store_n(reinterpret_cast<HeaderWord*>(header), word, __ATOMIC_RELAXED);
  if (checked) __atomic_store_n(reinterpret_cast<HeaderWord*>(header + 4), guard_of(header), __ATOMIC_RELAXED);
}

// By the owner of the chunk; `word` is the header's first word. All of it is written: a load soon after would wait if
// only one byte were.
inline void set_freed(char* header, uint32_t word) noexcept {
  __atomic_store_n(reinterpret_cast<HeaderWord*>(header), word - Live + Freed, __ATOMIC_RELAXED);
}
// By another thread.
inline void set_freed_elsewhere(char* header, uint32_t word) noexcept {
  __atomic_store_n(header, static_cast<char>((word & 0xf0) | FreedElsewhere), __ATOMIC_SEQ_CST);
}

// The other half of the word: may be written while another thread frees the object.
inline void set_distance(char* header, size_t distance) noexcept {
  __atomic_store_n(reinterpret_cast<HeaderHalf*>(header + 2), static_cast<uint16_t>(distance), __ATOMIC_RELAXED);
}

inline void check_guard(const char* header) noexcept {
  if (checked)
    check(__atomic_load_n(reinterpret_cast<const HeaderWord*>(header + 4), __ATOMIC_RELAXED) == guard_of(header),
          "object of a scope: the bytes before it were overwritten", header + header_size);
}

}  // namespace sluice::arena
