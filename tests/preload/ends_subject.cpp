// A program that ends without exit(): by a signal, or by _exit. Usage: ends_subject MODE; it says "ready" on stdout
// when a signal may come. ends_test.py says what it should leave behind.
//   wait       ends when its standard input is closed, by exit status 0
//   full       the same, and its stderr is a pipe that is full
//   actions    prints how it finds the three signals, by sigaction() and by signal(), and again after it has set them,
//              by these and by the older functions
//   own HOW    has a handler for SIGTERM, set by sigaction or signal, which ends it with status 9
//   clean-up HOW   has one that sets the default action (or what was there before) and raises the signal again; HOW is
//              sigaction, signal, or an older function
//   busy N     N threads allocate for ever; 0: the main thread does
//   late       a handler of SIGALRM calls _exit(5), which may come in the middle of an allocation
//   vfork      a child made by vfork cannot execute its program and calls _exit
//   fork HOW   a child ends by HOW: _exit or TERM
// Open it when a dump at a signal is missing, or a program's handlers are not its own.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "subject.hpp"

namespace {

using namespace subject;
using std::string_view;

constexpr int watched[] = {SIGTERM, SIGINT, SIGHUP};
struct sigaction before {};

void ready() {
  std::puts("ready");
  std::fflush(stdout);
}

void wait_for_end_of_input() {
  ready();
  while (std::getchar() != EOF) {
  }
}

[[noreturn]] void allocate_for_ever() {
  for (size_t i = 1;; ++i)
    free(hide(malloc(i * 37 % (i % 100 == 0 ? 300000 : 5000))));
}

int fill_stderr() {
  const int flags = fcntl(STDERR_FILENO, F_GETFL);
  fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
  while (write(STDERR_FILENO, "", 1) == 1) {
  }
  fcntl(STDERR_FILENO, F_SETFL, flags);
  wait_for_end_of_input();
  return 0;
}

char letter_of(sighandler_t handler) {
  return handler == SIG_DFL    ? 'D'
         : handler == SIG_IGN  ? 'I'
         : handler == SIG_HOLD ? 'B'  // it was blocked
         : handler == SIG_ERR  ? 'E'
                               : 'H';
}

void print_actions() {
  for (const int signal : watched) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    std::putchar(letter_of(now.sa_handler));
    const sighandler_t seen = std::signal(signal, now.sa_handler);
    std::putchar(letter_of(seen));
  }
  std::putchar('\n');
}

// Headers declare them as obsolete, or not at all.
constexpr const char* older_functions[] = {"bsd_signal", "ssignal", "sysv_signal", "__sysv_signal", "sigset"};

using SignalFunction = sighandler_t(int, sighandler_t);

SignalFunction* function_named(const char* name) {
  void* const function = dlsym(RTLD_DEFAULT, name);
  if (function == nullptr) std::exit(6);
  return reinterpret_cast<SignalFunction*>(function);
}

void set_by_older_functions(sighandler_t handler) {
  for (const char* const name : older_functions) {
    SignalFunction* const function = function_named(name);
    for (const sighandler_t each : {handler, SIG_HOLD, handler}) {
      if (each == SIG_HOLD && std::strcmp(name, "sigset") != 0) continue;
      for (const int signal : watched)
        std::putchar(letter_of(function(signal, each)));
    }
    print_actions();
  }
}

int actions() {
  print_actions();
  struct sigaction own {};
  for (const sighandler_t handler : {SIG_IGN, sighandler_t{[](int) {}}, SIG_DFL}) {
    own.sa_handler = handler;
    for (const int signal : watched)
      sigaction(signal, &own, nullptr);
    print_actions();
    for (const int signal : watched)
      std::signal(signal, handler);
    print_actions();
    set_by_older_functions(handler);
  }
  return 0;
}

void set_handler(string_view how, sighandler_t handler) {
  if (how == "signal") {
    if (std::signal(SIGTERM, handler) != SIG_DFL) std::exit(3);
    return;
  }
  struct sigaction action {};
  action.sa_handler = handler;
  if (sigaction(SIGTERM, &action, &before) != 0 || before.sa_handler != SIG_DFL) std::exit(3);
}

int clean_up() {
  set_handler("sigaction", [](int signal) {
    if (before.sa_handler == SIG_DFL && sigaction(signal, &before, nullptr) != 0) _exit(4);
    raise(signal);
  });
  wait_for_end_of_input();
  return 0;
}

SignalFunction* set_signal = nullptr;

int clean_up_by(const char* name) {
  set_signal = function_named(name);
  set_handler("signal", [](int signal) {
    set_signal(signal, SIG_DFL);
    raise(signal);
  });
  wait_for_end_of_input();
  return 0;
}

int busy(int threads) {
  for (int i = 0; i < threads; ++i)
    std::thread(allocate_for_ever).detach();
  ready();
  if (threads == 0) allocate_for_ever();
  for (;;)
    pause();
}

int late() {
  std::signal(SIGALRM, [](int) { _exit(5); });
  ualarm(20000, 0);
  allocate_for_ever();
}

int child_of_vfork() {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/nonexistent/program", "program", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status) == 127 ? 0 : 1;
}

int child_of_fork(string_view how) {
  const pid_t child = fork();
  if (child == 0) {
    free(hide(malloc(100)));
    if (how == "TERM") raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("%d\n", static_cast<int>(child));
  return how == "TERM" ? status != SIGTERM : status;
}

}  // namespace

int main(int count, char** arguments) {
  const string_view mode = count > 1 ? arguments[1] : "", how = count > 2 ? arguments[2] : "";
  if (mode == "wait") return wait_for_end_of_input(), 0;
  if (mode == "full") return fill_stderr();
  if (mode == "actions") return actions();
  if (mode == "own") return set_handler(how, [](int) { _exit(9); }), wait_for_end_of_input(), 0;
  if (mode == "clean-up") return how == "sigaction" ? clean_up() : clean_up_by(arguments[2]);
  if (mode == "busy") return busy(std::atoi(arguments[2]));
  if (mode == "late") return late();
  if (mode == "vfork") return child_of_vfork();
  if (mode == "fork") return child_of_fork(how);
  return 2;
}
