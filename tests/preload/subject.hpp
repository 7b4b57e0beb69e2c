// What every program of the preload tests shares: proof that libsluice.so serves the process, a way to hide
// values from the optimiser, payloads that show overlap and loss, and the resident set. Open it to write
// another such program.
//
// The programs are ordinary: they are started with LD_PRELOAD=libsluice.so by ctest. PRELOAD_TEST_ANY=1 drops
// the demand that sluice is there, which lets one see how another allocator keeps the same contract.
// PRELOAD_TEST_SCALE=N multiplies the repetitions of the long tests.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace subject {

// Returns: value, of which the compiler no longer knows anything. Keeps it from removing or warning about
// calls whose whole point is to be odd.
template <class T>
[[gnu::always_inline]] inline T hide(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

inline bool any_allocator_will_do() {
  return std::getenv("PRELOAD_TEST_ANY") != nullptr;
}

// Returns: the name of the file that has the symbol which a program gets under this name; empty when there is none.
inline std::string_view file_of(const char* name) {
  void* const symbol = dlsym(RTLD_DEFAULT, name);
  Dl_info where;
  if (symbol == nullptr || dladdr(symbol, &where) == 0 || where.dli_fname == nullptr) return {};
  const std::string_view path = where.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

inline bool is_secure_build() {
  return file_of("malloc").starts_with("libsluice-secure.so");
}

inline bool is_served(const char* name) {
  return file_of(name).starts_with("libsluice.so") || file_of(name).starts_with("libsluice-secure.so");
}

// Effects: ends the process with status 3 and one line when malloc or free does not come from libsluice.so.
inline void require_sluice() {
  if (any_allocator_will_do() || (is_served("malloc") && is_served("free"))) return;
  std::fputs("not run: malloc is not served by libsluice.so; start with LD_PRELOAD=libsluice.so\n", stderr);
  std::exit(3);
}

inline long scaled(long count) {
  const char* const scale = std::getenv("PRELOAD_TEST_SCALE");
  return scale != nullptr ? count * std::strtol(scale, nullptr, 10) : count;
}

inline bool is_aligned(const void* block, size_t alignment) {
  return reinterpret_cast<uintptr_t>(block) % alignment == 0;
}

// A payload is told by its seed: blocks that overlap, or that lose bytes, no longer hold their own.
inline unsigned char payload_byte(uint64_t seed, size_t index) {
  return static_cast<unsigned char>((seed * 0x9e3779b97f4a7c15u + index * 0xff51afd7ed558ccdu) >> 56);
}
inline void fill(void* block, size_t size, uint64_t seed) {
  auto* const bytes = static_cast<unsigned char*>(block);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = payload_byte(seed, i);
}
inline bool holds(const void* block, size_t size, uint64_t seed) {
  const auto* const bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != payload_byte(seed, i)) return false;
  }
  return true;
}
inline bool is_filled_with(const void* block, size_t size, unsigned char value) {
  const auto* const bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

// A small pseudo-random sequence, the same in every run.
class Sequence {
 public:
  explicit Sequence(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1du >> 16;
  }
  size_t below(size_t limit) { return static_cast<size_t>(next() % limit); }

 private:
  uint64_t state_;
};

// Returns: bytes of this process that are in memory. Does not allocate.
inline size_t resident_bytes() {
  char text[128];
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  char* rest = nullptr;
  std::strtoul(text, &rest, 10);
  return std::strtoul(rest, nullptr, 10) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

inline constexpr size_t KiB = 1024;
inline constexpr size_t MiB = 1024 * KiB;
inline constexpr size_t GiB = 1024 * MiB;

}  // namespace subject
