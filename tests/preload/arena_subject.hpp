// What the programs that test scopes and frames share: how to tell where a block lies, and a function on a thread of
// its own. Open it to write another such program.
#pragma once

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sluice/scope.hpp>

#include <thread>
#include <utility>

#include "subject.hpp"

namespace subject {

// Objects of the stack arena have a header of 8 bytes before a multiple of 16; blocks of the pools are multiples of 16.
inline bool is_in_arena(void* block) {
  return malloc_usable_size(block) % 16 == 8;
}

template <typename Body>
void on_another_thread(Body body) {
  std::thread(std::move(body)).join();
}

// Returns: the exit status of a forked child that runs body, or 128 and the signal that ended it.
template <typename Body>
int exit_status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace subject
