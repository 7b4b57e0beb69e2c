// See attach.hpp.
#include "os/attach.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "os/linux_call.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/seldom_touched.hpp"
#include "os/thread.hpp"

namespace sluice::os {
namespace {

#if !defined(SYS_close_range)
#define SYS_close_range 436
#endif
constexpr unsigned close_range_unshare = 2;
constexpr int closed = -1;
constexpr uint64_t patience_ms = 10'000;
constexpr unsigned most_clients = 8;
constexpr unsigned backlog = 16;
constexpr size_t longest_request = 256;
constexpr int pause_ms = 100;
constexpr uint64_t wake_patience_ms = 1000;
constexpr int wake_signal = SIGSTKFLT;  // neither the system nor libc sends it
constexpr uid_t nobody = 65534;         // also whom the system names where it has no number for a user

struct Client {
  int socket = closed;
  uint64_t until_ms = 0;
  size_t received = 0;
  size_t sent = 0;
  Reply reply{};
  char request[longest_request]{};
};

constinit int listener = closed;  // in the table of the thread that serves
constinit sockaddr_un address{};
constinit socklen_t address_length = 0;
SLUICE_SELDOM_TOUCHED_VALUES constinit Client clients[most_clients]{};
constinit std::atomic<bool> ending{false};
// Readable when the thread that serves, which blocks all signals, has got wake_signal: closed where the system has no
// such descriptors.
constinit int wakes = closed;
// Whom to send it; 0: nobody. Who asks has seen that it serves.
constinit std::atomic<uintptr_t> woken_thread{0};

long wait(pollfd* descriptors, unsigned count, int milliseconds) noexcept {
  timespec limit{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  return system_call(SYS_ppoll, descriptors, count, milliseconds < 0 ? nullptr : &limit, nullptr, size_t{8});
}

// Where poll() would not sleep. A sandbox that forbids this forbids serving, too.
void pause_briefly() noexcept {
  (void)wait(nullptr, 0, pause_ms);
}

// How many seccomp filters this thread has: -1 where the system does not tell. What is in /proc is asked only where
// there are some: the system takes 15 ms longer to end a process of which that was read, and a shell runs many.
long count_filters() noexcept {
  if (system_call(SYS_prctl, PR_GET_SECCOMP, 0L, 0L, 0L, 0L) == 0) return 0;
  char text[4096];
  const long file = system_call(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  size_t length = 0;
  for (long got = 1; got > 0 && length<sizeof text; length += got> 0 ? static_cast<size_t>(got) : 0)
    got = system_call(SYS_read, static_cast<int>(file), text + length, sizeof text - length);
  (void)system_call(SYS_close, static_cast<int>(file));
  constexpr std::string_view name = "\nSeccomp_filters:\t";
  const size_t at = std::string_view(text, length).find(name);
  if (at == std::string_view::npos) return -1;
  long count = 0;
  for (size_t i = at + name.size(); i < length && text[i] >= '0' && text[i] <= '9'; ++i)
    count = count * 10 + (text[i] - '0');
  return count;
}

// "sluice-attach-PID-FILTERS-RANDOM", behind the null that makes it abstract.
void choose_name() noexcept {
  char* end = address.sun_path + 1;
  const auto text = [&end](std::string_view more) noexcept {
    memcpy(end, more.data(), more.size());
    end += more.size();
  };
  const auto decimal = [&text](uint64_t number) noexcept {
    char digits[20];
    size_t first = sizeof digits;
    do
      digits[--first] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    text({digits + first, sizeof digits - first});
  };
  address = {};
  address.sun_family = AF_UNIX;
  const long filters = count_filters();
  text("sluice-attach-");
  decimal(static_cast<uint64_t>(system_call(SYS_getpid)));
  text("-");
  if (filters < 0)
    text("x");
  else
    decimal(static_cast<uint64_t>(filters));
  text("-");
  bool weak = false;
  const uint64_t secret = secret_bits(&weak);
  for (int shift = 60; shift >= 0; shift -= 4)
    text({&"0123456789abcdef"[secret >> shift & 15], 1});
  address_length = static_cast<socklen_t>(end - reinterpret_cast<char*>(&address));
}

int new_socket() noexcept {
  return static_cast<int>(system_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void open_wakes() noexcept {
  constexpr uint64_t set = uint64_t{1} << (wake_signal - 1);
  wakes = static_cast<int>(system_call(SYS_signalfd4, closed, &set, sizeof set, O_CLOEXEC | O_NONBLOCK));
  woken_thread.store(wakes < 0 ? 0 : static_cast<uintptr_t>(system_call(SYS_gettid)), std::memory_order_relaxed);
}

// Returns: whether the thread has begun to end.
bool wakes_by_signal() noexcept {
  const uintptr_t thread = woken_thread.load(std::memory_order_relaxed);
  if (thread == 0) return false;
  if (system_call(SYS_tgkill, system_call(SYS_getpid), static_cast<long>(thread), long{wake_signal}) != 0) return false;
  const uint64_t end = clock_ms() + wake_patience_ms;
  for (uint64_t now = clock_ms(); now < end && woken_thread.load(std::memory_order_acquire) != 0; now = clock_ms())
    wait_for(woken_thread, thread, end - now);  // pairs with serve_requests
  return woken_thread.load(std::memory_order_relaxed) == 0;
}

uid_t user_id(long call) noexcept {
  return static_cast<uid_t>(system_call(call));
}

// As ptrace has it: the same user, unless the process is closed to its own user, or root. A program that has changed
// its user is closed until it says otherwise (PR_SET_DUMPABLE).
bool may_ask(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (system_call(SYS_getsockopt, socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer)
    return false;
  if (peer.uid == 0) return true;
  return peer.uid == user_id(SYS_getuid) && peer.uid == user_id(SYS_geteuid) && peer.uid != nobody &&
         system_call(SYS_prctl, PR_GET_DUMPABLE) == 1;
}

void drop(Client& client) noexcept {
  (void)system_call(SYS_close, client.socket);
  client.socket = closed;
  client.received = client.sent = 0;
  const Reply reply = client.reply;
  client.reply = {};
  if (reply.data != nullptr) unmap_scratch(reply.data, reply.mapped);
}

Client* free_client() noexcept {
  for (Client& client : clients)
    if (client.socket == closed) return &client;
  return nullptr;
}

void refuse(int socket) noexcept {
  constexpr std::string_view text =
      "error not permitted: the process serves its own user, where that may trace it, and root\n";
  (void)system_call(SYS_sendto, socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
  (void)system_call(SYS_close, socket);
}

void accept_one() noexcept {
  const int socket =
      static_cast<int>(system_call(SYS_accept4, listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket < 0) {
    // What was asked for is gone, or there is no room for a descriptor: then it stays, and poll() would not sleep.
    if (socket != -EAGAIN && socket != -ECONNABORTED && socket != -EINTR) pause_briefly();
    return;
  }
  if (!may_ask(socket)) return refuse(socket);
  Client& client = *free_client();
  client.socket = socket;
  client.until_ms = clock_ms() + patience_ms;
}

// False when the client is to be dropped.
bool send_more(Client& client) noexcept {
  const long sent = system_call(SYS_sendto, client.socket, client.reply.data + client.sent,
                                client.reply.size - client.sent, MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
  if (sent < 0) return sent == -EAGAIN || sent == -EINTR;
  client.sent += static_cast<size_t>(sent);
  return client.sent < client.reply.size;
}

bool receive_more(Client& client, Answer answer) noexcept {
  const long got = system_call(SYS_recvfrom, client.socket, client.request + client.received,
                               longest_request - client.received, MSG_DONTWAIT, nullptr, nullptr);
  if (got <= 0) return got == -EAGAIN || got == -EINTR;
  client.received += static_cast<size_t>(got);
  auto* const end = static_cast<char*>(memchr(client.request, '\n', client.received));
  if (end == nullptr) return client.received < longest_request;
  *end = '\0';
  client.reply = answer(client.request);
  client.until_ms = clock_ms() + patience_ms;
  return client.reply.data != nullptr && send_more(client);
}

// The time that is left to the client with the least; -1: nobody is served.
int until_next(uint64_t now) noexcept {
  uint64_t least = UINT64_MAX;
  for (const Client& client : clients) {
    if (client.socket == closed) continue;
    const uint64_t left = client.until_ms > now ? client.until_ms - now : 0;
    least = left < least ? left : least;
  }
  return least == UINT64_MAX ? -1 : static_cast<int>(least) + 1;
}

void serve(Client& client, int events, Answer answer) noexcept {
  bool goes_on = clock_ms() < client.until_ms;
  if (goes_on && events != 0) goes_on = client.reply.data != nullptr ? send_more(client) : receive_more(client, answer);
  if (!goes_on) drop(client);
}

// What is waited for: the listener where there is room for another client, and all clients; behind them the end.
struct Polled {
  pollfd descriptors[2 + most_clients];
  Client* of[1 + most_clients];  // null: the listener
  unsigned count = 0;            // without the end

  Polled() noexcept {
    if (free_client() != nullptr) add(nullptr, listener, POLLIN);
    for (Client& client : clients)
      if (client.socket != closed) add(&client, client.socket, client.reply.data != nullptr ? POLLOUT : POLLIN);
    descriptors[count] = {wakes, POLLIN, 0};
  }
  bool is_woken() const noexcept { return descriptors[count].revents != 0; }
  void add(Client* client, int descriptor, short events) noexcept {
    descriptors[count] = {descriptor, events, 0};
    of[count++] = client;
  }
};

void serve_all(const Polled& polled, bool any_ready, Answer answer) noexcept {
  for (unsigned i = 0; i < polled.count; ++i) {
    const int events = any_ready ? polled.descriptors[i].revents : 0;
    if (polled.of[i] != nullptr)
      serve(*polled.of[i], events, answer);
    else if (events != 0)
      accept_one();
  }
}

}  // namespace

bool open_requests() noexcept {
  // The new table has a few of the program's descriptors for the moment between its making and their closing here.
  if (system_call(SYS_close_range, 0U, ~0U, close_range_unshare) != 0) return false;
  choose_name();
  listener = new_socket();
  if (listener < 0) return false;
  ending.store(false, std::memory_order_relaxed);
  open_wakes();
  return system_call(SYS_bind, listener, &address, address_length) == 0 &&
         system_call(SYS_listen, listener, backlog) == 0;
}

void serve_requests(Answer answer) noexcept {
  for (;;) {
    Polled polled;
    const long ready = wait(polled.descriptors, polled.count + 1, until_next(clock_ms()));
    if (ending.load(std::memory_order_acquire)) break;    // pairs with close_requests
    if (ready < 0 && ready != -EINTR) break;              // a sandbox
    if (ready > 0 && polled.is_woken()) pause_briefly();  // a signal to the process, which all its threads block
    serve_all(polled, ready > 0, answer);
  }
  for (Client& client : clients)
    if (client.socket != closed) drop(client);
  woken_thread.store(0, std::memory_order_release);  // pairs with wakes_by_signal
  wake_one(woken_thread);
  (void)system_call(SYS_close, listener);
  (void)system_call(SYS_close, wakes);
  listener = wakes = closed;
}

// A signal reaches the thread wherever the program has gone (another network namespace, no room for a descriptor).
// Where there are no such descriptors, or they tell nothing of a signal to one thread (qemu), a client that asks
// nothing does.
void close_requests() noexcept {
  ending.store(true, std::memory_order_release);
  if (wakes_by_signal()) return;
  int socket = new_socket();
  // All numbers are in use: this thread, which is about to end, goes on with a table of its own.
  if (socket == -EMFILE && system_call(SYS_close_range, 0U, ~0U, close_range_unshare) == 0) socket = new_socket();
  if (socket < 0) return;
  (void)system_call(SYS_connect, socket, &address, address_length);
  (void)system_call(SYS_close, socket);
}

void forget_requests() noexcept {
  for (Client& client : clients)
    client = {};  // a reply stays mapped: the parent's thread may just have given it back
  woken_thread.store(0, std::memory_order_relaxed);
  listener = wakes = closed;
}

}  // namespace sluice::os
