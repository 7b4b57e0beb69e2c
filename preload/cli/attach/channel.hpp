// Finds processes that can be attached, and asks them (lib/src/stats/attach.hpp says what they answer). Open it when a
// process is not found, or the wrong one is.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace sluice::cli::attach {

// A place where a process listens; its name is no proof: asking checks whose it is.
struct Place {
  std::string name;   // of the socket, without the null before it
  pid_t pid;          // as the process itself sees it
  long filters;       // of seccomp that its thread had at the start; -1: not known
  std::string inode;  // of the socket
};

// Returns: the places of this machine, as far as they are in the same network namespace; of all users.
std::vector<Place> find_places();

struct Response {
  enum class Outcome { ok, refused, silent, gone } outcome;
  std::string text;  // ok: what was asked for; refused: why
  pid_t pid = 0;     // of who answered, as this process sees it
};

// Effects: sends a request, and reads the answer to its end. `wanted`: the process that it is for; 0: whichever.
// Throws: nothing.
Response ask(const Place& place, std::string_view request, pid_t wanted, std::chrono::milliseconds limit);

// Effects: finds the place of a process. `force`: also where it has entered a sandbox since it was started. Throws:
// CommandError, which says why it cannot be attached.
Place find_place(pid_t pid, bool force);

// Returns: who listens at a place, as this process sees it; 0: nobody whom this user may look into, or trace. Nobody is
// asked: to connect wakes up the process, which its sandbox may end for it.
pid_t listener_of(const Place& place);

// Whether answering may end the process: its thread has more seccomp filters than at its start.
bool is_sandboxed_since(const Place& place, pid_t pid);

// Whether a signal or a debugger has stopped it.
bool is_stopped(pid_t pid);

// The contents of /proc/PID/NAME; empty where it cannot be read.
std::string process_file(pid_t pid, std::string_view name);

// The program's name, harmless to a terminal.
std::string program_of(pid_t pid);

}  // namespace sluice::cli::attach
