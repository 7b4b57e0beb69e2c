// SipHash-2-4 of a few words: what comes out looks random to whoever does not know the key, and tells nothing of it.
// Open it for how one random value of the system serves several purposes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice::os {

struct HashKey {
  uint64_t low, high;
};

namespace keyed_hash_detail {

struct State {
  uint64_t a, b, c, d;

  constexpr void mix(int rounds) noexcept {
    for (; rounds != 0; --rounds) {
      a += b;
      c += d;
      b = std::rotl(b, 13) ^ a;
      d = std::rotl(d, 16) ^ c;
      a = std::rotl(a, 32) + d;
      c += b;
      d = std::rotl(d, 21) ^ a;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
  }
  constexpr void take(uint64_t word) noexcept {
    d ^= word;
    mix(2);
    a ^= word;
  }
};

}  // namespace keyed_hash_detail

// The words count as bytes in little-endian order.
template <size_t count>
constexpr uint64_t keyed_hash(const HashKey& key, const uint64_t (&words)[count]) noexcept {
  keyed_hash_detail::State state{key.low ^ 0x736f6d6570736575u, key.high ^ 0x646f72616e646f6du,
                                 key.low ^ 0x6c7967656e657261u, key.high ^ 0x7465646279746573u};
  for (const uint64_t word : words)
    state.take(word);
  state.take(uint64_t{count * sizeof(uint64_t)} << 56);
  state.c ^= 0xff;
  state.mix(4);
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace sluice::os
