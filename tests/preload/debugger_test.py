"""gdb and programs under the preload: it attaches while threads allocate, unwinds through the heap, calls malloc in the
program, takes a core and lets go, and the program ends as if nothing had been.

Open it when a backtrace ends within libsluice.so, or a program does not survive a debugger.
"""

import os
import re
import shutil
import subprocess
import unittest

from preload_process import LIMIT_SECONDS, PreloadTest, main, paths

GDB = shutil.which("gdb")


@unittest.skipUnless(GDB, "gdb is not installed")
class Debugger(PreloadTest):
    def gdb(self, *arguments, commands):
        """Runs gdb, without preload itself. Returns what it printed, on both outputs."""
        line = [GDB, "-nx", "-q", "-batch", *arguments]
        for command in ("set debuginfod enabled off", "set pagination off", *commands):
            line += ["-ex", command]
        # A program that gdb starts reads from this pipe, which stays empty and open.
        reader, writer = os.pipe()
        try:
            done = subprocess.run(line, env=self.environment(preload=""), stdin=reader, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=LIMIT_SECONDS, check=False)
        finally:
            os.close(reader)
            os.close(writer)
        return done.stdout

    def start_traffic(self, **environment):
        process = subprocess.Popen([paths["traffic"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=self.environment(**environment))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def attach(self, process, *commands):
        text = self.gdb("-p", str(process.pid), commands=[*commands, "detach"])
        if "ptrace: " in text or "Could not attach" in text:
            self.skipTest("no debugger may attach here: " + text.splitlines()[0])
        self.assertRegex(text, r"\[Inferior 1 \(process \d+\) detached\]")
        return text

    def assert_ends_well(self, process):
        output, _ = process.communicate("\n", timeout=LIMIT_SECONDS)
        self.assertEqual((process.returncode, output), (0, "done\n"))

    def assert_unwound(self, text, threads):
        """Each thread's stack is read to its beginning, through whatever the heap was doing."""
        stacks = re.split(r"^Thread \d+ ", text, flags=re.MULTILINE)[1:]
        self.assertEqual(len(stacks), threads, text)
        for stack in stacks:
            self.assertRegex(stack, r" in (main|(std::.*)?thread.*|allocate_and_free.*|clone3?) \(", stack)
            self.assertNotRegex(stack, r"corrupt stack|previous frame (identical|inner)", stack)

    def test_attaches_again_and_again_to_threads_that_allocate(self):
        process = self.start_traffic()
        for _ in range(3):
            self.assert_unwound(self.attach(process, "thread apply all bt"), 4)
        self.assert_ends_well(process)

    def test_calls_malloc_in_the_program(self):
        # Some virtual machines let no debugger write the processor's extended state.
        plain = self.start_traffic(preload="")
        text = self.attach(plain, "print (int)getpid()")
        self.assert_ends_well(plain)
        if f"$1 = {plain.pid}\n" not in text:
            self.skipTest("gdb can call no function here, without Sluice either: " + text.splitlines()[-2])
        process = self.start_traffic()
        text = self.attach(process, "thread 1", "print (void*)malloc(1000)", "set $block = $",
                           "print (unsigned long)malloc_usable_size($block)", "call (void*)memset($block, 1, 1000)",
                           "call (void)free($block)", "print (void*)malloc(300000)", "call (void)free($)",
                           "print (long)malloc_trim(0)")
        self.assertRegex(text, r"\$1 = \(void \*\) 0x[0-9a-f]+0\n")
        self.assertGreaterEqual(int(re.search(r"^\$2 = (\d+)$", text, re.MULTILINE).group(1)), 1000)
        self.assertNotIn("(void *) 0x0", text)
        self.assert_ends_well(process)

    def test_a_core_of_the_program_can_be_read(self):
        process = self.start_traffic()
        core = os.path.join(self.folder, "core")
        self.attach(process, f"generate-core-file {core}")
        self.assert_ends_well(process)
        # The window of the heap is address space that holds nothing: it must not make the core large.
        self.assertLess(os.stat(core).st_blocks * 512, 200 << 20)
        self.assert_unwound(self.gdb(paths["traffic"], core, commands=["thread apply all bt"]), 4)

    def test_the_stack_is_read_from_within_a_system_call_of_the_heap(self):
        commands = [f"set environment LD_PRELOAD {paths['libsluice']}", "set startup-with-shell off",
                    "break allocate_and_free", "run 1", "catch syscall mprotect", "continue", "bt", "kill"]
        text = self.gdb(paths["traffic"], commands=commands)
        if "ptrace" in text:
            self.skipTest("no program may be debugged here: " + text)
        stack = text[text.index("Catchpoint 2 (call to syscall mprotect)"):]
        self.assertIn("libsluice.so", stack)
        self.assertIn("allocate_and_free", stack)


if __name__ == "__main__":
    main()
