// Writes reports. Open it with output_file.hpp.
#include "output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "command.hpp"

namespace sluice::cli {
namespace {

mode_t mode_of_new_files() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// Whether a descriptor of this process leads to the file.
bool leads_to(int descriptor, const struct stat& file) {
  struct stat about {};
  return fstat(descriptor, &about) == 0 && about.st_dev == file.st_dev && about.st_ino == file.st_ino;
}

// The file that a link leads to, which need not be there yet; another path as it is.
std::string behind_links(std::string path) {
  constexpr int most_links = 40;  // as the system follows
  std::error_code error;
  for (int links = 0; links < most_links && std::filesystem::is_symlink(path, error); ++links) {
    const std::filesystem::path named = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = (std::filesystem::path(path).parent_path() / named).string();
  }
  return path;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  struct stat about {};
  const bool is_there = stat(path_.c_str(), &about) == 0;
  const bool is_loop = !is_there && errno == ELOOP;
  if (path_ == standard_output || (is_there && leads_to(STDOUT_FILENO, about))) {
    is_standard_output_ = true;
    written_ = path_;
    file_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  } else if (is_there && !S_ISREG(about.st_mode)) {
    written_ = path_;
    file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else if (is_loop || (is_there && access(path_.c_str(), W_OK) != 0)) {
    file_ = -1;
  } else {
    path_ = behind_links(path_);
    written_ = path_ + ".XXXXXX";
    file_ = mkostemp(written_.data(), O_CLOEXEC);
    if (file_ >= 0) fchmod(file_, is_there ? about.st_mode & 07777 : mode_of_new_files());
  }
  if (file_ < 0) throw CommandError(exit_usage, fmt::format("{} cannot be written: {}", path_, std::strerror(errno)));
}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  close(file_);
  if (written_ != path_) unlink(written_.c_str());
}

void OutputFile::write(const std::string& text) {
  if (file_ < 0) return;
  if (is_standard_output_) finish_output();  // what was said before comes first
  std::size_t done = 0;
  bool good = true;
  while (good && done < text.size()) {
    const ssize_t part = ::write(file_, text.data() + done, text.size() - done);
    if (part > 0) done += static_cast<std::size_t>(part);
    good = part >= 0 || errno == EINTR;
  }
  good = good && (written_ == path_ || fsync(file_) == 0);
  good = good && (written_ == path_ || rename(written_.c_str(), path_.c_str()) == 0);
  if (!good) throw CommandError(exit_failure, fmt::format("{} cannot be written: {}", path_, std::strerror(errno)));
  close(file_);
  file_ = -1;
}

void check_different(const std::vector<std::string>& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto same = [&](const std::string& other) {
      return !other.empty() && other == paths[i] && other != standard_output;
    };
    if (std::any_of(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(i), same))
      throw CommandError(exit_usage, fmt::format("{}: two reports cannot go to one file", paths[i]));
  }
}

void occupy_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0) open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace sluice::cli
