// Stacks on macOS, by frame pointers: the system's rules ask all code to keep them. See unwind.hpp.
#include "os/trace.hpp"
#include "os/unwind.hpp"

#include <dlfcn.h>
#include <mach-o/getsect.h>
#include <mach-o/loader.h>
#include <pthread.h>

#include <cstdint>

#include "os/objects.hpp"

namespace sluice::os {
namespace {

constexpr uintptr_t longest_frame = 16 * 1024 * 1024;  // bytes; a frame pointer that is farther off is none
constexpr uintptr_t least_code = 64 * 1024;  // the outermost frame may have no return address, but a small number

struct Range {
  uintptr_t from, to;
  bool covers(uintptr_t address) const noexcept { return address >= from && address < to; }
};

// The code of this library, whose frames no stack shows. Empty where it is linked into the program.
constinit Range own_code{};

// The calling thread's stack, as it was made: the program may not have touched all of it.
Range own_stack() noexcept {
  const auto end = reinterpret_cast<uintptr_t>(pthread_get_stackaddr_np(pthread_self()));
  return {end - pthread_get_stacksize_np(pthread_self()), end};
}

// What lies between a stack pointer and the end of the stack can be read. A handler's stack, or that of a coroutine, is
// not the thread's, and nothing is known of it.
void learn(StackBounds& bounds, uintptr_t pointer) noexcept {
  if (pointer >= bounds.low && pointer < bounds.high) return;
  if (const Range stack = own_stack(); stack.covers(pointer)) bounds = {pointer, stack.to};
}

// What a function pushes first.
struct Frame {
  uintptr_t caller;  // its frame
  uintptr_t instruction;
};

bool read(Frame* frame, uintptr_t at, const StackBounds& bounds) noexcept {
  if (at % sizeof(uintptr_t) != 0) return false;
  if (at < bounds.low || at >= bounds.high || bounds.high - at < sizeof *frame)
    return copy_if_readable(frame, at, sizeof *frame);
  const auto* const words = reinterpret_cast<const volatile uintptr_t*>(at);
  *frame = {words[0], words[1]};
  return true;
}

// Whether a caller's frame may lie there: farther out, or on the thread's stack if this one lies on another.
bool leads_out(uintptr_t from, uintptr_t to) noexcept {
  if (to > from && to - from <= longest_frame) return true;
  const Range stack = own_stack();
  return stack.covers(to) && !stack.covers(from);
}

// Return addresses may be signed (arm64e): their address is the lower bits.
uintptr_t plain(uintptr_t address) noexcept {
#if defined(__aarch64__)
  return address & ((uintptr_t{1} << 47) - 1);
#else
  return address;
#endif
}

using CallTrace = Trace<Range>;

// Adds the callers of a frame. Returns: whether the outermost one is among them.
bool follow(uintptr_t at, CallTrace& trace, const StackBounds& bounds) noexcept {
  for (Frame frame; read(&frame, at, bounds); at = frame.caller) {
    const uintptr_t place = plain(frame.instruction);
    const bool is_outermost = frame.caller == 0 || place == 0;
    if (place < least_code) return is_outermost;
    if (!trace.add(place - 1)) return false;
    if (is_outermost || !leads_out(at, frame.caller)) return is_outermost;
  }
  return false;
}

}  // namespace

void prepare_unwinding() noexcept {
  prepare_objects();
  Dl_info own{};  // and not __dso_handle, which zig's linker puts elsewhere
  if (dladdr(reinterpret_cast<const void*>(&prepare_unwinding), &own) == 0) return;
  const auto* const header = static_cast<const mach_header_64*>(own.dli_fbase);
  if (header->filetype == MH_EXECUTE) return;  // it is linked into the program, and cannot be told from it
  unsigned long bytes = 0;
  const uint8_t* const code = getsegmentdata(header, SEG_TEXT, &bytes);
  if (code != nullptr) own_code = {reinterpret_cast<uintptr_t>(code), reinterpret_cast<uintptr_t>(code) + bytes};
}

bool is_own_code(uintptr_t address) noexcept {
  return own_code.covers(address);
}

void forget_stacks() noexcept {}

Unwound unwind_from(const Registers& registers, uintptr_t* frames, unsigned most, StackBounds& bounds) noexcept {
  learn(bounds, registers.stack);
  CallTrace trace(frames, most, own_code);
  const bool complete = trace.add(registers.instruction) && follow(registers.frame, trace, bounds);
  return {trace.count(), complete};
}

__attribute__((noinline)) Unwound unwind(uintptr_t* frames, unsigned most, StackBounds& bounds) noexcept {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  learn(bounds, frame);
  CallTrace trace(frames, most, own_code);
  const bool complete = follow(frame, trace, bounds);
  return {trace.count(), complete};
}

__attribute__((noinline)) Unwound unwind(uintptr_t* frames, unsigned most) noexcept {
  StackBounds bounds{};
  return unwind(frames, most, bounds);
}

}  // namespace sluice::os
