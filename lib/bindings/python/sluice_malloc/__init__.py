"""Sluice's malloc for Python programs: `python -m sluice_malloc run script.py` runs one on it.

library() is the path of libsluice.so for LD_PRELOAD; environment() an environment with it.
"""
import os
import pathlib

__all__ = ["environment", "library"]


def library(secure=False):
    """Returns the path of libsluice.so, or of libsluice-secure.so. Raises ValueError where LD_PRELOAD cannot name it."""
    path = pathlib.Path(__file__).resolve().parent / ("libsluice-secure.so" if secure else "libsluice.so")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: the installation of sluice_malloc is not complete")
    if any(character in str(path) for character in ": "):
        raise ValueError(f"{path}: LD_PRELOAD takes no path with a colon or a space")
    return str(path)


def environment(base=None, secure=False):
    """Returns a copy of an environment (os.environ) in which programs, and the programs that these start, run on Sluice.

    Python takes small objects from an allocator of its own, unless PYTHONMALLOC=malloc says otherwise.
    """
    result = dict(os.environ if base is None else base)
    others = [name for name in result.get("LD_PRELOAD", "").replace(":", " ").split() if "libsluice" not in name]
    result["LD_PRELOAD"] = ":".join([library(secure), *others])
    return result
