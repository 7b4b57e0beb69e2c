// See ends.hpp.
#include "stats/ends.hpp"

#include <errno.h>

#include <atomic>
#include <cstdint>

#include "heap/heap.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "stats/report.hpp"

namespace sluice::stats {

constinit SigactionFunction* sigaction_of_libc = nullptr;

namespace {

constexpr int watched[] = {SIGTERM, SIGINT, SIGHUP};
constexpr unsigned patience_ms = 5000;  // for a dump that is being written
constexpr unsigned most_attempts = 1000;
constexpr uint64_t same_ms = 200;  // what comes so soon again is the same signal, as from a shell and from its terminal

constinit bool watching = false;
constinit struct sigaction action {};
constinit std::atomic<int> put_off{0};  // a signal that came in the middle of an allocation
constinit std::atomic<unsigned> attempts{0};
constinit std::atomic<uint64_t> begun_ms{0};  // when a signal last had the report begun

bool begin() noexcept {
  if (!begin_last_report()) return false;
  begun_ms.store(os::clock_ms(), std::memory_order_relaxed);
  return true;
}

void end(int signal) noexcept {
  os::end_by(signal);
  // The first process of a container goes on.
  put_off.store(0, std::memory_order_relaxed);
  (void)os::signal_later(signal, 0, nullptr);
  take_back_last_report();
  (void)sigaction_of_libc(signal, &action, nullptr);
}

bool still_watched(int signal) noexcept {
  struct sigaction now {};
  return sigaction_of_libc(signal, nullptr, &now) == 0 && is_printing(now);
}

// From an allocation, where locks may be waited for.
void end_now() noexcept {
  const int signal = put_off.exchange(0, std::memory_order_relaxed);
  if (signal == 0 || !still_watched(signal) || !begin()) return;
  (void)os::signal_later(signal, patience_ms, nullptr);
  print_last_report();
  end(signal);
}

void on_signal(int signal, siginfo_t* info, void*) noexcept {
  const int saved = errno;
  const bool is_attempt = info->si_code == SI_TIMER && info->si_value.sival_ptr == &attempts;
  bool is_first = begin();
  if (is_first || is_attempt) {
    // Should the write wait for ever, here or in the allocation that prints just now, the signal comes again and finds
    // that the report has begun.
    (void)os::signal_later(signal, patience_ms, nullptr);
    // It may have been taken back meanwhile, and its next attempt ordered, which the last line has undone.
    if (!is_first) is_first = begin();
  } else if (os::clock_ms() - begun_ms.load(std::memory_order_relaxed) >= same_ms) {
    end(signal);
  }
  if (is_first) {
    if (try_print_last_report() || attempts.fetch_add(1, std::memory_order_relaxed) >= most_attempts) {
      end(signal);
    } else {
      take_back_last_report();
      put_off.store(signal, std::memory_order_relaxed);
      heap::deferred_work.store(end_now, std::memory_order_release);
      if (!os::signal_later(signal, 1, &attempts)) {
        if (begin())
          end(signal);
        else
          (void)os::signal_later(signal, patience_ms, nullptr);
      }
    }
  }
  errno = saved;
}

}  // namespace

void watch_ends() noexcept {
  if (sigaction_of_libc == nullptr) return;
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
  sigfillset(&action.sa_mask);
  for (const int signal : watched)
    sigdelset(&action.sa_mask, signal);
  watching = true;
  for (const int signal : watched) {
    struct sigaction before {};
    if (sigaction_of_libc(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
      (void)sigaction_of_libc(signal, &action, nullptr);
  }
}

bool prints_by_default(int signal) noexcept {
  if (!watching) return false;
  for (const int each : watched)
    if (each == signal) return true;
  return false;
}

const struct sigaction& printing_action() noexcept {
  return action;
}

bool is_printing(const struct sigaction& other) noexcept {
  return watching && other.sa_sigaction == on_signal;
}

}  // namespace sluice::stats
