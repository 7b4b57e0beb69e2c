// The heap's own thread, named sluice: when it runs, what it gives back, and that a program is none the worse for it.
// Each case is a process of its own. ctest runs this with a short SLUICE_PURGE_DELAY: what is waited for comes sooner
// or later, and nothing is measured by the clock. Open it when memory stays at rest, or a process does not end.
#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

constexpr unsigned limit_seconds = 120;  // for what must come; a hang ends by SIGALRM
constexpr int good = 0, bad = 1, skipped = 77;

// Returns: the exit status of a process that ran the body, or minus the signal that ended it.
template <class Body>
int run(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(limit_seconds);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void rest() {
  usleep(1000);
}

// What /proc says of this process's thread named sluice: all of its status; empty when there is none.
std::string background_status() {
  std::string found;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const task = tasks != nullptr ? readdir(tasks) : nullptr) {
    const std::string path = std::string("/proc/self/task/") + task->d_name + "/status";
    std::array<char, 4096> text{};
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    const ssize_t got = read(fd, text.data(), text.size() - 1);
    close(fd);
    if (got > 0 && std::string_view(text.data()).starts_with("Name:\tsluice\n")) found += text.data();
  }
  if (tasks != nullptr) closedir(tasks);
  return found;
}
// It names itself, so that it may take a moment until it is seen.
bool background_comes() {
  while (background_status().empty())
    rest();
  return true;
}

std::string line_of(const std::string& status, const std::string& name) {
  const size_t start = status.find("\n" + name + ":\t");
  if (start == std::string::npos) return {};
  const size_t value = start + name.size() + 3;
  return status.substr(value, status.find('\n', value) - value);
}

#if defined(SYS_pause)
constexpr long pause_call = SYS_pause;
#else
constexpr long pause_call = SYS_ppoll;
#endif

void* sleep_for_good(void*) {
  for (;;)
    pause();
}

// Makes a thread that never allocates. Says whether it could.
bool make_second_thread() {
  pthread_t thread;
  return pthread_create(&thread, nullptr, sleep_for_good, nullptr) == 0;
}

constexpr size_t block_bytes = MiB;
constexpr size_t blocks = 48;

void use_and_free() {
  void* held[blocks];
  for (void*& block : held)
    block = memset(hide(malloc(block_bytes)), 1, block_bytes);
  for (void* const block : held)
    free(block);
}

size_t resident_from(int statm) {
  char text[128] = {};
  if (pread(statm, text, sizeof text - 1, 0) <= 0) return SIZE_MAX;
  char* more = nullptr;
  std::strtoul(text, &more, 10);
  return std::strtoul(more, nullptr, 10) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

int open_statm() {
  return open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

// Frees much and rests until most of it has gone back. Nobody calls malloc or free meanwhile. In the secure build 16
// blocks wait for as many more frees.
bool memory_goes_back(int statm) {
  static const size_t waiting = is_secure_build() ? 16 * block_bytes : 0;
  const size_t before = resident_from(statm);
  use_and_free();
  while (resident_from(statm) > before + waiting + blocks * block_bytes / 8)
    rest();
  return true;
}

// pthread_exit unwinds the stack of main, and nobody may catch it: GoogleTest reads this when it is initialized.
[[gnu::constructor(101)]] void catch_nothing() {
  setenv("GTEST_CATCH_EXCEPTIONS", "0", 1);
}

TEST(OwnThread, DoesNotRunInAProgramOfOneThread) {
  EXPECT_EQ(run([] {
              use_and_free();
              return background_status().empty() ? good : bad;
            }),
            good);
}

TEST(OwnThread, StartsWithTheSecondThread) {
  EXPECT_EQ(run([] { return make_second_thread() && background_comes() ? good : bad; }), good);
  EXPECT_EQ(run([] {
              thrd_t thread;
              const auto sleep = [](void*) -> int {
                sleep_for_good(nullptr);
                return 0;
              };
              return thrd_create(&thread, sleep, nullptr) == thrd_success && background_comes() ? good : bad;
            }),
            good);
}

TEST(OwnThread, IsOneThreadHoweverManyTheProgramMakes) {
  EXPECT_EQ(run([] {
              for (int i = 0; i < 20; ++i)
                if (!make_second_thread()) return bad;
              background_comes();
              const std::string all = background_status();
              return all.find("Name:", 1) == std::string::npos ? good : bad;
            }),
            good);
}

// SIGCANCEL and SIGSETXID of libc (32, 33) and SIGSYS are for the thread itself.
TEST(OwnThread, TakesNoSignalOfTheProgram) {
  EXPECT_EQ(run([] {
              if (!make_second_thread()) return bad;
              background_comes();
              const uint64_t blocked = std::strtoull(line_of(background_status(), "SigBlk").c_str(), nullptr, 16);
              for (int number = 1; number <= 64; ++number) {
                const bool free =
                    number == SIGKILL || number == SIGSTOP || number == SIGSYS || number == 32 || number == 33;
                if (((blocked >> (number - 1) & 1) == 0) != free) return number;
              }
              sigset_t own;
              sigprocmask(SIG_SETMASK, nullptr, &own);
              for (int number = 1; number < 32; ++number)
                if (sigismember(&own, number) != 0) return 100 + number;
              return good;
            }),
            good);
}

TEST(OwnThread, GivesMemoryBackWhileNobodyCalls) {
  EXPECT_EQ(run([] { return make_second_thread() && memory_goes_back(open_statm()) ? good : bad; }), good);
}

TEST(OwnThread, GivesMemoryBackAgainAndAgain) {
  EXPECT_EQ(run([] {
              if (!make_second_thread()) return bad;
              const int statm = open_statm();
              for (int i = 0; i < 5; ++i)
                if (!memory_goes_back(statm)) return bad;
              return good;
            }),
            good);
}

// A child is made in which the thread would have work to do, and would have to be there.
TEST(OwnThread, AChildHasNoneUntilItMakesASecondThread) {
  EXPECT_EQ(run([] {
              if (!make_second_thread()) return bad;
              background_comes();
              for (int i = 0; i < 5; ++i) {
                use_and_free();
                const int status = run([] {
                  use_and_free();
                  if (!background_status().empty()) return 2;
                  if (!make_second_thread()) return 3;
                  background_comes();
                  return memory_goes_back(open_statm()) ? good : 4;
                });
                if (status != good) return status;
              }
              return memory_goes_back(open_statm()) ? good : bad;
            }),
            good);
}

TEST(OwnThread, LeavesTheExitStatusAlone) {
  for (int i = 0; i < 20; ++i) {
    const int status = run([i] {
      if (!make_second_thread()) return bad;
      use_and_free();
      usleep(static_cast<useconds_t>(i * 2000));  // it is asleep, or at work, or done
      exit(7);
      return bad;
    });
    ASSERT_EQ(status, 7);
  }
}

// Where the handlers of atexit run.
void fail_on_thread_of_sluice() {
  char name[16] = {};
  prctl(PR_GET_NAME, name, 0, 0, 0);
  if (std::strcmp(name, "sluice") == 0) _exit(99);
}

template <class Last>
int run_last(Last last) {
  return run([last] {
    if (atexit(fail_on_thread_of_sluice) != 0) return bad;
    pthread_t thread;
    if (pthread_create(&thread, nullptr, last, nullptr) != 0) return bad;
    use_and_free();
    pthread_exit(nullptr);
    return bad;
  });
}

TEST(OwnThread, DoesNotKeepAProcessAliveWhoseThreadsHaveEnded) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(run_last([](void*) -> void* { return nullptr; }), good);
    ASSERT_EQ(run_last([](void*) -> void* {
                usleep(2000);  // the main thread has ended, most likely
                return nullptr;
              }),
              good);
    ASSERT_EQ(run_last([](void*) -> void* {
                usleep(2000);
                use_and_free();
                return nullptr;
              }),
              good);
  }
}

// The first thread ends, and with it the heap's own; the second, which has not allocated so far, goes on.
TEST(OwnThread, RunsAgainAfterAllThreadsWithACacheHaveEnded) {
  EXPECT_EQ(run([] {
              static pthread_t first = pthread_self();
              const auto second = [](void*) -> void* {
                if (pthread_join(first, nullptr) != 0) syscall(SYS_exit_group, 2);
                if (!background_status().empty()) syscall(SYS_exit_group, 3);
                syscall(SYS_exit_group, make_second_thread() && memory_goes_back(open_statm()) ? good : bad);
                return nullptr;
              };
              pthread_t thread;
              if (pthread_create(&thread, nullptr, second, nullptr) != 0) return bad;
              pthread_exit(nullptr);
              return bad;
            }),
            good);
}

// Programs give up rights when they have threads already: all of them give them up.
TEST(OwnThread, GivesUpRightsWithTheProgram) {
  const int status = run([] {
    if (getuid() != 0) return skipped;
    if (!make_second_thread()) return bad;
    background_comes();
    if (setuid(65534) != 0) return 2;
    return line_of(background_status(), "Uid") == "65534\t65534\t65534\t65534" ? good : 3;
  });
  if (status == skipped) GTEST_SKIP() << "not root";
  EXPECT_EQ(status, good);
}

// All threads are cut off, this one too.
bool confine(const std::vector<long>& calls, uint32_t named, uint32_t others) {
  std::vector<sock_filter> filter;
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const long call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, named));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, others));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

TEST(OwnThread, IsDoneWithoutWhereNoThreadCanBeMade) {
  EXPECT_EQ(run([] {
              if (!confine({SYS_clone, SYS_clone3}, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW)) return 2;
              if (make_second_thread()) return 3;
              use_and_free();
              return background_status().empty() ? good : bad;
            }),
            good);
}

// The filter comes with the first thing that the second thread does, and ends the process for each call that the heap
// has no need of. What this test itself calls stands behind them; pthread_create is not over when the thread runs, and
// then restores the mask of signals, and on a busy machine the first thread goes to sleep after that.
TEST(OwnThread, LivesInASandboxThatComesWithTheSecondThread) {
  EXPECT_EQ(run([] {
              static int statm = open_statm();
              const auto confined = [](void*) -> void* {
                const std::vector<long> allowed = {SYS_futex,           SYS_madvise,        SYS_mmap,       SYS_munmap,
                                                   SYS_mremap,          SYS_mprotect,       SYS_exit_group, SYS_pread64,
                                                   SYS_clock_nanosleep, SYS_rt_sigprocmask, pause_call};
                if (!confine(allowed, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS)) syscall(SYS_exit_group, 2);
                const bool back = memory_goes_back(statm);
                syscall(SYS_exit_group, back ? good : bad);
                return nullptr;
              };
              pthread_t thread;
              if (pthread_create(&thread, nullptr, confined, nullptr) != 0) return 3;
              sleep_for_good(nullptr);
              return bad;
            }),
            good);
}

// The program's threads go first where there may be one more and no second.
TEST(OwnThread, LeavesTheLastPlaceToTheProgram) {
  const int status = run([] {
    // A user that no other test is at the same time.
    const auto user = static_cast<uid_t>(20000 + getpid() % 40000);
    if (getuid() == 0 && (setgid(user) != 0 || setuid(user) != 0)) return skipped;
    const rlimit limit{2, 2};
    if (setrlimit(RLIMIT_NPROC, &limit) != 0) return skipped;
    return make_second_thread() ? good : bad;
  });
  if (status == skipped) GTEST_SKIP() << "no limit can be set";
  EXPECT_EQ(status, good);
}

TEST(OwnThread, LeavesTheLoadersMessageToTheProgram) {
  EXPECT_EQ(run([] {
              if (dlopen("/nowhere/libmissing.so", RTLD_NOW) != nullptr) return 2;
              if (!make_second_thread()) return 3;
              return dlerror() != nullptr ? good : bad;
            }),
            good);
}

TEST(OwnThread, NeedsNoFiles) {
  const int status = run([] {
    if (getuid() != 0) return skipped;
    const int statm = open_statm();
    char folder[] = "/tmp/sluice-empty-XXXXXX";
    if (mkdtemp(folder) == nullptr || chdir(folder) != 0 || chroot(".") != 0) return 2;
    const bool back = make_second_thread() && memory_goes_back(statm);
    return back ? good : bad;
  });
  if (status == skipped) GTEST_SKIP() << "not root";
  EXPECT_EQ(status, good);
}

TEST(OwnThread, IsSwitchedOffByAnOption) {
  EXPECT_EQ(run([] {
              setenv("SLUICE_BACKGROUND", "0", 1);
              execl("/proc/self/exe", "own_thread_test", "--gtest_also_run_disabled_tests", "--gtest_filter=*IsOff",
                    static_cast<char*>(nullptr));
              return bad;
            }),
            good);
}

TEST(OwnThread, DISABLED_IsOff) {
  EXPECT_STREQ(getenv("SLUICE_BACKGROUND"), "0");
  ASSERT_TRUE(make_second_thread());
  use_and_free();
  EXPECT_EQ(background_status(), "");
}

}  // namespace
