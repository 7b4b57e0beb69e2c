/* Runs a program on a kernel that lacks system calls, or forms of them: a seccomp filter answers with an error in its
 * stead.
 *
 *   old_kernel ENOSYS mremap getrandom -- program argument...
 *
 * Names are those of `forms` below. The exit status is the program's, 77 where the kernel takes no filter. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A call with `value` in the bits `mask` of an argument; with a mask of 0, any. */
struct Form {
  const char* name;
  uint32_t call;
  uint32_t argument;
  uint32_t mask;
  uint32_t value;
};

#define ANY(name) \
  { #name, SYS_##name, 0, 0, 0 }
static const struct Form forms[] = {
    ANY(mremap),
    {"mremap_dontunmap", SYS_mremap, 3, 4, 4},
    ANY(madvise),
    {"madvise_free", SYS_madvise, 2, ~0u, 8},
    {"madvise_populate", SYS_madvise, 2, ~1u, 22}, /* MADV_POPULATE_READ and _WRITE */
    {"madvise_hugepage", SYS_madvise, 2, ~1u, 14},
    {"madvise_dump", SYS_madvise, 2, ~1u, 16},
    {"mmap_noreplace", SYS_mmap, 3, 0x100000, 0x100000},
    ANY(mincore),
    ANY(getrandom),
    ANY(rseq),
    ANY(clone3),
    ANY(membarrier),
    {"pidfd_open", 434, 0, 0, 0},
    ANY(statx),
    ANY(prlimit64),
    ANY(sysinfo),
    ANY(process_vm_readv),
    ANY(timer_create),
    ANY(prctl),
};
static const struct {
  const char* name;
  uint32_t value;
} errors[] = {{"ENOSYS", ENOSYS}, {"EINVAL", EINVAL}, {"EPERM", EPERM}};

static void fail(const char* what, const char* name) {
  fprintf(stderr, "old_kernel: %s%s\n", what, name);
  exit(2);
}

static uint32_t error_named(const char* name) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (strcmp(errors[i].name, name) == 0) return errors[i].value;
  fail("no such error: ", name);
  return 0;
}

static struct sock_filter filter[6 * sizeof forms / sizeof *forms + 2];
static unsigned short length;

static void add(struct sock_filter instruction) {
  filter[length++] = instruction;
}

static void refuse(const char* name, uint32_t error) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; ++i) {
    const struct Form form = forms[i];
    if (strcmp(form.name, name) != 0) continue;
    const struct sock_filter answer = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, form.call, 0, form.mask != 0 ? 4 : 1));
    if (form.mask != 0) {
      add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                       offsetof(struct seccomp_data, args) + 8 * form.argument));
      add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, form.mask));
      add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, form.value, 0, 1));
    }
    add(answer);
    return;
  }
  fail("no such call: ", name);
}

int main(int count, char** arguments) {
  if (count < 4) fail("usage: old_kernel ERROR CALL... -- COMMAND [ARGUMENT...]", "");
  const uint32_t error = error_named(arguments[1]);
  int i = 2;
  for (; arguments[i] != NULL && strcmp(arguments[i], "--") != 0; ++i)
    refuse(arguments[i], error);
  if (arguments[i] == NULL || arguments[i + 1] == NULL) fail("no command", "");
  add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const struct sock_fprog program = {length, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return 77;
  execvp(arguments[i + 1], arguments + i + 1);
  fail("cannot execute ", arguments[i + 1]);
}
