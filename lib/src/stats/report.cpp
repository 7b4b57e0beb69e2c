// See report.hpp.
#include "stats/report.hpp"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/destination.hpp"
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

struct Report {
  bool wanted;
  bool json;
  pid_t pid;  // of the process that was asked
  Destination target;
};
constinit Report report{};
constinit Mutex printing;  // guards those below
constinit Snapshot snapshot{};
constinit char buffer[4096]{};

ProcessInfo process_info() noexcept {
  return {static_cast<uint64_t>(getpid()), program_invocation_short_name, SLUICE_VERSION};
}

int write_snapshot(int descriptor, bool json) noexcept {
  Print out(buffer, sizeof buffer, descriptor);
  if (json)
    write_json(out, snapshot, process_info());
  else
    write_text(out, snapshot, process_info());
  return out.finish();
}

// Prints the snapshot to where the options say. Requires `printing`.
void print_to_target() noexcept {
  if (report.target.is_file()) {
    const char* const file = report.target.file();
    if (file == nullptr) return;
    const int error = write_file(file, [](int descriptor) noexcept { return write_snapshot(descriptor, report.json); });
    if (error != 0) report.target.complain("sluice: statistics", error);
    return;
  }
  const int descriptor = report.target.find_stderr();
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
  if (!report.target.remember(wish.file)) {
    char line[128];
    Print(line, sizeof line, STDERR_FILENO).text("sluice: SLUICE_STATS: the file's name is too long\n");
    report.wanted = false;
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
