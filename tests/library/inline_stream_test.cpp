// inline_stream: what is written is read back, and reads never leave what was written.
#include "sluice/inline_stream.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "counting_resource.hpp"

namespace {

using library_test::CountingResource;
using sluice::inline_buffer;
using sluice::inline_stream;
using sluice::stream_base;

template <class T>
concept writable = requires(stream_base& stream, T value) {
  stream << value;
};
template <class T>
concept puttable = requires(stream_base& stream, const T& value) {
  stream.put(value);
};
template <class Text>
concept text_writable = requires(stream_base& stream, const Text& text) {
  stream << text;
};
enum Unscoped { one };
static_assert(writable<int> && writable<char> && writable<const void*> && writable<std::string> && writable<bool>);
static_assert(!writable<wchar_t> && !writable<char32_t> && !writable<Unscoped> && !writable<void (*)()>);
static_assert(text_writable<char[4]> && !text_writable<wchar_t[4]> && !text_writable<char8_t[4]> &&
              !text_writable<char16_t*> && !text_writable<const char32_t*> && text_writable<unsigned char*>);
static_assert(puttable<int> && puttable<std::array<int, 2>> && puttable<Unscoped>);
static_assert(!puttable<const char*> && !puttable<std::string_view> && !puttable<std::string>);
static_assert(std::is_nothrow_move_constructible_v<inline_stream<4>> && !std::is_copy_constructible_v<stream_base>);
static_assert(!std::is_convertible_v<stream_base*, sluice::buffer_base*>);
static_assert(sizeof(inline_stream<0>) <= 56 && sizeof(inline_stream<64>) <= 120);

TEST(InlineStream, ReadsBackTextAndValuesMixed) {
  CountingResource resource;
  inline_stream<128> stream(&resource);
  stream_base& base = stream;
  base << "level " << 3 << '\n' << -1.5 << ' ' << true << ' ' << std::uint8_t{200} << ' ';
  base.put(std::uint16_t{0xbeef}).put(std::array<float, 2>{1, 2}) << std::string("tail") << inline_buffer<4>("end");
  std::string word;
  int level = 0;
  double number = 0;
  bool truth = false;
  std::uint8_t byte = 0;
  base >> word >> level >> number >> truth >> byte;
  ASSERT_TRUE(base);
  EXPECT_EQ(word, "level");
  EXPECT_EQ(level, 3);
  EXPECT_EQ(number, -1.5);
  EXPECT_TRUE(truth);
  EXPECT_EQ(byte, 200);
  ASSERT_TRUE(base.skip(1));
  EXPECT_EQ(base.get<std::uint16_t>(), 0xbeef);
  const std::array<float, 2> expected{1, 2};
  EXPECT_EQ((base.get<std::array<float, 2>>()), expected);
  EXPECT_EQ(base.unread(), "tailend");
  EXPECT_EQ(resource.allocations(), 0u);
}

TEST(InlineStream, NeverReadsPastTheEndAndThenStaysWhereItIs) {
  const volatile std::size_t most = SIZE_MAX;  // unknown to the compiler, which would warn
  for (const std::size_t length : {0u, 1u, 7u}) {
    // Heap bytes with nothing behind them, for the address sanitizer.
    inline_stream<0> stream(std::string(length, '7'));
    stream.shrink_to_fit();
    std::array<char, 8> out{};
    out.fill('o');
    for (std::size_t position = 0; position <= length; ++position) {
      const auto expect_left = [&] {
        EXPECT_TRUE(stream.eof() && stream.fail() && !stream);
        EXPECT_EQ(stream.tell(), position);
        stream.clear();
      };
      ASSERT_TRUE(stream.seek(position));
      EXPECT_FALSE(stream.read(out.data(), length - position + 1));
      EXPECT_EQ(out[0], 'o');
      expect_left();
      EXPECT_FALSE(stream.read(out.data(), most));
      expect_left();
      EXPECT_FALSE(stream.skip(length - position + 1));
      expect_left();
      EXPECT_FALSE(stream.skip(most));
      expect_left();
      EXPECT_EQ(stream.get<std::uint64_t>(), std::nullopt);
      expect_left();
      EXPECT_TRUE(stream.read(out.data(), 0));
    }
    stream.seek(length);
    int number = 5;
    char character = 'c';
    bool truth = true;
    std::string text = "text";
    EXPECT_EQ(stream.peek(), std::nullopt);
    EXPECT_FALSE(stream.fail());
    EXPECT_FALSE(stream >> number);
    stream.clear();
    EXPECT_FALSE(stream >> character);
    stream.clear();
    EXPECT_FALSE(stream >> truth);
    EXPECT_TRUE(stream.eof());
    stream.clear();
    EXPECT_FALSE(stream >> text);
    stream.clear();
    EXPECT_FALSE(stream.getline(text));
    stream.clear();
    EXPECT_EQ(stream.read_some(out.data(), 8), 0u);
    EXPECT_TRUE(stream.eof());
    EXPECT_EQ(stream.tell(), length);
    EXPECT_TRUE(number == 5 && character == 'c' && truth && text == "text");
  }
}

TEST(InlineStream, FailsUntilCleared) {
  inline_stream<16> stream("x 12 true");
  int number = 0;
  EXPECT_FALSE(stream >> number);
  EXPECT_FALSE(stream.eof());
  std::string word = "w";
  bool truth = false;
  char byte = 'b';
  EXPECT_FALSE(stream >> word);
  EXPECT_FALSE(stream >> truth);
  EXPECT_FALSE(stream >> byte);
  EXPECT_FALSE(stream.read(&byte, 1));
  EXPECT_FALSE(stream.skip(0));
  EXPECT_FALSE(stream.get<char>());
  EXPECT_FALSE(stream.getline(word));
  EXPECT_EQ(stream.read_some(&byte, 1), 0u);
  EXPECT_FALSE(stream.eof()) << "the first reason stays";
  EXPECT_EQ(stream.tell(), 0u);
  EXPECT_TRUE(word == "w" && byte == 'b');
  stream << " more";
  stream.clear();
  EXPECT_TRUE(stream >> word >> number >> truth);
  EXPECT_TRUE(word == "x" && number == 12 && truth);
  stream.set_fail();
  EXPECT_TRUE(stream.fail());
  stream.rewind();
  EXPECT_TRUE(stream && stream.tell() == 0);
}

template <class T>
void round_trip(std::initializer_list<T> values) {
  for (const T value : values) {
    for (const std::size_t room : {0u, 64u}) {
      inline_stream<64> stream(std::string(64 - room, ' '));
      stream << value << ' ';
      stream.put(value);
      T text{}, binary{};
      ASSERT_TRUE(stream >> text) << stream.view();
      ASSERT_TRUE(stream.skip(1) && stream.read(&binary, sizeof binary));
      ASSERT_EQ(std::memcmp(&binary, &value, sizeof(T) < 16 ? sizeof(T) : 10), 0);  // NOLINT: of the same bytes
      ASSERT_EQ(text, value) << stream.view();
      ASSERT_EQ(std::signbit(static_cast<long double>(text)), std::signbit(static_cast<long double>(value)));
      EXPECT_TRUE(stream.at_end());
    }
  }
}

TEST(InlineStream, WritesNumbersSoThatTheyReadBackTheSame) {
  const auto extremes = []<class... T>(T...) {
    (round_trip<T>({std::numeric_limits<T>::min(), std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max(),
                    T(1), T(0), T(99), T(100), T(101)}),
     ...);
  };
  extremes(std::int8_t{}, std::uint8_t{}, std::int16_t{}, std::uint16_t{}, std::int32_t{}, std::uint32_t{},
           std::int64_t{}, std::uint64_t{}, 0LL, 0ULL, 0.0F, 0.0, 0.0L);
  round_trip<double>({-0.0, 0.1, 1.0 / 3, 1e22, 1e23, 5e-324, 2.2250738585072011e-308,
                      std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()});
  std::mt19937_64 random(7);
  inline_stream<32> stream;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    const auto number = std::bit_cast<double>(bits);
    const std::uint64_t some_bits = bits >> random() % 64;
    const auto some_signed = static_cast<std::int64_t>(some_bits) * (i % 2 == 0 ? 1 : -1);
    double read_number = 0;
    std::uint64_t read_bits = 0;
    std::int64_t read_signed = 0;
    stream.reset();
    stream << some_bits << ' ' << some_signed << '\t';
    ASSERT_EQ(stream.view(), std::to_string(some_bits) + ' ' + std::to_string(some_signed) + '\t');
    ASSERT_TRUE(stream >> read_bits >> read_signed);
    ASSERT_TRUE(read_bits == some_bits && read_signed == some_signed) << stream.view();
    if (std::isnan(number)) continue;
    stream << number;
    ASSERT_TRUE(stream >> read_number) << stream.view();
    ASSERT_EQ(std::bit_cast<std::uint64_t>(read_number), bits) << stream.view();
  }
}

// libstdc++ looks for a terminator when it reads such text as a long double; here nothing is behind it.
TEST(InlineStream, ReadsInfinityAndNanWithNothingBehindThem) {
  const auto read = []<class T>(const char* text, T) {
    inline_stream<0> stream{std::string_view(text)};
    stream.shrink_to_fit();
    T number = 5;
    stream >> number;
    EXPECT_EQ(stream.fail(), stream.tell() == 0);
    return stream ? number : T(0);
  };
  const auto all = [&](auto zero) {
    EXPECT_EQ(read("inf", zero), INFINITY);
    EXPECT_EQ(read("-infinity", zero), -INFINITY);
    EXPECT_EQ(read(" +InF", zero), INFINITY);
    EXPECT_TRUE(std::isnan(read("nan", zero)));
    EXPECT_TRUE(std::isnan(read("-NAN", zero)));
    EXPECT_EQ(read("in", zero), zero);
    EXPECT_EQ(read("-n", zero), zero);
    EXPECT_EQ(read("number", zero), zero);
    EXPECT_EQ(read("-", zero), zero);
    EXPECT_EQ(read("info", zero), INFINITY);
  };
  all(0.0F);
  all(0.0);
  all(0.0L);
  inline_stream<40> stream(std::string_view("inf 7 nan 1e4000 -inf"));
  long double infinite = 0, seven = 0, nan = 0, large = 0, negative = 0;
  EXPECT_TRUE(stream >> infinite >> seven >> nan >> large >> negative);
  EXPECT_TRUE(std::isinf(infinite) && seven == 7 && std::isnan(nan) && large > 1e300L && negative < 0);
  EXPECT_TRUE(stream.at_end());
}

TEST(InlineStream, PrintsIntegersAsToCharsDoes) {
  std::uint64_t power = 1;
  for (int i = 0; i < 20; ++i, power *= 10)
    for (const std::uint64_t number : {power - 1, power, power + 1, 0 - power, std::uint64_t{1} << i * 3}) {
      inline_stream<100> stream;
      stream << number << ' ' << static_cast<std::int64_t>(number) << ' ' << static_cast<std::uint32_t>(number) << ' '
             << static_cast<std::int32_t>(number) << ' ' << static_cast<std::int16_t>(number) << ' '
             << static_cast<std::uint8_t>(number);
      EXPECT_EQ(stream.view(), std::to_string(number) + ' ' + std::to_string(static_cast<std::int64_t>(number)) + ' ' +
                                   std::to_string(static_cast<std::uint32_t>(number)) + ' ' +
                                   std::to_string(static_cast<std::int32_t>(number)) + ' ' +
                                   std::to_string(static_cast<std::int16_t>(number)) + ' ' +
                                   std::to_string(static_cast<std::uint8_t>(number)));
    }
}

template <class T>
void refuses(const char* text) {
  inline_stream<64> stream(text);
  T value{};
  EXPECT_FALSE(stream >> value) << text;
  EXPECT_FALSE(stream.eof()) << text;
  EXPECT_EQ(value, T{}) << text;
  EXPECT_EQ(stream.tell(), 0u) << text;
}

TEST(InlineStream, RefusesNumbersThatDoNotFitOrAreNone) {
  refuses<std::int8_t>("128");
  refuses<std::int8_t>(" -129");
  refuses<std::uint8_t>("256");
  refuses<std::int32_t>("2147483648");
  refuses<std::uint64_t>("18446744073709551616");
  refuses<std::uint64_t>("99999999999999999999999999999");
  refuses<unsigned>("-1");
  refuses<unsigned>("+-1");
  refuses<int>("+-1");
  refuses<int>("++1");
  refuses<int>("-");
  refuses<int>("+");
  refuses<int>("- 1");
  refuses<int>(".5");
  refuses<int>("x1");
  refuses<double>("1e999");
  refuses<double>("-1e-999");
  refuses<double>("e5");
  refuses<float>("1e39");
  refuses<bool>("2");
  refuses<bool>("10");
  refuses<bool>("yes");
}

TEST(InlineStream, ReadsNumbersUpToWhatCannotBelongToThem) {
  inline_stream<64> stream("+12abc 1.5.2 1e 0x10 \n\t\v\f\r 7");
  int number = 0;
  double real = 0;
  std::string_view word;
  EXPECT_TRUE(stream >> number >> word);
  EXPECT_TRUE(number == 12 && word == "abc");
  EXPECT_TRUE(stream >> real >> word);
  EXPECT_TRUE(real == 1.5 && word == ".2");
  EXPECT_TRUE(stream >> real >> word);
  EXPECT_TRUE(real == 1 && word == "e");
  EXPECT_TRUE(stream >> number >> word);
  EXPECT_TRUE(number == 0 && word == "x10");
  EXPECT_TRUE(stream >> number);
  EXPECT_EQ(number, 7);
  EXPECT_TRUE(stream.at_end() && !stream.fail());
  inline_stream<64> truths("true false 1 0 truefalse");
  std::string read;
  for (bool truth = false; truths >> truth;)
    read += truth ? '1' : '0';
  EXPECT_EQ(read, "101010");
}

TEST(InlineStream, PrintsInOtherBasesAndFormats) {
  inline_stream<16> stream;
  stream.print(255, 16).print(5, 2) << ' ';
  stream.print(3.14159, std::chars_format::fixed, 2) << ' ';
  stream.print(12345.0, std::chars_format::scientific, 1);
  EXPECT_EQ(stream.view(), "ff101 3.14 1.2e+04");
  stream.reset();
  stream << static_cast<const void*>(nullptr) << ' ' << reinterpret_cast<const void*>(std::uintptr_t{0xabc});
  EXPECT_EQ(stream.view(), "0x0 0xabc");
  stream.reset();
  stream.print(1e300, std::chars_format::fixed, 700);
  EXPECT_EQ(stream.size(), 301 + 1 + 700u);
  double number = 0;
  EXPECT_TRUE(stream >> number);
  EXPECT_EQ(number, 1e300);
}

TEST(InlineStream, TakesNoMemoryForNumbersThatFit) {
  CountingResource resource;
  for (std::size_t room = 0; room <= 24; ++room) {
    inline_stream<64> stream(std::string(64 - room, 'x'), &resource);
    if (room >= 1) stream << 5;
    if (room >= 12) stream << -1234567890;
    if (room >= 22) stream << 1.23456789;
    EXPECT_TRUE(stream.is_inline());
  }
  inline_stream<20> exactly(&resource);
  exactly << std::numeric_limits<std::int64_t>::min();
  exactly.reset();
  exactly << std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(resource.allocations(), 0u);
  exactly << 1;
  EXPECT_EQ(resource.allocations(), 1u);
  EXPECT_EQ(exactly.view(), "184467440737095516151");
}

TEST(InlineStream, GoesOnWhenMoreIsWrittenAfterTheEndWasRead) {
  inline_stream<8> stream;
  std::string word, all;
  for (int i = 0; i < 100; ++i) {
    stream << "word" << i << ' ';
    while (stream >> word)
      all += word;
    EXPECT_TRUE(stream.eof());
    stream.clear();
    if (i % 7 == 0) stream.discard_read();
  }
  std::string expected;
  for (int i = 0; i < 100; ++i)
    expected += "word" + std::to_string(i);
  EXPECT_EQ(all, expected);
  EXPECT_LT(stream.size(), 60u);
  EXPECT_EQ(stream.unread(), " ");
}

TEST(InlineStream, SeeksInsideOnly) {
  inline_stream<8> stream("0123456789");
  EXPECT_TRUE(stream.seek(10) && stream.at_end() && stream.peek() == std::nullopt);
  EXPECT_FALSE(stream.seek(11));
  EXPECT_FALSE(stream.seek(SIZE_MAX));
  EXPECT_EQ(stream.tell(), 10u);
  EXPECT_TRUE(stream.seek(3) && stream.peek() == '3' && stream.unread_size() == 7);
  EXPECT_FALSE(stream.fail());
  EXPECT_TRUE(stream.write_at(8, "AB", 2));
  EXPECT_FALSE(stream.write_at(9, "AB", 2));
  EXPECT_FALSE(stream.write_at(11, "", 0));
  EXPECT_FALSE(stream.write_at(1, "AB", SIZE_MAX));
  EXPECT_FALSE(stream.put_at(7, 1));
  EXPECT_TRUE(stream.write_at(10, nullptr, 0) && stream.put_at(0, 'z'));
  EXPECT_EQ(stream.str(), "z1234567AB");
}

TEST(InlineStream, FillsInALengthAfterwards) {
  inline_stream<64> stream;
  const std::size_t place = stream.size();
  stream.put(std::uint32_t{0});
  const std::size_t start = stream.size();
  stream << "payload";
  EXPECT_TRUE(stream.put_at(place, static_cast<std::uint32_t>(stream.size() - start)));
  EXPECT_EQ(stream.get<std::uint32_t>(), 7u);
  EXPECT_EQ(stream.unread(), "payload");
}

TEST(InlineStream, ReadsLines) {
  inline_stream<8> stream("one\n\ntwo;three\nlast");
  std::string line;
  std::string_view view;
  EXPECT_TRUE(stream.getline(line) && line == "one");
  EXPECT_TRUE(stream.getline(view) && view.empty());
  EXPECT_TRUE(stream.getline(line, ';') && line == "two");
  EXPECT_TRUE(stream.getline(view) && view == "three");
  EXPECT_TRUE(stream.getline(line) && line == "last");
  EXPECT_FALSE(stream.fail());
  EXPECT_FALSE(stream.getline(line));
  EXPECT_TRUE(stream.eof() && line == "last");
}

TEST(InlineStream, WritesAPieceOfItself) {
  inline_stream<4> stream("abcdef");
  for (int i = 0; i < 6; ++i)
    stream << stream.view() << stream.unread();
  EXPECT_EQ(stream.size(), 6u * 4096);
  stream.seek(3);
  stream << stream.unread();
  EXPECT_EQ(stream.size(), 2 * 6u * 4096 - 3);
}

TEST(InlineStream, MovesCopiesAndSwapsWithItsPositionAndState) {
  CountingResource resource;
  for (const std::size_t length : {4u, 100u}) {
    inline_stream<8> stream(std::string(length, 'x'), &resource);
    stream.seek(3);
    stream.set_fail();
    inline_stream<8> copy(stream, &resource);
    EXPECT_TRUE(copy.view() == stream.view() && copy.tell() == 3 && copy.fail());
    const char* const block = stream.view().data();
    inline_stream<8> moved(std::move(stream));
    EXPECT_TRUE(moved.view() == copy.view() && moved.tell() == 3 && moved.fail());
    EXPECT_EQ(moved.view().data() == block, length == 100);
    EXPECT_TRUE(stream.size() == 0 && stream.tell() == 0 && !stream.fail());  // NOLINT: what a moved-from stream is
    stream << "again";
    swap(stream, moved);
    EXPECT_TRUE(moved.view() == "again" && moved.tell() == 0 && stream.tell() == 3 && stream.fail());
    inline_stream<2> other(std::move(static_cast<stream_base&>(stream)));
    EXPECT_TRUE(other.view() == copy.view() && other.tell() == 3 && other.fail());
    stream_base& same = other;
    same = std::move(other);
    same = static_cast<const stream_base&>(same);
    EXPECT_TRUE(same.view() == copy.view() && same.tell() == 3 && same.fail());
    inline_buffer<4> buffer(&resource);
    const std::size_t before = resource.allocations();
    other.take(buffer);  // NOLINT: moved from, it is empty
    EXPECT_EQ(buffer, copy.view());
    EXPECT_EQ(resource.allocations(), before) << "stolen, or inside of both";
    EXPECT_TRUE(other.size() == 0 && !other.fail());
  }
}

TEST(InlineStream, StaysAsItWasWhenThereIsNoMemory) {
  CountingResource resource, other_resource;
  inline_stream<8> stream("12345678", &resource);
  const inline_stream<8> long_one(std::string(50, 'y'), &other_resource);
  stream.seek(2);
  resource.fail_after(0);
  EXPECT_THROW(stream << 5, std::bad_alloc);
  EXPECT_THROW(stream << 5.5, std::bad_alloc);
  EXPECT_THROW(stream << "5", std::bad_alloc);
  EXPECT_THROW(stream << '5', std::bad_alloc);
  EXPECT_THROW(stream.put(5), std::bad_alloc);
  EXPECT_THROW(stream.print(1e300, std::chars_format::fixed, 9), std::bad_alloc);
  EXPECT_THROW(stream = long_one, std::bad_alloc);
  EXPECT_THROW(stream.reset("123456789"), std::bad_alloc);
  EXPECT_TRUE(stream.view() == "12345678" && stream.tell() == 2 && stream);
}

}  // namespace
