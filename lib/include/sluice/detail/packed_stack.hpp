// A stack of numbers of any width from 1 to 32 bits that costs exactly that many bits a number. Open it to see or to
// change how odd widths are laid out.
//
// A number is cut in two. Its whole bytes, the lowest, lie in arrays of integers of 8, 16 or 32 bits; 24 are 16 and 8.
// What is left, 1 to 7 bits, goes through a word that shifts and holds what was pushed last, so that no push has to
// read a word of a table to change a part of it. When the word is full, the group of them that is in it goes to the
// table; it comes back when the word is empty, so that a few pushes and pops in turn never move one to and fro:
//
//   bits left    1    2    3    4    5    6    7        18 bits: 16 in an array, 2 in groups of 16
//   a group     32   16   16    8    8    8    8        21 bits: 16 in an array, 5 in groups of 8
//   its bytes    4    4    6    4    5    6    7        24 bits: 16 in an array, 8 in another
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sluice/detail/checks.hpp"

namespace sluice::detail {

// The integers of one width.
template <class Integer, std::size_t N>
class integer_plane {
 public:
  constexpr integer_plane() noexcept {
    if (std::is_constant_evaluated())  // a constant has no part without a value
      for (Integer& each : items_)
        each = 0;
  }
  constexpr std::uint32_t get(std::size_t place) const noexcept { return initialized(items_[place]); }
  constexpr void set(std::size_t place, std::uint32_t value) noexcept { items_[place] = static_cast<Integer>(value); }

 private:
  Integer items_[N];
};

// The whole bytes of the numbers: `Width` bits of each.
template <unsigned Width, std::size_t N>
class whole_bytes;
template <std::size_t N>
class whole_bytes<0, N> {
 public:
  constexpr std::uint32_t get(std::size_t) const noexcept { return 0; }
  constexpr void set(std::size_t, std::uint32_t) noexcept {}
};
template <std::size_t N>
class whole_bytes<8, N> : public integer_plane<std::uint8_t, N> {};
template <std::size_t N>
class whole_bytes<16, N> : public integer_plane<std::uint16_t, N> {};
template <std::size_t N>
class whole_bytes<32, N> : public integer_plane<std::uint32_t, N> {};
template <std::size_t N>
class whole_bytes<24, N> {
 public:
  constexpr std::uint32_t get(std::size_t place) const noexcept { return low_.get(place) | high_.get(place) << 16; }
  constexpr void set(std::size_t place, std::uint32_t value) noexcept {
    low_.set(place, value);
    high_.set(place, value >> 16);
  }

 private:
  integer_plane<std::uint16_t, N> low_;
  integer_plane<std::uint8_t, N> high_;
};

// The other bits: a stack of N numbers of `Width` bits, which is told how many there are.
template <unsigned Width, std::size_t N>
class odd_bits {
 public:
  constexpr odd_bits() noexcept {
    if (std::is_constant_evaluated())
      for (unsigned char& each : groups_)
        each = 0;
  }
  // Requires: size < N.
  constexpr void push(std::size_t size, std::uint32_t value) noexcept {
    if (word_ >> in_group * Width != 0) [[unlikely]] {
      save(size / in_group - 1);
      word_ = 0;
    }
    word_ = word_ << Width ^ (value ^ (mask + 2));
  }
  // Requires: size > 0.
  constexpr std::uint32_t pop(std::size_t size) noexcept {
    if (word_ == 0) [[unlikely]]
      word_ = saved(size / in_group - 1);
    const std::uint32_t value = (static_cast<std::uint32_t>(word_) & mask) ^ 1;
    word_ = word_ >> Width ^ 1;
    return value;
  }
  // Effects: there are none.
  constexpr void clear() noexcept { word_ = 0; }
  // Requires: place < size.
  constexpr std::uint32_t get(std::size_t size, std::size_t place) const noexcept {
    const std::size_t in_word = (static_cast<std::size_t>(std::bit_width(word_ ^ 1)) - 1) / Width;
    const bool is_in_word = size - place <= in_word;
    const std::uint64_t word = (is_in_word ? word_ : saved(place / in_group)) ^ 1;
    const std::size_t above = is_in_word ? size - 1 - place : in_group - 1 - place % in_group;
    return static_cast<std::uint32_t>(word >> above * Width) & mask;
  }

 private:
  static constexpr std::size_t in_group = Width == 1 ? 32 : Width <= 3 ? 16 : 8;
  static constexpr std::size_t group_bytes = in_group * Width / 8;
  static constexpr std::size_t bytes = (N - 1) / in_group * group_bytes;
  static constexpr std::uint32_t mask = (std::uint32_t{1} << Width) - 1;

  constexpr void save(std::size_t group) noexcept {
    for (std::size_t i = 0; i < group_bytes; ++i)
      groups_[group * group_bytes + i] = static_cast<unsigned char>(word_ >> 8 * i);
  }
  constexpr std::uint64_t saved(std::size_t group) const noexcept {
    const unsigned char* const from = groups_ + group * group_bytes;
    std::uint64_t word = std::uint64_t{1} << in_group * Width | initialized(from[0]) |
                         std::uint32_t{initialized(from[1])} << 8 | std::uint32_t{initialized(from[2])} << 16 |
                         std::uint32_t{initialized(from[3])} << 24;  // compilers make one load of this
    for (std::size_t i = 4; i < group_bytes; ++i)
      word |= std::uint64_t{initialized(from[i])} << 8 * i;
    return word;
  }

  // The last number in the lowest bits, the others in turn above it, and above them a bit that is set, by whose place
  // the word is known to be full or empty; the lowest bit inverted, so that an empty word is zero.
  std::uint64_t word_ = 0;
  unsigned char groups_[bytes == 0 ? 1 : bytes];
};
template <std::size_t N>
class odd_bits<0, N> {
 public:
  constexpr void push(std::size_t, std::uint32_t) noexcept {}
  constexpr std::uint32_t pop(std::size_t) noexcept { return 0; }
  constexpr void clear() noexcept {}
  constexpr std::uint32_t get(std::size_t, std::size_t) const noexcept { return 0; }
};

// Room for N numbers of `Bits` bits. The owner knows how many there are, and says so.
template <unsigned Bits, std::size_t N>
class packed_stack {
  static_assert(Bits >= 1 && Bits <= 32);

 public:
  // Requires: size < N, and the value has no more than `Bits` bits.
  constexpr void push(std::size_t size, std::uint32_t value) noexcept {
    whole_.set(size, value);
    odd_.push(size, shifted(value));
  }
  // Requires: size > 0.
  constexpr std::uint32_t pop(std::size_t size) noexcept { return join(whole_.get(size - 1), odd_.pop(size)); }
  // Effects: there are none; the owner's size is 0 from now on.
  constexpr void clear() noexcept { odd_.clear(); }
  // Requires: place < size. The first that was pushed has place 0.
  constexpr std::uint32_t get(std::size_t size, std::size_t place) const noexcept {
    return join(whole_.get(place), odd_.get(size, place));
  }

 private:
  static constexpr unsigned whole = Bits / 8 * 8;
  static constexpr std::uint32_t shifted(std::uint32_t value) noexcept { return whole == 32 ? 0 : value >> whole % 32; }
  static constexpr std::uint32_t join(std::uint32_t low, std::uint32_t high) noexcept {
    return low | high << whole % 32;
  }

  [[no_unique_address]] odd_bits<Bits % 8, N> odd_;
  [[no_unique_address]] whole_bytes<whole, N> whole_;
};

}  // namespace sluice::detail
