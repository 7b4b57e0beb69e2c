// The secrets of libsluice-secure.so where the system refuses getrandom: an old sandbox, or a start early in the boot.
#include <bit>
#include <cerrno>
#include <cstddef>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "hardened_calls.hpp"
#include "heap/link.hpp"
#include "in_child.hpp"

namespace {

using namespace sluice;
using test::count_of;
using test::said;

bool forbid_getrandom() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {4, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The first call starts the heap.
std::string start_and_use() {
  return said([] {
    for (int i = 0; i < 100; ++i)
      hardened::free(test::allocate(40));
  });
}

TEST(HardenedRandom, TheSecretsDifferFromEachOtherWithoutGetrandomToo) {
  for (const bool forbidden : {false, true}) {
    EXPECT_EQ(test::in_child([forbidden]() -> std::string {
                if (forbidden && !forbid_getrandom()) return "no seccomp";
                (void)start_and_use();
                const uint64_t values[] = {secrets.link, secrets.canary, secrets.factor, 0};
                for (const uint64_t& a : values)
                  for (const uint64_t& b : values)
                    if (&a != &b && (std::popcount(a ^ b) < 8 || std::popcount(a ^ b) > 56)) return "alike";
                return secrets.factor * secrets.inverse == 1 ? "" : "no inverse";
              }),
              "")
        << forbidden;
  }
}

TEST(HardenedRandom, TheSecretsDifferFromProcessToProcessWithoutGetrandom) {
  std::string last;
  for (int i = 0; i < 4; ++i) {
    const std::string canary = test::in_child([]() -> std::string {
      if (!forbid_getrandom()) return "no seccomp";
      (void)start_and_use();
      return std::to_string(secrets.canary);
    });
    EXPECT_NE(canary, last);
    last = canary;
  }
}

TEST(HardenedRandom, WeakRandomnessIsSaidOnce) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              if (!forbid_getrandom()) return "no seccomp";
              const std::string text = start_and_use();
              const bool once = count_of(text, "sluice: the system gives no random numbers") == 1;
              return once && count_of(text, "\n") == 1 ? "" : "said '" + text + "'";
            }),
            "");
  EXPECT_EQ(test::in_child([] { return start_and_use(); }), "");
}

}  // namespace
