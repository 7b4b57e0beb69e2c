// A fork on the mock of the system, without the handlers that wait for every lock: the test has taken them, or another
// thread is stopped for good with one of them. Open it for tests of what the child finds.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "heap/thread_cache.hpp"
#include "mock_os.hpp"

namespace sluice::test {

// Returns: what `child` (a function without arguments that returns a string) says in the child, where all locks were
// given back first, or how the child died.
template <typename Child>
std::string said_by_bare_fork(Child child) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t pid = mock_os::fork_without_handlers();
  if (pid == 0) {
    cache::unlock_in_child();
    const std::string wrong = child();
    _exit(write(ends[1], wrong.data(), wrong.size()) == static_cast<ssize_t>(wrong.size()) ? 0 : 1);
  }
  close(ends[1]);
  char text[200];
  std::string wrong;
  for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;)
    wrong.append(text, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) wrong += "the child died of signal " + std::to_string(WTERMSIG(status));
  return wrong;
}

}  // namespace sluice::test
