// errno across the heap's own system calls. Open it when a call changes errno that must not.
#pragma once

#include <errno.h>

namespace sluice {

// Keeps errno as the program left it.
class KeepErrno {
 public:
  KeepErrno() noexcept : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  const int saved_;
};

}  // namespace sluice
