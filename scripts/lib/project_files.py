"""Lists the repository's own files: what git tracks or would track, or, without git, all but build folders.

Imported by scripts/check-layers and run by scripts/format and scripts/tidy with the endings wanted as arguments. Open
it when a file is checked that should not be, or is missed.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def from_git():
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT),
               "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in done.stdout.decode().split("\0") if name]


def from_walk():
    found = []
    for folder, folders, names in os.walk(ROOT):
        here = pathlib.Path(folder).relative_to(ROOT)
        folders[:] = [name for name in folders
                      if name not in (".git", ".cache", "__pycache__")
                      and not (here == pathlib.Path(".") and (name == "build" or name.startswith("build-")))]
        found += [str(here / name) for name in names]
    return found


def project_files(*endings):
    """Returns the sorted paths, relative to the root, of the files that end in one of endings (of all, without)."""
    names = from_git() if (ROOT / ".git").exists() else None
    if names is None:
        names = from_walk()
    return sorted({name for name in names
                   if (not endings or name.endswith(endings)) and (ROOT / name).is_file()})


if __name__ == "__main__":
    for path in project_files(*sys.argv[1:]):
        print(path)
