// Processes and libraries: threads load and unload a library that allocates, start programs, and run chains of exec,
// all while others allocate. A round is some of each. Open it when a program that starts others, or loads plugins,
// hangs.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "store.hpp"

extern char** environ;

namespace {

using namespace soak;

constexpr size_t slots = 200;
constexpr size_t largest = MiB;
constexpr int loads_of_a_round = 30;
constexpr int starts_of_a_round = 10;
constexpr size_t loading_threads = 3, starting_threads = 2;
constexpr unsigned links_of_a_chain = 5;
constexpr char chain_option[] = "--chain";

void require_end(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) Run::fail("waitpid: errno %d", errno);
  if (status != 0) Run::fail("a program that was started ended with wait status %d", status);
}

void load_and_unload(uint64_t seed) {
  Store store(slots, seed, largest);
  for (int i = 0; i < loads_of_a_round; ++i) {
    void* const library = dlopen(SOAK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) Run::fail("dlopen: %s", dlerror());
    // The casts that POSIX asks for.
    auto* const damage = reinterpret_cast<int (*)()>(dlsym(library, "library_damage"));
    auto* const allocate = reinterpret_cast<void* (*)(size_t)>(dlsym(library, "library_allocate"));
    auto* const release = reinterpret_cast<void (*)(void*)>(dlsym(library, "library_release"));
    if (damage() != 0) Run::fail("a library's blocks changed");
    // One block from there is freed here, and the other way round.
    const Block block{static_cast<unsigned char*>(allocate(500)), 500, store.random().next(), 0, Origin::Malloc};
    fill(block);
    release(malloc(700));
    for (int n = 0; n < 50; ++n)
      store.step();
    if (damage() != 0) Run::fail("a library's blocks changed");
    dlclose(library);
    discard(block);
  }
}

void start_programs(const char* self, uint64_t seed) {
  Store store(slots, seed, largest);
  for (int i = 0; i < starts_of_a_round; ++i) {
    std::array<std::string, 4> words = {"/bin/true"};
    if (i % 5 == 0)
      words = {self, chain_option, std::to_string(links_of_a_chain), std::to_string(store.random().next())};
    std::array<char*, 5> arguments{};
    for (size_t n = 0; n < words.size() && !words[n].empty(); ++n)
      arguments[n] = words[n].data();
    std::array<pid_t, 3> children{};
    for (pid_t& child : children) {
      const int error = posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ);
      if (error != 0) Run::fail("posix_spawn: errno %d", error);
      ++totals.forks;
    }
    for (int n = 0; n < 50; ++n)
      store.step();
    for (const pid_t child : children)
      require_end(child);
  }
}

// A link of a chain: allocates on threads, and is replaced by the next one while they still do.
int live_as_link(char** arguments) {
  const auto left = static_cast<unsigned>(number_of(arguments[2]));
  const uint64_t seed = number_of(arguments[3]);
  std::vector<std::thread> threads;
  std::atomic<bool> ending{false};
  for (uint64_t i = 0; i < 2; ++i) {
    threads.emplace_back([&ending, seed, i] {
      Store store(slots, seed + i, largest);
      while (!ending)
        store.step();
    });
  }
  Store store(slots, seed, largest);
  for (int i = 0; i < 1000; ++i)
    store.step();
  if (left != 0) {
    const std::string next = std::to_string(left - 1);
    execl(arguments[0], arguments[0], chain_option, next.c_str(), arguments[3], static_cast<char*>(nullptr));
    Run::fail("exec: errno %d", errno);
  }
  ending = true;
  for (std::thread& thread : threads)
    thread.join();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 4 && std::strcmp(arguments[1], chain_option) == 0) return live_as_link(arguments);
  const Run run("soak_processes", count, arguments);
  Random random(run.seed());
  for (; run.goes_on(); ++totals.rounds) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < loading_threads; ++i)
      threads.emplace_back(load_and_unload, random.next());
    for (size_t i = 0; i < starting_threads; ++i)
      threads.emplace_back(start_programs, arguments[0], random.next());
    totals.threads += threads.size();
    for (std::thread& thread : threads)
      thread.join();
  }
  return 0;
}
