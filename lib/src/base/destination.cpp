// See destination.hpp.
#include "base/destination.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "base/no_cancellation.hpp"
#include "base/print.hpp"

namespace sluice {
namespace {

constexpr int lowest_descriptor = 200;  // programs count on low descriptor numbers; few use high ones

}  // namespace

bool Destination::remember(const char* file) noexcept {
  descriptor_ = -1;
  identity_ = {};
  if (file != nullptr) {
    (void)fstat(STDERR_FILENO, &identity_);  // where complaints go
    if (remember_path(file)) return true;
    path_[0] = '\0';
    return false;
  }
  descriptor_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, lowest_descriptor);
  if (descriptor_ < 0) descriptor_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (descriptor_ >= 0) (void)fstat(descriptor_, &identity_);
  return true;
}

bool Destination::remember_path(const char* file) noexcept {
  size_t length = 0;
  if (file[0] != '/') {
    if (getcwd(path_, path_capacity) == nullptr) return false;
    while (path_[length] != '\0')
      ++length;
    path_[length++] = '/';
  }
  for (; *file != '\0'; ++file) {
    if (length + 1 >= path_capacity) return false;
    path_[length++] = *file;
  }
  path_[length] = '\0';
  return true;
}

bool Destination::expand_path(char* name) const noexcept {
  size_t length = 0;
  for (const char* at = path_; *at != '\0'; ++at) {
    char digits[20];
    size_t count = 0;
    if (at[0] == '%' && at[1] == 'p') {
      for (auto pid = static_cast<unsigned long>(getpid()); count == 0 || pid != 0; pid /= 10)
        digits[count++] = static_cast<char>('0' + pid % 10);
      ++at;
    } else {
      digits[count++] = *at;
    }
    if (length + count >= path_capacity) return false;
    while (count != 0)
      name[length++] = digits[--count];
  }
  name[length] = '\0';
  return true;
}

int Destination::find_stderr() const noexcept {
  for (const int candidate : {descriptor_, STDERR_FILENO}) {
    struct stat now {};
    if (candidate >= 0 && fstat(candidate, &now) == 0 && now.st_dev == identity_.st_dev &&
        now.st_ino == identity_.st_ino)
      return candidate;
  }
  return -1;
}

void Destination::complain(const char* what, const char* name, int error) noexcept {
  char line[256];
  Print(line, sizeof line, STDERR_FILENO)
      .text(what)
      .text(": cannot write ")
      .text(name)
      .text(" (errno ")
      .decimal(static_cast<uint64_t>(error))
      .text(")\n");
}

int Destination::open(const char* what) noexcept {
  if (!is_file()) return find_stderr();
  if (!expand_path(expanded_)) return -1;
  const NoCancellation not_cancelled;
  const int file = ::open(expanded_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
  if (file < 0) complain(what, expanded_, errno);
  return file;
}

void Destination::close(int descriptor) const noexcept {
  if (!is_file() || descriptor < 0) return;
  const NoCancellation not_cancelled;
  (void)::close(descriptor);
}

}  // namespace sluice
