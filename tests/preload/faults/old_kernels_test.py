"""Real programs on kernels and sandboxes that lack what the library would use: they print what they print without it.

Open it when a program dies on an old kernel, under gVisor or in a container with a strict filter. old_kernel.c answers
each call with an error in the kernel's stead; what every program of libc's needs is left.
"""

import itertools
import re
import shutil
import sys
import unittest

from preload_process import PreloadTest, main, paths

NOT_RUN = 77

# Calls, or forms of them, that are missed one at a time; the kernel's own answer to each first.
MISSED = {
    "mremap_dontunmap": ("EINVAL", "EPERM"),  # before Linux 5.7; gVisor
    "mremap": ("ENOSYS", "EINVAL", "EPERM"),
    "madvise": ("ENOSYS", "EINVAL", "EPERM"),
    "madvise_free": ("EINVAL",),  # before 4.5
    "madvise_populate": ("EINVAL",),  # before 5.14
    "madvise_hugepage": ("EINVAL",),  # without transparent huge pages
    "madvise_dump": ("EINVAL",),
    "mmap_noreplace": ("EINVAL",),
    "mincore": ("ENOSYS", "EPERM"),
    "getrandom": ("ENOSYS", "EPERM"),  # before 3.17
    "rseq": ("ENOSYS", "EPERM"),  # before 4.18
    "clone3": ("ENOSYS",),
    "membarrier": ("ENOSYS", "EPERM"),
    "pidfd_open": ("ENOSYS", "EPERM"),
    "statx": ("ENOSYS",),
    "prlimit64": ("ENOSYS", "EPERM"),
    "sysinfo": ("ENOSYS", "EPERM"),
    "process_vm_readv": ("ENOSYS", "EPERM"),
    "timer_create": ("ENOSYS", "EPERM"),
    "prctl": ("EINVAL", "EPERM"),
}
# Linux 3.10, as far as a filter can tell; and a sandbox that refuses all of it.
OLD = [name for name in MISSED if name not in ("mremap", "madvise", "mincore", "prlimit64", "sysinfo", "timer_create", "prctl")]
TOGETHER = [("ENOSYS", OLD), ("EINVAL", [name for name in OLD if name != "getrandom"]), ("EPERM", list(MISSED)), ("ENOSYS", list(MISSED))]

# All that calls more of the system than the heap alone; pages go back at once.
BUSY = "PURGE_DELAY=0,RETAIN=0,BACKGROUND=1,HUGE_PAGES=1,GUARD_RATE=50,STATS=json:{0}/%p.json,PROFILE={0}/%p.pb,PROFILE_RATE=4K"

PYTHON = """
import subprocess, threading
kept = []
def work(number):
    blocks = [bytes([number]) * (i % 5000) for i in range(1000)] + [bytes([number]) * 3_000_000]
    kept.append(all(block == bytes([number]) * len(block) for block in blocks))
    grown = bytearray()
    for _ in range(50):
        grown += bytes([number]) * 20_000
    kept.append(grown == bytes([number]) * 1_000_000)
threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(kept, subprocess.run(["/bin/sh", "-c", "echo child; exit 3"]).returncode)
"""
SQL = """
create table t(a, b);
with recursive c(i) as (select 1 union all select i + 1 from c where i < 5000) insert into t select i, hex(zeroblob(i % 300)) from c;
select count(*), sum(length(b)) from (select a, b from t order by b, a);
"""


class OldKernels(PreloadTest):
    def setUp(self):
        super().setUp()
        self.programs = [[sys.executable, "-S", "-c", PYTHON]]
        if shutil.which("sqlite3"):
            self.programs.append([shutil.which("sqlite3"), ":memory:", SQL])

    def run_without(self, error, missed, program, library, **variables):
        preload = [f"LD_PRELOAD={library}"] if library else []
        command = [paths["old_kernel"], error, *missed, "--", "env", *preload, *program]
        done = self.run_program(*command, preload="", limit=60, **variables)
        if done.returncode == NOT_RUN:
            self.skipTest("this kernel takes no filter")
        return done

    def assert_nothing_changes(self, error, missed, options="", library="libsluice"):
        """Returns whether there was something to compare: a program may need a call itself."""
        compared = False
        for program in self.programs:
            alone = self.run_without(error, missed, program, None)
            if alone.returncode != 0:
                continue
            compared = True
            done = self.run_without(error, missed, program, paths[library], SLUICE_OPTIONS=options.format(self.folder))
            self.assertEqual((done.returncode, done.stdout), (0, alone.stdout), f"{error} {missed} {program[0]}: {done.stderr}")
            # That it can write no profile of a thread's stack, or the like, it may say.
            self.assertEqual([line for line in done.stderr.splitlines() if not re.match("sluice: ", line)], [], missed)
        return compared

    def test_one_call_is_missed(self):
        compared = [self.assert_nothing_changes(error, [name]) for name, errors in MISSED.items() for error in errors]
        self.assertGreater(sum(compared), len(compared) * 3 // 4)

    def test_one_call_is_missed_where_all_is_used(self):
        compared = [self.assert_nothing_changes(errors[0], [name], BUSY) for name, errors in MISSED.items()]
        self.assertGreater(sum(compared), len(compared) * 3 // 4)
        self.assertGreater(len(self.dumps()), len(compared))

    def test_all_are_missed_together(self):
        compared = [self.assert_nothing_changes(error, names, options, library)
                    for (error, names), options, library in itertools.product(TOGETHER, ("", BUSY), ("libsluice", "secure"))]
        self.assertGreaterEqual(sum(compared), len(compared) // 2)

    def test_what_is_missed_is_missed(self):
        """Otherwise the rest shows nothing."""
        for name, call in {"mremap": "m.mremap(p, 4096, 8192, 1)", "mremap_dontunmap": "m.mremap(p, 4096, 4096, 5)",
                           "madvise_populate": "m.madvise(p, 4096, 23)", "mincore": "m.mincore(p, 4096, b' ' * 8)",
                           "getrandom": "m.getrandom(b' ' * 8, 8, 0)", "mmap_noreplace": "m.mmap(None, 4096, 3, 0x100022, -1, 0)"}.items():
            script = ("import ctypes; m = ctypes.CDLL(None, use_errno=True); m.mmap.restype = ctypes.c_void_p; "
                      "p = ctypes.c_void_p(m.mmap(None, 4096, 3, 0x22, -1, 0)); ctypes.set_errno(0); "
                      f"{call}; print(ctypes.get_errno())")
            program = [sys.executable, "-S", "-c", script]
            self.assertEqual(self.run_without("EPERM", [name], program, None).stdout, "1\n", name)
            self.assertNotEqual(self.run_without("EPERM", ["rseq"], program, None).stdout, "1\n", name)


if __name__ == "__main__":
    main()
