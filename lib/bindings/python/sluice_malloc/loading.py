"""Whether an interpreter runs on the library. A loader may leave out a library that its variable names, without a word: only a start of the
interpreter tells. Open it when a loader has another reason."""
import os
import subprocess
import sys

from . import variable

REASONS = {
    "darwin": "it is a program of the system, or its signature forbids it (the hardened runtime)",
    "linux": "it is statically linked, or runs with more rights than its caller",
}


def refusal(interpreter, environment, library):
    """Returns why the interpreter does not run on the library in this environment, or None where it does. Raises OSError where it does not start.

    It is started once, to do nothing: the library prints statistics at its end. The program's own SLUICE_ variables would have it do more.
    """
    probe = {name: value for name, value in environment.items() if not name.startswith("SLUICE_")}
    probe["SLUICE_STATS"] = "json"
    # By pipes: a small container may have no /dev/null.
    ended = subprocess.run([interpreter, "-S", "-c", ""], env=probe, input=b"", capture_output=True, check=False)
    if b'"schema": "sluice-stats"' in ended.stderr:
        return None
    name = os.path.basename(library)
    said = ended.stderr.decode(errors="replace").splitlines()
    # A loader that cannot read the library, or that ends the process for it, names it.
    reason = next((line for line in said if name in line), None)
    if reason is None and ended.returncode:
        reason = f"a start of it ended with status {ended.returncode}"
    reason = reason or REASONS.get(sys.platform, "nothing says why")
    return f"{interpreter} does not run on {name}, which {variable()} names: {reason}"
