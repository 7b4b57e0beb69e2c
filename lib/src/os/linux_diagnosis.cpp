// Back traces and faults on Linux; see diagnosis.hpp.
#include "os/diagnosis.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cstdint>

#include "os/linux_call.hpp"
#include "os/unwind.hpp"

namespace sluice::os {
namespace {

using BacktraceFunction = _Unwind_Reason_Code(_Unwind_Trace_Fn, void*);
using AddressFunction = _Unwind_Ptr(_Unwind_Context*, int*);

constexpr unsigned most_of_handlers = 48;              // frames above one that faulted
constexpr uintptr_t longest_frame = 16 * 1024 * 1024;  // bytes; a frame pointer that is farther off is none

// libgcc's. It takes a lock under which it allocates where code was registered with it, as JIT compilers do, and ends
// the process where a table tells nothing of the stack, as LuaJIT's: only where there is no other way.
struct Unwinder {
  BacktraceFunction* backtrace;
  AddressFunction* address;
};
constinit Unwinder unwinder{};

constinit std::atomic<FaultHandler> fault_handler{nullptr};
constexpr int fault_signals[] = {SIGSEGV, SIGBUS};
constinit struct sigaction previous_actions[2]{};

struct Collector {
  uintptr_t* frames;
  unsigned count, most;
  bool own_frames_over;
  uintptr_t from;  // the frame to begin with; 0: the first one
};

// Takes a frame; false when no more are wanted.
bool collect(Collector& c, uintptr_t address) noexcept {
  if (c.from != 0 && address != c.from) return true;
  c.from = 0;
  if (!c.own_frames_over && is_own_code(address)) return true;
  c.own_frames_over = true;
  c.frames[c.count++] = address;
  return c.count < c.most;
}

_Unwind_Reason_Code on_frame(_Unwind_Context* context, void* argument) {
  int before_instruction = 0;
  uintptr_t address = unwinder.address(context, &before_instruction);
  if (address == 0) return _URC_END_OF_STACK;
  if (before_instruction == 0) --address;  // a return address: the call lies before it
  return collect(*static_cast<Collector*>(argument), address) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// Reads two words that may not be there.
bool read_words(uintptr_t address, uintptr_t (&words)[2]) noexcept {
  const iovec to{words, sizeof words};
  const iovec from{reinterpret_cast<void*>(address), sizeof words};
  return system_call(SYS_process_vm_readv, system_call(SYS_getpid), &to, 1L, &from, 1L, 0L) ==
         static_cast<long>(sizeof words);
}

void follow_frame_pointers(Collector& c, uintptr_t frame) noexcept {
  uintptr_t words[2]{};
  while (frame % sizeof(void*) == 0 && read_words(frame, words)) {
    if (words[1] == 0 || !collect(c, words[1] - 1)) return;
    if (words[0] <= frame || words[0] - frame > longest_frame) return;
    frame = words[0];
  }
}

void follow_tables(Collector& c) noexcept {
  constexpr unsigned most = 64;
  uintptr_t frames[most];
  const unsigned wanted = c.most + (c.from != 0 ? most_of_handlers : 0);
  const unsigned count = unwind(frames, wanted < most ? wanted : most).count;
  for (unsigned i = 0; i < count; ++i)
    if (!collect(c, frames[i])) return;
}

void trace(Collector& c) noexcept {
  if (unwinds_by_all_tables())
    follow_tables(c);
  else if (unwinder.backtrace != nullptr)
    (void)unwinder.backtrace(on_frame, &c);
  else
    follow_frame_pointers(c, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
}

Fault describe(const siginfo_t& info, const void* context) noexcept {
  Fault fault{reinterpret_cast<uintptr_t>(info.si_addr), 0, Access::Unknown};
#if defined(__x86_64__)
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  constexpr greg_t write_bit = 2;  // of the page fault's error code
  fault.instruction = static_cast<uintptr_t>(registers[REG_RIP]);
  fault.access = (registers[REG_ERR] & write_bit) != 0 ? Access::Write : Access::Read;
#elif defined(__aarch64__)
  fault.instruction = static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  (void)context;
#endif
  return fault;
}

bool is_from_instruction(const siginfo_t& info) noexcept {
  return info.si_code > 0 && info.si_code != SI_KERNEL && !(info.si_signo == SIGBUS && info.si_code == BUS_MCEERR_AO);
}

// Hands a signal to the action that was there before.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  struct sigaction& previous = previous_actions[signal == SIGSEGV ? 0 : 1];
  const bool sent = info->si_code <= 0 || (signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
  if (previous.sa_handler == SIG_IGN && sent) return;
  if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    // The instruction faults again; what was sent is sent again.
    (void)sigaction(signal, &previous, nullptr);
    if (sent) (void)system_call(SYS_rt_tgsigqueueinfo, system_call(SYS_getpid), thread_id(), signal, info);
    return;
  }
  const struct sigaction action = previous;
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) previous.sa_handler = SIG_DFL;
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
  const int saved = errno;
  const FaultHandler handler = fault_handler.load(std::memory_order_relaxed);
  const bool dealt_with = is_from_instruction(*info) && handler != nullptr && handler(describe(*info, context));
  if (!dealt_with) pass_on(signal, info, context);
  errno = saved;
}

}  // namespace

void prepare_traces() noexcept {
  prepare_unwinding();
  if (unwinds_by_all_tables()) return;
  void* const library = dlopen("libgcc_s.so.1", RTLD_NOW);
  if (library == nullptr) return;
  unwinder.address = reinterpret_cast<AddressFunction*>(dlsym(library, "_Unwind_GetIPInfo"));
  if (unwinder.address == nullptr) return;
  unwinder.backtrace = reinterpret_cast<BacktraceFunction*>(dlsym(library, "_Unwind_Backtrace"));
}

__attribute__((noinline)) unsigned capture_trace(uintptr_t* frames, unsigned most) noexcept {
  Collector c{frames, 0, most, false, 0};
  trace(c);
  return c.count;
}

__attribute__((noinline)) unsigned capture_trace_of_fault(uintptr_t* frames, unsigned most,
                                                          uintptr_t instruction) noexcept {
  Collector c{frames, 0, most, true, instruction};
  trace(c);
  if (c.count == 0 && instruction != 0) frames[c.count++] = instruction;  // no way past the signal's frame
  return c.count;
}

CodePlace place_of(uintptr_t address) noexcept {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return {};
  return {info.dli_fname, address - reinterpret_cast<uintptr_t>(info.dli_fbase), info.dli_sname,
          address - reinterpret_cast<uintptr_t>(info.dli_saddr)};
}

uint32_t thread_id() noexcept {
  return static_cast<uint32_t>(system_call(SYS_gettid));
}

uint64_t clock_ns() noexcept {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t wall_clock_ns() noexcept {
  timespec now{};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
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
