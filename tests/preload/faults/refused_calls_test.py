"""Programs whose memory calls the kernel refuses, one by one: they get null with ENOMEM or bad_alloc, keep what they
hold, and get memory again once there is some; nothing aborts, crashes or hangs.

Open it when a program dies where memory is short. refuse_calls.cpp says how calls are refused; the subjects check
themselves (refused.c, refused_cpp.cpp).
"""

import re
import sys

from preload_process import main, paths
from refusal import CRASHES, EVERY_CALL, RefusalTest, sample

# The library's own calls, and nobody else's.
OURS = ("--caller", "libsluice.so")

# Free pages go back at once, so that purging and renewing mappings belong to all that happens.
BUSY = {"SLUICE_PURGE_DELAY": "0", "SLUICE_RETAIN": "0"}

ERRORS = ("ENOMEM", "EPERM", "EINVAL", "EAGAIN", "ENOSYS")


class Subjects(RefusalTest):
    def assert_held(self, how, command, variables):
        done, _, refused = self.refuse(*OURS, *how, command=command, **variables)
        self.assertEqual(done.returncode, 0, f"{' '.join(how)}: {done.stderr}")
        return refused

    def calls_of(self, command, variables, *how):
        done, counted, _ = self.refuse(*OURS, *how, command=command, **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(counted, 5)
        return counted

    def sweep(self, mode, command, *how, first=6, spread=6, **variables):
        count = self.calls_of(command, variables, *how)
        numbers = sample(count, first, spread)
        refused = [self.assert_held((*how, mode, str(n), "--error", ERRORS[n % 5]), command, variables) for n in numbers]
        # How many calls are made depends on the clock: when pages go back. The last ones may not come to be refused.
        self.assertGreater(sum(1 for calls in refused if calls > 0), len(numbers) // 2)

    def test_c_program_survives_any_one_refusal(self):
        self.sweep("--nth", [paths["refused"]], **BUSY)

    def test_c_program_survives_refusals_from_any_call_on(self):
        self.sweep("--onwards", [paths["refused"]], **BUSY)

    def test_cpp_program_survives_any_one_refusal(self):
        self.sweep("--nth", [paths["refused_cpp"]], "--on-request", **BUSY)

    def test_cpp_program_survives_refusals_from_any_call_on(self):
        self.sweep("--onwards", [paths["refused_cpp"]], "--on-request", **BUSY)

    def test_with_default_options_too(self):
        for mode in ("--nth", "--onwards"):
            self.sweep(mode, [paths["refused"]], first=3, spread=3)
            self.sweep(mode, [paths["refused_cpp"]], "--on-request", first=3, spread=3)

    def test_one_kind_of_call_never_works(self):
        for calls in ("munmap", "mremap", "madvise", "mprotect", "mmap", "mmap,mremap"):
            for subject in ("refused", "refused_cpp"):
                how = ("--calls", calls, "--onwards", "1", "--error", "EPERM")
                how += ("--on-request",) if subject == "refused_cpp" else ()
                self.assert_held(how, [paths[subject]], BUSY)

    def test_refusals_by_chance(self):
        for seed in range(1, 201 if EVERY_CALL else 5):
            for subject in ("refused", "refused_cpp"):
                how = ("--chance", str(5 + 15 * (seed % 6)), "--seed", str(seed), "--on-request")
                self.assert_held(how[:4] if subject == "refused" else how, [paths[subject]], BUSY)

    # Only where the heap can have another system call in its place may nothing at all be noticed.
    def test_a_program_that_needs_all_its_memory_survives_one_refused_call(self):
        count = self.calls_of([paths["refused"], "strict"], BUSY)
        for calls in ("munmap", "mremap", "madvise"):
            for n in sample(count, 2, 3):
                self.assert_held(("--calls", calls, "--nth", str(n)), [paths["refused"], "strict"], BUSY)


class Starts(RefusalTest):
    """Forks, threads and libraries that cannot be started, by calls that are libc's."""

    def assert_held(self, how, *arguments):
        done, _, refused = self.refuse("--on-request", *how, command=[paths["refused_starts"], *arguments])
        self.assertEqual(done.returncode, 0, f"{how}: {done.stderr}")
        return refused

    def test_forks(self):
        for error in ("EAGAIN", "ENOMEM"):
            self.assertGreaterEqual(self.assert_held(("--calls", "clone", "--onwards", "1", "--error", error), "fork"), 1000)

    def test_threads(self):
        for calls, error in (("clone,clone3", "EAGAIN"), ("clone,clone3", "ENOMEM")):
            refused = self.assert_held(("--calls", calls, "--onwards", "1", "--error", error), "thread")
            self.assertGreaterEqual(refused, 1000)

    def test_libraries(self):
        how = ("--caller", "/ld-", "--calls", "mmap,munmap,mprotect")
        library = paths["allocating_library"]
        for n in range(1, 13 if EVERY_CALL else 7):
            self.assertEqual(self.assert_held((*how, "--nth", str(n)), "library", library), 1)
        for percent in ("20", "60"):
            self.assertGreater(self.assert_held((*how, "--chance", percent), "library", library), 5)


class RealPrograms(RefusalTest):
    """Programs that cope with failing allocations end by themselves, with a message of their own."""

    def assert_ends_by_itself(self, *command):
        done, count, _ = self.refuse(*OURS, command=command)
        self.assertEqual(done.returncode, 0, done.stderr)
        for how in [(mode, str(n)) for mode in ("--nth", "--onwards") for n in sample(count, 3, 5)]:
            done, _, _ = self.refuse(*OURS, *how, command=command, also=[paths["crash_site"]])
            if done.returncode in CRASHES and not self.is_own_crash(done.stderr):
                self.fail(f"{how}: status {done.returncode}: {done.stderr}")

    def is_own_crash(self, stderr):
        """Whether the program, not the library, gave up by abort() or used a null pointer that it did not check."""
        crash = re.search(r"^crash: signal \d+ in (.*): null$", stderr, re.MULTILINE)
        return "Fatal Python error" in stderr or (crash is not None and "libsluice" not in crash[1])

    def test_lua(self):
        self.assert_ends_by_itself(self.installed("lua5.4"), "-e", """
            local t = {} for i = 1, 20000 do t[i] = ('x'):rep(i % 500) end
            print(pcall(string.rep, 'x', 1 << 40), #t)""")

    def test_sqlite3(self):
        self.assert_ends_by_itself(self.installed("sqlite3"), ":memory:", """
            create table t(a, b);
            with recursive c(i) as (select 1 union all select i + 1 from c where i < 20000)
              insert into t select i, hex(randomblob(60)) from c;
            select count(*) from (select a, b from t order by b);""")

    def test_python3(self):
        self.assert_ends_by_itself(sys.executable, "-S", "-c", """
x = [str(i) * 50 for i in range(60000)]
y = bytearray(30000000)
try:
    z = bytearray(1 << 60)
except MemoryError:
    pass
assert all(x[i] == str(i) * 50 for i in range(60000))""")


if __name__ == "__main__":
    main()
