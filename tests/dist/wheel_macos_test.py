"""What the package sluice_malloc does on macOS, told by sys.platform that this is macOS: wheel_macos_test.py FOLDER, where the wheel for
macOS is unpacked. Shell scripts stand in for interpreters that take the library and that do not."""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
PACKAGES = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(PACKAGES))
import sluice_malloc  # noqa: E402
import sluice_malloc.__main__ as command  # noqa: E402
from sluice_malloc import loading  # noqa: E402

TAKES = r"""case $DYLD_INSERT_LIBRARIES in */libsluice*.dylib*) echo '{"schema": "sluice-stats"}' >&2 ;; esac"""
LEAVES_OUT = "echo '<exec_prefix> is not found' >&2"
ENDS = "echo 'dyld[7]: terminating because inserted dylib '$DYLD_INSERT_LIBRARIES' could not be loaded' >&2; exit 134"


class OnMacOS(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(sys, "platform", "darwin"))
        self.enterContext(mock.patch.dict(os.environ, {"SLUICE_PROFILE": "a.pb"}))

    def enterContext(self, context):  # unittest has it since 3.11
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def interpreter(self, code):
        path = self.folder / "python3"
        path.write_text(f"#!/bin/sh\nenv >{self.folder}/seen\n{code}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def run_command(self, interpreter, *words):
        """Returns the exit status, what went to stderr, and what was executed, or None."""
        executed = mock.Mock()
        said = io.StringIO()
        with mock.patch.object(sys, "executable", interpreter), mock.patch.object(sys, "argv", ["sluice_malloc", *words]), \
                mock.patch.object(sys, "orig_argv", ["python3", "-m", "sluice_malloc", *words]), \
                mock.patch.object(os, "execve", executed), contextlib.redirect_stderr(said):
            status = command.main()
        return status, said.getvalue(), executed.call_args and executed.call_args[0]

    def test_the_libraries_are_those_of_the_wheel(self):
        self.assertEqual(sluice_malloc.library(), str(PACKAGES.resolve() / "sluice_malloc/libsluice.dylib"))
        self.assertEqual(sluice_malloc.library(secure=True), str(PACKAGES.resolve() / "sluice_malloc/libsluice-secure.dylib"))

    def test_the_path_may_have_spaces_and_no_colon(self):
        for name, allowed in (("a b", True), ("a:b", False)):
            shutil.copytree(PACKAGES / "sluice_malloc", self.folder / name)
            with mock.patch.object(sluice_malloc, "__file__", str(self.folder / name / "__init__.py")):
                if allowed:
                    self.assertIn("a b/libsluice.dylib", sluice_malloc.library())
                else:
                    self.assertRaisesRegex(ValueError, "DYLD_INSERT_LIBRARIES takes no path with a colon$", sluice_malloc.library)

    def test_the_environment_names_the_library_to_dyld(self):
        given = {"DYLD_INSERT_LIBRARIES": "/a b/c.dylib:/old/libsluice.dylib", "LD_PRELOAD": "d.so"}
        self.assertEqual(sluice_malloc.environment(given),
                         {"DYLD_INSERT_LIBRARIES": sluice_malloc.library() + ":/a b/c.dylib", "LD_PRELOAD": "d.so"})

    def test_an_interpreter_that_takes_the_library_runs_the_program(self):
        interpreter = self.interpreter(TAKES)
        status, said, (path, words, variables) = self.run_command(interpreter, "run", "--secure", "--stats", "script.py", "x")
        self.assertEqual((path, words, said), (interpreter, [interpreter, "script.py", "x"], ""))
        self.assertIsNone(status)
        self.assertEqual(variables["DYLD_INSERT_LIBRARIES"], sluice_malloc.library(secure=True))
        self.assertEqual((variables["SLUICE_STATS"], variables["SLUICE_PROFILE"]), ("1", "a.pb"))

    def test_the_start_that_asks_writes_no_profile(self):
        self.run_command(self.interpreter(TAKES), "run", "script.py")
        seen = (self.folder / "seen").read_text(encoding="utf-8")
        self.assertIn("SLUICE_STATS=json", seen)
        self.assertNotIn("SLUICE_PROFILE", seen)

    def refused(self, code):
        status, said, executed = self.run_command(self.interpreter(code), "run", "script.py")
        self.assertEqual((status, executed, said.count("\n")), (125, None, 1))
        self.assertTrue(said.startswith(f"sluice_malloc: error: {self.folder}/python3 does not run on libsluice.dylib, "
                                        "which DYLD_INSERT_LIBRARIES names: "), said)
        return said.strip()

    def test_one_that_leaves_it_out_does_not(self):
        self.assertTrue(self.refused(LEAVES_OUT).endswith(loading.REASONS["darwin"]))

    def test_one_that_dyld_ends_does_not_and_dyld_says_why(self):
        self.assertIn("dyld[7]: terminating", self.refused(ENDS))

    def test_one_that_fails_does_not(self):
        self.assertTrue(self.refused("exit 4").endswith("a start of it ended with status 4"))

    def test_one_that_is_not_there_does_not(self):
        status, said, executed = self.run_command(str(self.folder / "none"), "run", "script.py")
        self.assertEqual((status, said, executed), (125, f"sluice_malloc: error: {self.folder}/none: No such file or directory\n", None))

    def test_the_path_is_printed_for_dyld(self):
        printed = subprocess.run([sys.executable, "-c", "import sys; sys.platform = 'darwin'; import sluice_malloc.__main__ as m; m.main()",
                                  "path"], env={"PYTHONPATH": str(PACKAGES)}, capture_output=True, text=True, check=True).stdout
        self.assertEqual(printed, sluice_malloc.library() + "\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
