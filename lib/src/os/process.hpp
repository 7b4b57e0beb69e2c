// What a report needs of the system beside the heap's: memory for a moment, the names of the program, and how the
// process ends. Open it when a dump finds no memory, is printed by the wrong program, or does not come at a signal.
//
// All functions but one are async-signal-safe, and none allocates or goes through a libc function that programs are
// known to interpose. errno stays as it is.
#pragma once

#include <cstddef>

namespace sluice::os {

// Memory that reads as zero, apart from the heap and not counted with its calls; null when there is none.
void* map_scratch(size_t bytes) noexcept;
void unmap_scratch(void* address, size_t bytes) noexcept;

// Effects: writes the path of the program's file, cut to `capacity` bytes, and no null. Returns: its length; 0 when the
// system does not tell.
size_t program_file(char* path, size_t capacity) noexcept;

// The name under which the program was called, without folders; as libc has it, and may be empty.
const char* program_called() noexcept;

// Effects: writes the calling thread's name, with a null. That of the first thread begins as the name of what was
// executed, cut to 15 bytes: of a script, its own and not the interpreter's.
inline constexpr size_t thread_name_capacity = 16;
void thread_name(char* name) noexcept;

// Sleeps for a millisecond, or until a signal.
void sleep_briefly() noexcept;

// Effects: sends the process a signal after so many milliseconds, once, instead of the one that was ordered before;
// after 0, none. A handler finds SI_TIMER and the note in its siginfo_t. Of several threads' orders the last one
// stands. Async-signal-safe. False when the system refuses.
bool signal_later(int signal, unsigned milliseconds, void* note) noexcept;

// Effects: in the child of a fork, forgets what was ordered in its parent.
void forget_signal_later() noexcept;

// Effects: gives the signal its default action and sends it to this thread. Returns only in the first process of a
// container, which the system spares; the action stays the default one.
void end_by(int signal) noexcept;

// Effects: has the function called when the process ends by quick_exit; nothing where there is no such end (macOS
// before version 15). For the start alone: it is not async-signal-safe.
void run_at_quick_exit(void (*function)()) noexcept;

// Effects: ends the process at once, as _exit does.
[[noreturn]] void end_process(int status) noexcept;

}  // namespace sluice::os
