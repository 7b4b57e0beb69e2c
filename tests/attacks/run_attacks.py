"""Runs the attack programs of this folder on several mallocs and tells who notices what. Open it to change what is expected of
libsluice.so and libsluice-secure.so, or to print the README's table.

Usage: run_attacks.py --programs FOLDER --sluice LIBSLUICE --secure LIBSLUICE_SECURE [--markdown | --check]

--check runs Sluice's two libraries alone and ends with status 1 unless each attack ends as EXPECTED says; --markdown prints the
table for all mallocs that are installed. What an attack comes to:
  named     the process was stopped with a line that says what was done
  stopped   the process was stopped by a page that cannot be touched, where the mistake was made
  crashed   the process died sooner or later, of what the mistake did to the heap or at a page that happened not to be there
  harmless  nothing was noticed, and the attacker got nothing
  missed    nothing was noticed, and the mistake took effect
"""
import argparse
import glob
import os
import re
import signal
import subprocess
import sys

HARMLESS = 10

# Attack: what libsluice.so makes of it with every block guarded, and libsluice-secure.so.
EXPECTED = {
    "overflow_by_1": ("named", "named"),
    "overflow_by_8": ("named", "named"),
    "overflow_far": ("named", "stopped"),
    "overflow_large": ("missed", "named stopped"),  # blocks of more than 1 MiB are not guarded
    "underflow": ("named", "named stopped"),  # the first block of a slab lies behind a page that cannot be touched
    "read_after_free": ("named", "harmless"),
    "write_after_free": ("named", "named"),
    "write_after_free_large": ("missed", "stopped"),
    "double_free": ("named", "named"),
    "double_free_later": ("named", "named"),
    "double_free_after_reuse": ("named harmless", "named"),
    "free_interior": ("named", "named"),
    "free_stack": ("harmless", "named"),
    "free_foreign": ("harmless", "named"),
    "free_list_overwrite": ("named", "named"),
    "uninitialised_read": ("missed harmless", "harmless"),
    "realloc_of_freed": ("named", "named"),
}
# And libsluice.so as it is: what comes by the way must not get worse.
BY_THE_WAY = {
    "free_stack": "harmless",
    "free_foreign": "harmless",
}
MESSAGE = {
    "overflow": "overflow|write to free memory",
    "underflow": "underflow|overflow|write to free memory",
    "write_after_free": "write to free memory|use after free",
    "read_after_free": "use after free",
    "double_free": "double free",
    "free_list": "write to free memory|use after free",
    "free_": "invalid free",
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
    return {
        "sluice": (arguments.sluice, {}, False),
        "sluice, all guarded": (arguments.sluice, {"SLUICE_GUARD_RATE": "1"}, True),
        "sluice-secure": (arguments.secure, {}, True),
    }


def check(arguments, attacks):
    wrong = 0
    for attack in attacks:
        for (way, how), expected in zip(sluice_ways(arguments).items(),
                                        (BY_THE_WAY.get(attack), *EXPECTED[attack])):
            if expected is None:
                continue
            for _ in range(arguments.rounds):
                outcome, text = run(os.path.join(arguments.programs, attack), *how)
                named_well = outcome != "named" or re.search("sluice: .*(" + message_of(attack) + ")", text)
                if outcome in expected.split() and named_well:
                    continue
                print(f"{attack} on {way}: {outcome}, where '{expected}' was expected: {text.strip()[:500]}")
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
    for attack in attacks:
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
    sources = glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "*.c"))
    found = {os.path.splitext(os.path.basename(path))[0] for path in sources}
    if found != set(EXPECTED):
        sys.exit(f"run_attacks.py: programs and expectations differ: {sorted(found ^ set(EXPECTED))}")
    attacks = list(EXPECTED)
    return check(arguments, attacks) if arguments.check else print_table(arguments, attacks)


if __name__ == "__main__":
    sys.exit(main())
