// Makes a std::ostream or std::istream of a stream with inline storage. Open it when code that writes to std::ostream&
// or reads from std::istream& is to use an inline_stream.
//
//   sluice::inline_stream<256> stream;
//   sluice::stream_buffer buffer(stream);
//   std::ostream out(&buffer);
//   out << std::hex << 255;                // stream.view() == "ff"
//   std::istream in(&buffer);              // reads from stream.tell() on
//
// Not where the operators of inline_stream itself will do: those are several times faster, and know no locale.
//
// While a stream_buffer exists, its stream is written and read through it. Before the stream itself is used in between,
// call pubsync() (or std::istream::sync), which makes tell() right; the end of the stream_buffer does so too.
// Writing is at the end only: seekp goes nowhere else. A std::bad_alloc of the stream sets badbit, as ever.
// Memory: that of a std::streambuf and a pointer; none is taken. Thread-safety: none.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <ios>
#include <streambuf>
#include <string_view>

#include "sluice/inline_stream.hpp"

namespace sluice {

class stream_buffer final : public std::streambuf {
 public:
  // Requires: the stream lives longer and does not move.
  explicit stream_buffer(stream_base& stream) noexcept : stream_(&stream) {}
  ~stream_buffer() override { put_back_position(); }
  stream_buffer(const stream_buffer&) = delete;
  stream_buffer& operator=(const stream_buffer&) = delete;

  // Returns: the stream, whose position may lag behind; see above.
  [[nodiscard]] stream_base& stream() const noexcept { return *stream_; }

 protected:
  // There is no put area: each write goes to the stream at once. The get area is what the stream holds; a write may
  // move it, so it is set anew afterwards.
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (count <= 0) return 0;
    stream_->write(text, static_cast<std::size_t>(count));
    move_get_area();
    return count;
  }
  int_type overflow(int_type character) override {
    if (!traits_type::eq_int_type(character, traits_type::eof())) {
      *stream_ << traits_type::to_char_type(character);
      move_get_area();
    }
    return traits_type::not_eof(character);
  }

  int_type underflow() override {
    put_back_position();
    set_get_area(stream_->tell());
    return gptr() != egptr() ? traits_type::to_int_type(*gptr()) : traits_type::eof();
  }
  std::streamsize showmanyc() override {
    const bool is_more = !traits_type::eq_int_type(underflow(), traits_type::eof());
    return is_more ? egptr() - gptr() : -1;
  }
  int sync() override {
    put_back_position();
    setg(nullptr, nullptr, nullptr);
    return 0;
  }

  // Offsets are those of the stream. Returns -1, and changes nothing, for a place outside of it, and for one to write
  // at that is not the end.
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode which) override {
    put_back_position();
    const auto end = static_cast<off_type>(stream_->size());
    const bool reads = (which & std::ios_base::in) != 0;
    const bool writes = (which & std::ios_base::out) != 0;
    off_type start = 0;
    if (from == std::ios_base::end)
      start = end;
    else if (from == std::ios_base::cur)
      start = reads ? static_cast<off_type>(stream_->tell()) : end;
    // Neither comparison can overflow: 0 <= start <= end.
    if (offset < -start || offset > end - start || (!reads && !writes)) return pos_type(off_type(-1));
    const off_type place = start + offset;
    if (writes && place != end) return pos_type(off_type(-1));
    if (reads) set_get_area(static_cast<std::size_t>(place));
    return pos_type(place);
  }
  pos_type seekpos(pos_type place, std::ios_base::openmode which) override {
    return seekoff(off_type(place), std::ios_base::beg, which);
  }

 private:
  void set_get_area(std::size_t position) noexcept {
    // Only read through: what has pbackfail write to it is not overridden.
    const std::string_view all = stream_->view();
    char* const start = const_cast<char*>(all.data());
    setg(start, start + position, start + all.size());
  }
  void move_get_area() noexcept {
    if (eback() != nullptr) set_get_area(static_cast<std::size_t>(gptr() - eback()));
  }
  void put_back_position() noexcept {
    if (eback() != nullptr) stream_->seek(static_cast<std::size_t>(gptr() - eback()));
  }

  stream_base* stream_;
};

}  // namespace sluice
