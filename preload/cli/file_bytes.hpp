// A program or library as bytes. Open it with program.cpp.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace sluice::cli {

// A file opened for reading, by offset.
class File {
 public:
  explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }

  // Returns: the bytes from `offset` on, fewer than `size` at the end of the file, none when they cannot be
  // read.
  std::string read(uint64_t offset, size_t size) const {
    std::string bytes(size, '\0');
    size_t got = 0;
    while (got < size) {
      const ssize_t part = pread(descriptor_, bytes.data() + got, size - got, static_cast<off_t>(offset + got));
      if (part < 0 && errno == EINTR) continue;
      if (part <= 0) break;
      got += static_cast<size_t>(part);
    }
    bytes.resize(got);
    return bytes;
  }

  template <typename T>
  std::optional<T> read_as(uint64_t offset) const {
    const std::string bytes = read(offset, sizeof(T));
    if (bytes.size() != sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

 private:
  int descriptor_;
};

}  // namespace sluice::cli
