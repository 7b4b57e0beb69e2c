// What the tests of the hardened front share: calls, what they say on stderr, and a fixture in which the process goes
// on after a mistake.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/options.hpp"
#include "heap_calls.hpp"

namespace sluice::test {

inline constexpr size_t mib = size_t{1} << 20;

inline char* allocate_chars(size_t size) {
  return static_cast<char*>(allocate(size));
}

// What is written to stderr meanwhile.
template <typename Act>
std::string said(Act act) {
  testing::internal::CaptureStderr();
  act();
  return testing::internal::GetCapturedStderr();
}

inline size_t count_of(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
    ++count;
  return count;
}

// Whether a system call may read the byte: nobody gets a signal.
inline bool is_accessible(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const long written = syscall(SYS_write, ends[1], address, size_t{1});
  close(ends[0]);
  close(ends[1]);
  return written == 1;
}

// Changes a byte. False where nobody can touch it: the mistake is stopped there.
inline bool change(char* at) {
  if (!is_accessible(at)) return false;
  *at = static_cast<char>(~*at);
  return true;
}

// Mistakes are reported, and the process goes on.
class Hardened : public testing::Test {
 protected:
  void SetUp() override {
    hardened::free(allocate(1));
    options.abort_on_corruption = false;
  }
  void TearDown() override {
    options.abort_on_corruption = true;
    const char* const wrong = heap::validate().what;
    EXPECT_EQ(wrong, nullptr) << wrong;
  }
};

// Writes to freed blocks, of which most have left their thread's queue. Returns: how many were reported: all but those
// in slabs that were given up before.
inline constexpr size_t written_to = 900;
inline size_t write_to_freed(size_t size, size_t offset) {
  return count_of(said([=] {
                    std::vector<char*> blocks, kept;
                    for (int i = 0; i < 1000; ++i)
                      (i % 10 == 0 ? kept : blocks).push_back(allocate_chars(size));
                    for (char* block : blocks)
                      hardened::free(block);
                    for (char* block : blocks)
                      block[offset] = static_cast<char>(block[offset] ^ 1);
                    for (int i = 0; i < 2000; ++i)
                      kept.push_back(allocate_chars(size));
                    (void)heap::trim(0);
                    for (char* block : kept)
                      hardened::free(block);
                  }),
                  "sluice: write to free memory: 0x");
}

}  // namespace sluice::test
