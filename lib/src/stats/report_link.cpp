// See report_link.hpp.
#include "stats/report_link.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace sluice::stats {
namespace {

constexpr mode_t permissions = 0666;
#if defined(O_PATH)
constexpr int open_folder = O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
constexpr int open_folder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif

bool is_trusted(uid_t owner) noexcept {
  return owner == geteuid() || owner == 0;
}

// In a container the owner of these may be a user without a number here.
bool is_of_the_system(std::string_view folder) noexcept {
  constexpr std::string_view processes = "/proc/";
  return folder == "/dev" || folder == "/dev/fd" || strncmp(folder.data(), processes.data(), processes.size()) == 0;
}

bool only_trusted_can_write(int folder) noexcept {
  struct stat about {};
  return fstat(folder, &about) == 0 && is_trusted(about.st_uid) && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The link is read by its descriptor, so that it is the one that was looked at. Returns: a descriptor or -1. Where a
// link cannot be read so, as on macOS, none is followed that others may have made.
#if defined(O_PATH)
int open_what_it_names(int folder, const char* name, int flags, char* target, size_t capacity, int* error) noexcept {
  *error = link_of_others;
  const int link = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (link < 0) return -1;
  struct stat about {};
  const bool follow = fstat(link, &about) == 0 && is_trusted(about.st_uid);
  const ssize_t length = follow ? readlinkat(link, "", target, capacity - 1) : -1;
  (void)close(link);
  if (length < 0) return -1;
  target[length] = '\0';
  const int file = openat(folder, target, flags, permissions);
  *error = errno;
  return file;
}
#else
int open_what_it_names(int, const char*, int, char*, size_t, int* error) noexcept {
  *error = link_of_others;
  return -1;
}
#endif

int open_link(char* path, int flags, char* memory, size_t capacity, int* error) noexcept {
  char* const slash = strrchr(path, '/');
  *slash = '\0';
  const int folder = open(slash == path ? "/" : path, open_folder);
  const bool follow = folder >= 0 && (is_of_the_system(path) || only_trusted_can_write(folder));
  *slash = '/';
  *error = errno;
  if (folder < 0) return -1;
  int file;
  if (follow) {
    file = openat(folder, slash + 1, flags, permissions);
    *error = errno;
  } else {
    file = open_what_it_names(folder, slash + 1, flags, memory, capacity, error);
  }
  (void)close(folder);
  return file;
}

}  // namespace

int open_in_place(char* path, int flags, char* memory, size_t capacity, int* error) noexcept {
  const int file = open(path, flags | O_NOFOLLOW, permissions);
  *error = errno;
  struct stat about {};
  const bool is_link = file < 0 && lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
  return is_link ? open_link(path, flags, memory, capacity, error) : file;
}

}  // namespace sluice::stats
