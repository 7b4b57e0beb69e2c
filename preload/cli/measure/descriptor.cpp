// Descriptors and temporary files. Open it with descriptor.hpp.
#include "descriptor.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace bench {

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    number_ = std::exchange(other.number_, -1);
  }
  return *this;
}

void Descriptor::reset() noexcept {
  if (number_ >= 0) close(number_);
  number_ = -1;
}

std::filesystem::path temporary_folder(const std::string& name) {
  const char* const wanted = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/{}.XXXXXX", wanted != nullptr && *wanted != '\0' ? wanted : "/tmp", name);
  if (mkdtemp(path.data()) == nullptr) {
    throw std::runtime_error(
        fmt::format("cannot make a temporary folder {}: {}", path, std::generic_category().message(errno)));
  }
  return std::filesystem::absolute(path);
}

Descriptor temporary_file(const std::string& folder) {
  std::string name = folder + "/output.XXXXXX";
  Descriptor file(mkostemp(name.data(), O_CLOEXEC));
  if (file.number() < 0)
    throw std::runtime_error(fmt::format("cannot make a temporary file in {}: {}", folder, std::strerror(errno)));
  unlink(name.c_str());
  return file;
}

std::string tail_of(const Descriptor& file, std::size_t limit) {
  struct stat about {};
  if (fstat(file.number(), &about) != 0) return {};
  const auto size = static_cast<std::size_t>(about.st_size);
  std::string text(size < limit ? size : limit, '\0');
  const ssize_t got = pread(file.number(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace bench
