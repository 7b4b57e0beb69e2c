// While one of these lives, its thread is not cancelled: what waits in a system call under malloc, free or a signal
// handler must come back, since none of them is a cancellation point. Open it when a cancelled thread leaves a file
// open.
#pragma once

#include <pthread.h>

namespace sluice {

class NoCancellation {
 public:
  NoCancellation() noexcept { (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { (void)pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace sluice
