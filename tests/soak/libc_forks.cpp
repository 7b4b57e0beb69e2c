// Forks beside threads that are inside libc with its locks: they read and write streams, flush all of them, log, load
// libraries, look up names. libc takes some of those locks at a fork, when the heap is held for it, and their holders
// may wait for the heap. A round is a fork. Open it when a program that forks hangs and its other threads read or log.
#include <dlfcn.h>
#include <iconv.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <syslog.h>
#include <ext/stdio_sync_filebuf.h>

#include <iostream>
#include <thread>
#include <vector>

#include "run.hpp"

namespace {

using namespace soak;

std::atomic<bool> stopping{false};

// Leaves the processors to the forks for a moment, so that there are many of them.
void count_and_rest() {
  ++totals.operations;
  timespec moment{0, 50'000};
  nanosleep(&moment, nullptr);
}

FILE* scratch_file() {
  FILE* const file = std::tmpfile();
  if (file == nullptr) Run::fail("tmpfile: errno %d", errno);
  return file;
}

// A file of lines, open for reading.
FILE* lines(size_t count, size_t shortest, size_t longest) {
  FILE* const file = scratch_file();
  Random random(7);
  for (size_t i = 0; i < count; ++i) {
    for (size_t n = shortest + random.below(longest - shortest + 1); n != 0; --n)
      std::putc('x', file);
    std::putc('\n', file);
  }
  std::rewind(file);
  return file;
}

void read_line(FILE* file, char** line) {
  size_t capacity = 0;
  *line = nullptr;
  if (getline(line, &capacity, file) < 0) std::rewind(file);
}

void read_long_lines() {
  FILE* const file = lines(20, 300'000, 300'000);
  while (!stopping) {
    char* line;
    read_line(file, &line);
    free(line);
    count_and_rest();
  }
  std::fclose(file);
}

// The lines are kept for a while, so that reading needs fresh memory.
void read_short_lines() {
  FILE* const file = lines(20'000, 100, 500);
  std::vector<char*> kept(3000);
  for (size_t i = 0; !stopping; i = (i + 1) % kept.size()) {
    free(kept[i]);
    read_line(file, &kept[i]);
    if (i % 100 == 0) count_and_rest();
  }
  for (char* const line : kept)
    free(line);
  std::fclose(file);
}

void flush_all_streams() {
  while (!stopping) {
    for (int i = 0; i < 100; ++i)
      std::fflush(nullptr);
    count_and_rest();
  }
}

void open_and_write() {
  while (!stopping) {
    FILE* const file = std::fopen("/dev/null", "w");
    if (file == nullptr) Run::fail("fopen: errno %d", errno);
    for (int i = 0; i < 100; ++i)
      std::fprintf(file, "%d %s\n", i, "a line of a log");
    std::fclose(file);
    count_and_rest();
  }
}

void log_by_syslog() {
  openlog("soak_libc_forks", LOG_NDELAY, LOG_USER);
  while (!stopping) {
    syslog(LOG_DEBUG, "operation %llu", static_cast<unsigned long long>(totals.operations));
    count_and_rest();
  }
}

// As std::cout does while it goes through stdio, to where it bothers nobody.
void log_by_stream() {
  FILE* const file = std::fopen("/dev/null", "w");
  __gnu_cxx::stdio_sync_filebuf<char> buffer(file);
  std::streambuf* const usual = std::cout.rdbuf(&buffer);
  while (!stopping) {
    std::cout << "operation " << totals.operations << std::string(100, '.') << std::endl;
    count_and_rest();
  }
  std::cout.rdbuf(usual);
  std::fclose(file);
}

void load_libraries() {
  while (!stopping) {
    void* const library = dlopen(SOAK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) Run::fail("dlopen: %s", dlerror());
    dlclose(library);
    const iconv_t conversion = iconv_open("UTF-16", "ISO-8859-2");  // loads modules, too
    if (conversion != reinterpret_cast<iconv_t>(-1)) iconv_close(conversion);
    ++totals.operations;
  }
}

void look_up_names() {
  while (!stopping) {
    addrinfo* found = nullptr;
    if (getaddrinfo("localhost", "80", nullptr, &found) == 0) freeaddrinfo(found);
    (void)getpwnam("nobody");
    count_and_rest();
  }
}

[[noreturn]] void live_as_child() {
  Run::limit_child();
  for (int i = 0; i < 30; ++i)
    for (const size_t size : {40u, 300u, 3000u, 20'000u, 100'000u, 1'000'000u})
      free(std::memset(hide(malloc(size)), 1, 100 < size ? 100 : size));
  std::fflush(nullptr);
  _exit(0);
}

void fork_in_turn(const Run& run) {
  while (run.goes_on()) {
    const pid_t child = fork();
    if (child < 0) Run::fail("fork: errno %d", errno);
    if (child == 0) live_as_child();
    ++totals.forks;
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
      if (errno != EINTR) Run::fail("waitpid: errno %d", errno);
    if (status != 0) Run::fail("a child ended with wait status %#x", static_cast<unsigned>(status));
    ++totals.rounds;
  }
}

// The other threads may go on for long when the forks hang.
void watch_forks() {
  uint64_t seen = 0;
  double changed = seconds_now();
  while (!stopping) {
    sleep_ms(20);
    if (totals.rounds != seen) {
      seen = totals.rounds;
      changed = seconds_now();
    } else if (seconds_now() - changed > Run::limit()) {
      Run::fail("HANGS: no fork has ended for %u s, after %llu", Run::limit(), static_cast<unsigned long long>(seen));
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const Run run("soak_libc_forks", count, arguments);
  std::vector<std::thread> others;
  for (void (*const body)() : {read_long_lines, read_short_lines, flush_all_streams, open_and_write, log_by_syslog,
                               log_by_stream, load_libraries, look_up_names})
    others.emplace_back([body] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()),
                  10);  // a fork does not wait for eight time slices of others
      body();
    });
  totals.threads += others.size();
  std::thread watching(watch_forks);
  fork_in_turn(run);
  stopping = true;
  watching.join();
  for (std::thread& thread : others)
    thread.join();
  return 0;
}
