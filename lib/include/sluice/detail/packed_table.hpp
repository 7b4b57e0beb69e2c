// A table of N numbers of any width from 1 to 32 bits that costs exactly that many bits a number. Open it to see or to
// change how odd widths are laid out.
//
// The width is split into powers of two, each with a table of its own, so that no number lies across a boundary of
// words. 32, 16 and 8 bits are arrays of integers; 4, 2 and 1 bits are packed, eight, sixteen and thirty-two to a
// 32-bit word, lowest first. The widest table holds the lowest bits:
//
//    1 = 1            7 = 4+2+1        13 = 8+4+1        19 = 16+2+1        25 = 16+8+1
//    2 = 2            8 = 8            14 = 8+4+2        20 = 16+4          26 = 16+8+2
//    3 = 2+1          9 = 8+1          15 = 8+4+2+1      21 = 16+4+1        27 = 16+8+2+1
//    4 = 4           10 = 8+2          16 = 16           22 = 16+4+2        28 = 16+8+4
//    5 = 4+1         11 = 8+2+1        17 = 16+1         23 = 16+4+2+1      29 = 16+8+4+1
//    6 = 4+2         12 = 8+4          18 = 16+2         24 = 16+8          30 = 16+8+4+2; 31 = all five; 32
//
// A read or a write touches as many tables as there are terms. Each table is rounded up to whole words or integers, and
// the whole to its widest integer: with N a multiple of 32 there is no rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::detail {

// The table of one power of two.
template <unsigned Width, std::size_t N, bool Present, bool = (Width < 8)>
class bit_plane {
 public:
  constexpr bit_plane() noexcept {
    if (std::is_constant_evaluated())  // a constant has no part without a value
      for (integer& each : items_)
        each = 0;
  }
  constexpr std::uint32_t get(std::size_t place) const noexcept { return items_[place]; }
  constexpr void set(std::size_t place, std::uint32_t value) noexcept { items_[place] = static_cast<integer>(value); }

 private:
  using integer =
      std::conditional_t<Width == 8, std::uint8_t, std::conditional_t<Width == 16, std::uint16_t, std::uint32_t>>;
  integer items_[N];
};

template <unsigned Width, std::size_t N>
class bit_plane<Width, N, true, true> {
 public:
  constexpr std::uint32_t get(std::size_t place) const noexcept {
    return words_[place / in_word] >> shift(place) & mask;
  }
  constexpr void set(std::size_t place, std::uint32_t value) noexcept {
    std::uint32_t& word = words_[place / in_word];
    word = (word & ~(mask << shift(place))) | (value & mask) << shift(place);
  }

 private:
  static constexpr std::size_t in_word = 32 / Width;
  static constexpr std::uint32_t mask = (std::uint32_t{1} << Width) - 1;
  static constexpr unsigned shift(std::size_t place) noexcept { return static_cast<unsigned>(place % in_word) * Width; }
  std::uint32_t words_[(N + in_word - 1) / in_word] = {};  // read before all of it is written: starts as zero
};

template <unsigned Width, std::size_t N, bool Packed>
class bit_plane<Width, N, false, Packed> {
 public:
  constexpr std::uint32_t get(std::size_t) const noexcept { return 0; }
  constexpr void set(std::size_t, std::uint32_t) noexcept {}
};

template <unsigned Bits, std::size_t N>
class packed_table {
  static_assert(Bits >= 1 && Bits <= 32);

 public:
  // Requires: place < N, and it was set before.
  constexpr std::uint32_t get(std::size_t place) const noexcept {
    return plane32_.get(place) | plane16_.get(place) << shift(16) | plane8_.get(place) << shift(8) |
           plane4_.get(place) << shift(4) | plane2_.get(place) << shift(2) | plane1_.get(place) << shift(1);
  }
  // Effects: keeps the lowest `Bits` bits of the value; all other places are as before. Requires: place < N.
  constexpr void set(std::size_t place, std::uint32_t value) noexcept {
    plane32_.set(place, value);
    plane16_.set(place, value >> shift(16));
    plane8_.set(place, value >> shift(8));
    plane4_.set(place, value >> shift(4));
    plane2_.set(place, value >> shift(2));
    plane1_.set(place, value >> shift(1));
  }

 private:
  // Returns: where in a value the bits of a table begin: behind those of the wider tables. Below 32 if it is present.
  static constexpr unsigned shift(unsigned width) noexcept { return (Bits & width) != 0 ? Bits & ~(2 * width - 1) : 0; }
  template <unsigned Width>
  using plane = bit_plane<Width, N, (Bits & Width) != 0>;

  // In the order of their alignments, so that there is no padding between them.
  [[no_unique_address]] plane<32> plane32_;
  [[no_unique_address]] plane<4> plane4_;
  [[no_unique_address]] plane<2> plane2_;
  [[no_unique_address]] plane<1> plane1_;
  [[no_unique_address]] plane<16> plane16_;
  [[no_unique_address]] plane<8> plane8_;
};

}  // namespace sluice::detail
