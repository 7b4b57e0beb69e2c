// Memory for the tests of what works on a caller's block: at any distance from an aligned address, with guards around
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace library_test {

inline std::uintptr_t address_of(const void* block) {
  return reinterpret_cast<std::uintptr_t>(block);
}

// A block of any size that starts `offset` bytes behind a multiple of 128.
class Guarded {
 public:
  Guarded(std::size_t offset, std::size_t bytes) : memory_(bytes + 1024), bytes_(bytes) {
    start_ = memory_.data() + (256 - address_of(memory_.data()) % 256) + 128 + offset;
    std::memset(memory_.data(), guard, memory_.size());
    std::memset(start_, 0, bytes);
  }
  unsigned char* start() { return start_; }
  bool guards_intact() const {
    for (const unsigned char& byte : memory_)
      if ((&byte < start_ || &byte >= start_ + bytes_) && byte != guard) return false;
    return true;
  }

 private:
  static constexpr unsigned char guard = 0xa7;
  std::vector<unsigned char> memory_;
  unsigned char* start_;
  std::size_t bytes_;
};

}  // namespace library_test
