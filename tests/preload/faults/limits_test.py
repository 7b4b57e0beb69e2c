"""Programs within limits: on the address space, from tight to roomy, and in a container (a control group).

Open it when a limit leaves a program less memory than it should, or when a container is killed. overcommit.sh does the
same where the system commits no more memory than it has; it changes a setting of the whole machine, and is run by hand.
"""

import os
import resource
import shutil
import subprocess

from preload_process import PreloadTest, main, paths

MIB = 1 << 20


class AddressSpace(PreloadTest):
    def fill(self, limit):
        done = self.run_program(paths["limited"], "fill", str(limit),
                                prepare=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit * MIB, limit * MIB)))
        self.assert_ended_well(done)
        return int(done.stdout)

    def test_most_of_it_can_be_used_and_used_again(self):
        for limit, share in ((64, 0.6), (128, 0.75), (256, 0.8), (512, 0.9), (1024, 0.92), (2048, 0.93), (4096, 0.94),
                             (8192, 0.94)):
            self.assertGreaterEqual(self.fill(limit), share * limit, f"MiB of {limit}")

    def test_a_limit_too_low_for_a_heap_is_no_crash(self):
        for limit in (4, 8, 12, 16, 24, 32):
            done = self.run_program(paths["limited"], "fill", str(limit),
                                    prepare=lambda l=limit: resource.setrlimit(resource.RLIMIT_AS, (l * MIB, l * MIB)))
            # 127: the loader has no room for the libraries; 1: no thread can be started.
            self.assertIn(done.returncode, (0, 1, 127), done.stderr)


class ControlGroup:
    """A control group with a limit, of either version; None where this process may not make one."""

    def __init__(self, limit):
        self.folder = None
        for root, limits in (("/sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")),
                             ("/sys/fs/cgroup", ("memory.max", "memory.swap.max"))):
            folder = os.path.join(root, f"sluice-test-{os.getpid()}")
            try:
                os.mkdir(folder)
            except OSError:
                continue
            self.folder = folder
            try:
                with open(os.path.join(folder, limits[0]), "w", encoding="ascii") as file:
                    file.write(str(limit))
                break
            except OSError:
                self.remove()

    def join(self):
        with open(os.path.join(self.folder, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))

    def remove(self):
        if self.folder is not None:
            os.rmdir(self.folder)
        self.folder = None


class Container(PreloadTest):
    def test_a_program_that_uses_half_of_a_container_is_not_killed_and_gives_memory_back(self):
        group = ControlGroup(64 * MIB)
        if group.folder is None:
            self.skipTest("no control group with a memory limit can be made here")
        try:
            for variables in ({}, {"SLUICE_PURGE_DELAY": "0"}, {"SLUICE_RETAIN": "1T"}):
                done = self.run_program(paths["limited"], "use", "32", prepare=group.join, **variables)
                self.assert_ended_well(done)
                self.assertLess(int(done.stdout), 16 * 1024, "resident KiB when all is freed")
        finally:
            group.remove()


class Overcommit(PreloadTest):
    def test_the_script_changes_nothing_unless_it_is_told_to(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "overcommit.sh")
        with open("/proc/sys/vm/overcommit_memory", encoding="ascii") as file:
            before = file.read()
        done = subprocess.run([shutil.which("bash"), script, paths["libsluice"], paths["limited"]], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 77, done.stdout)
        with open("/proc/sys/vm/overcommit_memory", encoding="ascii") as file:
            self.assertEqual(file.read(), before)


if __name__ == "__main__":
    main()
