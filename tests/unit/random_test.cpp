// Random values of the operating-system layer: mixed well, different each time, and no way back to what the kernel gave
// the process, of which libc makes the stack canary.
#include <bit>
#include <set>

#include <gtest/gtest.h>
#include <sys/auxv.h>

#include "os/keyed_hash.hpp"
#include "os/memory.hpp"

namespace {

using namespace sluice;

// As openssl computes it: openssl mac -macopt size:8 -macopt hexkey:000102030405060708090a0b0c0d0e0f SIPHASH
TEST(Random, TheKeyedHashIsSipHash) {
  constexpr os::HashKey key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  EXPECT_EQ(os::keyed_hash(key, {0x0706050403020100u}), 0x93f5f5799a932462u);
  EXPECT_EQ(os::keyed_hash(key, {0x0706050403020100u, 0x0f0e0d0c0b0a0908u}), 0x3f2acc7f57c29bdbu);
}

TEST(Random, ValuesDifferFromCallToCallInManyBits) {
  std::set<uint64_t> seen;
  uint64_t last = os::random_bits();
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t next = os::random_bits();
    EXPECT_GE(std::popcount(next ^ last), 8);
    EXPECT_TRUE(seen.insert(next).second);
    last = next;
  }
}

// The window's place is made of these bits: it must not follow what else is made of the same seed.
TEST(Random, EachByteOfTheSystemsSeedChangesManyBits) {
  auto* const seed = reinterpret_cast<volatile unsigned char*>(getauxval(AT_RANDOM));
  ASSERT_NE(seed, nullptr);
  for (int at = 0; at < 16; ++at) {
    const uint64_t before = os::random_bits();
    seed[at] = static_cast<unsigned char>(seed[at] ^ 1);
    const uint64_t after = os::random_bits();
    seed[at] = static_cast<unsigned char>(seed[at] ^ 1);
    EXPECT_GE(std::popcount(before ^ after), 8) << at;
  }
}

}  // namespace
