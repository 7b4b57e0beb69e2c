// inline_buffer, inline_stream, inline_string and split. Open it to add what is done to text, or a peer.
#include <charconv>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "micro.hpp"
#include "sluice/inline_buffer.hpp"
#include "sluice/inline_stream.hpp"
#include "sluice/inline_string.hpp"
#include "sluice/inline_vector.hpp"
#include "sluice/split.hpp"

#if MICRO_BOOST
#include <boost/container/string.hpp>
#endif
#if MICRO_ABSL
#include <absl/container/inlined_vector.h>
#include <absl/strings/str_split.h>
#endif
#if MICRO_LLVM
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>
#endif
#if MICRO_FMT
#include <fmt/format.h>
#endif

namespace micro {
namespace {

constexpr std::size_t inside = 256;  // bytes that fit inside the buffers and streams

std::string letters(std::size_t count) {
  std::string text;
  for (const std::uint32_t letter : random_numbers(count, 26))
    text += static_cast<char>('a' + letter);
  return text;
}

/// Pieces of 3 to 34 letters that together are at most `total` long.
std::vector<std::string_view> pieces(std::size_t total) {
  static const std::string text = letters(8192);
  std::vector<std::string_view> found;
  std::size_t used = 0;
  for (const std::uint32_t size : random_numbers(1024, 32)) {
    if (used + size + 3 > total) break;
    found.push_back(std::string_view(text).substr(used, size + 3));
    used += size + 3;
  }
  return found;
}

// ---- buffers

template <class Buffer>
void push_bytes(benchmark::State& state, std::size_t count) {
  const std::string text = letters(count);
  measure(state, count, [&] {
    Buffer buffer;
    for (const char letter : text)
      buffer.push_back(letter);
    consume(buffer.data());
  });
}
template <class Buffer>
void append_piece(Buffer& buffer, std::string_view piece) {
  if constexpr (requires { buffer.append(piece); })
    buffer.append(piece);
  else if constexpr (requires { buffer.append(piece.data(), piece.data() + piece.size()); })
    buffer.append(piece.data(), piece.data() + piece.size());
  else
    buffer.insert(buffer.end(), piece.begin(), piece.end());
}
template <class Buffer>
void append_pieces(benchmark::State& state, std::size_t total) {
  const std::vector<std::string_view> all = pieces(total);
  measure(state, all.size(), [&] {
    Buffer buffer;
    for (const std::string_view piece : all)
      append_piece(buffer, piece);
    consume(buffer.data());
  });
}
#if MICRO_FMT
/// A line of two numbers and a word, by a format string.
template <class Buffer>
void format_line(benchmark::State& state) {
  int number = 12345;
  measure(state, 1, [&] {
    Buffer buffer;
    blur(number);
    fmt::format_to(std::back_inserter(buffer), "{} of {}: {}\n", number, number + 7, "pieces");
    consume(buffer.data());
  });
}
#endif
template <class Buffer>
void add_buffer(const std::string& who) {
  const std::string component = "inline_buffer";
  for (const std::size_t count : {200, 4000}) {
    const std::string size = std::to_string(count);
    add(component, "bytes_" + size, who, [=](benchmark::State& state) { push_bytes<Buffer>(state, count); });
    add(component, "pieces_" + size, who, [=](benchmark::State& state) { append_pieces<Buffer>(state, count); });
  }
#if MICRO_FMT
  add(component, "format_line", who, format_line<Buffer>);
#endif
}

// ---- streams

/// Sixteen numbers written with spaces between them; nanoseconds for a number.
template <class Stream>
void write_numbers(benchmark::State& state) {
  const std::vector<std::uint32_t> numbers = random_numbers(16, 1'000'000);
  measure(state, numbers.size(), [&] {
    Stream stream;
    for (const std::uint32_t number : numbers)
      stream << number << ' ';
    consume(stream);
  });
}
/// The same in one stream that is emptied each time.
template <class Stream, class Empty>
void write_numbers_again(benchmark::State& state, Empty empty) {
  const std::vector<std::uint32_t> numbers = random_numbers(16, 1'000'000);
  Stream stream;
  measure(state, numbers.size(), [&] {
    empty(stream);
    for (const std::uint32_t number : numbers)
      stream << number << ' ';
    consume(stream);
  });
}
/// Sixteen numbers read from text, with blanks between them.
template <class Stream>
void read_numbers(benchmark::State& state) {
  std::string text;
  for (const std::uint32_t number : random_numbers(16, 1'000'000))
    text += std::to_string(number) + ' ';
  measure(state, 16, [&] {
    Stream stream;
    stream << std::string_view(text);
    std::uint32_t number = 0, sum = 0;
    while (stream >> number)
      sum += number;
    consume(sum);
  });
}
/// Sixteen words read from text.
template <class Stream>
void read_words(benchmark::State& state) {
  const std::string text = "the quick brown fox jumps over a lazy dog and it runs away in great haste";
  measure(state, 16, [&] {
    Stream stream;
    stream << std::string_view(text);
    std::string word;
    std::size_t sum = 0;
    while (stream >> word)
      sum += word.size();
    consume(sum);
  });
}
/// Sixteen times eight bytes written as they are, and read back.
template <class Stream>
void binary(benchmark::State& state) {
  measure(state, 16, [&] {
    Stream stream;
    for (std::uint64_t i = 0; i < 16; ++i)
      stream.write(reinterpret_cast<const char*>(&i), sizeof i);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0, value = 0; i < 16; ++i) {
      stream.read(reinterpret_cast<char*>(&value), sizeof value);
      sum += value;
    }
    consume(sum);
  });
}
template <class Stream>
void add_stream(const std::string& who) {
  add("inline_stream", "write_numbers", who, write_numbers<Stream>);
  add("inline_stream", "read_numbers", who, read_numbers<Stream>);
  add("inline_stream", "read_words", who, read_words<Stream>);
  add("inline_stream", "binary", who, binary<Stream>);
}
#if MICRO_FMT
void format_numbers(benchmark::State& state) {
  const std::vector<std::uint32_t> numbers = random_numbers(16, 1'000'000);
  measure(state, numbers.size(), [&] {
    fmt::basic_memory_buffer<char, inside> buffer;
    for (const std::uint32_t number : numbers)
      fmt::format_to(std::back_inserter(buffer), FMT_STRING("{} "), number);
    consume(buffer.data());
  });
}
#endif
#if MICRO_LLVM
void raw_numbers(benchmark::State& state) {
  const std::vector<std::uint32_t> numbers = random_numbers(16, 1'000'000);
  measure(state, numbers.size(), [&] {
    llvm::SmallString<inside> buffer;
    llvm::raw_svector_ostream stream(buffer);
    for (const std::uint32_t number : numbers)
      stream << number << ' ';
    consume(buffer.data());
  });
}
#endif

// ---- strings

template <class String>
String make(std::string_view text) {
  if constexpr (std::is_constructible_v<String, std::string_view>)
    return String(text);
  else
    return String(text.data(), text.data() + text.size());
}

/// Strings made from `count` letters, one after another.
template <class String>
void construct(benchmark::State& state, std::size_t count) {
  const std::string text = letters(count);
  std::string_view known = text;
  measure(state, 1, [&] {
    blur(known);
    const String string = make<String>(known);
    consume(string.data());
  });
}
template <class String>
void copy(benchmark::State& state, std::size_t count) {
  const String string = make<String>(letters(count));
  const String* known = &string;
  measure(state, 1, [&] {
    blur(known);
    const String other(*known);
    consume(other.data());
  });
}
/// Nanoseconds for a string that is moved into a new one and back.
template <class String>
void move_string(benchmark::State& state, std::size_t count) {
  String string = make<String>(letters(count));
  measure(state, 2, [&] {
    String other(std::move(string));
    consume(other.data());
    string = std::move(other);
    consume(string.data());
  });
}
template <class String>
void append(benchmark::State& state, std::size_t total) {
  const std::vector<std::string_view> all = pieces(total);
  measure(state, all.size(), [&] {
    String string;
    for (const std::string_view piece : all) {
      if constexpr (requires { string.append(piece); })
        string.append(piece);
      else
        string.append(piece.data(), piece.data() + piece.size());
    }
    consume(string.data());
  });
}
template <class String>
void push_letters(benchmark::State& state, std::size_t count) {
  const std::string text = letters(count);
  measure(state, count, [&] {
    String string;
    for (const char letter : text)
      string.push_back(letter);
    consume(string.data());
  });
}
/// 256 strings of which most differ early, compared with their neighbours: for equality, and for order.
template <class String, bool Order>
void compare(benchmark::State& state, std::size_t count) {
  std::vector<String> strings;
  for (std::uint64_t seed = 1; seed <= 256; ++seed) {
    std::string text;
    for (const std::uint32_t letter : random_numbers(count, 3, seed))
      text += static_cast<char>('a' + letter);
    strings.push_back(make<String>(text));
  }
  measure(state, strings.size() - 1, [&] {
    std::size_t found = 0;
    for (std::size_t i = 1; i < strings.size(); ++i)
      found += Order ? strings[i - 1] < strings[i] : strings[i - 1] == strings[i];
    consume(found);
  });
}
template <class String>
void add_string(const std::string& who) {
  const auto add_case = [&](const std::string& what, void (*body)(benchmark::State&, std::size_t), std::size_t count) {
    add("inline_string", what + "_" + std::to_string(count), who, [=](benchmark::State& state) { body(state, count); });
  };
  for (const std::size_t count : {8, 30, 100}) {
    add_case("construct", construct<String>, count);
    add_case("copy", copy<String>, count);
    add_case("move", move_string<String>, count);
  }
  add_case("append", append<String>, 30);
  add_case("append", append<String>, 1000);
  add_case("push_back", push_letters<String>, 30);
  add_case("push_back", push_letters<String>, 1000);
  add_case("equal", compare<String, false>, 20);
  add_case("less", compare<String, true>, 20);
}

// ---- split

constexpr std::string_view line =
    "name,street and number,city,postal code,country,phone,mail@example.org,remarks that are longer";
constexpr std::size_t fields = 8;

/// The plain loop that programs write for this.
template <class Out>
void split_by_hand(std::string_view text, char separator, Out& out) {
  for (;;) {
    const std::size_t end = text.find(separator);
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}
/// `split` fills a new container each time; nanoseconds for a field.
template <class Out, class Split>
void split_line(benchmark::State& state, Split split) {
  std::string_view text = line;
  measure(state, fields, [&] {
    blur(text);
    Out out;
    split(text, out);
    consume(out.data());
  });
}
template <class Out, class Split>
void add_split(const std::string& what, const std::string& who, Split split) {
  add("split", what, who, [=](benchmark::State& state) { split_line<Out>(state, split); });
}

void add_splits() {
  const auto ours = [](std::string_view text, auto& out) { sluice::split(text, ',', out); };
  const auto by_hand = [](std::string_view text, auto& out) { split_by_hand(text, ',', out); };
  add_split<sluice::inline_vector<sluice::inline_string<24>, fields>>("to_strings", "sluice::split", ours);
  add_split<sluice::inline_vector<std::string_view, fields>>("to_views", "sluice::split", ours);
  add_split<std::vector<std::string>>("to_strings", "loop to std::vector", by_hand);
  add_split<std::vector<std::string_view>>("to_views", "loop to std::vector", by_hand);
#if MICRO_ABSL
  add_split<std::vector<std::string>>("to_strings", "absl::StrSplit", [](std::string_view text, auto& out) {
    out = absl::StrSplit(absl::string_view(text.data(), text.size()), ',');
  });
  add_split<std::vector<absl::string_view>>("to_views", "absl::StrSplit", [](std::string_view text, auto& out) {
    out = absl::StrSplit(absl::string_view(text.data(), text.size()), ',');
  });
  add_split<absl::InlinedVector<std::string, fields>>("to_strings", "loop to absl::InlinedVector", by_hand);
#endif
#if MICRO_LLVM
  add_split<llvm::SmallVector<llvm::StringRef, fields>>(
      "to_views", "llvm::StringRef::split",
      [](std::string_view text, auto& out) { llvm::StringRef(text.data(), text.size()).split(out, ','); });
#endif
}

}  // namespace

void add_all() {
  add_buffer<sluice::inline_buffer<inside>>("sluice::inline_buffer");
#if MICRO_FMT
  add_buffer<fmt::basic_memory_buffer<char, inside>>("fmt::memory_buffer");
#endif
#if MICRO_LLVM
  add_buffer<llvm::SmallVector<char, inside>>("llvm::SmallVector");
#endif
  add_buffer<std::string>("std::string");
  add_buffer<std::vector<char>>("std::vector");

  add_stream<sluice::inline_stream<inside>>("sluice::inline_stream");
  add_stream<std::stringstream>("std::stringstream");
  const std::string again = "write_numbers_again";
  add("inline_stream", again, "sluice::inline_stream", [](benchmark::State& state) {
    write_numbers_again<sluice::inline_stream<inside>>(state, [](auto& stream) { stream.reset(); });
  });
  add("inline_stream", again, "std::stringstream", [](benchmark::State& state) {
    write_numbers_again<std::stringstream>(state, [](auto& stream) { stream.str({}); });
  });
#if MICRO_FMT
  add("inline_stream", "write_numbers", "fmt::memory_buffer", format_numbers);
#endif
#if MICRO_LLVM
  add("inline_stream", "write_numbers", "llvm::raw_svector_ostream", raw_numbers);
#endif

  add_string<sluice::inline_string<32>>("sluice::inline_string");
  add_string<std::string>("std::string");
#if MICRO_BOOST
  add_string<boost::container::string>("boost::string");
#endif
#if MICRO_LLVM
  add_string<llvm::SmallString<32>>("llvm::SmallString");
#endif

  add_splits();
}

}  // namespace micro
