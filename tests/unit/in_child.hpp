// Runs part of a test in a child process, where the heap has not been started yet. Open it for tests that need a fresh
// heap many times over. Google Test's checks do not reach out of the child: say what is wrong by the result.
#pragma once

#include <cstdio>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace sluice::test {

// Requires: this process has one thread and has not used the heap. Returns: what `body` (a function without arguments)
// returned, or how the child died; empty when all was well.
template <typename Body>
std::string in_child(Body body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return "no child";
  if (child == 0) {
    close(ends[0]);
    const std::string wrong = body();
    const ssize_t written = write(ends[1], wrong.data(), wrong.size());
    _exit(written == static_cast<ssize_t>(wrong.size()) && wrong.empty() ? 0 : 1);
  }
  close(ends[1]);
  std::string wrong;
  char buffer[256];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    wrong.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "the child died of signal " + std::to_string(WTERMSIG(status));
  if (wrong.empty() && WEXITSTATUS(status) != 0) return "the child ended with " + std::to_string(WEXITSTATUS(status));
  return wrong;
}

}  // namespace sluice::test
