// Protocol buffers, as far as the profile's file needs them: numbers, texts and messages within messages. Open it to
// see how the file's bytes come about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::stats {

// Writes into memory of a fixed size; what does not fit makes it full for good. Does not allocate.
class Protobuf {
 public:
  Protobuf(char* memory, size_t capacity) noexcept : begin_(memory), at_(memory), end_(memory + capacity) {}

  bool full() const noexcept { return full_; }
  std::string_view bytes() const noexcept { return {begin_, static_cast<size_t>(at_ - begin_)}; }

  // A number; fields that are 0 may be left out.
  void number(unsigned field, uint64_t value) noexcept {
    if (value == 0) return;
    varint(field << 3);
    varint(value);
  }
  void text(unsigned field, std::string_view value) noexcept {
    varint(field << 3 | 2);
    varint(value.size());
    raw(value);
  }
  void raw(std::string_view value) noexcept {
    if (!has_room(value.size())) return;
    memcpy(at_, value.data(), value.size());
    at_ += value.size();
  }
  void varint(uint64_t value) noexcept {
    if (!has_room(longest_varint)) return;
    for (; value >= 0x80; value >>= 7)
      *at_++ = static_cast<char>(value | 0x80);
    *at_++ = static_cast<char>(value);
  }

  // A message or a packed list of numbers: write(), between the two, adds what is in it.
  template <typename Write>
  void message(unsigned field, Write write) noexcept {
    varint(field << 3 | 2);
    const auto start = static_cast<size_t>(at_ - begin_);
    write();
    // The length comes before what was written.
    const auto length = static_cast<size_t>(at_ - begin_) - start;
    if (!has_room(longest_varint)) return;
    char* const from = begin_ + start;
    varint(length);
    const auto digits = static_cast<size_t>(at_ - begin_) - start - length;
    char prefix[longest_varint];
    memcpy(prefix, at_ - digits, digits);
    memmove(from + digits, from, length);
    memcpy(from, prefix, digits);
  }

 private:
  static constexpr size_t longest_varint = 10;

  bool has_room(size_t bytes) noexcept {
    full_ = full_ || static_cast<size_t>(end_ - at_) < bytes;
    return !full_;
  }

  char* const begin_;
  char* at_;
  char* const end_;
  bool full_ = false;
};

}  // namespace sluice::stats
