// See report.hpp.
#include "stats/report.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mutex.hpp"
#include "base/options.hpp"
#include "base/print.hpp"
#include "heap/heap.hpp"
#include "os/memory.hpp"
#include "sluice/sluice.h"
#include "stats/report_file.hpp"
#include "stats/snapshot.hpp"
#include "stats/writers.hpp"

namespace sluice::stats {
namespace {

constexpr int lowest_descriptor = 200;  // programs count on low descriptor numbers; few use high ones
constexpr size_t path_capacity = 4096;

struct Report {
  bool wanted;
  bool json;
  char path[path_capacity];  // absolute, %p not yet replaced; empty: stderr
  int descriptor;            // a duplicate of stderr, or -1
  struct stat identity;      // what it referred to: the program may close it and reuse the number
  pid_t pid;                 // of the process that was asked
};
constinit Report report{};
constinit Mutex printing;  // guards those below
constinit Snapshot snapshot{};
constinit char target[path_capacity]{};  // the file, %p replaced
constinit char buffer[4096]{};

ProcessInfo process_info() noexcept {
  return {static_cast<uint64_t>(getpid()), program_invocation_short_name, SLUICE_VERSION};
}

bool remember_path(const char* file) noexcept {
  size_t length = 0;
  if (file[0] != '/') {
    if (getcwd(report.path, path_capacity) == nullptr) return false;
    while (report.path[length] != '\0')
      ++length;
    report.path[length++] = '/';
  }
  for (; *file != '\0'; ++file) {
    if (length + 1 >= path_capacity) return false;
    report.path[length++] = *file;
  }
  report.path[length] = '\0';
  return true;
}

// The file's name with each %p replaced by the pid; false when it is too long.
bool expand_path(char* out) noexcept {
  size_t length = 0;
  for (const char* at = report.path; *at != '\0'; ++at) {
    char digits[20];
    size_t count = 0;
    if (at[0] == '%' && at[1] == 'p') {
      for (auto pid = static_cast<unsigned long>(getpid()); count == 0 || pid != 0; pid /= 10)
        digits[count++] = static_cast<char>('0' + pid % 10);
      ++at;
    } else {
      digits[count++] = *at;
    }
    if (length + count >= path_capacity) return false;
    while (count != 0)
      out[length++] = digits[--count];
  }
  out[length] = '\0';
  return true;
}

// What stderr was at the start; -1 when the program has closed it.
int descriptor_of_stderr() noexcept {
  for (const int candidate : {report.descriptor, STDERR_FILENO}) {
    struct stat now {};
    if (candidate >= 0 && fstat(candidate, &now) == 0 && now.st_dev == report.identity.st_dev &&
        now.st_ino == report.identity.st_ino)
      return candidate;
  }
  return -1;
}

int write_snapshot(int descriptor, bool json) noexcept {
  Print out(buffer, sizeof buffer, descriptor);
  if (json)
    write_json(out, snapshot, process_info());
  else
    write_text(out, snapshot, process_info());
  return out.finish();
}

void print_to_file() noexcept {
  if (!expand_path(target)) return;
  const int error = write_file(target, [](int descriptor) noexcept { return write_snapshot(descriptor, report.json); });
  if (error == 0) return;
  char line[256];
  Print(line, sizeof line, STDERR_FILENO)
      .text("sluice: statistics: cannot write ")
      .text(target)
      .text(" (errno ")
      .decimal(static_cast<uint64_t>(error))
      .text(")\n");
}

// Prints the snapshot to where the options say. Requires `printing`.
void print_to_target() noexcept {
  if (report.path[0] != '\0') return print_to_file();
  const int descriptor = descriptor_of_stderr();
  if (descriptor >= 0) (void)write_snapshot(descriptor, report.json);
}

void print_now() noexcept {
  const int saved = errno;
  printing.lock();
  take_snapshot(&snapshot);
  print_to_target();
  printing.unlock();
  errno = saved;
}

// The signal may have interrupted anything: prints at once when no lock is held, else leaves it to the next allocation.
void on_signal(int) noexcept {
  const int saved = errno;
  if (!printing.try_lock()) {
    heap::deferred_work.store(print_now, std::memory_order_release);
  } else {
    const bool taken = try_take_snapshot(&snapshot);
    if (taken) print_to_target();
    printing.unlock();
    if (!taken) heap::deferred_work.store(print_now, std::memory_order_release);
  }
  errno = saved;
}

}  // namespace

void start_report() noexcept {
  // A fork waits for a report that is being printed. Registered after the heap's handlers, so taken before its locks.
  os::register_fork_handlers([] { printing.lock_for_fork(); }, [] { printing.unlock_after_fork(); },
                             [] { printing.unlock_after_fork(); });
  const StatsWish wish = stats_wish();
  if (!wish.understood) {
    char line[256];
    Print(line, sizeof line, STDERR_FILENO)
        .text("sluice: SLUICE_STATS=")
        .text(options.stats)
        .text(": not 0, 1, text, json, text:FILE or json:FILE; no statistics are printed at exit\n");
  }
  if (!options_want_statistics()) return;
  report.wanted = wish.wanted;
  report.json = wish.json;
  report.pid = getpid();
  report.descriptor = -1;
  if (wish.file == nullptr) {
    report.descriptor = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, lowest_descriptor);
    if (report.descriptor < 0) report.descriptor = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (report.descriptor >= 0) (void)fstat(report.descriptor, &report.identity);
  } else if (!remember_path(wish.file)) {
    char line[128];
    Print(line, sizeof line, STDERR_FILENO).text("sluice: SLUICE_STATS: the file's name is too long\n");
    report.wanted = false;
    report.path[0] = '\0';
  }
  if (options.stats_signal != 0) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    (void)sigaction(options.stats_signal, &action, nullptr);
  }
}

void print_report_at_exit() noexcept {
  if (!report.wanted || (getpid() != report.pid && !options.stats_children)) return;
  print_now();
}

int print_report(int descriptor, bool json) noexcept {
  const MutexGuard guard(printing);
  take_snapshot(&snapshot);
  return write_snapshot(descriptor, json);
}

}  // namespace sluice::stats
