// See attach.hpp.
#include "stats/attach.hpp"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/options.hpp"
#include "base/print.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "os/keep_errno.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"
#include "profile/profile.hpp"
#include "stats/profile_encoder.hpp"
#include "stats/profile_file.hpp"
#include "stats/report.hpp"
#include "stats/snapshot.hpp"

namespace sluice::stats {
namespace {

using std::string_view;

enum State : uintptr_t { None, Starting, Serving, Refused };
constinit std::atomic<uintptr_t> state{None};
// Written while state is Starting.
constinit uintptr_t thread = 0;
constinit uint32_t process = 0;

void run() noexcept {
  const bool open = os::open_requests();
  state.store(open ? Serving : Refused, std::memory_order_release);  // pairs with start
  os::wake_one(state);
  if (open) os::serve_requests(answer_request);
}

// Waits until all is done that a sandbox may forbid which comes next.
void start() noexcept {
  state.store(Starting, std::memory_order_relaxed);
  process = os::process_id();
  if (!os::start_thread("sluice-attach", run, &thread)) return state.store(None, std::memory_order_relaxed);
  while (state.load(std::memory_order_acquire) == Starting)  // pairs with run
    os::wait_for(state, Starting, os::until_woken);
  if (state.load(std::memory_order_relaxed) != Refused) return;
  os::join_thread(thread);
  state.store(None, std::memory_order_relaxed);
}

// By the last thread that has a cache, at its end; by one that makes a thread of the program's, where there is room for
// no more. Not in a child of vfork, which shares memory with its parent. Returns: whether the thread served.
bool stop() noexcept {
  uintptr_t serving = Serving;
  if (state.load(std::memory_order_relaxed) != Serving || process != os::process_id()) return false;
  if (!state.compare_exchange_strong(serving, None, std::memory_order_acquire, std::memory_order_relaxed)) return false;
  os::close_requests();
  os::join_thread(thread);
  return true;
}

constexpr size_t small_answer = 4096;
constexpr size_t most_statistics = size_t{1} << 20;
constexpr string_view ok = "ok\n";  // before and after what was asked for

// What an answer is written into: mapped, and as large as need be.
class Draft {
 public:
  explicit Draft(size_t capacity) noexcept
      : data_(static_cast<char*>(os::map_scratch(capacity))), capacity_(capacity) {}

  Draft& add(string_view text) noexcept {
    if (data_ != nullptr && text.size() <= capacity_ - size_) {
      memcpy(data_ + size_, text.data(), text.size());
      size_ += text.size();
    }
    return *this;
  }
  os::Reply reply() const noexcept { return {data_, size_, capacity_}; }
  os::Reply whole_reply() noexcept { return add(ok).reply(); }
  void give_back() noexcept {
    if (data_ != nullptr) os::unmap_scratch(data_, capacity_);
  }

  static int sink(void* draft, const char* data, size_t size) noexcept {
    static_cast<Draft*>(draft)->add({data, size});
    return 0;
  }

 private:
  char* const data_;
  const size_t capacity_;
  size_t size_ = 0;
};

os::Reply say(string_view line) noexcept {
  return Draft(small_answer).add(line).add("\n").reply();
}

os::Reply say_done(string_view text) noexcept {
  return Draft(small_answer).add(ok).add(text).whole_reply();
}

os::Reply say_outcome(int error) noexcept {
  switch (error) {
    case 0:
      return say_done("");
    case EBUSY:
      return say("error the profile is running already, or is just being started");
    case ESRCH:
      return say("error no profile was started");
    case ENOMEM:
      return say("error there is no memory for it");
    case EINVAL:
      return say("error the rate is more than 1 TiB");
    case ENOTSUP:
      return say(
          "error this process can have no profile: libsluice-secure.so takes none, nor does a forked child whose "
          "parent was in the middle of a sample");
    default:
      return say("error it failed");
  }
}

os::Reply write_statistics(bool json) noexcept {
  Draft draft(most_statistics);
  draft.add(ok);
  if (write_report(Draft::sink, &draft, json) == 0) return draft.whole_reply();
  draft.give_back();
  return say_outcome(ENOMEM);
}

os::Reply write_figures() noexcept {
  auto* const snapshot = static_cast<Snapshot*>(os::map_scratch(sizeof(Snapshot)));
  if (snapshot == nullptr) return say_outcome(ENOMEM);
  take_figures(snapshot);
  Draft draft(small_answer);
  {
    char buffer[128];
    Print out(buffer, sizeof buffer, Draft::sink, &draft);
    out.text(ok).text("live_bytes ").decimal(snapshot->live_bytes);
    out.text("\nthreads ").decimal(snapshot->threads.live);
    if (snapshot->counting) out.text("\nmallocs ").decimal(snapshot->mallocs).text("\nfrees ").decimal(snapshot->frees);
    out.text("\nprofile_rate ").decimal(profile::rate()).character('\n');
  }
  os::unmap_scratch(snapshot, sizeof(Snapshot));
  return draft.whole_reply();
}

os::Reply write_whole_profile() noexcept {
  if (!profile::exists()) return say_outcome(ESRCH);
  const EncodedProfile encoded(true, {static_cast<uint64_t>(getpid()), nullptr, {}});
  if (encoded.outcome() != EncodedProfile::Outcome::Done) return say_outcome(ENOMEM);
  Draft draft(2 * ok.size() + encoded.first().size() + encoded.second().size());
  const os::Reply reply = draft.add(ok).add(encoded.first()).add(encoded.second()).whole_reply();
  return reply.data != nullptr ? reply : say_outcome(ENOMEM);
}

os::Reply start_profile_at(const char* size) noexcept {
  uint64_t rate = 0;
  return read_size(size, &rate) ? say_outcome(start_profile_now(rate)) : say("error the rate is no size");
}

os::Reply set_option(char* assignment) noexcept {
  char* const equals = strchr(assignment, '=');
  if (equals == nullptr) return say("error expected NAME=VALUE");
  *equals = '\0';
  switch (change_option(assignment, equals + 1)) {
    case OptionChange::Done:
      return say_done("");
    case OptionChange::Unknown:
      return say("error there is no such option");
    case OptionChange::Fixed:
      return say("error this option stays as it was at the start; PURGE_DELAY, RETAIN and PROFILE_RATE may change");
    case OptionChange::BadValue:
      return say("error the option does not take this value");
    case OptionChange::Never:
      return say("error from and to never PURGE_DELAY does not change in a running program");
  }
  return say("error it failed");
}

// Returns: what follows the words, or null where the request does not begin with them.
char* after(char* request, string_view words) noexcept {
  return strncmp(request, words.data(), words.size()) == 0 ? request + words.size() : nullptr;
}

}  // namespace

os::Reply answer_request(char* request) noexcept {
  const string_view asked = request;
  if (asked == "stats text") return write_statistics(false);
  if (asked == "stats json") return write_statistics(true);
  if (asked == "figures") return write_figures();
  if (asked == "profile dump") return write_whole_profile();
  if (asked == "profile stop") return say_outcome(stop_profile_now());
  if (asked == "purge") return say_done(heap::trim(0) ? "memory went back to the system\n" : "nothing was free\n");
  if (char* const rate = after(request, "profile start ")) return start_profile_at(rate);
  if (char* const assignment = after(request, "set ")) return set_option(assignment);
  return say("error this version of Sluice does not know the request");
}

void start_attach() noexcept {
  if (!options.attach) return;
  const KeepErrno keep;
  prepare_profile();      // asks the loader, which the thread must not
  (void)cache::attach();  // the heap is there from here on
  background::stops_also(stop);
  start();
}

void start_attach_in_child() noexcept {
  if (state.load(std::memory_order_relaxed) == None) return;
  const KeepErrno keep;
  os::forget_requests();
  state.store(None, std::memory_order_relaxed);
  if (options.attach_children) start();
}

}  // namespace sluice::stats
