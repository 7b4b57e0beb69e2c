// Runs an unmodified program whose system calls fail, or which is killed, when its command line says so. Open it to see
// what the fault tests can ask for, or to find out by hand what a program does when the kernel refuses.
//
//   refuse_calls --calls mmap,mprotect --caller libsluice.so --onwards 12 --error ENOMEM -- program argument...
//
// The calls are caught by a seccomp filter and judged one by one by this process, on which the program waits. They are
// counted across all threads and children. A program that calls madvise(NULL, 0, 4711) has no further call refused: so
// a subject says when memory is to be had again. The exit status is the program's, 128 + N when signal N ended it, 77
// when the kernel lacks such filters.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "relief.h"

namespace {

constexpr int not_run = 77;

const char usage[] =
    "usage: refuse_calls [OPTION...] [--] COMMAND [ARGUMENT...]\n"
    "  --calls NAME,...   the calls that are counted: mmap munmap mremap mprotect madvise (the default), brk clone "
    "clone3\n"
    "                     write openat rename close\n"
    "  --caller TEXT      only calls made by code of a file whose path contains TEXT\n"
    "  --nth N            refuse the N-th call counted\n"
    "  --onwards N        refuse the N-th and all that follow\n"
    "  --chance PERCENT   refuse each with this probability; --seed N chooses which\n"
    "  --error NAME       with ENOMEM (the default), EINVAL, EPERM, EAGAIN, ENOSYS, ENOSPC or EIO\n"
    "  --on-request       count nothing before the program asks for it\n"
    "  --kill             kill the program with SIGKILL where a call would be refused\n"
    "  --report FILE      write `counted=N refused=N` there at the end\n";

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "refuse_calls: %s\n%s", what, usage);
  std::exit(2);
}

using Table = std::vector<std::pair<std::string, long>>;

const Table calls = {{"mmap", SYS_mmap},         {"munmap", SYS_munmap},   {"mremap", SYS_mremap},
                     {"mprotect", SYS_mprotect}, {"madvise", SYS_madvise}, {"brk", SYS_brk},
                     {"clone", SYS_clone},       {"clone3", SYS_clone3},   {"write", SYS_write},
                     {"openat", SYS_openat},
#ifdef SYS_rename
                     {"rename", SYS_rename},
#else  // what libc calls for it there
                     {"rename", SYS_renameat},
#endif
                     {"close", SYS_close}};

const Table errors = {{"ENOMEM", ENOMEM}, {"EINVAL", EINVAL}, {"EPERM", EPERM}, {"EAGAIN", EAGAIN},
                      {"ENOSYS", ENOSYS}, {"ENOSPC", ENOSPC}, {"EIO", EIO}};

long look_up(const Table& table, const std::string& name) {
  for (const auto& [known, value] : table)
    if (known == name) return value;
  fail(("unknown name: " + name).c_str());
}

struct Plan {
  std::vector<long> counted = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise};
  std::string caller;
  uint64_t nth = 0;
  uint64_t onwards = 0;
  uint64_t chance = 0;  // percent
  uint64_t seed = 1;
  int error = ENOMEM;
  bool on_request = false;
  bool kill = false;
  const char* report = nullptr;
  char** command = nullptr;
};

uint64_t number(const char* text) {
  char* end = nullptr;
  errno = 0;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0') fail("not a number");
  return value;
}

std::vector<long> named_calls(std::string names) {
  std::vector<long> result;
  for (names += ','; !names.empty();) {
    const size_t comma = names.find(',');
    result.push_back(look_up(calls, names.substr(0, comma)));
    names.erase(0, comma + 1);
  }
  return result;
}

Plan parse(char** arguments) {
  Plan plan;
  while (*arguments != nullptr && (*arguments)[0] == '-') {
    const std::string option = *arguments++;
    if (option == "--") break;
    if (option == "--kill" || option == "--on-request") {
      (option == "--kill" ? plan.kill : plan.on_request) = true;
      continue;
    }
    if (*arguments == nullptr) fail("a value is missing");
    const char* const value = *arguments++;
    if (option == "--calls")
      plan.counted = named_calls(value);
    else if (option == "--caller")
      plan.caller = value;
    else if (option == "--nth")
      plan.nth = number(value);
    else if (option == "--onwards")
      plan.onwards = number(value);
    else if (option == "--chance")
      plan.chance = number(value);
    else if (option == "--seed")
      plan.seed = number(value);
    else if (option == "--error")
      plan.error = static_cast<int>(look_up(errors, value));
    else if (option == "--report")
      plan.report = value;
    else
      fail(("unknown option: " + option).c_str());
  }
  if (*arguments == nullptr) fail("no command");
  plan.command = arguments;
  return plan;
}

// Which parts of a process's memory hold the code whose calls count.
class Callers {
 public:
  explicit Callers(const std::string& part) : part_(part) {}
  // Requires: the task waits for an answer, so that it cannot change meanwhile.
  bool counts(pid_t task, uint64_t instruction) {
    if (part_.empty()) return true;
    std::vector<Range>& ranges = known_[task];
    if (ranges.empty()) ranges = read(task);  // the library may have been loaded since
    for (const Range& range : ranges)
      if (instruction >= range.from && instruction < range.to) return true;
    return false;
  }
  void forget(pid_t task) { known_.erase(task); }

 private:
  struct Range {
    uint64_t from;
    uint64_t to;
  };
  std::vector<Range> read(pid_t task) const {
    std::vector<Range> ranges;
    std::FILE* const maps = std::fopen(("/proc/" + std::to_string(task) + "/maps").c_str(), "re");
    if (maps == nullptr) return ranges;
    char line[4096 + 128];
    while (std::fgets(line, sizeof line, maps) != nullptr) {
      unsigned long from = 0, to = 0;
      char rights[5] = "";
      if (std::sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 && rights[2] == 'x' &&
          std::strstr(line, part_.c_str()) != nullptr)
        ranges.push_back({from, to});
    }
    std::fclose(maps);
    return ranges;
  }

  std::string part_;
  std::map<pid_t, std::vector<Range>> known_;
};

// Decides which calls fail.
class Judge {
 public:
  explicit Judge(const Plan& plan)
      : plan_(plan), callers_(plan.caller), random_(plan.seed * 2 + 1), counting_(!plan.on_request) {}
  bool refuses(const seccomp_notif& notice) {
    const auto task = static_cast<pid_t>(notice.pid);
    if (notice.data.nr == SYS_execve) {
      callers_.forget(task);
      return false;
    }
    if (notice.data.nr == SYS_madvise && notice.data.args[2] == advice_from_now_on) counting_ = true;
    if (notice.data.nr == SYS_madvise && notice.data.args[2] == advice_no_more) relieved_ = true;
    if (relieved_ || !counting_ || !is_counted(notice.data.nr) ||
        !callers_.counts(task, notice.data.instruction_pointer))
      return false;
    ++counted_;
    const bool now = counted_ == plan_.nth || (plan_.onwards != 0 && counted_ >= plan_.onwards) || by_chance();
    refused_ += now ? 1 : 0;
    return now;
  }
  void report() const {
    if (plan_.report == nullptr) return;
    std::FILE* const file = std::fopen(plan_.report, "we");
    if (file == nullptr) return;
    std::fprintf(file, "counted=%llu refused=%llu\n", static_cast<unsigned long long>(counted_),
                 static_cast<unsigned long long>(refused_));
    std::fclose(file);
  }

 private:
  bool is_counted(long call) const {
    for (const long counted : plan_.counted)
      if (counted == call) return true;
    return false;
  }
  bool by_chance() {
    if (plan_.chance == 0) return false;
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % 100 < plan_.chance;
  }

  const Plan& plan_;
  Callers callers_;
  uint64_t random_;
  uint64_t counted_ = 0;
  uint64_t refused_ = 0;
  bool counting_;
  bool relieved_ = false;
};

// A message of one byte that carries a descriptor.
struct DescriptorMessage {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  char byte = 0;
  iovec data{&byte, 1};
  msghdr header{};

  DescriptorMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;
};

bool send_descriptor(int socket, int descriptor) {
  DescriptorMessage message;
  cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return sendmsg(socket, &message.header, 0) == 1;
}

// Returns: the descriptor, or -1.
int receive_descriptor(int socket) {
  int descriptor = -1;
  DescriptorMessage message;
  if (recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}

// Has every call of the plan, and each execve, wait for an answer. Returns: where they are told, or -1.
int install_filter(const Plan& plan) {
  std::vector<long> watched = plan.counted;
  watched.push_back(SYS_execve);
  watched.push_back(SYS_madvise);
  std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const long call : watched) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

// The rest of a child's life: the command, under the filter. Between the filter and the moment at which the parent
// listens no call that is watched may be made but by the kernel's leave: nothing here maps memory.
[[noreturn]] void become_the_command(const Plan& plan, int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int listener = install_filter(plan);
  if (listener < 0 || !send_descriptor(socket, listener)) _exit(not_run);
  syscall(SYS_close_range, listener, listener, 0);
  execvp(plan.command[0], plan.command);
  static const char message[] = "refuse_calls: the command cannot be run\n";
  (void)!write(STDERR_FILENO, message, sizeof message - 1);
  _exit(127);
}

// Answers until the program has ended. Returns: how it ended, as waitpid says it.
int supervise(const Plan& plan, pid_t child, int listener, int ended) {
  Judge judge(plan);
  bool killed = false;
  for (;;) {
    pollfd waits[2] = {{listener, POLLIN, 0}, {ended, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0 && errno != EINTR) break;
    if ((waits[1].revents & POLLIN) != 0) break;
    if ((waits[0].revents & POLLIN) == 0) {
      if ((waits[0].revents & POLLHUP) != 0) break;
      continue;
    }
    seccomp_notif notice{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) != 0) continue;  // the task has died meanwhile
    seccomp_notif_resp answer{};
    answer.id = notice.id;
    const bool refused = judge.refuses(notice);
    if (refused && plan.kill) killed = kill(child, SIGKILL) == 0;
    if (killed) continue;  // the call is never made
    if (refused && !plan.kill)
      answer.error = -plan.error;
    else
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  judge.report();
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

int main(int, char** argv) {
  const Plan plan = parse(argv + 1);
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) fail("no socket pair");
  const pid_t child = fork();
  if (child < 0) fail("no child");
  if (child == 0) become_the_command(plan, sockets[1]);
  close(sockets[1]);
  const int listener = receive_descriptor(sockets[0]);
  const auto ended = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (listener < 0 || ended < 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    std::fputs("refuse_calls: skipped: this kernel cannot tell another process of system calls\n", stderr);
    return not_run;
  }
  const int status = supervise(plan, child, listener, ended);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
