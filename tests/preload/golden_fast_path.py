#!/usr/bin/env python3
"""The golden fast path: how many instructions malloc, free and the like take from their entry to their return.

usage: golden_fast_path.py LIBSLUICE FUNCTION[=LIMIT]...

The path is the one along which no conditional jump is taken; unconditional jumps inside the library are followed. It may
hold neither a call nor an atomic update. The return itself, endbr64 and padding are not counted. The library is one for
x86-64 or aarch64, also on another machine with binutils for it. Open it when this test fails after a change of the heap:
it prints the paths.
"""

import platform
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

MOST_STEPS = 200


class Processor(NamedTuple):
    name: str
    returns: str
    jump: str  # to an address, unconditional
    indirect_jump: str
    padding: str
    forbidden: str


PROCESSORS = {
    62: Processor("x86_64", r"(repz |bnd |notrack )*ret", r"(?:bnd )?jmp\s+([0-9a-f]+)\b", r"(notrack |bnd )*jmp\s",
                  r"(data16 |cs )*(endbr64|nop|xchg\s+%ax,%ax)", r"(bnd |notrack )*call|lock\b|xchg\w*\s.*\(|.*fence"),
    183: Processor("aarch64", r"ret\b", r"b\s+([0-9a-f]+)\b", r"br\s", r"nop|bti\b",
                   r"blr?\s|(ld|st)a?l?xr|(cas|swp|ld(add|clr|eor|set))|[di][ms]b\b"),
}


def processor_of(library):
    with open(library, "rb") as file:
        header = file.read(20)
    machine = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or machine not in PROCESSORS:
        sys.exit(f"golden_fast_path.py: {library} is no library for x86-64 or aarch64")
    return PROCESSORS[machine]


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


def objdump_for(processor):
    if processor.name == platform.machine():
        return "objdump"
    tool = f"{processor.name.replace('_', '-')}-linux-gnu-objdump"
    if shutil.which(tool) is None:
        sys.exit(f"golden_fast_path.py: {tool} is missing (Debian: binutils-{processor.name.replace('_', '-')}-linux-gnu)")
    return tool


def instructions_of(library, processor):
    """Returns the instructions of the library by address, as (text, address of the next one)."""
    listing = []
    for line in run(objdump_for(processor), "-dw", "--no-show-raw-insn", "-j", ".text", library).splitlines():
        match = re.match(r"^\s*([0-9a-f]+):\t(.*)$", line)
        if match:
            listing.append((int(match[1], 16), re.sub(r"\s*(# |//).*", "", match[2]).strip()))
    return {at: (text, listing[i + 1][0] if i + 1 < len(listing) else None) for i, (at, text) in enumerate(listing)}


def fast_path(instructions, processor, start):
    """Returns the instructions from `start` to the return."""
    path = []
    at = start
    while len(path) < MOST_STEPS:
        if at not in instructions:
            sys.exit(f"golden_fast_path.py: the path from {start:x} leaves .text at {at:x}")
        text, following = instructions[at]
        path.append(text)
        if re.match(processor.returns, text):
            return path
        jump = re.match(processor.jump, text)
        if jump:
            at = int(jump[1], 16)
        elif re.match(processor.indirect_jump, text):
            sys.exit(f"golden_fast_path.py: the path from {start:x} ends in an indirect jump: {text}")
        else:
            at = following
    sys.exit(f"golden_fast_path.py: no return within {MOST_STEPS} instructions from {start:x}")


def main(library, *functions):
    wanted = {}
    for function in functions:
        match = re.fullmatch(r"(\w+)(?:=(\d+))?", function)
        if not match:
            sys.exit(f"golden_fast_path.py: '{function}' is not FUNCTION or FUNCTION=LIMIT")
        wanted[match[1]] = int(match[2]) if match[2] else None
    processor = processor_of(library)
    instructions = instructions_of(library, processor)
    failed = False
    for name, start in addresses_of(library, wanted).items():
        path = [text for text in fast_path(instructions, processor, start) if not re.match(processor.padding, text)]
        count, limit = len(path) - 1, wanted[name]
        print(f"{name}: {count} instructions to its return" + (f", {limit} allowed" if limit else ""))
        for text in path:
            forbidden = re.match(processor.forbidden, text)
            failed = failed or forbidden is not None
            print(f"    {text}" + ("    <- not allowed on the fast path" if forbidden else ""))
        failed = failed or (limit is not None and count > limit)
    return "golden_fast_path.py: the fast path is too slow" if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"golden_fast_path.py: {__doc__.splitlines()[2]}")
    sys.exit(main(*sys.argv[1:]))
