#!/usr/bin/env python3
"""Tests that readme_examples.py finds the examples of a file and refuses those that do not hold.

usage: readme_examples_test.py C_COMPILER CPP_COMPILER INCLUDE PRELOAD
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("readme_examples.py")
arguments = []

C_PROGRAM = "```c\n#include <stdio.h>\nint main(void) {\n  %s\n}\n```\n"


class ReadmeExamples(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "TEXT.md")
            file.write_text(text, encoding="utf-8")
            return subprocess.run([sys.executable, "-B", SCRIPT, "--c-compiler", arguments[0], "--cpp-compiler",
                                   arguments[1], "--include", arguments[2], "--preload", arguments[3], file],
                                  capture_output=True, text=True, timeout=120, check=False)

    def assert_refused(self, text, message):
        done = self.check(text)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(message, done.stderr)

    def test_each_c_and_cpp_block_is_checked_and_no_other(self):
        done = self.check("words\n```sh\nfalse\n```\n" + C_PROGRAM % "return 0;" +
                          "````md\n```c\nnot code\n```\n````\n```cpp\nstd::string text(\"x\");\nif (text.empty()) return 1;\n```\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split(" example")[0] for line in done.stdout.splitlines()],
                         ["TEXT.md:5: c", "TEXT.md:16: cpp"])

    def test_statements_may_include_headers(self):
        done = self.check("```c\n#include <math.h>\nif (fabs(-1.0) != 1.0) return 1;\n```\n")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_example_that_does_not_compile_is_refused(self):
        self.assert_refused(C_PROGRAM % "return unknown;", "TEXT.md:1 does not compile")

    def test_a_warning_is_refused(self):
        self.assert_refused(C_PROGRAM % "int unused; return 0;", "TEXT.md:1 does not compile")

    def test_an_example_that_fails_is_refused(self):
        self.assert_refused(C_PROGRAM % "return 3;", "TEXT.md:1 does not run without Sluice: status 3")
        self.assert_refused(C_PROGRAM % 'fputs("x", stderr); return 0;', "TEXT.md:1 does not run without Sluice")

    def test_an_example_that_fails_with_sluice_alone_is_refused(self):
        self.assert_refused("```c\n#include <sluice/sluice.h>\nreturn sluice_present();\n```\n",
                            "TEXT.md:1 does not run with Sluice: status 1")

    def test_a_file_without_examples_or_with_an_open_block_is_refused(self):
        self.assert_refused("```sh\ntrue\n```\n", "has no C or C++ example")
        self.assert_refused("```c\nint x;\n", "the block has no end")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) != 4:
        sys.exit(__doc__.strip().splitlines()[-1])
    unittest.main(argv=sys.argv[:1], verbosity=2)
