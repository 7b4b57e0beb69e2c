// A hash of texts that is the same on every run: for tables of keys, and to compare what a scenario made of its texts
// with what it should have made. Open it to change what a text is reduced to.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace scenario {

inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9fb21c651e98df25u;
  return hash ^ hash >> 29;
}

inline std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = mixed(0x6a09e667f3bcc909u, text.size());
  for (; text.size() >= sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    hash = mixed(hash, word);
  }
  std::uint64_t rest = 0;
  for (const char letter : text)
    rest = rest << 8 | static_cast<unsigned char>(letter);
  return mixed(hash, rest);
}

}  // namespace scenario
