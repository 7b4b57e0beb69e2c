"""python -m sluice_malloc: runs a Python program on Sluice's malloc."""
import argparse
import os
import sys

from . import environment, library, loading, variable


def arguments():
    parser = argparse.ArgumentParser(prog="python -m sluice_malloc", description="Run Python programs on Sluice's malloc.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    path = commands.add_parser("path", help=f"print the path of the library, for {variable()}")
    run = commands.add_parser("run", help="run this interpreter again, with the library preloaded",
                              usage="python -m sluice_malloc run [OPTIONS] SCRIPT|-m MODULE|-c CODE [ARGUMENT...]")
    for command in (path, run):
        command.add_argument("--secure", action="store_true", help="the secure library, which stops at memory errors")
    run.add_argument("--stats", action="store_true", help="print statistics to stderr at exit (SLUICE_STATS=1)")
    run.add_argument("--all", action="store_true", help="small objects, too, instead of Python's own allocator (PYTHONMALLOC=malloc)")
    # The first argument that is no option of ours, and all behind it, are for Python.
    own = sys.argv[1:]
    program = []
    if own[:1] == ["run"]:
        first = next((at for at, word in enumerate(own) if at and (not word.startswith("--") and word != "-h")), len(own))
        own, program = own[:first], own[first:]
    return parser, parser.parse_args(own), program


def fail(message):
    print(f"sluice_malloc: error: {message}", file=sys.stderr)
    return 125


def main():
    parser, given, program = arguments()
    try:
        path = library(given.secure)
        if given.command == "path":
            print(path)
            return 0
        if not program:
            parser.error("run: no script is named")
        variables = environment(secure=given.secure)
    except (OSError, ValueError) as error:
        return fail(error)
    if given.stats:
        variables["SLUICE_STATS"] = "1"
    if given.all:
        variables["PYTHONMALLOC"] = "malloc"
    sys.stdout.flush()
    # The interpreter's own options (-X, -W, -I and the like) hold for the program, too.
    options = [argument for argument in sys.orig_argv[1:sys.orig_argv.index("-m")]] if "-m" in sys.orig_argv else []
    try:
        refusal = loading.refusal(sys.executable, variables, path)
        if refusal:
            return fail(refusal)
        os.execve(sys.executable, [sys.executable, *options, *program], variables)
    except OSError as error:
        return fail(f"{error.filename or sys.executable}: {error.strerror}")


if __name__ == "__main__":
    sys.exit(main())
