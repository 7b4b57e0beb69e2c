"""Sluice's malloc for Python programs: `python -m sluice_malloc run script.py` runs one on it, on Linux and macOS.

library() is the path of the library for the loader's variable, LD_PRELOAD or DYLD_INSERT_LIBRARIES; environment() an environment with it.
"""
import os
import pathlib
import sys

__all__ = ["environment", "library", "variable"]


def variable():
    """Returns the variable that names libraries to the system's loader: LD_PRELOAD, or DYLD_INSERT_LIBRARIES on macOS."""
    return "DYLD_INSERT_LIBRARIES" if sys.platform == "darwin" else "LD_PRELOAD"


def _separators():
    return ":" if sys.platform == "darwin" else ": "


def library(secure=False):
    """Returns the path of libsluice.so, or of libsluice-secure.so; on macOS they end in .dylib.

    Raises ValueError where the loader's variable cannot name it.
    """
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    path = pathlib.Path(__file__).resolve().parent / (("libsluice-secure" if secure else "libsluice") + suffix)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: the installation of sluice_malloc is not complete")
    if any(character in str(path) for character in _separators()):
        names = {":": "a colon", " ": "a space"}
        raise ValueError(f"{path}: {variable()} takes no path with {' or '.join(names[each] for each in _separators())}")
    return str(path)


def environment(base=None, secure=False):
    """Returns a copy of an environment (os.environ) in which programs, and the programs that these start, run on Sluice.

    A loader leaves the library out, without a word, of programs that it protects: README.md says which. Python takes small objects from
    an allocator of its own, unless PYTHONMALLOC=malloc says otherwise.
    """
    result = dict(os.environ if base is None else base)
    named = result.get(variable(), "")
    for separator in _separators():
        named = named.replace(separator, "\0")
    others = [name for name in named.split("\0") if name and "libsluice" not in name]
    result[variable()] = ":".join([library(secure), *others])
    return result
