// Pieces of text that scenarios put into their strings. Open it to change what the strings hold.
#pragma once

#include <cstdint>
#include <string_view>

namespace scenario {

constexpr std::uint32_t longest_text = 120;

/// A text of at most longest_text letters: a piece of one long line, which begins at one of its first letters by `key`.
inline std::string_view text_piece(std::uint64_t key, std::uint32_t length) {
  constexpr std::uint32_t starts = 32;
  constexpr std::string_view line =
      "It was the kind of river that nobody measured: broad and slow above the weir, quick and brown below "
      "it, and the "
      "lock-keeper let the boats through in the order in which they had come.";
  static_assert(line.size() >= starts + longest_text);
  return line.substr(key % starts, length);
}

}  // namespace scenario
