// A file descriptor that is closed when its owner ends, and temporary files. Open it when a descriptor leaks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace bench {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const noexcept { return number_; }
  void reset() noexcept;

 private:
  int number_;
};

/// A new folder in TMPDIR, or else in /tmp, whose name begins so; only this user may enter it. Throws
/// std::runtime_error.
std::filesystem::path temporary_folder(const std::string& name);

/// Such a folder, which goes with its owner.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name) : path_(temporary_folder(name)) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// A file without a name in `folder`, closed on exec. Throws std::runtime_error.
Descriptor temporary_file(const std::string& folder);

/// At most `limit` bytes from the end of a file, whatever its position; none when it cannot be read.
std::string tail_of(const Descriptor& file, std::size_t limit);

}  // namespace bench
