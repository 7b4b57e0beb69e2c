"""Runs the attack programs of this folder on several mallocs and tells who notices what. Open it to change what is expected of
libsluice.so and libsluice-secure.so, or to print the table of lib/docs/memory-errors.md.

Usage: run_attacks.py --programs FOLDER --sluice LIBSLUICE --secure LIBSLUICE_SECURE [--markdown | --check]

--check runs Sluice's two libraries alone and ends with status 1 unless each attack ends as the document's table says; the other
mallocs' columns are those of the versions that it names. --markdown prints the table for all mallocs that are installed. What an
attack comes to:
  named     the process was stopped with a line that says what was done
  stopped   the process was stopped by a page that cannot be touched, where the mistake was made
  crashed   the process died sooner or later, of what the mistake did to the heap or at a page that happened not to be there
  harmless  nothing was noticed, and the attacker got nothing
  missed    nothing was noticed, and the mistake took effect
"""
import argparse
import glob
import os
import pathlib
import re
import signal
import subprocess
import sys

HARMLESS = 10

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENT = ROOT / "lib" / "docs" / "memory-errors.md"
WORDS = ("named", "stopped", "crashed", "harmless", "missed")
SLUICE_WAYS = ("sluice", "sluice, all guarded", "sluice-secure")

# The cells of the table that differ between runs: what else may come out than the table says.
VARYING = {
    # The block may be the first of its slab, behind a page that cannot be touched: blocks are given out in random order.
    ("underflow", "sluice-secure"): ("named", "stopped"),
    # Once the pages have gone back to the system, which takes some milliseconds, they read as 0.
    ("uninitialised_read_large", "sluice"): ("missed", "harmless"),
    # At once, where a guarded block's pages have 64 KiB.
    ("uninitialised_read", "sluice, all guarded"): ("missed", "harmless"),
}
MESSAGE = {
    "overflow": "overflow|write to free memory",
    "underflow": "underflow|overflow|write to free memory",
    "write_after_free": "write to free memory|use after free",
    "read_after_free": "use after free",
    "double_free": "double free",
    "free_list": "write to free memory|use after free",
    "free_": "invalid free",
    "sized_delete": "sized free of the wrong size",
    "size_query": "size query",
    "zero_size": "overflow|underflow",
    "realloc_of_freed": "realloc of a freed block|use after free|double free",
}
OTHERS = {
    "glibc": "",
    "mimalloc": "/usr/lib/*/libmimalloc.so.2*",
    "jemalloc": "/usr/lib/*/libjemalloc.so.2",
    "tcmalloc": "/usr/lib/*/libtcmalloc_minimal.so.4",
}


# guard_pages: whether a page that cannot be touched is there on purpose; None for mallocs that are not Sluice.
def run(program, preload, options, guard_pages):
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": preload, **options}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, errors="replace", timeout=120)
    if done.returncode == 0:
        return "missed", done.stderr
    if done.returncode == HARMLESS:
        return "harmless", done.stderr
    if done.returncode >= 0:
        return f"status {done.returncode}", done.stderr
    text = done.stderr if guard_pages is None else "".join(re.findall("sluice: (?!SLUICE_).*", done.stderr))
    if text.strip():
        return "named", done.stderr
    return ("stopped" if guard_pages and -done.returncode == signal.SIGSEGV else "crashed"), done.stderr


def message_of(attack):
    return next((text for prefix, text in MESSAGE.items() if attack.startswith(prefix)), "")


def sluice_ways(arguments):
    return dict(zip(SLUICE_WAYS, (
        (arguments.sluice, {}, False),
        (arguments.sluice, {"SLUICE_GUARD_RATE": "1"}, True),
        (arguments.secure, {}, True),
    )))


def documented():
    """Returns {(attack, way): word} as the document's table says; ends when that is no table of all attacks."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    starts = [at for at, row in enumerate(rows) if row[0] == "attack"]
    if len(starts) != 1:
        sys.exit(f"run_attacks.py: {DOCUMENT} has {len(starts)} tables of attacks")
    header, body = rows[starts[0]], rows[starts[0] + 2:]
    table = {}
    for row in body:
        if len(row) != len(header):
            break  # the next table
        table.update({(row[0].replace(" ", "_"), way): word for way, word in zip(header[1:], row[1:])})
    strange = sorted({word for word in table.values() if word not in WORDS})
    if strange or not set(SLUICE_WAYS) <= set(header):
        sys.exit(f"run_attacks.py: the table's columns are {header}, words that mean nothing: {strange}")
    return table


def check(arguments, attacks):
    table = documented()
    rows = {attack for attack, _ in table}
    if rows != set(attacks):
        sys.exit(f"run_attacks.py: programs and the table's rows differ: {sorted(rows ^ set(attacks))}")
    wrong = 0
    for attack in attacks:
        for way, how in sluice_ways(arguments).items():
            expected = VARYING.get((attack, way), (table[attack, way],))
            if table[attack, way] not in expected:
                sys.exit(f"run_attacks.py: the table says {table[attack, way]} for {attack} on {way}, which never comes out")
            for _ in range(arguments.rounds):
                outcome, text = run(os.path.join(arguments.programs, attack), *how)
                named_well = outcome != "named" or re.search("sluice: .*(" + message_of(attack) + ")", text)
                if outcome in expected and named_well:
                    continue
                print(f"{attack} on {way}: {outcome}, where {' or '.join(expected)} was expected: {text.strip()[:500]}")
                wrong += 1
                break
    if wrong == 0:
        print(f"{len(attacks)} attacks, {arguments.rounds} times each: as expected")
    return 1 if wrong else 0


def print_table(arguments, attacks):
    ways = {}
    for name, pattern in OTHERS.items():
        found = sorted(glob.glob(pattern)) if pattern else [""]
        if found:
            ways[name] = (found[0], {}, None)
    ways.update(sluice_ways(arguments))
    print("| attack | " + " | ".join(ways) + " |")
    print("|---|" + "---|" * len(ways))
    in_order = dict.fromkeys(attack for attack, _ in documented() if attack in attacks)
    for attack in [*in_order, *(attack for attack in attacks if attack not in in_order)]:
        row = [run(os.path.join(arguments.programs, attack), *how)[0] for how in ways.values()]
        print(f"| {attack.replace('_', ' ')} | " + " | ".join(row) + " |")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help="folder of the attack programs")
    parser.add_argument("--sluice", required=True, help="libsluice.so")
    parser.add_argument("--secure", required=True, help="libsluice-secure.so")
    parser.add_argument("--rounds", type=int, default=3, help="how often each attack is checked (%(default)s)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    attacks = sorted(path.stem for path in pathlib.Path(__file__).resolve().parent.glob("*.c"))
    return check(arguments, attacks) if arguments.check else print_table(arguments, attacks)


if __name__ == "__main__":
    sys.exit(main())
