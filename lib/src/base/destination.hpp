// Where a report goes: a file whose name an option gives, or the stderr of the process's start. Open it when a report
// lands in the wrong place, or nowhere.
//
// Nothing here allocates. The caller makes sure that one thread at a time opens.
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

  // Returns: the file's name, %p in it replaced by the pid; null when that is too long. Requires: is_file().
  const char* file() noexcept { return expand_path() ? expanded_ : nullptr; }

  // Returns: the descriptor of what stderr was when it was remembered; -1 when the program has closed it.
  int find_stderr() const noexcept;

  // Effects: opens the file to add to it, or finds stderr. Returns: a descriptor, or -1; a file that cannot be opened
  // gets one line on stderr, which begins with `what`.
  int open(const char* what) noexcept;

  // Effects: closes what open() has returned, if it is a file.
  void close(int descriptor) const noexcept;

  // Effects: says on stderr, in a line that begins with `what`, that the file could not be written.
  void complain(const char* what, int error) const noexcept;

 private:
  static constexpr size_t path_capacity = 4096;

  bool remember_path(const char* file) noexcept;
  bool expand_path() noexcept;

  char path_[path_capacity];      // absolute, %p not yet replaced; empty: stderr
  char expanded_[path_capacity];  // here, since a handler's stack may be small
  int descriptor_;                // a duplicate of stderr, or -1
  struct stat identity_;          // what it referred to: the program may close it and reuse the number
};

}  // namespace sluice
