// See profile_file.hpp.
#include "stats/profile_file.hpp"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "base/destination.hpp"
#include "base/options.hpp"
#include "base/policy.hpp"
#include "base/print.hpp"
#include "heap/heap.hpp"
#include "heap/sampling.hpp"
#include "os/keep_errno.hpp"
#include "os/process.hpp"
#include "os/seldom_touched.hpp"
#include "os/thread.hpp"
#include "os/unwind.hpp"
#include "profile/profile.hpp"
#include "stats/leak_check.hpp"
#include "stats/profile_encoder.hpp"
#include "stats/report_file.hpp"
#include "stats/report_link.hpp"

namespace sluice::stats {
namespace {

struct ProfileFile {
  bool wanted;
  bool has_pid;  // in its name
  bool finds_leaks;
  pid_t process;  // that it was asked for in
};
constinit ProfileFile file{};
SLUICE_SELDOM_TOUCHED constinit Destination target{};
constinit std::string_view reason_of_no_leaks;  // why none are looked for; empty where they are
constinit std::atomic<unsigned> signals{0};     // that a file was written for

constexpr size_t longest_suffix = 64;
constexpr uint64_t most_profile_rate = uint64_t{1} << 40;  // as the option has it

void say(std::string_view what) noexcept {
  char line[256];
  Print(line, sizeof line, STDERR_FILENO).text("sluice: SLUICE_PROFILE: ").text(what).character('\n');
}

// What writing works on; mapped, since a handler's stack may be small.
struct Work {
  const EncodedProfile* encoded;
  Destination target;  // of a dump on request
  char path[Destination::path_capacity + longest_suffix];
  char beside[Destination::path_capacity + 2 * longest_suffix];
  char buffer[size_t{64} << 10];
};

int write_encoded(void* context, int descriptor) noexcept {
  Work& work = *static_cast<Work*>(context);
  Print out(work.buffer, sizeof work.buffer, descriptor);
  return out.text(work.encoded->first()).text(work.encoded->second()).finish();
}

void add_number(char* path, unsigned number) noexcept {
  char* end = path + strlen(path);
  *end++ = '.';
  unsigned power = 1;
  while (number / power >= 10)
    power *= 10;
  for (; power != 0; power /= 10)
    *end++ = static_cast<char>('0' + number / power % 10);
  *end = '\0';
}

void write_to_file(const EncodedProfile& encoded, Work& work) noexcept {
  work.encoded = &encoded;
  const int error = write_file(work.path, {work.beside, sizeof work.beside}, write_encoded, &work);
  if (error == link_of_others)
    say("the file is a symbolic link that another user may have made; it is not followed");
  else if (error != 0)
    Destination::complain("sluice: profile", work.path, error);
}

// False when the profile is in use.
bool encode_and_write(bool wait, const ProfileExtras& extras, Work& work) noexcept {
  const EncodedProfile encoded(wait, extras);
  switch (encoded.outcome()) {
    case EncodedProfile::Outcome::Busy:
      return false;
    case EncodedProfile::Outcome::NoMemory:
      say("no memory to write it");
      return true;
    case EncodedProfile::Outcome::Done:
      write_to_file(encoded, work);
  }
  return true;
}

// The copy of the process writes the file; where there is none, this process does.
bool write_with_leaks(bool wait, uint64_t pid, Work& work) noexcept {
  struct Context {
    uint64_t pid;
    Work& work;
  } context{pid, work};
  const auto in_copy = [](void* self, const Reachability* found, std::string_view unknown) noexcept {
    const Context& to = *static_cast<Context*>(self);
    return encode_and_write(true, {to.pid, found, unknown}, to.work);
  };
  if (!reason_of_no_leaks.empty()) return encode_and_write(wait, {pid, nullptr, reason_of_no_leaks}, work);
  const LeakCheck checked = check_leaks(wait, in_copy, &context);
  if (checked.outcome == LeakCheck::Outcome::Done) return true;
  if (checked.outcome == LeakCheck::Outcome::Busy) return false;
  return encode_and_write(wait, {pid, nullptr, checked.unknown}, work);
}

// `number`: what stands behind the file's name; 0: nothing. False when the profile is in use.
bool write(bool wait, unsigned number) noexcept {
  const KeepErrno keep;
  auto* const work = static_cast<Work*>(os::map_scratch(sizeof(Work)));
  if (work == nullptr) return say("no memory to write it"), true;
  bool done = true;
  if (target.expand_path(work->path)) {
    const auto pid = static_cast<uint64_t>(getpid());
    if (number != 0) add_number(work->path, number);
    done = file.finds_leaks && number == 0 ? write_with_leaks(wait, pid, *work)
                                           : encode_and_write(wait, {pid, nullptr, {}}, *work);
  }
  os::unmap_scratch(work, sizeof(Work));
  return done;
}

// From a sample, where locks may be waited for.
void write_numbered() noexcept {
  (void)write(true, signals.fetch_add(1, std::memory_order_relaxed) + 1);
}

// The signal may have interrupted anything: writes at once when nobody is in the profile, else leaves it to the next
// sample.
void on_signal(int) noexcept {
  if (!file.has_pid && getpid() != file.process) return;  // a forked child: the file is its parent's
  const unsigned number = signals.fetch_add(1, std::memory_order_relaxed) + 1;
  if (write(false, number)) return;
  signals.fetch_sub(1, std::memory_order_relaxed);
  profile::deferred_work.store(write_numbered, std::memory_order_release);
}

// The process in which a thread starts the profile. The child of a fork has another number, and no such thread.
constinit std::atomic<uint32_t> starting_in{0};
constinit std::atomic<bool> is_prepared{false};  // prepare_profile() was called

bool begin_starting() noexcept {
  const uint32_t own = os::process_id();
  uint32_t process = starting_in.load(std::memory_order_relaxed);
  // Acquire: pairs with the end of start_profile_now.
  return process != own && starting_in.compare_exchange_strong(process, own, std::memory_order_acquire);
}

}  // namespace

void prepare_profile() noexcept {
  if (profiles_blocks) os::prepare_unwinding();
  is_prepared.store(true, std::memory_order_release);  // pairs with start_profile_now
}

int start_profile_now(uint64_t rate) noexcept {
  const KeepErrno keep;
  if (secure || heap::stands_aside()) return ENOTSUP;
  if (rate > most_profile_rate) return EINVAL;
  if (!begin_starting()) return EBUSY;
  if (!profile::exists() && !is_prepared.load(std::memory_order_acquire)) os::prepare_unwinding();
  const profile::Started started = profile::start(rate != 0 ? rate : options.profile_rate);
  starting_in.store(0, std::memory_order_release);
  switch (started) {
    case profile::Started::Already:
      return EBUSY;
    case profile::Started::NoMemory:
      return ENOMEM;
    case profile::Started::Abandoned:
      return ENOTSUP;
    case profile::Started::Yes:
      sampling::ask_all();
  }
  return 0;
}

int stop_profile_now() noexcept {
  const KeepErrno keep;
  if (!profile::stop()) return ESRCH;
  sampling::ask_all();
  return 0;
}

int dump_profile_now(const char* path) noexcept {
  const KeepErrno keep;
  if (path == nullptr || *path == '\0') return EINVAL;
  if (!profile::exists()) return ESRCH;
  const EncodedProfile encoded(true, {static_cast<uint64_t>(getpid()), nullptr, {}});
  if (encoded.outcome() == EncodedProfile::Outcome::Busy) return EBUSY;
  if (encoded.outcome() == EncodedProfile::Outcome::NoMemory) return ENOMEM;
  auto* const work = static_cast<Work*>(os::map_scratch(sizeof(Work)));
  if (work == nullptr) return ENOMEM;
  work->encoded = &encoded;
  int error = ENAMETOOLONG;
  if (work->target.remember(path) && work->target.expand_path(work->path))
    error = write_file(work->path, {work->beside, sizeof work->beside}, write_encoded, work);
  os::unmap_scratch(work, sizeof(Work));
  return error == link_of_others ? ELOOP : error;
}

void leaks_are_unknown(const char* reason) noexcept {
  reason_of_no_leaks = reason;
}

bool start_profile() noexcept {
  const std::string_view name = options.profile;
  if (name.empty()) return false;
  if (secure) return say("libsluice-secure.so takes no profile; libsluice.so does"), false;
  if (!target.remember(options.profile)) return say("the file's name is too long"), false;
  os::prepare_unwinding();
  if (profile::start(options.profile_rate) != profile::Started::Yes)
    return say("no memory for its tables; there is no profile"), false;
  file.wanted = true;
  file.process = getpid();
  file.has_pid = name.find("%p") != std::string_view::npos;
  file.finds_leaks = options.profile_leaks && options.profile_rate == 1;
  if (options.profile_leaks && !file.finds_leaks)
    say("leaks are found only where every block is known: SLUICE_PROFILE_LEAKS needs SLUICE_PROFILE_RATE=1");
  sampling::start_profile();
  if (options.profile_signal != 0) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    (void)sigaction(options.profile_signal, &action, nullptr);
  }
  return true;
}

bool writes_profile(bool is_forked_child) noexcept {
  return file.wanted && (file.has_pid || !is_forked_child);
}

bool write_profile(bool wait) noexcept {
  return write(wait, 0);
}

}  // namespace sluice::stats
