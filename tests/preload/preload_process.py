"""What the Python tests of this folder share: starting a program under libsluice.so, and their command line.

Each test file is run by ctest as `python3 FILE NAME=PATH...`; `paths` holds these paths by name.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

paths = {}

# A hang shows as a failure of the test that met it, not of the whole run.
LIMIT_SECONDS = 120


class PreloadTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.addCleanup(self._folder.cleanup)

    def environment(self, preload=None, **variables):
        """Returns the environment without our variables, with the preload (libsluice.so unless told) and `variables`."""
        result = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_") and k != "LD_PRELOAD"}
        preload = paths["libsluice"] if preload is None else preload
        if preload:
            result["LD_PRELOAD"] = preload
        result.update(variables)
        return result

    def run_program(self, *arguments, preload=None, limit=LIMIT_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    prepare=None, **variables):
        """Runs a program to its end. Returns a CompletedProcess with text of stdout and stderr."""
        return subprocess.run(arguments, env=self.environment(preload, **variables), stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=stderr, text=True, timeout=limit, preexec_fn=prepare, check=False)

    def assert_ended_well(self, done):
        self.assertEqual(done.returncode, 0, f"{done.args}\nstdout: {done.stdout}\nstderr: {done.stderr}")

    def dumps(self):
        """Returns all JSON dumps that lie in the test's folder as *.json, by their file's name."""
        found = {}
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".json"):
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    found[name] = json.load(file)
        return found


def main():
    for argument in sys.argv[1:]:
        name, separator, path = argument.partition("=")
        if not separator:
            sys.exit(f"usage: {sys.argv[0]} NAME=PATH...: '{argument}' has no '='")
        if not os.path.exists(path):
            sys.exit(f"{sys.argv[0]}: {path} does not exist")
        paths[name] = path
    unittest.main(argv=sys.argv[:1], verbosity=2)
