"""Limits and strange surroundings: locked memory, small stacks, few descriptors, no more processes, files that may not
grow, and a root without /proc, /sys and /dev. What a program can do without the preload it can do with it.

Open it when a program ends at once, or ends badly, in a service manager or a container that limits it. Limits on address
space are in address_space_test.cpp, sandboxes in sandbox_test.cpp and promised_calls_test.cpp.
"""

import os
import re
import resource
import shutil
import subprocess

from preload_process import PreloadTest, main, paths

NOBODY = 65534
ALONE = 64417  # a user without other processes: those of other tests would count, and the program could not be executed


class Limits(PreloadTest):
    def setUp(self):
        super().setUp()
        # Users without rights can read a copy.
        os.chmod(self.folder, 0o755)
        self.library = shutil.copy(paths["libsluice"], self.folder)
        self.program = shutil.copy(paths["resource_limits"], self.folder)

    def limited(self, *words, limits=(), user=None, **variables):
        """Runs the program under the limits, each (resource, value), as another user where that can be."""
        def prepare():
            for name, value in limits:
                resource.setrlimit(name, (value, resource.getrlimit(name)[1]))
            if user is not None and os.geteuid() == 0:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
        return self.run_program(self.program, *words, preload=self.library, prepare=prepare, **variables)

    def assert_reached_the_end(self, done, *output):
        self.assert_ended_well(done)
        self.assertEqual((done.stdout.splitlines(), done.stderr), ([*output, "reached the end"], ""))

    def test_without_any_the_program_works(self):
        self.assert_reached_the_end(self.limited("heap", "threads", "fork"))

    def test_locked_memory_is_served_where_it_may_be_locked(self):
        done = self.limited("lock", "heap", "threads", "fork", "heap")
        self.assert_ended_well(done)
        self.assertEqual(done.stdout.splitlines()[-1], "reached the end")

    def test_memory_that_may_not_be_locked_fails_with_enomem_and_is_used_again(self):
        for kib in (64, 1024, 8192):
            for words in (("lock_future", "fill"), ("heap", "lock_future", "fill")):
                with self.subTest(kib=kib, words=words):
                    done = self.limited(*words, limits=[(resource.RLIMIT_MEMLOCK, kib << 10)], user=NOBODY)
                    self.assert_ended_well(done)
                    if os.geteuid() == 0:
                        self.assertEqual(done.stdout, "reached the end\n")

    def test_small_and_unlimited_stacks(self):
        for size in (64 << 10, 256 << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]):
            self.assert_reached_the_end(self.limited("heap", "threads", "fork", limits=[(resource.RLIMIT_STACK, size)]))

    def test_data_that_may_not_grow_far(self):
        self.assert_reached_the_end(self.limited("heap", "fork", limits=[(resource.RLIMIT_DATA, 60 << 20)]))

    def test_no_more_threads_or_processes(self):
        done = self.limited("nothread", "heap", limits=[(resource.RLIMIT_NPROC, 0)], user=ALONE)
        self.assert_ended_well(done)
        if os.geteuid() == 0:
            self.assert_reached_the_end(done)

    def test_no_descriptor_but_the_one_that_the_loader_needs(self):
        for variables in ({}, {"SLUICE_STATS": f"json:{self.folder}/four.json"}):
            done = self.limited("heap", limits=[(resource.RLIMIT_NOFILE, 4)], **variables)
            self.assert_reached_the_end(done)
        self.assertGreater(self.dumps()["four.json"]["mallocs"], 1000)

    def test_statistics_that_outgrow_the_limit_of_files_leave_the_status_alone(self):
        report = os.path.join(self.folder, "report")
        done = self.limited("heap", limits=[(resource.RLIMIT_FSIZE, 1000)], SLUICE_STATS=f"json:{report}")
        self.assert_ended_well(done)
        self.assertEqual(done.stdout, "reached the end\n")
        self.assertRegex(done.stderr, r"\Asluice: statistics: cannot write .*report \(errno 27\)\n\Z")
        self.assertFalse(os.path.exists(report))

    def test_what_is_set_aside_is_not_writable_and_not_charged_under_strict_accounting(self):
        # vm.overcommit_memory=2 is the whole machine's setting and cannot be turned on for a test. It charges what is
        # private and writable, used or not: in the window of the heap that must be what the heap has, not what it reserves.
        done = self.limited("heap", "maps")
        self.assert_ended_well(done)
        sizes = {True: 0, False: 0}
        for start, end, access in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) (\S+)p 00000000 00:00 0 *$", done.stdout, re.MULTILINE):
            if int(start, 16) >> 40 in range(32, 64):
                sizes["w" in access] += int(end, 16) - int(start, 16)
        self.assertGreater(sizes[False], 1 << 20)
        self.assertGreater(sizes[True], 5 << 20)
        self.assertLess(sizes[True], 40 << 20)


class Chroot(PreloadTest):
    def copy_with_libraries(self, program):
        """Copies a program and what it loads into the test's folder, each under its own path."""
        listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+) \(0x", listed):
            target = self.folder + library
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(library, target)
        shutil.copy(program, self.folder)

    def test_without_proc_sys_and_dev_the_program_works_and_writes_its_statistics(self):
        if os.geteuid() != 0:
            self.skipTest("only root can change the root")
        self.copy_with_libraries(paths["resource_limits"])
        shutil.copy(paths["libsluice"], self.folder)

        def change_root():
            os.chroot(self.folder)
            os.chdir("/")

        try:
            done = self.run_program("/resource_limits", "heap", "threads", "fork", preload="/libsluice.so", prepare=change_root,
                                    SLUICE_STATS="json:/inside.json")
        except (PermissionError, subprocess.SubprocessError) as trouble:
            self.skipTest(f"the root cannot be changed here: {trouble}")
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), ("reached the end\n", ""))
        dump = self.dumps()["inside.json"]
        self.assertEqual(dump["program"], "resource_limits")
        self.assertGreater(dump["mallocs"], 10000)

    def test_a_program_may_change_its_root_as_it_runs(self):
        if os.geteuid() != 0:
            self.skipTest("only root can change the root")
        done = self.run_program(paths["resource_limits"], "heap", f"chroot={self.folder}", "heap", "threads",
                                SLUICE_STATS="json:/inside.json")
        if "no chroot" in done.stderr:
            self.skipTest("the root cannot be changed here")
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), ("reached the end\n", ""))
        self.assertGreater(self.dumps()["inside.json"]["mallocs"], 10000)


if __name__ == "__main__":
    main()
