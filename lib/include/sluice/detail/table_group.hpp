// The sixteen control bytes at the start of each group of a hash table: which slots are taken, and by what. Open it to
// port the comparison of sixteen bytes at once to another instruction set.
//
//   byte 0 … slots-1   0 empty, 1 closed (there is no slot behind it), else the slot's mark: eight bits of its hash
//   byte 14            one bit for each eighth of the hashes: set if such an element is not in this group, but further
//   on byte 15            how many elements looked for room here and went on; 255 means that many or more
//
// A search goes on to the next group only if byte 14 says so. When the count comes down to 0, byte 14 is cleared: there
// are no tombstones, and nothing to clean up after any number of insertions and erasures. Masks have bit i for slot i.
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
  static constexpr unsigned most_slots = 14;
  static constexpr unsigned char empty = 0;
  static constexpr unsigned char closed = 1;
  static constexpr unsigned char lowest_mark = 2;
  static constexpr std::size_t beyond = 14;
  static constexpr std::size_t count = 15;
  static constexpr unsigned char count_limit = 255;

  static unsigned char mark_of(std::uint64_t hash) noexcept {
    const auto top = static_cast<unsigned char>(hash >> 56);
    return top < lowest_mark ? lowest_mark : top;
  }
  static unsigned char beyond_bit(std::uint64_t hash) noexcept {
    return static_cast<unsigned char>(1u << (hash >> 53 & 7));
  }
  static bool goes_on(const unsigned char* group, std::uint64_t hash) noexcept {
    return (group[beyond] >> (hash >> 53 & 7) & 1) != 0;
  }
  // An element with this hash found no room here.
  static void pass(unsigned char* group, std::uint64_t hash) noexcept {
    group[beyond] = static_cast<unsigned char>(group[beyond] | beyond_bit(hash));
    if (group[count] != count_limit) ++group[count];
  }
  // Such an element is gone.
  static void unpass(unsigned char* group) noexcept {
    if (group[count] != count_limit && --group[count] == 0) group[beyond] = 0;
  }

#if defined(__SSE2__) && !defined(SLUICE_TABLE_PORTABLE)
  // What a search looks for, in each of sixteen bytes.
  using pattern = __m128i;
  static pattern pattern_of(std::uint64_t hash) noexcept {
    return _mm_max_epu8(_mm_set1_epi8(static_cast<char>(hash >> 56)), _mm_set1_epi8(lowest_mark));
  }
  static __m128i load(const unsigned char* group) noexcept {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(group));
  }
  // Writes all sixteen bytes: the next search reads them at once, and would wait for a byte on its way to the cache.
  static void set(unsigned char* group, unsigned slot, unsigned char value) noexcept {
    alignas(16) static constexpr unsigned char places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const __m128i there = _mm_cmpeq_epi8(load(places), _mm_set1_epi8(static_cast<char>(slot)));
    const __m128i changed = _mm_or_si128(_mm_andnot_si128(there, load(group)),
                                         _mm_and_si128(there, _mm_set1_epi8(static_cast<char>(value))));
    _mm_store_si128(reinterpret_cast<__m128i*>(group), changed);
  }
  static unsigned matches(const unsigned char* group, pattern mark) noexcept {
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(load(group), mark)));
  }
  static unsigned empties(const unsigned char* group) noexcept {
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(load(group), _mm_setzero_si128())));
  }
  static unsigned taken(const unsigned char* group) noexcept {
    const __m128i marks = load(group);
    return static_cast<unsigned>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(marks, _mm_set1_epi8(lowest_mark)), marks)));
  }
#else
  using pattern = std::uint64_t;
  static pattern pattern_of(std::uint64_t hash) noexcept {
    return mark_of(hash) * ones;
  }
  static unsigned matches(const unsigned char* group, pattern mark) noexcept {
    return zeros(load(group) ^ mark) | zeros(load(group + 8) ^ mark) << 8;
  }
  static unsigned empties(const unsigned char* group) noexcept {
    return zeros(load(group)) | zeros(load(group + 8)) << 8;
  }
  static unsigned taken(const unsigned char* group) noexcept {
    // Both 0 and 1 are 0 without their lowest bit.
    return ~(zeros(load(group) & ~ones) | zeros(load(group + 8) & ~ones) << 8) & 0xffff;
  }
  static void set(unsigned char* group, unsigned slot, unsigned char value) noexcept {
    unsigned char* const from = group + (slot & 8);
    const unsigned shift = slot % 8 * 8;
    std::uint64_t word = load(from);
    word = (word & ~(std::uint64_t{0xff} << shift)) | static_cast<std::uint64_t>(value) << shift;
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    std::memcpy(from, &word, sizeof(word));
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

// A table without slots, for tables that have taken no memory. Never written to.
alignas(table_group::bytes) inline constexpr unsigned char no_slots[table_group::bytes] = {1, 1, 1, 1, 1, 1, 1, 1,
                                                                                           1, 1, 1, 1, 1, 1, 0, 0};

}  // namespace sluice::detail
