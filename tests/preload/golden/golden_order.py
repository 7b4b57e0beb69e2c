"""What nearly every program runs of libsluice.so lies in the first 64 KiB of its code, and constants before the code; the
fast paths stand at the front. A small program has no more of its code in memory, and few pages of its variables.

usage: golden_order.py LIBRARY LIST PROGRAM

Open it when small programs hold more of the library in memory. LIST is preload/functions_run_often.txt, which
scripts/order-functions writes anew; PROGRAM prints its /proc/self/smaps.
"""

import os
import re
import subprocess
import sys

WINDOW = 64 * 1024  # bytes; what the kernel maps of a file at each fault
LOOKED_AT = 200  # names at the front of the list: those that both libraries run
MOST_MISSING = 10
MOST_BEFORE_OTHERS = 8 * 1024  # bytes: where the last fast path begins at most
MOST_VARIABLES = 20 * 1024  # bytes, of those that are zero at first
ATTEMPTS = 50


def read(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def mappings_of(library, program):
    """What the program has mapped: first address, end, rights, name, KiB in memory; those of the library, and all."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    printed = subprocess.run([program], capture_output=True, text=True, check=True,
                             env=environment | {"LD_PRELOAD": library}).stdout
    found = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)\n(?:.*\n)*?Rss: +(\d+) kB$", printed, re.MULTILINE)
    every = [(int(first, 16), int(end, 16), rights, os.path.basename(name), int(kib)) for first, end, rights, name, kib in found]
    own = [mapping for mapping in every if mapping[3] == os.path.basename(os.path.realpath(library))]
    if not own:
        sys.exit(f"{program} did not run on {library}: {printed[:500]}")
    return own, every


def memory_of(library, program, bytes_of_library):
    """Bytes of the library's code, and of its variables that are zero at first, that the program has in memory. The
    latter are None where other memory was mapped right behind them each time."""
    page = os.sysconf("SC_PAGE_SIZE")
    for _ in range(ATTEMPTS):
        own, every = mappings_of(library, program)
        code = sum(kib for _, _, rights, _, kib in own if rights == "r-xp")
        end = own[0][0] + -(-bytes_of_library // page) * page
        variables = [kib for first, last, _, name, kib in every if first == own[-1][1] and last == end and name == ""]
        if variables:
            return code * 1024, variables[0] * 1024
    return code * 1024, None


def main(library, list_file, program):
    with open(list_file, encoding="utf-8") as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
        fast_paths = lines[:lines.index(".startup")]
        names = [line for line in lines if line != ".startup"][:LOOKED_AT]
    headers = read("readelf", "-lW", library)
    code = [re.split(r"\s+", line.strip()) for line in headers.splitlines() if re.match(r"\s+LOAD.*R E", line)]
    begin = int(code[0][2], 16)
    problems = []
    for segment in ("GNU_RELRO", "GNU_EH_FRAME"):
        if segment not in headers:
            problems.append(f"there is no segment {segment}")
    if "RWE" in headers:
        problems.append("a segment can be written and executed")
    sections = re.findall(r"\]\s+(\.\S+)\s+\S+\s+([0-9a-f]{16})", read("readelf", "-SW", library))
    if begin % WINDOW != 0:
        problems.append(f"the code begins at {begin:#x}, in the middle of what is mapped at once")
    if int(dict(sections)[".rodata"], 16) > begin:
        problems.append("the constants lie behind the code")
    if int(dict(sections)[".fini"], 16) - begin >= WINDOW:
        problems.append("what runs when a process ends, .fini, lies behind what is often run")
    symbols = {}
    for line in read("nm", "--defined-only", library).splitlines():
        address, _, name = line.split()
        function = re.sub(r"\.(isra|part|constprop|cold)\b.*$|@.*$", "", name)
        symbols.setdefault(function, []).append(int(address, 16))
        if not name.endswith(".cold"):
            symbols.setdefault(f"{function}.hot", []).append(int(address, 16))
    missing = [name for name in names if name not in symbols]
    if len(missing) > MOST_MISSING:
        problems.append(f"{len(missing)} of the {len(names)} functions are not in the library; run scripts/order-functions: {missing}")
    places = [min(symbols.get(name, [begin + WINDOW])) - begin for name in fast_paths]
    if places != sorted(places) or places[-1] > MOST_BEFORE_OTHERS or places[0] % 64 != 0:
        problems.append(f"the fast paths do not lie at the front, in the order of the list: {dict(zip(fast_paths, places))}")
    outside = [name for name in names if any(address - begin >= WINDOW for address in symbols.get(name, []))]
    if outside:
        problems.append(f"outside of the first {WINDOW} bytes: {outside}")
    last = [re.split(r"\s+", line.strip()) for line in headers.splitlines() if re.match(r"\s+LOAD", line)][-1]
    in_memory, variables = memory_of(library, program, int(last[2], 16) + int(last[5], 16))
    if variables is None or not 0 < variables <= MOST_VARIABLES:
        problems.append(f"{variables} bytes of zeroed variables are in memory, not {MOST_VARIABLES}; see os/seldom_touched.hpp")
    if in_memory > WINDOW:
        problems.append(f"{in_memory} bytes of code are in memory in {program}, not {WINDOW}; run scripts/order-functions")
    for problem in problems:
        print(f"{library}: {problem}", file=sys.stderr)
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))
