"""valgrind and programs under the preload: its tools see the program's blocks through malloc's of their own, whatever the
library is called, or run the program on our heap when they are told to leave malloc alone.

Open it when memcheck finds nothing under libsluice.so, or its options change with a version.
"""

import shutil
import unittest

from preload_process import PreloadTest, main, paths

VALGRIND = shutil.which("valgrind")
OWN_HEAP = "--soname-synonyms=somalloc=nouserintercepts"


@unittest.skipUnless(VALGRIND, "valgrind is not installed")
class Valgrind(PreloadTest):
    def valgrind(self, *options, program="planted_faults", **variables):
        done = self.run_program(VALGRIND, "-q", *options, paths[program], **variables)
        if "cannot execute" in done.stderr or "Fatal error at startup" in done.stderr:
            self.skipTest("valgrind does not run here: " + done.stderr.strip()[:200])
        return done

    def assert_faults_are_found(self, *options):
        done = self.valgrind("--leak-check=full", "--error-exitcode=9", *options)
        self.assertEqual((done.returncode, done.stdout), (9, "reached the end\n"), done.stderr)
        self.assertIn("Invalid write of size 1", done.stderr)
        self.assertIn("write_behind_a_block", done.stderr)
        self.assertIn("0 bytes after a block of size 40", done.stderr)
        self.assertIn("77 bytes in 1 blocks are definitely lost", done.stderr)
        self.assertIn("lose_a_block", done.stderr)

    def test_memcheck_finds_faults_with_the_name_that_the_readme_gives(self):
        self.assert_faults_are_found("--soname-synonyms=somalloc=libsluice*")

    def test_memcheck_finds_faults_by_itself(self):
        self.assert_faults_are_found()

    def test_a_program_runs_on_our_heap_where_malloc_is_left_alone(self):
        done = self.valgrind(OWN_HEAP, "--error-exitcode=9", SLUICE_STATS=f"json:{self.folder}/%p.json")
        self.assertEqual((done.returncode, done.stdout), (0, "reached the end\n"), done.stderr)
        (dump,) = self.dumps().values()
        self.assertGreater(dump["mallocs"], 20)

    def test_other_tools_run_programs_with_threads_on_our_heap(self):
        for options in (("--tool=none", OWN_HEAP), ("--tool=cachegrind", OWN_HEAP, "--cachegrind-out-file=/dev/null"),
                        ("--tool=massif", "--massif-out-file=/dev/null"), ("--tool=helgrind",)):
            with self.subTest(options=options):
                done = self.valgrind(*options, program="traffic")
                self.assertEqual(done.returncode, 0, done.stderr[-2000:])


if __name__ == "__main__":
    main()
