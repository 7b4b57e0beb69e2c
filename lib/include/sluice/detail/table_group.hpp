// The sixteen control bytes at the start of each group of a hash table: which slots are taken, and by what. Open it to
// port the comparison of sixteen bytes at once to another instruction set.
//
//   byte 0         one bit for each eighth of the hashes: set if such an element is not in this group, but further on
//   byte 1         how many elements looked for room here and went on; 255 means that many or more
//   byte 2 … 14    one for each slot, of which there are 13 or 12: what is in it, below
//   byte 15        as if it were of a slot that is never taken: an iterator's walk ends there
//
//   fresh      empty, and no slot of this group behind it is taken
//   hole       empty, as an element was erased there
//   fresh_end  fresh, in the last group
//   closed     no slot; only at the end of the last group
//   others     taken; the byte is the slot's mark, eight bits of its hash
//
// A search goes on to the next group only if byte 0 says so. When the count comes down to 0, byte 0 is cleared: there
// are no tombstones, and nothing to clean up after any number of insertions and erasures. An iterator can leave a group
// at the first byte that is fresh, and is at its end where one is fresh_end or closed. Slots are numbered as their
// bytes are: masks have bit i for byte i.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) && !defined(SLUICE_TABLE_PORTABLE)
#include <emmintrin.h>
#endif

namespace sluice::detail {

struct table_group {
  static constexpr std::size_t bytes = 16;
  static constexpr unsigned first_slot = 2;
  static constexpr unsigned most_slots = 13;
  static constexpr unsigned char fresh = 0;
  static constexpr unsigned char hole = 1;
  static constexpr unsigned char fresh_end = 2;
  static constexpr unsigned char closed = 3;
  static constexpr unsigned char lowest_mark = 4;
  static constexpr std::size_t beyond = 0;
  static constexpr std::size_t count = 1;
  static constexpr unsigned char count_limit = 255;

  // The bytes of a hash that the mark and the bit of byte 0 are made of; its low bits choose the group.
  static unsigned char mark_of(std::uint64_t hash) noexcept {
    const auto mark = static_cast<unsigned char>(hash >> 53);
    return mark < lowest_mark ? lowest_mark : mark;
  }
  static bool goes_on(const unsigned char* group, std::uint64_t hash) noexcept {
    return (group[beyond] >> (hash >> 61) & 1) != 0;
  }
  // An element with this hash found no room here.
  static void pass(unsigned char* group, std::uint64_t hash) noexcept {
    group[beyond] = static_cast<unsigned char>(group[beyond] | 1u << (hash >> 61));
    if (group[count] != count_limit) ++group[count];
  }
  // Such an element is gone.
  static void unpass(unsigned char* group) noexcept {
    if (group[count] != count_limit && --group[count] == 0) group[beyond] = 0;
  }
  // Whether it is the last group, from the byte of one of its slots that is not taken nor a hole.
  static bool ends(unsigned char value) noexcept { return value >= fresh_end; }
  static bool is_last(const unsigned char* group) noexcept { return ends(group[bytes - 1]); }

  // The control bytes of a group.
  struct alignas(bytes) control {
    unsigned char byte[bytes];
  };
  // Effects: no slot is taken.
  static void open(unsigned char* group) noexcept { std::memset(group, fresh, bytes); }
  // Effects: the same in the last group, which has so many slots.
  static void open_last(unsigned char* group, std::size_t slots) noexcept;

  // Effects: as another group, but where an element is in that one, there is a hole.
  static void copy_with_holes(unsigned char* group, const unsigned char* other) noexcept {
    control made;
    for (std::size_t i = 0; i < bytes; ++i)
      made.byte[i] = i >= first_slot && other[i] >= lowest_mark ? hole : other[i];
    std::memcpy(group, made.byte, bytes);
  }

#if defined(__SSE2__) && !defined(SLUICE_TABLE_PORTABLE)
  // A mark, or what else a slot's byte can be, in each of sixteen bytes.
  using pattern = __m128i;
  static pattern pattern_of(std::uint64_t hash) noexcept {
    return _mm_max_epu8(_mm_set1_epi8(static_cast<char>(hash >> 53)), _mm_set1_epi8(lowest_mark));
  }
  static pattern all(unsigned char value) noexcept {
    return _mm_set1_epi8(static_cast<char>(value));
  }
  static __m128i load(const unsigned char* group) noexcept {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(group));
  }
  // Writes all sixteen bytes: the next search reads them at once, and would wait for a byte on its way to the cache.
  static void set(unsigned char* group, std::size_t slot, pattern value) noexcept {
    alignas(32) static constexpr unsigned char one[32] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255};
    const __m128i there = _mm_loadu_si128(reinterpret_cast<const __m128i*>(one + 16 - slot));
    const __m128i changed = _mm_or_si128(_mm_andnot_si128(there, load(group)), _mm_and_si128(there, value));
    _mm_store_si128(reinterpret_cast<__m128i*>(group), changed);
  }
  // Effects: the slot is empty: what the byte behind it is, but a hole if that slot is taken.
  static void empty(unsigned char* group, std::size_t slot) noexcept {
    // For all slots, so as not to wait for the number of this one.
    const __m128i behind = _mm_srli_si128(load(group), 1);
    const __m128i is_taken = _mm_cmpeq_epi8(_mm_max_epu8(behind, all(lowest_mark)), behind);
    const __m128i if_not = _mm_andnot_si128(is_taken, _mm_min_epu8(behind, all(fresh_end)));
    set(group, slot, _mm_or_si128(if_not, _mm_and_si128(is_taken, all(hole))));
  }
  static unsigned matches(const unsigned char* group, pattern mark) noexcept {
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(load(group), mark)));
  }
  static unsigned empties(const unsigned char* group) noexcept {
    const __m128i marks = load(group);
    return static_cast<unsigned>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(marks, _mm_set1_epi8(fresh_end)), marks)));
  }
  static unsigned taken(const unsigned char* group) noexcept {
    const __m128i marks = load(group);
    return static_cast<unsigned>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(marks, _mm_set1_epi8(lowest_mark)), marks)));
  }
#else
  using pattern = std::uint64_t;
  static pattern pattern_of(std::uint64_t hash) noexcept {
    return all(mark_of(hash));
  }
  static pattern all(unsigned char value) noexcept {
    return value * ones;
  }
  static unsigned matches(const unsigned char* group, pattern mark) noexcept {
    return zeros(load(group) ^ mark) | zeros(load(group + 8) ^ mark) << 8;
  }
  static unsigned empties(const unsigned char* group) noexcept {
    return ~(taken(group) | matches(group, all(closed))) & 0xffff;
  }
  static unsigned taken(const unsigned char* group) noexcept {
    constexpr std::uint64_t marks = ~((lowest_mark - 1) * ones);  // what is not taken is 0 without its lowest two bits
    return ~(zeros(load(group) & marks) | zeros(load(group + 8) & marks) << 8) & 0xffff;
  }
  static void set(unsigned char* group, std::size_t slot, pattern value) noexcept {
    unsigned char* const from = group + (slot & 8);
    const std::uint64_t there = std::uint64_t{0xff} << slot % 8 * 8;
    std::uint64_t word = (load(from) & ~there) | (value & there);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    std::memcpy(from, &word, sizeof(word));
  }
  static void empty(unsigned char* group, std::size_t slot) noexcept {
    const unsigned char behind = group[slot + 1];
    const unsigned char none = behind == closed ? fresh_end : behind;
    set(group, slot, all(behind < lowest_mark ? none : hole));
  }

 private:
  static constexpr std::uint64_t ones = 0x0101010101010101;
  static constexpr std::uint64_t low_bits = 0x7f7f7f7f7f7f7f7f;

  // Byte 0 is the lowest, on any machine.
  static std::uint64_t load(const unsigned char* from) noexcept {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof(word));
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word;
  }
  // Returns: bit i set if byte i is 0.
  static unsigned zeros(std::uint64_t word) noexcept {
    const std::uint64_t high_bits = ~(((word & low_bits) + low_bits) | word | low_bits);
    return static_cast<unsigned>((high_bits >> 7) * 0x0102040810204080 >> 56);
  }
#endif
};

// What a last group without elements begins with, by its number of slots.
struct last_groups {
  constexpr last_groups() {
    for (std::size_t slots = 0; slots <= table_group::most_slots; ++slots) {
      for (std::size_t i = table_group::first_slot; i < table_group::bytes; ++i)
        of[slots].byte[i] = i < table_group::first_slot + slots ? table_group::fresh_end : table_group::closed;
    }
  }
  table_group::control of[table_group::most_slots + 1] = {};
};
inline constexpr last_groups opened_last;

// Written with one store, as searches read it with one load.
inline void table_group::open_last(unsigned char* group, std::size_t slots) noexcept {
  std::memcpy(group, opened_last.of[slots].byte, bytes);
}

}  // namespace sluice::detail
