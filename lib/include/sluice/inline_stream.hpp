// A stream in memory of which the first N bytes are inside the object: what is written at its end is read back from a
// position, as text or as the bytes of values. Open it for messages, saved games, commands and configuration lines,
// where std::stringstream is too slow or takes memory.
//
//   void save(const Player& player, sluice::stream_base& out) { out.put(player.level).put(player.position); }
//
//   sluice::inline_stream<512> stream;               // up to 512 bytes take no memory
//   save(player, stream);
//   stream << "gold " << 120 << '\n';
//   std::string_view word;  int gold = 0;
//   if (stream.skip(sizeof(Player)) && stream >> word >> gold) …
//
// Functions take stream_base&, which does not know N; objects are inline_stream<N>. Numbers are written and read as
// std::to_chars and std::from_chars do: the shortest text that gives the same number back, no locale, no manipulators.
// (Of long doubles, libstdc++ reads none back that is below the least normal one.)
// Not for files, and not where a std::ostream or std::istream is wanted; stream_buffer.hpp makes one of a stream.
//
// Memory: N bytes and 56 more, in the object; beyond N a block of a std::pmr::memory_resource. Bytes that have been
// read stay until discard_read or reset. Complexity: O(bytes written or read), amortized. Reading: a read that finds
// too few bytes, or other text than it wants, reads nothing: the position and the variable stay. The stream has then
// failed, and every later read fails until clear(). Writing goes on. Errors: writing throws std::bad_alloc or
// std::length_error, and the stream is then as it was; built without exceptions, the program ends. Invalidation:
// writing, shrink_to_fit, discard_read, moves and swaps invalidate views of the bytes. Thread-safety: none; as the
// standard's containers.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "sluice/detail/decimal.hpp"
#include "sluice/inline_buffer.hpp"

namespace sluice {

namespace detail {

// Characters of other texts than a stream's.
template <class T>
concept wide_character =
    std::same_as<T, wchar_t> || std::same_as<T, char8_t> || std::same_as<T, char16_t> || std::same_as<T, char32_t>;

// Numbers in text. char is a character; signed char and unsigned char, being std::int8_t and std::uint8_t, are numbers.
template <class T>
concept text_integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !wide_character<T>;
template <class T>
concept text_number = text_integer<T> || std::floating_point<T>;

// What put and get take: bytes that mean the same elsewhere. Addresses do not.
template <class T>
concept plain_value = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
                      !std::is_array_v<T> && !std::is_same_v<T, std::string_view> && !std::is_null_pointer_v<T>;

// What a word or a line is read into: std::string_view, std::string, inline_string.
template <class T>
concept text_target = !std::is_arithmetic_v<T> && requires(T & target, std::string_view text) {
  target = text;
};

}  // namespace detail

// A stream, whatever its N.
class stream_base : private buffer_base {
 public:
  using buffer_base::allocator_type;
  using buffer_base::capacity;
  using buffer_base::get_allocator;
  using buffer_base::inline_capacity;
  using buffer_base::is_inline;
  using buffer_base::reserve;
  using buffer_base::resource;
  using buffer_base::shrink_to_fit;

  // Effects: as buffer_base; the position and the state are those of `other`, which is like new when moved from.
  stream_base& operator=(const stream_base& other) {
    buffer_base::operator=(other);
    copy_state(other);
    return *this;
  }
  stream_base& operator=(stream_base&& other) {  // NOLINT: may take memory, for another resource
    if (this == &other) return *this;
    buffer_base::operator=(std::move(other));
    copy_state(other);  // NOLINT: of which only the bytes were moved
    other.reset();
    return *this;
  }
  void swap(stream_base& other) {
    buffer_base::swap(other);
    std::swap(position_, other.position_);
    std::swap(state_, other.state_);
  }
  friend void swap(stream_base& a, stream_base& b) { a.swap(b); }

  // Returns: how many bytes it holds, read or not.
  [[nodiscard]] std::size_t size() const noexcept { return buffer_base::size(); }
  // Returns: all bytes; those after the position; a copy of all.
  [[nodiscard]] std::string_view view() const noexcept { return buffer_base::view(); }
  [[nodiscard]] std::string_view unread() const noexcept { return {data_ + position_, unread_size()}; }
  [[nodiscard]] std::string str() const { return std::string(view()); }
  [[nodiscard]] std::span<const std::byte> as_bytes() const noexcept { return buffer_base::as_bytes(); }

  // Effects: holds nothing, like new; the memory stays.
  void reset() noexcept {
    buffer_base::clear();
    position_ = 0;
    state_ = good;
  }
  // Effects: holds these bytes, all unread, with nothing failed. Throws as write.
  void reset(std::string_view text) {
    buffer_base::assign(text);
    position_ = 0;
    state_ = good;
  }
  // Effects: gives all bytes, read or not, to the buffer, as by moving; the stream is then like new. Throws as append.
  void take(buffer_base& out) {
    out = static_cast<buffer_base&&>(*this);
    reset();
  }
  // Effects: forgets the bytes before the position, which becomes 0, so that a stream that is written and read for
  // ever does not grow for ever. O(unread bytes).
  void discard_read() noexcept {
    buffer_base::erase(0, position_);
    position_ = 0;
  }

  // The state. A read has failed; it did for lack of bytes.
  [[nodiscard]] bool fail() const noexcept { return state_ != good; }
  [[nodiscard]] bool eof() const noexcept { return state_ == ended; }
  [[nodiscard]] explicit operator bool() const noexcept { return state_ == good; }
  // Effects: nothing has failed. The bytes and the position stay.
  void clear() noexcept { state_ = good; }
  // Effects: the stream has failed; for operators that read types of yours and find them wrong.
  void set_fail() noexcept { state_ = failed; }

  // The position that is read from next. Writes do not change it.
  [[nodiscard]] std::size_t tell() const noexcept { return position_; }
  [[nodiscard]] std::size_t unread_size() const noexcept { return size_ - position_; }
  [[nodiscard]] bool at_end() const noexcept { return position_ == size_; }
  // Returns: whether there is such a position, from 0 to size(); if not, nothing changes. The state stays.
  bool seek(std::size_t position) noexcept {
    if (position > size_) return false;
    position_ = position;
    return true;
  }
  // Effects: everything is unread and nothing has failed.
  void rewind() noexcept {
    position_ = 0;
    state_ = good;
  }

  // Writing, at the end. Each returns the stream, and throws std::bad_alloc or std::length_error.
  stream_base& write(const void* bytes, std::size_t count) {
    buffer_base::append(bytes, count);
    return *this;
  }
  stream_base& write(std::string_view text) {
    buffer_base::append(text);
    return *this;
  }
  // Effects: writes the bytes of the value as they stand in memory, in this machine's byte order.
  template <detail::plain_value T>
  stream_base& put(const T& value) {
    return write(std::addressof(value), sizeof value);
  }
  // Effects: overwrites bytes, such as a length in front of what it counts. Returns: whether all of them lie in what
  // was written before; if not, nothing changes.
  bool write_at(std::size_t position, const void* bytes, std::size_t count) noexcept {
    if (position > size_ || count > size_ - position) return false;
    if (count != 0) std::memmove(data_ + position, bytes, count);
    return true;
  }
  template <detail::plain_value T>
  bool put_at(std::size_t position, const T& value) noexcept {
    return write_at(position, std::addressof(value), sizeof value);
  }

  stream_base& operator<<(std::string_view text) { return write(text); }
  stream_base& operator<<(const char* text) { return write(std::string_view(text)); }
  stream_base& operator<<(const buffer_base& buffer) { return write(buffer.view()); }
  // Only a char: an enumerator or a wide character would lose its value on the way to one.
  stream_base& operator<<(std::same_as<char> auto character) {
    buffer_base::push_back(character);
    return *this;
  }
  stream_base& operator<<(std::same_as<bool> auto truth) { return write(truth ? "true" : "false"); }
  // Effects: writes the shortest text that gives the same number back.
  template <detail::text_number T>
  stream_base& operator<<(T number) {
    if constexpr (std::integral<T> && sizeof(T) <= 8) {
      if (capacity_ - size_ >= detail::most_decimal_characters) [[likely]] {
        size_ = static_cast<std::size_t>(detail::print_decimal(data_ + size_, number) - data_);
        return *this;
      }
    }
    return print_with([number](char* first, char* last) { return std::to_chars(first, last, number); });
  }
  // Effects: writes the address, as 0x and hexadecimal digits.
  stream_base& operator<<(const void* address) {
    return write("0x").print(reinterpret_cast<std::uintptr_t>(address), 16);
  }
  // Text of other characters would be written as an address.
  template <detail::wide_character Char>
  stream_base& operator<<(const Char* text) = delete;
  // Effects: writes an integer in a base from 2 to 36; a number in a format, with so many digits.
  template <detail::text_integer T>
  stream_base& print(T number, int base) {
    return print_with([number, base](char* first, char* last) { return std::to_chars(first, last, number, base); });
  }
  template <std::floating_point T>
  stream_base& print(T number, std::chars_format format, int precision) {
    return print_with([number, format, precision](char* first, char* last) {
      return std::to_chars(first, last, number, format, precision);
    });
  }

  // Reading, from the position on. Returns: whether there were so many bytes; if not, the stream has failed.
  bool read(void* out, std::size_t count) noexcept {
    if (count > unread_size() || fail()) return fall_short();
    if (count != 0) std::memcpy(out, data_ + position_, count);
    position_ += count;
    return true;
  }
  bool skip(std::size_t count) noexcept {
    if (count > unread_size() || fail()) return fall_short();
    position_ += count;
    return true;
  }
  // Returns: how many bytes it has read, at most `count`. Fails when there were none but some were wanted.
  std::size_t read_some(void* out, std::size_t count) noexcept {
    const std::size_t most = count < unread_size() ? count : unread_size();
    if (most != 0 || count == 0) return read(out, most) ? most : 0;
    fall_short();
    return 0;
  }
  // Returns: the value whose bytes come next, as put has written them, or nothing. From a sender you do not trust, take
  // only types that every pattern of bits is a value of: no bool, no enum.
  template <detail::plain_value T>
  [[nodiscard]] std::optional<T> get() noexcept {
    std::array<std::byte, sizeof(T)> bytes;
    if (!read(bytes.data(), bytes.size())) return std::nullopt;
    return std::bit_cast<T>(bytes);
  }
  // Returns: the next byte, which stays unread, or nothing at the end. Does not fail.
  [[nodiscard]] std::optional<char> peek() const noexcept {
    if (at_end()) return std::nullopt;
    return data_[position_];
  }

  // The operators skip white space first: spaces, tabs, line ends, \v and \f.
  // A word is what comes before white space or the end. As a std::string_view it lies in the stream.
  template <detail::text_target Text>
  stream_base& operator>>(Text& word) {
    const std::size_t start = past_space();
    std::size_t end = start;
    while (end != size_ && !is_space(data_[end]))
      ++end;
    if (end == start || fail()) {
      fall_short();
      return *this;
    }
    word = std::string_view(data_ + start, end - start);
    position_ = end;
    return *this;
  }
  stream_base& operator>>(char& character) noexcept {
    const std::size_t start = past_space();
    if (start == size_ || fail()) {
      fall_short();
      return *this;
    }
    character = data_[start];
    position_ = start + 1;
    return *this;
  }
  // Numbers may begin with a sign and end where the next character cannot belong to them. Fails for a number that the
  // type cannot hold, a minus before an unsigned one included.
  template <detail::text_number T>
  stream_base& operator>>(T& number) {
    T parsed{};
    if (const std::size_t end = parse(parsed); end != 0) {
      number = parsed;
      position_ = end;
    }
    return *this;
  }
  // Reads true, false, 1 and 0.
  stream_base& operator>>(bool& truth) noexcept;

  // Effects: reads up to the delimiter, which is read but not part of the line, or up to the end, if there is a byte
  // left. As a std::string_view the line lies in the stream. Returns: whether there was a line; if not, the stream has
  // failed.
  template <detail::text_target Text>
  bool getline(Text& line, char delimiter = '\n') {
    if (at_end() || fail()) return fall_short();
    const std::string_view rest = unread();
    const std::size_t length = rest.find(delimiter);
    line = rest.substr(0, length);
    position_ = length == rest.npos ? size_ : position_ + length + 1;
    return true;
  }

 protected:
  stream_base(char* inline_data, std::size_t inline_capacity, std::pmr::memory_resource* resource) noexcept
      : buffer_base(inline_data, inline_capacity, resource) {}
  ~stream_base() = default;

  static std::pmr::memory_resource* resource_of(const stream_base& other) noexcept { return other.resource_; }

 private:
  enum state : unsigned char { good, failed, ended };

  void copy_state(const stream_base& other) noexcept {
    position_ = other.position_;
    state_ = other.state_;
  }

  // Returns: false. What had failed before stays the reason.
  bool fall_short() noexcept {
    if (state_ == good) state_ = ended;
    return false;
  }

  static bool is_space(char character) noexcept { return character == ' ' || (character >= '\t' && character <= '\r'); }
  std::size_t past_space() const noexcept {
    std::size_t place = position_;
    while (place != size_ && is_space(data_[place]))
      ++place;
    return place;
  }

#if defined(__GNUC__) && !defined(__clang__)
  // gcc does not follow writes to the room inside the object, and takes it for uninitialized.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
  // Returns: where the number ends, or 0 when there is none; the stream has then failed.
  template <class T>
  std::size_t parse(T& number) {
    if (fail()) return 0;
    const char* first = data_ + past_space();
    const char* const last = data_ + size_;
    if (first == last) {
      fall_short();
      return 0;
    }
    if (*first == '+' && last - first > 1 && first[1] != '-') ++first;
    const std::from_chars_result result = read_number(first, last, number);
    if (result.ec == std::errc()) return static_cast<std::size_t>(result.ptr - data_);
    state_ = failed;
    return 0;
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  template <class T>
  static std::from_chars_result read_number(const char* first, const char* last, T& number) {
    return std::from_chars(first, last, number);
  }
  // libstdc++ looks for a terminator behind what might be "inf" or "nan" when a number is longer than a double, so
  // that it is given one. Requires: first != last.
  template <std::floating_point T>
  requires(std::numeric_limits<T>::digits > std::numeric_limits<double>::digits) static std::from_chars_result
      read_number(const char* first, const char* last, T& number) {
    const char* const start = *first == '-' ? first + 1 : first;
    if (start == last || std::string_view("inIN").find(*start) == std::string_view::npos)
      return std::from_chars(first, last, number);
    char text[32];
    const std::size_t size = std::min(static_cast<std::size_t>(last - first), sizeof text - 1);
    std::copy_n(first, size, text);
    text[size] = '\0';
    const std::from_chars_result result = std::from_chars(text, text + size, number);
    return {first + (result.ptr - text), result.ec};
  }

  // Numbers are written in place where there is room. Where there is not, the length decides how much is needed, so
  // that no memory is taken for a number that fits.
  template <class Print>
  stream_base& print_with(Print print) {
    const std::to_chars_result result = print(data_ + size_, data_ + capacity_);
    if (result.ec == std::errc()) [[likely]]
      size_ = static_cast<std::size_t>(result.ptr - data_);
    else
      print_growing(print);
    return *this;
  }
  template <class Print>
  [[gnu::cold, gnu::noinline]] void print_growing(Print print) {
    char text[128];
    const std::to_chars_result result = print(text, text + sizeof text);
    if (result.ec == std::errc()) {
      write(text, static_cast<std::size_t>(result.ptr - text));
      return;
    }
    for (std::size_t room = 2 * sizeof text;; room *= 2) {
      const std::size_t before = size_;
      char* const place = append_for_overwrite(room);
      const std::to_chars_result longer = print(place, place + room);
      size_ = longer.ec == std::errc() ? static_cast<std::size_t>(longer.ptr - data_) : before;
      if (longer.ec == std::errc()) return;
    }
  }

  std::size_t position_ = 0;
  state state_ = good;
};

inline stream_base& stream_base::operator>>(bool& truth) noexcept {
  const std::size_t start = past_space();
  const std::string_view rest(data_ + start, size_ - start);
  unsigned number = 0;
  if (fail()) return *this;
  if (rest.starts_with("true") || rest.starts_with("false")) {
    truth = rest.front() == 't';
    position_ = start + (truth ? 4 : 5);
  } else if (const std::size_t end = parse(number); end != 0 && number <= 1) {
    truth = number == 1;
    position_ = end;
  } else if (end != 0) {
    state_ = failed;
  }
  return *this;
}

// A stream with room for N bytes inside; N may be 0.
template <std::size_t N>
class inline_stream : public stream_base {
  using source = detail::resource_argument;

 public:
  // As those of inline_buffer. What is given is unread.
  inline_stream() noexcept : inline_stream(source()) {}
  explicit inline_stream(source memory) noexcept : stream_base(room::start(room_), N, memory.get()) {}
  explicit inline_stream(std::string_view text, source memory = {}) : inline_stream(memory) { write(text); }

  inline_stream(const inline_stream& other) : inline_stream() { stream_base::operator=(other); }
  inline_stream(const stream_base& other, source memory = {}) : inline_stream(memory) { stream_base::operator=(other); }

  inline_stream(inline_stream&& other) noexcept  // NOLINT: what is inside the one fits inside the other
      : inline_stream(std::move(other), resource_of(other)) {}
  inline_stream(stream_base&& other) : inline_stream(std::move(other), resource_of(other)) {}
  inline_stream(stream_base&& other, source memory) : inline_stream(memory) {
    stream_base::operator=(std::move(other));
  }

  inline_stream& operator=(const inline_stream& other) {
    stream_base::operator=(other);
    return *this;
  }
  inline_stream& operator=(inline_stream&& other) {  // NOLINT: as the base
    stream_base::operator=(std::move(other));
    return *this;
  }
  using stream_base::operator=;

 private:
  using room = detail::inline_bytes<N>;
  [[no_unique_address]] room room_;
};

}  // namespace sluice
