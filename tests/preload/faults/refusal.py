"""What the fault tests share: a program under refuse_calls, and which of its calls are refused in turn.

A run under ctest takes a sample of the calls; FAULT_TESTS_ALL=1 in the environment takes every one (minutes).
"""

import os
import re
import shutil

from preload_process import PreloadTest, paths

EVERY_CALL = os.environ.get("FAULT_TESTS_ALL") == "1"

# Signals that end a program which stepped on what is not there: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
CRASHES = {128 + number for number in (4, 5, 6, 7, 8, 11)}
NOT_RUN = 77


def sample(count, first=6, spread=6):
    """Returns the numbers of the calls to refuse, of `count`: all, or the first few and some of the others."""
    if EVERY_CALL or count <= first + spread:
        return list(range(1, count + 1))
    step = (count - first) / spread
    return list(range(1, first + 1)) + [first + int(step * (i + 1)) for i in range(spread)]


class RefusalTest(PreloadTest):
    def refuse(self, *how, command, also=(), limit=60, **variables):
        """Runs the command under libsluice.so, the libraries `also` and refuse_calls. Returns (the process, counted calls, refused calls).

        The status is 128 + N when signal N ended the program. A hang raises TimeoutExpired.
        """
        report = os.path.join(self.folder, "report")
        variables = [f"{name}={value}" for name, value in variables.items()]
        done = self.run_program(paths["refuse_calls"], *how, "--report", report, "--", "env", *variables,
                                "LD_PRELOAD=" + ":".join([paths["libsluice"], *also]), *command, preload="",
                                limit=limit)
        if done.returncode == NOT_RUN:
            self.skipTest(done.stderr.strip())
        with open(report, encoding="utf-8") as file:
            counted, refused = re.fullmatch(r"counted=(\d+) refused=(\d+)\n", file.read()).groups()
        os.remove(report)
        return done, int(counted), int(refused)

    def installed(self, program):
        path = shutil.which(program)
        if path is None:
            self.skipTest(f"{program} is not installed")
        return path
