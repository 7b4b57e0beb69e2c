// Print's number formats, and its way to a file descriptor. Open it when output looks wrong or gets lost.
#include "base/print.hpp"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/no_cancellation.hpp"

namespace sluice {
namespace {

constexpr size_t max_digits = 20;                 // of a 64-bit number in decimal
constexpr size_t number_capacity = 48;            // the longest number with separators, decimals and unit
constexpr int stalled_descriptor_wait_ms = 1000;  // how long a full non-blocking descriptor may hold up the process

// Characters of a number, written from its end to its start.
class NumberText {
 public:
  void prepend(char c) noexcept { text_[--start_] = c; }
  void prepend(std::string_view text) noexcept {
    for (size_t i = text.size(); i > 0; --i)
      prepend(text[i - 1]);
  }
  void prepend_decimal(uint64_t value, unsigned minimum_digits = 1) noexcept {
    for (unsigned digits = 0; value != 0 || digits < minimum_digits; ++digits, value /= 10)
      prepend(static_cast<char>('0' + value % 10));
  }
  const char* data() const noexcept { return text_ + start_; }
  size_t size() const noexcept { return number_capacity - start_; }

 private:
  char text_[number_capacity];
  size_t start_ = number_capacity;
};

// A write to a pipe that nobody reads raises SIGPIPE, and one past the limit of a file's size SIGXFSZ: either would end
// a process only because it prints its statistics. While one of these lives, a write(2) of its thread fails with EPIPE
// or EFBIG instead.
class WriteSignalsGuard {
 public:
  WriteSignalsGuard() noexcept {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    sigemptyset(&taken_);
    for (const int signal : {SIGPIPE, SIGXFSZ})
      if (sigismember(&pending, signal) == 0) sigaddset(&taken_, signal);
    blocked_ = pthread_sigmask(SIG_BLOCK, &taken_, &before_) == 0;
  }
  ~WriteSignalsGuard() {
    if (!blocked_) return;
    sigset_t pending;
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      int received = 0;
      if (sigismember(&taken_, signal) == 1 && sigpending(&pending) == 0 && sigismember(&pending, signal) == 1) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, signal);
        sigwait(&one, &received);
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalsGuard(const WriteSignalsGuard&) = delete;
  WriteSignalsGuard& operator=(const WriteSignalsGuard&) = delete;

 private:
  sigset_t taken_;  // those that were not pending before: they are of this thread's writes
  sigset_t before_;
  bool blocked_;
};

int write_all(int descriptor, const char* data, size_t size) noexcept {
  while (size > 0) {
    const ssize_t written = write(descriptor, data, size);
    if (written > 0) {
      data += written;
      size -= static_cast<size_t>(written);
    } else if (written == 0) {
      return EIO;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd wait_for{descriptor, POLLOUT, 0};
      const int ready = poll(&wait_for, 1, stalled_descriptor_wait_ms);
      if (ready == 0) return EAGAIN;
      if (ready < 0 && errno != EINTR) return errno;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int write_to_descriptor(void* context, const char* data, size_t size) noexcept {
  const int saved_errno = errno;
  int error;
  {
    const NoCancellation not_cancelled;
    const WriteSignalsGuard no_signals;
    error = write_all(static_cast<int>(reinterpret_cast<intptr_t>(context)), data, size);
  }
  errno = saved_errno;
  return error;
}

}  // namespace

Print::Print(char* buffer, size_t capacity, int descriptor) noexcept
    : Print(buffer, capacity, write_to_descriptor, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor))) {}

void Print::flush() noexcept {
  if (used_ > 0 && error_ == 0) error_ = sink_(context_, buffer_, used_);
  used_ = 0;
}

Print& Print::text(std::string_view text, unsigned width) noexcept {
  const size_t padding = width > text.size() ? width - text.size() : 0;
  while (!text.empty()) {
    if (used_ == capacity_) flush();
    const size_t room = capacity_ - used_;
    const size_t part = text.size() < room ? text.size() : room;
    memcpy(buffer_ + used_, text.data(), part);
    used_ += part;
    text.remove_prefix(part);
  }
  return character(' ', static_cast<unsigned>(padding));
}

Print& Print::character(char c, unsigned times) noexcept {
  for (; times > 0; --times) {
    if (used_ == capacity_) flush();
    buffer_[used_++] = c;
  }
  return *this;
}

Print& Print::right(const char* digits, size_t length, unsigned width) noexcept {
  if (width > length) character(' ', static_cast<unsigned>(width - length));
  return text({digits, length});
}

Print& Print::decimal(uint64_t value, unsigned width) noexcept {
  NumberText number;
  number.prepend_decimal(value);
  return right(number.data(), number.size(), width);
}

Print& Print::grouped(uint64_t value, unsigned width) noexcept {
  NumberText number;
  for (; value >= 1000; value /= 1000) {
    number.prepend_decimal(value % 1000, 3);
    number.prepend(',');
  }
  number.prepend_decimal(value);
  return right(number.data(), number.size(), width);
}

Print& Print::hexadecimal(uint64_t value, unsigned digits) noexcept {
  NumberText number;
  for (unsigned done = 0; value != 0 || (done < digits && done < max_digits); ++done, value /= 16)
    number.prepend("0123456789abcdef"[value % 16]);
  return right(number.data(), number.size(), 0);
}

Print& Print::size(uint64_t bytes, unsigned width) noexcept {
  static constexpr char units[] = "BKMGTPE";
  unsigned unit = 0;
  while (bytes >> (10 * unit) >= 1024)
    ++unit;

  NumberText number;
  if (unit == 0) {
    number.prepend(" B");
    number.prepend_decimal(bytes);
    return right(number.data(), number.size(), width);
  }
  uint64_t whole = bytes >> (10 * unit);
  const uint64_t fraction = (bytes >> (10 * (unit - 1))) & 1023;  // in 1/1024 of the unit
  const auto rounded = [&](unsigned scale) { return (whole * 1024 * scale + fraction * scale + 512) / 1024; };
  uint64_t scaled = rounded(100);
  unsigned decimals = 2;
  if (scaled >= 1000) scaled = rounded(10), decimals = 1;
  if (decimals == 1 && scaled >= 1000) scaled = rounded(1), decimals = 0;
  if (decimals == 0 && scaled == 1024 && unit < sizeof units - 2) scaled = 100, decimals = 2, ++unit;

  number.prepend("iB");
  number.prepend(units[unit]);
  number.prepend(' ');
  for (unsigned place = 0; place < decimals; ++place, scaled /= 10)
    number.prepend(static_cast<char>('0' + scaled % 10));
  if (decimals > 0) number.prepend('.');
  number.prepend_decimal(scaled);
  return right(number.data(), number.size(), width);
}

namespace {

void prepend_ratio(NumberText& number, uint64_t numerator, uint64_t denominator, unsigned decimals,
                   uint64_t factor) noexcept {
  uint64_t scale = 1;
  for (unsigned place = 0; place < decimals; ++place)
    scale *= 10;
  // Halving both sides keeps the product within 64 bits; the bits lost lie far behind the digits shown. What
  // is still too large then is some 10^11 times the denominator, and shown as the largest number that fits.
  const auto limit = [&] { return (UINT64_MAX - denominator / 2) / (scale * factor); };
  while (numerator > limit() && denominator > 1)
    numerator /= 2, denominator /= 2;
  if (numerator > limit()) numerator = limit();
  const uint64_t scaled = (numerator * scale * factor + denominator / 2) / denominator;
  if (decimals > 0) {
    number.prepend_decimal(scaled % scale, decimals);
    number.prepend('.');
  }
  number.prepend_decimal(scaled / scale);
}

}  // namespace

Print& Print::ratio(uint64_t numerator, uint64_t denominator, unsigned decimals, unsigned width) noexcept {
  if (denominator == 0) return right("-", 1, width);
  NumberText number;
  prepend_ratio(number, numerator, denominator, decimals < 6 ? decimals : 6, 1);
  return right(number.data(), number.size(), width);
}

Print& Print::percent(uint64_t part, uint64_t whole, unsigned width) noexcept {
  if (whole == 0) return right("-", 1, width);
  NumberText number;
  number.prepend(" %");
  prepend_ratio(number, part, whole, 1, 100);
  return right(number.data(), number.size(), width);
}

}  // namespace sluice
