// See screen.hpp.
#include "screen.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sluice::cli::attach {
namespace {

constexpr std::array ending_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
volatile sig_atomic_t ended_by = 0;
volatile sig_atomic_t stop_asked = 0;

void on_end(int signal) {
  ended_by = signal;
}
void on_stop(int) {
  stop_asked = 1;
}
void on_change(int) {}  // it ends a wait

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  (void)sigaction(signal, &action, nullptr);
}

// Signals come while the view waits, and at no other time.
sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : ending_signals)
    sigaddset(&set, signal);
  sigaddset(&set, SIGTSTP);
  sigaddset(&set, SIGWINCH);
  return set;
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

Screen::Screen() {
  (void)tcgetattr(STDIN_FILENO, &before_);
  const sigset_t handled = handled_signals();
  (void)sigprocmask(SIG_BLOCK, &handled, nullptr);
  for (const int signal : ending_signals)
    handle(signal, on_end);
  handle(SIGTSTP, on_stop);
  handle(SIGWINCH, on_change);
  enter();
}

Screen::~Screen() {
  leave();
  for (const int signal : ending_signals)
    (void)std::signal(signal, SIG_DFL);
  const sigset_t handled = handled_signals();
  (void)sigprocmask(SIG_UNBLOCK, &handled, nullptr);
}

void Screen::enter() const {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  print("\x1b[?1049h\x1b[?25l");
}

void Screen::leave() const {
  print("\x1b[?25h\x1b[?1049l");
  (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

void Screen::show(const std::string& text) const {
  winsize size{};
  (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  std::string screen = "\x1b[H";
  std::string_view rest = text;
  for (int row = 0; !rest.empty() && (size.ws_row == 0 || row < size.ws_row); ++row) {
    const size_t end = rest.find('\n');
    if (row != 0) screen += "\r\n";
    screen += std::string(rest.substr(0, end)) + "\x1b[K";
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  print(screen + "\x1b[J");
}

std::optional<char> Screen::wait_for_key(int milliseconds) {
  const sigset_t handled = handled_signals();
  sigset_t open;
  (void)sigprocmask(SIG_BLOCK, nullptr, &open);
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&handled, signal) == 1) sigdelset(&open, signal);
  const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = ppoll(&input, 1, &limit, &open);
  if (stop_asked != 0) {
    stop_asked = 0;
    leave();
    (void)raise(SIGSTOP);
    enter();
    return std::nullopt;
  }
  if (ready <= 0) return std::nullopt;
  char key = 0;
  const ssize_t got = read(STDIN_FILENO, &key, 1);
  if (got == 1) return key;
  is_gone_ = got == 0 || errno != EINTR;
  return std::nullopt;
}

bool Screen::is_over() const {
  return ended_by != 0 || is_gone_;
}

int Screen::ending_signal() const {
  return ended_by;
}

}  // namespace sluice::cli::attach
