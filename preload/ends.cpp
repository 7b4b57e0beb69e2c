// Entry points through which a process ends without exit(), or says what a signal does: _exit, _Exit, sigaction, signal
// with its older names, sigset. Without statistics they go straight on to libc's; stats/ends.hpp says why they are
// here. Not part of libsluice.a.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "glibc_names.hpp"
#include "os/process.hpp"
#include "stats/ends.hpp"
#include "stats/report.hpp"

namespace {

namespace stats = sluice::stats;

using Handler = void (*)(int);
using SignalFunction = Handler(int, Handler);
using ExitFunction = void(int);

// A function of the libraries behind this one; found before main, since dlsym may not be called in signal handlers and
// children of vfork.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) noexcept : name_(name) {}
  Function* find() noexcept {
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = dlsym(RTLD_NEXT, name_);
      found_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

constinit Next<stats::SigactionFunction> next_sigaction("sigaction");
constinit Next<SignalFunction> next_signal("signal");
constinit Next<SignalFunction> next_sysv_signal("__sysv_signal");
constinit Next<SignalFunction> next_sigset("sigset");
constinit Next<ExitFunction> next_exit("_exit");

Handler shown(Handler handler) noexcept {
  return handler == stats::printing_action().sa_handler && handler != nullptr ? SIG_DFL : handler;
}

Handler set_handler(Next<SignalFunction>& next, int signal, Handler handler) noexcept {
  if (handler == SIG_DFL && stats::prints_by_default(signal)) {
    struct sigaction before {};
    return next_sigaction.find()(signal, &stats::printing_action(), &before) == 0 ? shown(before.sa_handler) : SIG_ERR;
  }
  if (SignalFunction* const function = next.find()) return shown(function(signal, handler));
  errno = ENOSYS;
  return SIG_ERR;
}

[[noreturn]] void leave(int status) noexcept {
  stats::print_report_at_direct_exit();
  if (ExitFunction* const function = next_exit.find()) function(status);
  sluice::os::end_process(status);
}

__attribute__((constructor(101))) void find_all() {
  (void)next_signal.find();
  (void)next_sysv_signal.find();
  (void)next_sigset.find();
  (void)next_exit.find();
  stats::sigaction_of_libc = next_sigaction.find();
}

}  // namespace

extern "C" {

SLUICE_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* before) SLUICE_OF_LIBC {
  stats::SigactionFunction* const function = next_sigaction.find();
  if (function == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const bool to_default = action != nullptr && action->sa_handler == SIG_DFL && stats::prints_by_default(signal);
  const int result = function(signal, to_default ? &stats::printing_action() : action, before);
  if (result == 0 && before != nullptr && stats::is_printing(*before)) *before = {};
  return result;
}

SLUICE_EXPORT Handler signal(int signal, Handler handler) SLUICE_OF_LIBC {
  return set_handler(next_signal, signal, handler);
}

// What signal() is in programs that are compiled for strict POSIX or C.
SLUICE_EXPORT Handler __sysv_signal(int signal, Handler handler) noexcept {
  return set_handler(next_sysv_signal, signal, handler);
}

// Older names of the two.
SLUICE_EXPORT Handler bsd_signal(int signal, Handler handler) SLUICE_OF_LIBC {
  return set_handler(next_signal, signal, handler);
}

SLUICE_EXPORT Handler ssignal(int signal, Handler handler) SLUICE_OF_LIBC {
  return set_handler(next_signal, signal, handler);
}

SLUICE_EXPORT Handler sysv_signal(int signal, Handler handler) SLUICE_OF_LIBC {
  return set_handler(next_sysv_signal, signal, handler);
}

// It also says whether the signal is blocked, so libc's own comes first.
SLUICE_EXPORT Handler sigset(int signal, Handler handler) SLUICE_OF_LIBC {
  SignalFunction* const function = next_sigset.find();
  if (function == nullptr) {
    errno = ENOSYS;
    return SIG_ERR;
  }
  const Handler before = shown(function(signal, handler));
  if (before != SIG_ERR && handler == SIG_DFL && stats::prints_by_default(signal))
    (void)next_sigaction.find()(signal, &stats::printing_action(), nullptr);
  return before;
}

SLUICE_EXPORT void _exit(int status) {
  leave(status);
}

SLUICE_EXPORT void _Exit(int status) SLUICE_OF_LIBC {
  leave(status);
}

}  // extern "C"
