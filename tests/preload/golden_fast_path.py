#!/usr/bin/env python3
"""The golden fast path: how many instructions malloc and free take from their entry to their return.

usage: golden_fast_path.py LIBSLUICE [--limits MALLOC FREE]

The path is the one along which no conditional jump is taken; unconditional jumps inside the library are followed. It may
hold neither a call nor a locked instruction. The return itself, endbr64 and padding are not counted. Open it when this
test fails after a change of the heap: it prints both paths.
"""

import argparse
import re
import subprocess
import sys

MOST_STEPS = 200


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def addresses_of(library, names):
    found = {}
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        address, _, name = line.split()
        name = name.split("@")[0]
        if name in names:
            found[name] = int(address, 16)
    for name in names:
        if name not in found:
            sys.exit(f"golden_fast_path.py: {library} does not export {name}")
    return found


def instructions_of(library):
    """Returns the instructions of the library by address, as (text, address of the next one)."""
    listing = []
    for line in run("objdump", "-dw", "--no-show-raw-insn", "-j", ".text", library).splitlines():
        match = re.match(r"^\s*([0-9a-f]+):\t(.*)$", line)
        if match:
            listing.append((int(match[1], 16), re.sub(r"\s*#.*", "", match[2]).strip()))
    return {at: (text, listing[i + 1][0] if i + 1 < len(listing) else None) for i, (at, text) in enumerate(listing)}


def fast_path(instructions, start):
    """Returns the instructions from `start` to the return."""
    path = []
    at = start
    while len(path) < MOST_STEPS:
        if at not in instructions:
            sys.exit(f"golden_fast_path.py: the path from {start:x} leaves .text at {at:x}")
        text, following = instructions[at]
        path.append(text)
        if re.match(r"(repz |bnd |notrack )*ret", text):
            return path
        jump = re.match(r"(?:bnd )?jmp\s+([0-9a-f]+)\b", text)
        if jump:
            at = int(jump[1], 16)
        elif re.match(r"(notrack |bnd )*jmp\s", text):
            sys.exit(f"golden_fast_path.py: the path from {start:x} ends in an indirect jump: {text}")
        else:
            at = following
    sys.exit(f"golden_fast_path.py: no return within {MOST_STEPS} instructions from {start:x}")


def is_padding(text):
    return re.match(r"(data16 |cs )*(endbr64|nop|xchg\s+%ax,%ax)", text) is not None


def is_forbidden(text):
    exchange = re.match(r"xchg\w*\s+(.*)", text)
    return (re.match(r"(bnd |notrack )*call", text) is not None or re.match(r"lock\b", text) is not None
            or (exchange is not None and "(" in exchange[1]) or "fence" in text)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[2])
    parser.add_argument("library")
    parser.add_argument("--limits", nargs=2, type=int, metavar=("MALLOC", "FREE"))
    arguments = parser.parse_args()
    limits = dict(zip(("malloc", "free"), arguments.limits)) if arguments.limits else {}
    instructions = instructions_of(arguments.library)
    failed = False
    for name, start in addresses_of(arguments.library, ("malloc", "free")).items():
        path = [text for text in fast_path(instructions, start) if not is_padding(text)]
        count = len(path) - 1
        limit = limits.get(name)
        print(f"{name}: {count} instructions to its return" + (f", {limit} allowed" if limit else ""))
        for text in path:
            print(f"    {text}" + ("    <- not allowed on the fast path" if is_forbidden(text) else ""))
        failed = failed or any(is_forbidden(text) for text in path) or (limit is not None and count > limit)
    sys.exit("golden_fast_path.py: the fast path is too slow" if failed else 0)


if __name__ == "__main__":
    main()
