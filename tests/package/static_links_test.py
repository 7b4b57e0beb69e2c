"""Programs that libsluice.a is linked into, by each way to link: static_links_test.py CC CXX PKGCONFIG COMMAND

PKGCONFIG is the folder of sluice.pc, COMMAND the installed sluice. Open it when a program with the static library crashes
at its start, writes no statistics, or when stacks of its profile or of reports begin inside the allocator.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

CC, CXX, PKGCONFIG, COMMAND = sys.argv[1:5]
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static_subject.c")
WAYS = ([], ["-static"], ["-static-pie"], ["-flto"], ["-static", "-flto"], ["-static-pie", "-flto"], ["-no-pie"])
LONGEST_FUNCTION = 100  # bytes, of those of the subject
STATUS = 7
BLOCKS = 300


def package(*arguments):
    found = subprocess.run(["pkg-config", *arguments, "sluice"], env={**os.environ, "PKG_CONFIG_PATH": PKGCONFIG}, text=True,
                           stdout=subprocess.PIPE, check=True)
    return found.stdout.split()


class StaticLinks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        options = [*package("--variable=static_options"), *package("--variable=static_library"), "-pthread"]
        cls.programs = {}
        for compiler, language in ((CC, "c"), (CXX, "c++")):
            for way in WAYS:
                name = " ".join([language, *way])
                program = os.path.join(cls.folder, name.replace(" ", ""))
                subprocess.run([compiler, "-x", language, "-O1", "-g", *way, SOURCE, "-x", "none", "-o", program, *options],
                               stderr=subprocess.PIPE, check=True)
                cls.programs[name] = program

    def each(self, check):
        for name, program in self.programs.items():
            with self.subTest(name):
                check(program)

    def run_program(self, program, *arguments, **environment):
        done = subprocess.run([program, *arguments], env={**os.environ, **environment}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        self.assertIn("0x", done.stdout, done)
        return done

    def test_statistics_are_written(self):
        def check(program):
            file = os.path.join(self.folder, "stats")
            done = self.run_program(program, SLUICE_STATS=f"json:{file}")
            self.assertEqual((done.returncode, done.stderr), (STATUS, ""))
            with open(file, encoding="utf-8") as text:
                self.assertGreaterEqual(json.load(text)["mallocs"], 2 * BLOCKS)
            os.remove(file)

        self.each(check)

    def test_a_profile_names_the_functions_of_the_program(self):
        def check(program):
            file = os.path.join(self.folder, "profile")
            done = self.run_program(program, SLUICE_PROFILE=file, SLUICE_PROFILE_RATE="1")
            self.assertEqual((done.returncode, done.stderr), (STATUS, ""))
            text = subprocess.run([COMMAND, "profile", "--sort", "alloc", file], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout
            self.assertRegex(text, r"(?m)^ *7\d\.\d %.* large_site ")
            self.assertRegex(text, r"(?m)^ *2\d\.\d %.* small_site ")
            os.remove(file)

        self.each(check)

    def test_a_report_begins_in_the_program(self):
        def check(program):
            done = self.run_program(program, "twice", SLUICE_GUARD_RATE="1")
            allocates, frees = (int(word, 16) for word in done.stdout.split())
            self.assertLess(done.returncode, 0, done)
            self.assertIn("double free", done.stderr)
            places = [int(at, 16) for at in re.findall(r"#0 (0x[0-9a-f]+)", done.stderr)]
            for function, place in zip((frees, allocates, frees), places, strict=True):
                self.assertIn(place - function, range(LONGEST_FUNCTION), done.stderr)

        self.each(check)

    def test_a_static_program_loads_no_library_for_its_traces(self):
        static = [program for name, program in self.programs.items() if "-static" in name]
        self.assertEqual(len(static), 8)
        for program in static:
            done = self.run_program(program, "libraries", SLUICE_GUARD_RATE="1")
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (STATUS, 1), done.stdout)

    def test_it_can_be_asked(self):
        def check(program):
            done = self.run_program(program, SLUICE_ATTACH="1")
            self.assertEqual((done.returncode, done.stderr), (STATUS, ""))

        self.each(check)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
