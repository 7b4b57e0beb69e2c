// A process that is asked all the time, by several clients at once, while its threads allocate and fork: the thread
// that answers beside all others. What it answers is attach_test.py's.
#include <atomic>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "stats/attach.hpp"
#include "stress_rounds.hpp"

namespace {

using namespace sluice;
using test::allocate;
using test::rounds;

// The name of the place where a process listens; empty where it has none.
std::string place_of(pid_t pid) {
  const std::string prefix = "@sluice-attach-" + std::to_string(pid) + "-";
  std::ifstream sockets("/proc/self/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (const size_t at = line.find(prefix); at != std::string::npos) return line.substr(at + 1);
  return "";
}

std::string ask(const std::string& place, const std::string& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, place.data(), place.size());
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + place.size());
  if (connect(client, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    (void)send(client, (request + "\n").c_str(), request.size() + 1, MSG_NOSIGNAL);
    char piece[4096];
    for (ssize_t got; (got = recv(client, piece, sizeof piece, 0)) > 0;)
      answer.append(piece, static_cast<size_t>(got));
  }
  close(client);
  return answer;
}

// A snapshot reads the bins of threads that are at work, in plain words: what it finds may be a call old, and
// ThreadSanitizer does not let that pass.
constexpr const char* requests[] = {
#if !defined(SLUICE_THREAD_SANITIZER)
    "stats json",         "figures",
#endif
    "profile start 1000", "profile dump", "profile stop", "purge"};

TEST(AttachStress, ClientsAreAnsweredBesideThreadsThatAllocateAndFork) {
  heap::free(allocate(1));
  options.attach = true;
  stats::start_attach();
  const std::string place = place_of(getpid());
  if (place.empty()) GTEST_SKIP() << "the system allows no thread with descriptors of its own";
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (const char* const request : requests)
    threads.emplace_back([&over, &place, request] {
      do {
        const std::string answer = ask(place, request);
        EXPECT_TRUE((answer.starts_with("ok\n") && answer.ends_with("ok\n")) || answer.starts_with("error "))
            << request << ": " << answer;
      } while (!over);
    });
  for (size_t i = 0; i < 3; ++i)
    threads.emplace_back([&over, i] {
      while (!over)
        for (size_t size = i + 1; size < 100'000; size += size / 2 + 1)
          heap::free(allocate(size));
    });
  for (int round = 0; round < rounds(30); ++round) {
    const pid_t child = fork();
    if (child == 0) {
      stats::start_attach_in_child();
      heap::free(allocate(100));
      _exit(place_of(getpid()).empty() ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  over = true;
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(heap::validate().what, nullptr);
}

}  // namespace
