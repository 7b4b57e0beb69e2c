// See report_file.hpp.
#include "stats/report_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/print.hpp"
#include "os/memory.hpp"

namespace sluice::stats {
namespace {

constexpr int not_possible = -1;
constexpr mode_t permissions = 07777;

constinit char other_name[4096 + 32]{};  // the path, and what makes it another one

// Makes the name under which the new file is written: in the same folder, and unlikely to be there.
void choose_other_name(const char* path) noexcept {
  const auto sink = [](void* context, const char* data, size_t size) noexcept -> int {
    auto** const end = static_cast<char**>(context);
    if (size >= static_cast<size_t>(other_name + sizeof other_name - *end)) return ENAMETOOLONG;
    memcpy(*end, data, size);
    *end += size;
    return 0;
  };
  char buffer[64];
  char* end = other_name;
  Print out(buffer, sizeof buffer, sink, &end);
  const int error = out.text(path).text(".tmp.").hexadecimal(os::random_bits() & 0xffffffff, 8).finish();
  *(error == 0 ? end : other_name) = '\0';
}

// Whether another file may take the place of this one, and nobody sees a difference but in its contents.
bool may_be_replaced(const struct stat& old, const struct stat& now) noexcept {
  return S_ISREG(old.st_mode) && old.st_size != 0 && old.st_nlink == 1 && (old.st_mode & S_IWUSR) != 0 &&
         old.st_uid == now.st_uid && old.st_gid == now.st_gid;
}

// Returns: the descriptor of the new file, or -1 when there is to be none.
int open_beside(const char* path) noexcept {
  struct stat old {};
  const bool is_there = lstat(path, &old) == 0;
  if (is_there ? !S_ISREG(old.st_mode) : errno != ENOENT) return -1;
  choose_other_name(path);
  const int file = open(other_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0 || !is_there) return file;
  struct stat now {};
  if (fstat(file, &now) == 0 && may_be_replaced(old, now) && fchmod(file, old.st_mode & permissions) == 0) return file;
  close(file);
  unlink(other_name);
  return -1;
}

// Returns: 0, an errno value, or not_possible, and then nothing has changed.
int write_beside(const char* path, DumpWriter write) noexcept {
  const int file = open_beside(path);
  if (file < 0) return not_possible;
  int error = write(file);
  if (close(file) != 0 && error == 0 && errno != EINTR) error = errno;  // a disk elsewhere may be full only now
  if (error == 0 && rename(other_name, path) == 0) return 0;
  unlink(other_name);
  return error != 0 ? error : not_possible;
}

}  // namespace

int write_file(const char* path, DumpWriter write) noexcept {
  int error = write_beside(path, write);
  if (error != not_possible) return error;
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
  if (file < 0) return errno;
  error = write(file);
  if (close(file) != 0 && error == 0 && errno != EINTR) error = errno;
  return error;
}

}  // namespace sluice::stats
