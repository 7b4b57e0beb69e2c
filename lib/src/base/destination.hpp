// Where a report goes: a file whose name an option gives, or the stderr of the process's start. Open it when a report
// lands in the wrong place, or nowhere.
//
// Nothing here allocates or is a cancellation point. The caller makes sure that one thread at a time opens.
#pragma once

#include <sys/stat.h>

#include <cstddef>

namespace sluice {

class Destination {
 public:
  // Effects: remembers the file, with the working directory's path, or, when it is null, stderr as it is now. False
  // when the file's name is too long; there is no destination then.
  bool remember(const char* file) noexcept;

  bool is_file() const noexcept { return path_[0] != '\0'; }

  static constexpr size_t path_capacity = 4096;

  // Effects: writes the file's name, %p in it replaced by the pid, to `name`, which has path_capacity bytes. Returns:
  // false when that is too long. Requires: is_file().
  bool expand_path(char* name) const noexcept;

  // Returns: the descriptor of what stderr was when it was remembered; -1 when the program has closed it.
  int find_stderr() const noexcept;

  // Effects: opens the file to add to it, or finds stderr. Returns: a descriptor, or -1. When the file cannot be
  // opened, one line on stderr says so, which begins with `what`.
  int open(const char* what) noexcept;

  // Effects: closes what open() has returned, if it is a file.
  void close(int descriptor) const noexcept;

  // Effects: says on stderr, in a line that begins with `what`, that the file could not be written.
  static void complain(const char* what, const char* name, int error) noexcept;

 private:
  bool remember_path(const char* file) noexcept;

  char path_[path_capacity];      // absolute, %p not yet replaced; empty: stderr
  char expanded_[path_capacity];  // of what open() has opened; here, since a handler's stack may be small
  int descriptor_;                // a duplicate of stderr, or -1
  struct stat identity_;          // what it referred to: the program may close it and reuse the number
};

}  // namespace sluice
