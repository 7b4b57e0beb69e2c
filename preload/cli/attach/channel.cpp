// See channel.hpp.
#include "channel.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../command.hpp"
#include "measure/descriptor.hpp"

namespace sluice::cli::attach {
namespace {

namespace fs = std::filesystem;
using std::string_view;
using Clock = std::chrono::steady_clock;

constexpr string_view prefix = "sluice-attach-";

template <typename Number>
std::optional<Number> number_in(string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "sluice-attach-PID-FILTERS-RANDOM"
std::optional<Place> parse_name(string_view name) {
  if (!name.starts_with(prefix) || name.size() >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
  const string_view rest = name.substr(prefix.size());
  const size_t first = rest.find('-'), second = first == string_view::npos ? first : rest.find('-', first + 1);
  if (second == string_view::npos) return std::nullopt;
  const auto pid = number_in<pid_t>(rest.substr(0, first));
  if (!pid || *pid <= 0) return std::nullopt;
  return Place{std::string(name), *pid, number_in<long>(rest.substr(first + 1, second - first - 1)).value_or(-1), ""};
}

// The value of a line "NAME:\tVALUE" in /proc/PID/status; of several values the last one.
std::string status_value(const std::string& status, string_view name) {
  const std::string line = fmt::format("\n{}:\t", name);
  const size_t at = status.find(line);
  if (at == std::string::npos) return "";
  const size_t begin = at + line.size(), end = std::min(status.find('\n', begin), status.size());
  const std::string values = status.substr(begin, end - begin);
  return values.substr(values.find_last_of("\t ") + 1);
}

std::optional<long> filters_of(const std::string& status) {
  return number_in<long>(status_value(status, "Seccomp_filters"));
}

class Connection {
 public:
  Connection(const Place& place, Clock::time_point deadline)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), deadline_(deadline) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, place.name.data(), place.name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + place.name.size());
    while (socket_.number() >= 0 && !is_open_) {
      is_open_ = connect(socket_.number(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
      // EAGAIN: many are waiting already.
      if (!is_open_ && (errno != EAGAIN || Clock::now() >= deadline_)) break;
      if (!is_open_) usleep(10'000);
    }
  }

  bool is_open() const { return is_open_; }

  pid_t peer() const {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    return getsockopt(socket_.number(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 ? credentials.pid : 0;
  }

  bool send_all(string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent > 0)
        text.remove_prefix(static_cast<size_t>(sent));
      else if ((errno != EAGAIN && errno != EINTR) || !wait_for(POLLOUT))
        return false;
    }
    return true;
  }

  // What came before the time was up or the stream broke, as it does where a process refuses without having read.
  std::string receive_all() const {
    std::string text;
    char piece[1 << 16];
    for (;;) {
      const ssize_t got = recv(socket_.number(), piece, sizeof piece, 0);
      if (got == 0) return text;
      if (got > 0)
        text.append(piece, static_cast<size_t>(got));
      else if ((errno != EAGAIN && errno != EINTR) || !wait_for(POLLIN))
        return text;
    }
  }

 private:
  bool wait_for(short events) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    pollfd polled{socket_.number(), events, 0};
    return left > 0 && (poll(&polled, 1, static_cast<int>(left)) > 0 || errno == EINTR);
  }

  bench::Descriptor socket_;
  Clock::time_point deadline_;
  bool is_open_ = false;
};

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// As far as it can be read: processes end meanwhile.
std::vector<std::string> names_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error))
    names.push_back(each->path().filename().native());
  return names;
}

// The folders /proc/PID/task/THREAD of the threads that answer; one, unless a program has taken the name.
std::vector<std::string> answering_threads(pid_t pid) {
  std::vector<std::string> threads;
  std::error_code gone;
  for (const std::string& id : names_in(fmt::format("/proc/{}/task", pid), gone))
    if (process_file(pid, fmt::format("task/{}/comm", id)) == "sluice-attach\n")
      threads.push_back(fmt::format("/proc/{}/task/{}", pid, id));
  return threads;
}

enum class Listens { yes, no, not_told };

// Whether a thread of this process has the socket in its table of descriptors.
Listens listens(pid_t pid, const Place& place) {
  const std::string wanted = fmt::format("socket:[{}]", place.inode);
  bool any_hidden = false;
  for (const std::string& thread : answering_threads(pid)) {
    std::error_code hidden;
    for (const std::string& descriptor : names_in(thread + "/fd", hidden)) {
      std::error_code unread;
      if (fs::read_symlink(fmt::format("{}/fd/{}", thread, descriptor), unread) == wanted) return Listens::yes;
      any_hidden |= unread == std::errc::permission_denied;
    }
    any_hidden |= hidden == std::errc::permission_denied;
  }
  return any_hidden ? Listens::not_told : Listens::no;
}

// Where the system does not tell who listens: who answers a connection is that process, and neither one of the same
// name elsewhere nor somebody who has taken the name.
bool is_answered_by(const Place& place, pid_t pid) {
  const Connection connection(place, Clock::now() + std::chrono::seconds(2));
  return connection.is_open() && connection.peer() == pid;
}

// In another namespace of processes its number is another one.
pid_t find_listener(const Place& place) {
  std::error_code unreadable;
  for (const std::string& name : names_in("/proc", unreadable))
    if (const auto pid = number_in<pid_t>(name); pid && listens(*pid, place) == Listens::yes) return *pid;
  return 0;
}

[[noreturn]] void refuse(pid_t pid, const std::string& problem) {
  throw CommandError(exit_failure, fmt::format("attach: process {} ({}) {}", pid, program_of(pid), problem));
}

bool is_in_other_network(pid_t pid) {
  std::error_code unreadable;
  const fs::path other = fs::read_symlink(fmt::format("/proc/{}/ns/net", pid), unreadable);
  const fs::path own = fs::read_symlink("/proc/self/ns/net", unreadable);
  return !other.empty() && !own.empty() && other != own;
}

}  // namespace

std::vector<Place> find_places() {
  std::ifstream sockets("/proc/self/net/unix");
  std::vector<Place> places;
  for (std::string line; std::getline(sockets, line);) {
    const size_t at = line.rfind(" @");
    if (at == std::string::npos) continue;
    std::optional<Place> place = parse_name(string_view(line).substr(at + 2));
    constexpr string_view listening = "00010000";  // flags; connections that are open have the same name
    std::string number, references, protocol, flags, type, state;
    std::istringstream fields(line.substr(0, at));
    if (place && fields >> number >> references >> protocol >> flags >> type >> state >> place->inode &&
        flags == listening)
      places.push_back(*place);
  }
  return places;
}

pid_t listener_of(const Place& place) {
  switch (listens(place.pid, place)) {
    case Listens::yes:
      return place.pid;
    case Listens::no:
      return find_listener(place);
    case Listens::not_told:
      return geteuid() == 0 ? place.pid : 0;  // root that may not trace is served, too
  }
  return 0;
}

Response ask(const Place& place, string_view request, pid_t wanted, std::chrono::milliseconds limit) {
  const Connection connection(place, Clock::now() + limit);
  if (!connection.is_open()) return {Response::Outcome::gone, "", 0};
  const pid_t peer = connection.peer();
  if (peer <= 0 || (wanted != 0 && peer != wanted)) return {Response::Outcome::gone, "", 0};
  // A refusal may have come, and the stream have ended, before the request.
  (void)connection.send_all(fmt::format("{}\n", request));
  const std::string text = connection.receive_all();
  constexpr string_view ok = "ok\n";
  if (text.size() >= 2 * ok.size() && text.starts_with(ok) && text.ends_with(ok))
    return {Response::Outcome::ok, text.substr(ok.size(), text.size() - 2 * ok.size()), peer};
  if (text.starts_with("error ") && text.ends_with('\n'))
    return {Response::Outcome::refused, text.substr(6, text.size() - 7), peer};
  return {Response::Outcome::silent, "", peer};
}

Place find_place(pid_t pid, bool force) {
  struct stat folder {};
  if (stat(fmt::format("/proc/{}", pid).c_str(), &folder) != 0)
    throw CommandError(exit_failure, fmt::format("attach: there is no process {}", pid));
  const std::string status = process_file(pid, "status");
  if (const std::string group = status_value(status, "Tgid"); !group.empty() && group != std::to_string(pid))
    refuse(pid, fmt::format("is a thread of process {}", group));
  const pid_t own_number = number_in<pid_t>(status_value(status, "NSpid")).value_or(pid);
  for (const Place& place : find_places()) {
    if (place.pid != own_number) continue;
    const Listens known = listens(pid, place);
    if (known == Listens::no) continue;
    if (is_stopped(pid)) refuse(pid, "is stopped");
    if (!force && is_sandboxed_since(place, pid))
      refuse(pid, "has entered a sandbox (seccomp) since it was started, which may end it for answering; --force asks");
    if (known == Listens::yes || is_answered_by(place, pid)) return place;
  }
  if (is_in_other_network(pid))
    refuse(pid, fmt::format("is in another network namespace; `nsenter -n -t {0} sluice attach {0}` reaches it", pid));
  const std::string maps = process_file(pid, "maps");
  if (maps.empty()) refuse(pid, "is not open to attaching, or is another user's");
  if (maps.find("/libsluice") == std::string::npos) refuse(pid, "does not run on libsluice.so");
  refuse(pid,
         "runs on Sluice, but is not open to attaching: it was not started with SLUICE_ATTACH=1, it was forked without "
         "SLUICE_ATTACH_CHILDREN=1, or its system does not allow it");
}

bool is_sandboxed_since(const Place& place, pid_t pid) {
  for (const std::string& thread : answering_threads(pid)) {
    const std::optional<long> now = filters_of(file_text(thread + "/status"));
    if (place.filters >= 0 && now && *now > place.filters) return true;
  }
  return false;
}

bool is_stopped(pid_t pid) {
  const std::string stat = process_file(pid, "stat");
  const size_t at = stat.rfind(") ");
  return at != std::string::npos && at + 2 < stat.size() && (stat[at + 2] == 'T' || stat[at + 2] == 't');
}

std::string process_file(pid_t pid, string_view name) {
  return file_text(fmt::format("/proc/{}/{}", pid, name));
}

std::string program_of(pid_t pid) {
  std::string name = process_file(pid, "comm");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return printable(name);
}

}  // namespace sluice::cli::attach
