"""Programs built with a sanitizer run under the preload as they do without it: the sanitizer's malloc serves, it finds
what it is there to find, and one line says that Sluice stands aside.

Open it when such a program crashes at its start under libsluice.so, or its sanitizer has nothing to say any more.
"""

import os
import shutil
import subprocess
import tempfile

from preload_process import PreloadTest, main, paths

COMPILERS = [name for name in ("g++", "clang++-14", "clang++") if shutil.which(name)][:2]

# sanitizer: the fault that it finds, and its words for it. UndefinedBehaviorSanitizer has no malloc of its own.
FAULTS = {"address": ("stale", "heap-use-after-free"), "leak": ("leak", "detected memory leaks"),
          "thread": ("race", "data race"), "memory": ("unset", "use-of-uninitialized-value"),
          "undefined": (None, None)}
LINE = "sluice: this program is built with a sanitizer, whose own malloc serves it; Sluice stands aside\n"

# ThreadSanitizer of gcc 12 gives up where the kernel spreads addresses widely.
FIXED = [["setarch", "-R"], []][subprocess.run(["setarch", "-R", "true"], check=False, capture_output=True).returncode != 0]


class Sanitizers(PreloadTest):
    @classmethod
    def setUpClass(cls):
        cls.programs = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.programs.cleanup)
        cls.built = {}
        jobs = []
        for compiler in COMPILERS:
            for sanitizer in FAULTS:
                program = os.path.join(cls.programs.name, f"{compiler}-{sanitizer}")
                command = [compiler, "-std=c++17", "-g", "-O1", "-fno-builtin", "-pthread", f"-fsanitize={sanitizer}",
                           f"-I{paths['headers']}", paths["entry_points"], "-o", program]
                jobs.append((compiler, sanitizer, program, subprocess.Popen(command, stderr=subprocess.DEVNULL)))
        for compiler, sanitizer, program, job in jobs:
            if job.wait() == 0:
                cls.built[compiler, sanitizer] = program

    def run_sanitized(self, program, fault, preload=None, **variables):
        # The first option is for the check that no library comes before that of AddressSanitizer.
        return self.run_program(*FIXED, program, fault, preload=preload,
                                ASAN_OPTIONS="verify_asan_link_order=0", **variables)

    def runnable(self):
        """Returns the programs that run here without the preload, as (sanitizer, program)."""
        found = []
        for (compiler, sanitizer), program in self.built.items():
            done = self.run_sanitized(program, "good", preload="")
            if done.returncode == 0:
                found.append((sanitizer, program))
            else:
                print(f"left out: {sanitizer} of {compiler} does not run here: {done.stderr.strip()[:200]}")
        if not found:
            self.skipTest("no compiler here links a program with a sanitizer that runs")
        return found

    def test_its_program_runs_to_its_end(self):
        for sanitizer, program in self.runnable():
            for variables in ({}, {"SLUICE_STATS": "1"}, {"SLUICE_FRAME_CHECKS": "1"}):
                done = self.run_sanitized(program, "good", **variables)
                self.assert_ended_well(done)
                self.assertEqual(done.stdout, "good\n")
                if sanitizer != "undefined":
                    self.assertEqual(done.stderr, LINE)

    def test_it_finds_what_it_finds_without_the_preload(self):
        for sanitizer, program in self.runnable():
            fault, words = FAULTS[sanitizer]
            if fault is None or words not in self.run_sanitized(program, fault, preload="").stderr:
                continue
            done = self.run_sanitized(program, fault)
            self.assertIn(words, done.stderr)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count(LINE), 1)

    def test_one_without_a_malloc_is_served(self):
        for sanitizer, program in self.runnable():
            if sanitizer != "undefined":
                continue
            done = self.run_sanitized(program, "good", SLUICE_STATS=f"json:{self.folder}/%p.json")
            self.assert_ended_well(done)
            self.assertEqual((done.stdout, done.stderr), ("good\n", ""))
        for dump in self.dumps().values():
            self.assertGreater(dump["mallocs"], 100)

    def test_address_sanitizer_refuses_to_come_second_by_itself(self):
        # Its library wants to be the first unless told otherwise, and says so.
        for sanitizer, program in self.runnable():
            if sanitizer != "address":
                continue
            done = self.run_program(program, "good")
            if done.returncode == 0:
                self.assertEqual((done.stdout, done.stderr), ("good\n", LINE))
            else:
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("ASan runtime does not come first", done.stderr)


if __name__ == "__main__":
    main()
