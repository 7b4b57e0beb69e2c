// Where other processes ask this one (stats/attach.hpp): a socket, and the loop that serves it. Open it when a process
// cannot be reached, or is reached by somebody who should not.
//
// The socket belongs to the thread that opens it, in a table of descriptors of its own: the program never sees its
// number, cannot close it, and hands it to no child. Its name is abstract: it needs no folder, and ends with the
// process. The name has a part that cannot be guessed, so that nobody takes it first; who asks finds it in
// /proc/net/unix, and sees by the credentials of the other end whose it is.
//
// As memory.hpp otherwise; errno is undefined afterwards.
#pragma once

#include <cstddef>

namespace sluice::os {

// Effects: gives the calling thread a table of descriptors of its own, empty but for a new socket on which it listens.
// False where the system refuses any of it. All that a sandbox may forbid later but accepting, reading and writing has
// been done then. Called by a thread of the allocator's own, one in a process.
bool open_requests() noexcept;

// What is sent, in memory of map_scratch() (os/process.hpp); null: nothing.
struct Reply {
  char* data;
  size_t size;
  size_t mapped;
};

// Of a request: one line without its end, null-terminated.
using Answer = Reply (*)(char* request) noexcept;

// Effects: answers requests of this process's user and of root, and refuses all others, until close_requests() is
// called. Sleeps while nobody asks. A client has ten seconds to ask and to take the answer; several are served at a
// time. Requires: open_requests() on this thread.
void serve_requests(Answer answer) noexcept;

// Effects: ends serve_requests(), from another thread. Not for signal handlers.
void close_requests() noexcept;

// Effects: in the child of a fork, forgets what the parent has open: the child has it not.
void forget_requests() noexcept;

}  // namespace sluice::os
