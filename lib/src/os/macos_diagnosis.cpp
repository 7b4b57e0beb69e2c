// Back traces and faults on macOS; see diagnosis.hpp.
#include "os/diagnosis.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ucontext.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "os/keep_errno.hpp"
#include "os/macos_calls.hpp"
#include "os/unwind.hpp"

namespace sluice::os {
namespace {

constinit std::atomic<FaultHandler> fault_handler{nullptr};
constexpr int fault_signals[] = {SIGSEGV, SIGBUS};
constinit struct sigaction previous_actions[2]{};

// What a fault interrupted, for the trace of the thread that it is reported on. A handler does not return while a
// report is written, and one is written at a time.
constinit std::atomic<uintptr_t> interrupted_frame{0};

Fault describe(const siginfo_t& info, const void* context) noexcept {
  const auto& machine = *static_cast<const ucontext_t*>(context)->uc_mcontext;
  Fault fault{reinterpret_cast<uintptr_t>(info.si_addr), 0, Access::Unknown};
#if defined(__x86_64__)
  constexpr uint32_t write_bit = 2;  // of the page fault's error code
  fault.instruction = machine.__ss.__rip;
  fault.access = (machine.__es.__err & write_bit) != 0 ? Access::Write : Access::Read;
  interrupted_frame.store(machine.__ss.__rbp, std::memory_order_relaxed);
#else
  constexpr uint32_t write_bit = uint32_t{1} << 6;  // of the exception's syndrome
  fault.instruction = __darwin_arm_thread_state64_get_pc(machine.__ss);
  fault.access = (machine.__es.__esr & write_bit) != 0 ? Access::Write : Access::Read;
  interrupted_frame.store(__darwin_arm_thread_state64_get_fp(machine.__ss), std::memory_order_relaxed);
#endif
  return fault;
}

// Hands a signal to the action that was there before.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  struct sigaction& previous = previous_actions[signal == SIGSEGV ? 0 : 1];
  const bool sent = info->si_code <= 0 || info->si_code == SI_USER;
  if (previous.sa_handler == SIG_IGN && sent) return;
  if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    // The instruction faults again; what was sent is sent again.
    (void)sigaction(signal, &previous, nullptr);
    if (sent) (void)pthread_kill(pthread_self(), signal);
    return;
  }
  const struct sigaction action = previous;
  if ((action.sa_flags & SA_RESETHAND) != 0) previous.sa_handler = SIG_DFL;
  sigset_t before;
  (void)pthread_sigmask(SIG_BLOCK, &action.sa_mask, &before);
  if ((action.sa_flags & SA_NODEFER) != 0) {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  }
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const KeepErrno keep;
  const FaultHandler handler = fault_handler.load(std::memory_order_relaxed);
  const bool from_instruction = info->si_code > 0 && info->si_code != SI_USER;
  const bool dealt_with = from_instruction && handler != nullptr && handler(describe(*info, context));
  if (!dealt_with) pass_on(signal, info, context);
}

}  // namespace

void prepare_traces() noexcept {
  prepare_unwinding();
}

__attribute__((noinline)) unsigned capture_trace(uintptr_t* frames, unsigned most) noexcept {
  return unwind(frames, most).count;
}

unsigned capture_trace_of_fault(uintptr_t* frames, unsigned most, uintptr_t instruction) noexcept {
  StackBounds bounds{};
  const Registers interrupted{instruction, 0, interrupted_frame.load(std::memory_order_relaxed)};
  const unsigned count = unwind_from(interrupted, frames, most, bounds).count;
  if (most == 0 || (count != 0 && frames[0] == instruction)) return count;
  const unsigned kept = count < most ? count : most - 1;  // it is one of this library's
  memmove(frames + 1, frames, kept * sizeof *frames);
  frames[0] = instruction;
  return kept + 1;
}

CodePlace place_of(uintptr_t address) noexcept {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return {};
  return {info.dli_fname, address - reinterpret_cast<uintptr_t>(info.dli_fbase), info.dli_sname,
          address - reinterpret_cast<uintptr_t>(info.dli_saddr)};
}

uint32_t thread_id() noexcept {
  uint64_t id = 0;
  (void)pthread_threadid_np(nullptr, &id);
  return static_cast<uint32_t>(id);
}

uint64_t clock_ns() noexcept {
  return clock_gettime_nsec_np(CLOCK_UPTIME_RAW);
}

uint64_t wall_clock_ns() noexcept {
  return clock_gettime_nsec_np(CLOCK_REALTIME);
}

void install_fault_handler(FaultHandler handler) noexcept {
  fault_handler.store(handler, std::memory_order_relaxed);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (unsigned i = 0; i < 2; ++i)
    (void)sigaction(fault_signals[i], &action, &previous_actions[i]);
}

void let_faults_end_the_process() noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (const int signal : fault_signals)
    (void)sigaction(signal, &action, nullptr);
}

}  // namespace sluice::os
