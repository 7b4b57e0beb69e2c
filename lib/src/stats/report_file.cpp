// See report_file.hpp.
#include "stats/report_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/no_cancellation.hpp"
#include "base/print.hpp"
#include "os/memory.hpp"
#include "stats/report_link.hpp"

namespace sluice::stats {
namespace {

constexpr int not_possible = -1;
constexpr mode_t permissions = 07777;

// Makes the name under which the new file is written: in the same folder, of this dump alone, and unlikely to be there.
bool choose_name_beside(const char* path, NameMemory beside) noexcept {
  static constinit std::atomic<unsigned> dumps{0};
  const auto sink = [](void* context, const char* data, size_t size) noexcept -> int {
    auto* const left = static_cast<NameMemory*>(context);
    if (size >= left->capacity) return ENAMETOOLONG;
    memcpy(left->name, data, size);
    *left = {left->name + size, left->capacity - size};
    return 0;
  };
  char buffer[64];
  Print out(buffer, sizeof buffer, sink, &beside);
  out.text(path).text(".tmp.").decimal(static_cast<uint64_t>(getpid())).character('.');
  out.decimal(dumps.fetch_add(1, std::memory_order_relaxed)).character('.');
  if (out.hexadecimal(os::random_bits() & 0xffffffff, 8).finish() != 0) return false;
  *beside.name = '\0';
  return true;
}

// Whether another file may take the place of this one, and nobody sees a difference but in its contents.
bool may_be_replaced(const struct stat& old, const struct stat& now) noexcept {
  return S_ISREG(old.st_mode) && old.st_size != 0 && old.st_nlink == 1 && (old.st_mode & S_IWUSR) != 0 &&
         old.st_uid == now.st_uid && old.st_gid == now.st_gid;
}

// Returns: the descriptor of the new file, or -1 when there is to be none.
int open_beside(const char* path, NameMemory beside) noexcept {
  struct stat old {};
  const bool is_there = lstat(path, &old) == 0;
  if (is_there ? !S_ISREG(old.st_mode) : errno != ENOENT) return -1;
  if (!choose_name_beside(path, beside)) return -1;
  const int file = open(beside.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0 || !is_there) return file;
  struct stat now {};
  if (fstat(file, &now) == 0 && may_be_replaced(old, now) && fchmod(file, old.st_mode & permissions) == 0) return file;
  close(file);
  unlink(beside.name);
  return -1;
}

// Returns: 0, an errno value, or not_possible, and then nothing has changed.
int write_beside(const char* path, NameMemory beside, DumpWriter write, void* context) noexcept {
  const int file = open_beside(path, beside);
  if (file < 0) return not_possible;
  int error = write(context, file);
  if (close(file) != 0 && error == 0 && errno != EINTR) error = errno;  // a disk elsewhere may be full only now
  if (error == 0 && rename(beside.name, path) == 0) return 0;
  unlink(beside.name);
  return error != 0 ? error : not_possible;
}

}  // namespace

int write_file(char* path, NameMemory beside, DumpWriter write, void* context) noexcept {
  const NoCancellation guard;
  int error = write_beside(path, beside, write, context);
  if (error != not_possible) return error;
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY;
  const int file = open_in_place(path, flags, beside.name, beside.capacity, &error);
  if (file < 0) return error;
  error = write(context, file);
  if (close(file) != 0 && error == 0 && errno != EINTR) error = errno;
  return error;
}

}  // namespace sluice::stats
