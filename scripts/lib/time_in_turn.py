#!/usr/bin/env python3
"""Runs one program under several allocators in turn and prints time and memory side by side.

scripts/demo calls it. Open it to change what that table shows. Rounds are interleaved, and each round starts with
another allocator, so that a slow moment of the machine meets all of them alike; the table shows medians.
"""
import argparse
import hashlib
import os
import shutil
import statistics
import sys
import tempfile
import time


def fail(message):
    print(f"time_in_turn: error: {message}", file=sys.stderr)
    sys.exit(1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each allocator is run (5)")
    parser.add_argument("--stdin", default=os.devnull, metavar="FILE", help="the program's standard input")
    parser.add_argument("--allocator", action="append", default=[], metavar="NAME=LIBRARY",
                        help="a library to preload; the system's own allocator always comes first")
    parser.add_argument("command", nargs="+", metavar="PROGRAM [ARGUMENT]...")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        fail("--rounds must be at least 1")
    return arguments


def allocators_of(arguments):
    """Returns [(name, library or None)], the system's allocator first."""
    found = [("system", None)]
    for item in arguments.allocator:
        name, equals, library = item.partition("=")
        if not equals or not os.path.isfile(library):
            fail(f"--allocator {item}: expected NAME=LIBRARY, and the library must exist")
        found.append((name, os.path.abspath(library)))
    return found


def run_once(program, command, stdin, library):
    """Returns wall seconds, processor seconds, peak resident MiB and a digest of standard output."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "LD_PRELOAD" and not name.startswith("SLUICE_")}
    if library:
        environment["LD_PRELOAD"] = library
    with open(stdin, "rb") as source, tempfile.TemporaryFile() as output:
        actions = [(os.POSIX_SPAWN_DUP2, source.fileno(), 0), (os.POSIX_SPAWN_DUP2, output.fileno(), 1)]
        start = time.monotonic()
        child = os.posix_spawn(program, command, environment, file_actions=actions)
        _, status, usage = os.wait4(child, 0)
        wall = time.monotonic() - start
        output.seek(0)
        digest = hashlib.sha256(output.read()).hexdigest()
    code = os.waitstatus_to_exitcode(status)
    if code:
        fail(f"{command[0]} ended with status {code} under {library or 'the system allocator'}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, digest


def main():
    arguments = parse_arguments()
    allocators = allocators_of(arguments)
    program = shutil.which(arguments.command[0])
    if not program:
        fail(f"no program named {arguments.command[0]}")

    runs = {name: [] for name, _ in allocators}
    for round_number in range(arguments.rounds):
        first = round_number % len(allocators)
        times = []
        for name, library in allocators[first:] + allocators[:first]:
            runs[name].append(run_once(program, arguments.command, arguments.stdin, library))
            times.append(f"{name} {runs[name][-1][0]:.2f} s")
        print(f"round {round_number + 1} of {arguments.rounds}: {', '.join(times)}", flush=True)

    if len({run[3] for results in runs.values() for run in results}) != 1:
        fail("the program's output was not the same in all runs")

    medians = {name: [statistics.median(run[i] for run in results) for i in range(3)]
               for name, results in runs.items()}
    system = medians["system"]
    print(f"\nmedians of {arguments.rounds} rounds; a ratio below 1 is better than the system's malloc")
    print(f"{'allocator':<10} {'time':>8} {'ratio':>6} {'processor':>10} {'ratio':>6} {'peak memory':>12} {'ratio':>6}")
    for name, _ in allocators:
        wall, processor, peak = medians[name]
        print(f"{name:<10} {wall:>6.2f} s {wall / system[0]:>6.2f} {processor:>8.2f} s {processor / system[1]:>6.2f} "
              f"{peak:>8.1f} MiB {peak / system[2]:>6.2f}")
    print("the program's output was the same in all runs")


if __name__ == "__main__":
    main()
