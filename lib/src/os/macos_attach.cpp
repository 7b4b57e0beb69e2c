// Nobody asks a process on macOS: there are no abstract sockets. See attach.hpp.
#include "os/attach.hpp"

namespace sluice::os {

bool open_requests() noexcept {
  return false;
}

void serve_requests(Answer) noexcept {}

void close_requests() noexcept {}

void forget_requests() noexcept {}

}  // namespace sluice::os
