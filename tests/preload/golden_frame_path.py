#!/usr/bin/env python3
"""The golden path of frames: how many instructions sluice_frame_alloc takes where it is inlined.

usage: golden_frame_path.py PROGRAM LIMIT

PROGRAM is frame_path.c, built. What is counted is told in golden_fast_path.py. Open it when this test fails after a change
of sluice/frame.h: it prints the paths.
"""

import re
import sys

from golden_fast_path import fast_path, instructions_of, processor_of, run

FUNCTIONS = ("allocate_any_size", "allocate_40_bytes")


def main():
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit(__doc__.splitlines()[2])
    program, limit = sys.argv[1], int(sys.argv[2])
    symbols = (line.split() for line in run("nm", "--defined-only", program).splitlines())
    addresses = {name: int(address, 16) for address, _, name in symbols if name in FUNCTIONS}
    processor = processor_of(program)
    instructions = instructions_of(program, processor)
    failed = False
    for name in FUNCTIONS:
        if name not in addresses:
            sys.exit(f"golden_frame_path.py: {program} has no function {name}")
        path = [text for text in fast_path(instructions, processor, addresses[name]) if not re.match(processor.padding, text)]
        count = len(path) - 1
        print(f"{name}: {count} instructions to its return, {limit} allowed")
        for text in path:
            forbidden = re.match(processor.forbidden, text)
            failed = failed or forbidden is not None
            print(f"    {text}" + ("    <- not allowed on this path" if forbidden else ""))
        failed = failed or count > limit
    sys.exit("golden_frame_path.py: the path is too long" if failed else 0)


if __name__ == "__main__":
    main()
