// Print: text into a small buffer that is handed on when it is full. Open it to write a message or a report
// from inside the allocator, where neither stdio nor the heap may be used, or to add a number format.
//
//   char buffer[512];
//   Print out(buffer, sizeof buffer, STDERR_FILENO);
//   out.text("sluice: ").decimal(n).text(" bytes\n");   // handed on by the destructor, or by finish()
//
// The output is not bounded by the buffer. Nothing here allocates, takes a lock, reads the locale or changes
// errno. Widths are minimum widths; numbers are right-aligned, text is left-aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

// Receives the text piece by piece. Returns: 0, or an errno value, after which the rest of the output is
// dropped.
using PrintSink = int (*)(void* context, const char* data, size_t size) noexcept;

class Print {
 public:
  // Requires: capacity > 0; the buffer outlives the Print. Effects: output goes to a file descriptor by
  // write(2), which is repeated after a short write or EINTR and waits for a descriptor that is full for at
  // most a second. A broken pipe and a limited file size are errors, not signals; it is no cancellation point.
  Print(char* buffer, size_t capacity, int descriptor) noexcept;

  // Requires: capacity > 0; buffer and context outlive the Print. Effects: output goes to sink(context, …).
  Print(char* buffer, size_t capacity, PrintSink sink, void* context) noexcept
      : buffer_(buffer), capacity_(capacity), sink_(sink), context_(context) {}

  ~Print() { flush(); }
  Print(const Print&) = delete;
  Print& operator=(const Print&) = delete;

  Print& text(std::string_view text, unsigned width = 0) noexcept;
  Print& character(char c, unsigned times = 1) noexcept;

  // 1234567
  Print& decimal(uint64_t value, unsigned width = 0) noexcept;
  // 1,234,567
  Print& grouped(uint64_t value, unsigned width = 0) noexcept;
  // 12f, in lower case; at least `digits` digits
  Print& hexadecimal(uint64_t value, unsigned digits = 1) noexcept;
  // 512 B, 1.50 KiB, 12.3 MiB, 123 GiB: three significant digits in the largest fitting power of 1024
  Print& size(uint64_t bytes, unsigned width = 0) noexcept;
  // 12.345: numerator / denominator, rounded to `decimals` (at most 6) places; "-" when the denominator is 0
  Print& ratio(uint64_t numerator, uint64_t denominator, unsigned decimals, unsigned width = 0) noexcept;
  // 12.3 %: one decimal place; "-" when the whole is 0
  Print& percent(uint64_t part, uint64_t whole, unsigned width = 0) noexcept;

  // Effects: hands on what is in the buffer.
  void flush() noexcept;

  // Effects: as flush. Returns: 0, or the errno value of the first failure; output after a failure is
  // dropped.
  int finish() noexcept {
    flush();
    return error_;
  }

 private:
  Print& right(const char* digits, size_t length, unsigned width) noexcept;

  char* const buffer_;
  const size_t capacity_;
  size_t used_ = 0;
  const PrintSink sink_;
  void* const context_;
  int error_ = 0;
};

}  // namespace sluice
