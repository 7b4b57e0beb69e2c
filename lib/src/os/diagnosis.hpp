// What reports of memory errors need of the system: back traces, the names of addresses, faults, a precise clock. Open
// it when a trace is empty or wrong, or when a fault does not arrive. Nothing here is used unless guarding is on.
//
// No function here allocates, but prepare_traces(), which is called once at start. errno is undefined afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::os {

// Effects: finds the unwinder and where the code of this library lies.
void prepare_traces() noexcept;

// Effects: writes the addresses of the calls that lead here, innermost first, without those inside this library. Where
// unwind.hpp does not find all tables, libgcc_s follows them, and where that is missing, frame pointers are followed:
// the trace is short in code that keeps none. Returns: how many.
unsigned capture_trace(uintptr_t* frames, unsigned most) noexcept;

// Effects: as capture_trace, in a handler of a fault: what led to the instruction that faulted, that one first.
unsigned capture_trace_of_fault(uintptr_t* frames, unsigned most, uintptr_t instruction) noexcept;

// What an address of code belongs to. dladdr() finds exported symbols only, and does not allocate; null where nothing
// is known. The offset of the module is what addr2line takes for position-independent code.
struct CodePlace {
  const char* module;
  uintptr_t module_offset;
  const char* symbol;
  uintptr_t symbol_offset;
};
CodePlace place_of(uintptr_t address) noexcept;

// The number by which the system and debuggers know the calling thread.
uint32_t thread_id() noexcept;

// A monotonic clock in nanoseconds.
uint64_t clock_ns() noexcept;

// The time of day, in nanoseconds since 1970.
uint64_t wall_clock_ns() noexcept;

enum class Access : uint8_t { Unknown, Read, Write };

// An access to a page that does not allow it.
struct Fault {
  uintptr_t address;
  uintptr_t instruction;
  Access access;
};

// Runs in a signal handler on the thread that faulted. Says whether the instruction is to be tried again.
using FaultHandler = bool (*)(const Fault& fault) noexcept;

// Effects: sends faults to `handler`. Those that it does not want go to whoever had them before, just as if there were
// no handler: with the same signal, code and, if the process ends, the same core.
void install_fault_handler(FaultHandler handler) noexcept;

// Effects: the next fault ends the process.
void let_faults_end_the_process() noexcept;

}  // namespace sluice::os
