// See report.hpp.
#include "stats/report.hpp"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/destination.hpp"
#include "base/options.hpp"
#include "base/print.hpp"
#include "heap/heap.hpp"
#include "heap/regular.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/seldom_touched.hpp"
#include "sluice/sluice.h"
#include "stats/attach.hpp"
#include "stats/dump_memory.hpp"
#include "stats/ends.hpp"
#include "stats/profile_file.hpp"
#include "stats/report_file.hpp"
#include "stats/report_link.hpp"
#include "stats/snapshot.hpp"
#include "stats/writers.hpp"

namespace sluice::stats {
namespace {

struct Report {
  bool wanted;
  StatsFormat format;
  pid_t asked;  // the process that was asked
  pid_t here;   // this process; a child of vfork, which shares memory with its parent, has another number
  std::atomic<bool> last_begun;    // what is printed at the process's end
  std::atomic<bool> profile_done;  // the profile, which is written before the statistics
};
constinit Report report{};
SLUICE_SELDOM_TOUCHED constinit Destination target{};
constinit std::atomic<bool> has_failed{false};  // a write of the file, and it was told

ProcessInfo process_info() noexcept {
  return {static_cast<uint64_t>(getpid()), os::program_called(), SLUICE_VERSION};
}

int write_snapshot(DumpMemory& memory, Print& out, StatsFormat format) noexcept {
  switch (format) {
    case StatsFormat::Text:
      write_text(out, memory.snapshot(), process_info());
      break;
    case StatsFormat::Json:
      write_json(out, memory.snapshot(), process_info());
      break;
    case StatsFormat::Prometheus:
      write_prometheus(out, memory.snapshot(), process_info());
  }
  return out.finish();
}

// One write, unless the descriptor takes less.
int write_snapshot(DumpMemory& memory, int descriptor, StatsFormat format) noexcept {
  Print out(memory.text(), memory.text_capacity(), descriptor);
  return write_snapshot(memory, out, format);
}

int write_as_asked(void* memory, int descriptor) noexcept {
  return write_snapshot(*static_cast<DumpMemory*>(memory), descriptor, report.format);
}

void complain_about_file(const char* name, int error) noexcept {
  if (error != link_of_others) return Destination::complain("sluice: statistics", name, error);
  char line[256];
  Print(line, sizeof line, STDERR_FILENO)
      .text("sluice: statistics: ")
      .text(name)
      .text(" is a symbolic link that another user may have made; it is not followed\n");
}

// Prints the snapshot to where the options say.
void print_to_target(DumpMemory& memory) noexcept {
  if (target.is_file()) {
    if (!target.expand_path(memory.path())) return;
    const NameMemory beside{memory.path_beside(), DumpMemory::path_capacity};
    const int error = write_file(memory.path(), beside, write_as_asked, &memory);
    // What is written again and again fails again and again: the first time is told, unless the program has put
    // something else where stderr was.
    if (error != 0 && target.find_stderr() >= 0 && !has_failed.exchange(true, std::memory_order_relaxed))
      complain_about_file(memory.path(), error);
    return;
  }
  const int descriptor = target.find_stderr();
  if (descriptor >= 0) (void)write_as_asked(&memory, descriptor);
}

void print_now() noexcept {
  const int saved = errno;
  if (DumpMemory memory; memory) {
    take_snapshot(&memory.snapshot());
    print_to_target(memory);
  }
  errno = saved;
}

// The signal may have interrupted anything: prints at once when no lock is held, else leaves it to the next allocation.
void on_signal(int) noexcept {
  const int saved = errno;
  if (DumpMemory memory; memory && try_take_snapshot(&memory.snapshot()))
    print_to_target(memory);
  else
    heap::deferred_work.store(print_now, std::memory_order_release);
  errno = saved;
}

bool prints_here() noexcept {
  return report.wanted && (report.here == report.asked || options.stats_children);
}

// Of a file that is written now and then. False when a lock of the heap is held: nobody waits for it, since a signal
// handler that interrupted the heap may be the caller.
bool write_again() noexcept {
  if (!prints_here() || getpid() != report.here || report.last_begun.load(std::memory_order_relaxed)) return true;
  DumpMemory memory;
  if (!memory || !try_take_snapshot(&memory.snapshot())) return false;
  print_to_target(memory);
  return true;
}

void start_in_child() noexcept {
  DumpMemory::forget_others();
  os::forget_signal_later();
  report.here = getpid();
  report.last_begun.store(false, std::memory_order_relaxed);
  report.profile_done.store(false, std::memory_order_relaxed);
  regular::start_in_child(prints_here());
  start_attach_in_child();
}

bool writes_profile_here() noexcept {
  return writes_profile(report.here != report.asked) && !report.profile_done.load(std::memory_order_relaxed);
}

// False when the profile is in use, and then it is not written.
bool write_last_profile(bool wait) noexcept {
  if (!writes_profile_here()) return true;
  const bool done = write_profile(wait);
  if (done) report.profile_done.store(true, std::memory_order_relaxed);
  return done;
}

void start_statistics(const StatsWish& wish) noexcept {
  if (!options_want_statistics()) return;
  report.wanted = wish.wanted;
  report.format = wish.format;
  if (!target.remember(wish.file)) {
    char line[128];
    Print(line, sizeof line, STDERR_FILENO).text("sluice: SLUICE_STATS: the file's name is too long\n");
    report.wanted = false;
  } else if (wish.wanted && wish.format == StatsFormat::Prometheus && wish.file != nullptr) {
    regular::start(write_again, options.stats_interval);
  }
  if (options.stats_signal != 0) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    (void)sigaction(options.stats_signal, &action, nullptr);
  }
}

}  // namespace

void start_report() noexcept {
  const StatsWish wish = stats_wish();
  if (!wish.understood) {
    char line[256];
    Print(line, sizeof line, STDERR_FILENO)
        .text("sluice: SLUICE_STATS=")
        .text(options.stats)
        .text(": not 0, 1, text, json, prometheus, or one of these with :FILE; no statistics are printed at exit\n");
  }
  os::register_fork_handlers(nullptr, nullptr, start_in_child);
  if (options_want_statistics() || options.profile[0] != '\0') report.asked = report.here = getpid();
  start_statistics(wish);
  if (!start_profile() && !report.wanted) return;
  os::run_at_quick_exit(print_report_at_exit);
  watch_ends();
}

bool begin_last_report() noexcept {
  if (!(prints_here() || writes_profile_here()) || getpid() != report.here) return false;
  return !report.last_begun.exchange(true, std::memory_order_relaxed);
}

void take_back_last_report() noexcept {
  if ((prints_here() || writes_profile_here()) && getpid() == report.here)
    report.last_begun.store(false, std::memory_order_relaxed);
}

void print_last_report() noexcept {
  if (!write_last_profile(true)) {
    constexpr char line[] = "sluice: SLUICE_PROFILE: the process ended in the middle of a sample; it is not written\n";
    char buffer[sizeof line];
    Print(buffer, sizeof buffer, STDERR_FILENO).text(line);
  }
  if (prints_here()) print_now();
}

bool try_print_last_report() noexcept {
  if (!write_last_profile(false)) return false;
  if (!prints_here()) return true;
  DumpMemory memory;
  if (!memory || !try_take_snapshot(&memory.snapshot())) return false;
  print_to_target(memory);
  return true;
}

void print_report_at_exit() noexcept {
  if (begin_last_report()) print_last_report();
}

void print_report_at_direct_exit() noexcept {
  if (!begin_last_report()) return;
  constexpr int most_attempts = 250;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    if (try_print_last_report()) return;
    os::sleep_briefly();
  }
  char line[128];
  Print(line, sizeof line, STDERR_FILENO)
      .text("sluice: statistics: the process ended in the middle of an allocation; none are printed\n");
}

int print_report(int descriptor, bool json) noexcept {
  DumpMemory memory;
  if (!memory) return ENOMEM;
  take_snapshot(&memory.snapshot());
  return write_snapshot(memory, descriptor, json ? StatsFormat::Json : StatsFormat::Text);
}

int write_report(PrintSink sink, void* context, bool json) noexcept {
  DumpMemory memory;
  if (!memory) return ENOMEM;
  take_snapshot(&memory.snapshot());
  Print out(memory.text(), memory.text_capacity(), sink, context);
  return write_snapshot(memory, out, json ? StatsFormat::Json : StatsFormat::Text);
}

}  // namespace sluice::stats
