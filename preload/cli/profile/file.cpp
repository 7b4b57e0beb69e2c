// Reads files, and compresses by zlib. Open it with file.hpp.
#include "file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include <zlib.h>

#include <fmt/core.h>

#include "command.hpp"
#include "proto.hpp"
#include "wire.hpp"

namespace sluice::cli::profile {
namespace {

constexpr int with_gzip_header = 15 + 16;  // zlib's largest window, and its mark for gzip

[[noreturn]] void refuse(const std::string& source, std::string_view problem) {
  throw CommandError(exit_usage, fmt::format("{}: {}", source, problem));
}

[[noreturn]] void refuse_size(const std::string& source) {
  refuse(source, fmt::format("is larger than {} MiB", largest_profile >> 20));
}

std::string bytes_of(const std::string& source, const std::string& file) {
  const auto fail = [&] { refuse(source, fmt::format("cannot be read: {}", std::strerror(errno))); };
  struct Close {
    void operator()(std::FILE* stream) const {
      if (stream != stdin) std::fclose(stream);
    }
  };
  const std::unique_ptr<std::FILE, Close> stream(file == "-" ? stdin : std::fopen(file.c_str(), "rbe"));
  if (!stream) fail();
  std::string bytes;
  char part[1 << 16];
  while (const size_t got = std::fread(part, 1, sizeof part, stream.get())) {
    bytes.append(part, got);
    if (bytes.size() > largest_profile) refuse_size(source);
  }
  if (std::ferror(stream.get()) != 0) fail();
  return bytes;
}

class Inflation {
 public:
  Inflation() {
    if (inflateInit2(&state_, with_gzip_header) != Z_OK) throw std::bad_alloc();
  }
  ~Inflation() { inflateEnd(&state_); }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  // A file may consist of several compressed ones.
  std::string all(const std::string& source, std::string_view bytes) {
    std::string text, part(1 << 16, '\0');
    state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    state_.avail_in = static_cast<uInt>(bytes.size());
    int result = Z_OK;
    do {
      if (result == Z_STREAM_END) inflateReset(&state_);
      state_.next_out = reinterpret_cast<Bytef*>(part.data());
      state_.avail_out = static_cast<uInt>(part.size());
      result = inflate(&state_, Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      if (result != Z_OK && result != Z_STREAM_END) refuse(source, "is damaged: it cannot be decompressed");
      text.append(part, 0, part.size() - state_.avail_out);
      if (text.size() > largest_profile) refuse_size(source);
    } while (result != Z_STREAM_END || state_.avail_in > 0);
    return text;
  }

 private:
  z_stream state_ = {};
};

bool is_text(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, 64);
  return std::all_of(start.begin(), start.end(),
                     [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t'; });
}

}  // namespace

Profile parsed_profile(const std::string& source, std::string_view bytes) {
  if (bytes.empty()) refuse(source, "is empty");
  std::string decompressed;
  if (bytes.starts_with("\x1f\x8b")) bytes = decompressed = Inflation().all(source, bytes);
  if (is_text(bytes)) refuse(source, "is no profile but text");
  Profile profile;
  try {
    profile = decoded(bytes);
  } catch (const WireError& error) {
    refuse(source, fmt::format("is no profile, or is damaged: {}", error.what()));
  }
  if (profile.type_called("inuse_space") == none && profile.type_called("alloc_space") == none)
    refuse(source, "is no profile of memory: it has neither inuse_space nor alloc_space");
  return profile;
}

Profile read_profile(const std::string& file) {
  const std::string source = file == "-" ? "standard input" : file;
  return parsed_profile(source, bytes_of(source, file));
}

std::string gzipped(std::string_view bytes) {
  z_stream state = {};
  constexpr int most_memory = 9;
  if (deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, with_gzip_header, most_memory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw std::bad_alloc();
  std::string compressed(deflateBound(&state, bytes.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(compressed.data());
  state.avail_out = static_cast<uInt>(compressed.size());
  const int result = deflate(&state, Z_FINISH);
  compressed.resize(compressed.size() - state.avail_out);
  deflateEnd(&state);
  if (result != Z_STREAM_END) throw std::bad_alloc();
  return compressed;
}

}  // namespace sluice::cli::profile
