// Print: number formats, the buffer's seams, and file descriptors that misbehave.
#include "base/print.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using sluice::Print;

int append(void* text, const char* data, size_t size) noexcept {
  static_cast<std::string*>(text)->append(data, size);
  return 0;
}

// What `write` prints through a buffer of `capacity` bytes.
template <typename Write>
std::string printed(Write write, size_t capacity = 64) {
  std::string text;
  std::string buffer(capacity, '\0');
  Print out(buffer.data(), capacity, append, &text);
  write(out);
  EXPECT_EQ(out.finish(), 0);
  return text;
}

std::string size_of(uint64_t bytes) {
  return printed([&](Print& out) { out.size(bytes); });
}

TEST(Print, writes_decimal_numbers_right_aligned_in_their_width) {
  EXPECT_EQ(printed([](Print& out) { out.decimal(0); }), "0");
  EXPECT_EQ(printed([](Print& out) { out.decimal(UINT64_MAX); }), "18446744073709551615");
  EXPECT_EQ(printed([](Print& out) { out.decimal(42, 5); }), "   42");
  EXPECT_EQ(printed([](Print& out) { out.decimal(123456, 3); }), "123456");
}

TEST(Print, groups_thousands) {
  EXPECT_EQ(printed([](Print& out) { out.grouped(0); }), "0");
  EXPECT_EQ(printed([](Print& out) { out.grouped(999); }), "999");
  EXPECT_EQ(printed([](Print& out) { out.grouped(1000); }), "1,000");
  EXPECT_EQ(printed([](Print& out) { out.grouped(1000007, 11); }), "  1,000,007");
  EXPECT_EQ(printed([](Print& out) { out.grouped(UINT64_MAX); }), "18,446,744,073,709,551,615");
}

TEST(Print, writes_hexadecimal_with_leading_zeros) {
  EXPECT_EQ(printed([](Print& out) { out.hexadecimal(0); }), "0");
  EXPECT_EQ(printed([](Print& out) { out.hexadecimal(0x1f, 4); }), "001f");
  EXPECT_EQ(printed([](Print& out) { out.hexadecimal(UINT64_MAX); }), "ffffffffffffffff");
}

TEST(Print, shows_three_digits_of_a_size_in_its_largest_unit) {
  EXPECT_EQ(size_of(0), "0 B");
  EXPECT_EQ(size_of(1023), "1023 B");
  EXPECT_EQ(size_of(1024), "1.00 KiB");
  EXPECT_EQ(size_of(1536), "1.50 KiB");
  EXPECT_EQ(size_of(10 * 1024), "10.0 KiB");
  EXPECT_EQ(size_of(100 * 1024), "100 KiB");
  EXPECT_EQ(size_of(1023 * 1024), "1023 KiB");
  EXPECT_EQ(size_of(uint64_t{1} << 20), "1.00 MiB");
  EXPECT_EQ(size_of(uint64_t{3} << 40), "3.00 TiB");
  EXPECT_EQ(size_of(UINT64_MAX), "16.0 EiB");
}

TEST(Print, rounds_a_size_up_into_the_next_form) {
  EXPECT_EQ(size_of(10 * 1024 - 1), "10.0 KiB");
  EXPECT_EQ(size_of(100 * 1024 - 1), "100 KiB");
  EXPECT_EQ(size_of((1 << 20) - 1), "1.00 MiB");
}

TEST(Print, never_shows_more_than_four_digits_of_a_size) {
  for (unsigned shift = 0; shift < 64; ++shift)
    for (int64_t offset : {-1, 0, 1}) {
      const std::string text = size_of((uint64_t{1} << shift) + static_cast<uint64_t>(offset));
      EXPECT_LE(text.size(), 8u) << text;
    }
}

TEST(Print, rounds_ratios_to_the_decimals_asked_for) {
  EXPECT_EQ(printed([](Print& out) { out.ratio(1, 3, 3); }), "0.333");
  EXPECT_EQ(printed([](Print& out) { out.ratio(2, 3, 3); }), "0.667");
  EXPECT_EQ(printed([](Print& out) { out.ratio(7, 2, 0); }), "4");
  EXPECT_EQ(printed([](Print& out) { out.ratio(999999, 1000000, 2, 6); }), "  1.00");
  EXPECT_EQ(printed([](Print& out) { out.ratio(5, 0, 2); }), "-");
}

TEST(Print, keeps_ratios_of_huge_numbers_right) {
  EXPECT_EQ(printed([](Print& out) { out.ratio(UINT64_MAX, UINT64_MAX, 6); }), "1.000000");
  EXPECT_EQ(printed([](Print& out) { out.percent(UINT64_MAX / 2, UINT64_MAX); }), "50.0 %");
  EXPECT_EQ(printed([](Print& out) { out.percent(uint64_t{3} << 60, uint64_t{1} << 62); }), "75.0 %");
}

TEST(Print, writes_percentages) {
  EXPECT_EQ(printed([](Print& out) { out.percent(1, 8); }), "12.5 %");
  EXPECT_EQ(printed([](Print& out) { out.percent(0, 8, 7); }), "  0.0 %");
  EXPECT_EQ(printed([](Print& out) { out.percent(1, 0, 7); }), "      -");
}

TEST(Print, pads_text_on_the_right) {
  EXPECT_EQ(printed([](Print& out) { out.text("ab", 4).character('|'); }), "ab  |");
  EXPECT_EQ(printed([](Print& out) { out.text("abcd", 2).character('|'); }), "abcd|");
}

TEST(Print, gives_the_same_text_whatever_the_size_of_its_buffer) {
  const auto write = [](Print& out) {
    out.text("a text longer than most of the buffers, ")
        .decimal(1234567890, 14)
        .character('x', 9)
        .size(1536)
        .text("\n");
  };
  const std::string whole = printed(write, 1000);
  for (size_t capacity = 1; capacity < 100; ++capacity)
    EXPECT_EQ(printed(write, capacity), whole) << capacity;
}

TEST(Print, hands_a_short_line_on_in_one_piece) {
  static int pieces;
  pieces = 0;
  char buffer[64];
  {
    Print out(
        buffer, sizeof buffer, [](void*, const char*, size_t) noexcept { return ++pieces, 0; }, nullptr);
    out.text("one ").decimal(2).text(" three\n");
  }
  EXPECT_EQ(pieces, 1);
}

TEST(Print, keeps_the_first_error_and_drops_what_follows) {
  static int calls;
  calls = 0;
  char buffer[4];
  Print out(
      buffer, sizeof buffer, [](void*, const char*, size_t) noexcept { return ++calls, ENOSPC; }, nullptr);
  out.text("much more than four characters");
  EXPECT_EQ(out.finish(), ENOSPC);
  EXPECT_EQ(out.finish(), ENOSPC);
  EXPECT_EQ(calls, 1);
}

TEST(Print, reports_a_full_disk_and_a_closed_descriptor_and_leaves_errno_alone) {
  char buffer[16];
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  errno = 12345;
  EXPECT_EQ(Print(buffer, sizeof buffer, full).text("text").finish(), ENOSPC);
  close(full);
  errno = 12345;
  EXPECT_EQ(Print(buffer, sizeof buffer, full).text("text").finish(), EBADF);
  EXPECT_EQ(errno, 12345);
}

TEST(Print, survives_a_pipe_that_nobody_reads) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  char buffer[16];
  EXPECT_EQ(Print(buffer, sizeof buffer, ends[1]).text("text").finish(), EPIPE);
  close(ends[1]);

  sigset_t pending, blocked;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGPIPE), 0);
}

TEST(Print, survives_a_limit_on_the_size_of_files) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const rlimit ten_bytes{10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &ten_bytes), 0);
  char buffer[16];
  const int error = Print(buffer, sizeof buffer, fileno(file)).text("a text of more than ten bytes").finish();
  setrlimit(RLIMIT_FSIZE, &before);
  std::fclose(file);
  EXPECT_EQ(error, EFBIG);

  sigset_t pending, blocked;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGXFSZ), 0);
}

TEST(Print, waits_for_a_non_blocking_descriptor_that_is_full) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const std::string long_text(1 << 20, 'x');
  std::string received;
  std::thread reader([&] {
    fcntl(ends[0], F_SETFL, 0);
    char part[4096];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
      received.append(part, static_cast<size_t>(got));
  });
  char buffer[512];
  EXPECT_EQ(Print(buffer, sizeof buffer, ends[1]).text(long_text).finish(), 0);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(received, long_text);
}

}  // namespace
