// Reads /proc/self/maps line by line, without stdio. For the sources of the Linux layer alone.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "os/linux_call.hpp"

namespace sluice::os {

inline constexpr size_t longest_line = 4096 + 128;

// The lines of a file, one by one. Longer ones than fit are cut.
class Lines {
 public:
  Lines(const char* path, char (&buffer)[longest_line]) noexcept
      : buffer_(buffer), file_(static_cast<int>(system_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0))) {}
  ~Lines() {
    if (file_ >= 0) (void)system_call(SYS_close, file_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  bool next(std::string_view* line) noexcept {
    for (;;) {
      const auto* const newline = static_cast<const char*>(memchr(buffer_ + begin_, '\n', end_ - begin_));
      if (newline != nullptr) {
        *line = {buffer_ + begin_, static_cast<size_t>(newline - (buffer_ + begin_))};
        begin_ += line->size() + 1;
        return true;
      }
      if (begin_ == 0 && end_ == sizeof buffer_) end_ = 0;  // too long to be of use
      memmove(buffer_, buffer_ + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      const long got = file_ >= 0 ? system_call(SYS_read, file_, buffer_ + end_, sizeof buffer_ - end_) : 0;
      if (got == -EINTR) continue;
      if (got <= 0) return false;
      end_ += static_cast<size_t>(got);
    }
  }

 private:
  char (&buffer_)[longest_line];
  const int file_;
  size_t begin_ = 0, end_ = 0;
};

inline uint64_t take_hexadecimal(std::string_view& text) noexcept {
  uint64_t value = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c >= '0' && c <= '9')
      value = value << 4 | static_cast<uint64_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value << 4 | static_cast<uint64_t>(c - 'a' + 10);
    else
      break;
  }
  return value;
}

inline void skip(std::string_view& text, size_t count) noexcept {
  text.remove_prefix(count < text.size() ? count : text.size());
}

}  // namespace sluice::os
