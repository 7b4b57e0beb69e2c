"""Gives the command's JSON readers files that are damaged at random, from a fixed seed.

damaged_json.py COMMAND FIXTURES         tries all readers, and says which exits were wrong
damaged_json.py --write compare|bench F  writes a sound report
"""
import json
import os
import random
import subprocess
import sys

TIMES = [1.0, 1.01, 0.99, 1.02, 1.0, 0.98, 1.01, 1.0]
ROUNDS = 40
VALUES = [None, True, -1, 0, 1.5, 1e308, 18446744073709551615, "", "text", [], {}, [[]], {"name": None}]

CONTROLS = "\u0007\u001b[2J"


def metric(values):
    return {"median": 1, "half_quartile_range": 0, "samples": values}


def compare_report():
    allocators = [{"name": name, "library": "", "failure": None, "wait_status": 0,
                   "metrics": {"wall_seconds": metric(TIMES), "peak_rss_kib": metric([5000] * 8)}}
                  for name in ("system", "sluice")]
    return {"schema": "sluice-compare 1", "command": ["true"], "machine": {"system": "Linux"}, "partial": False,
            "allocators": allocators}


def bench_report():
    places = {name: {"median": 1.0, "samples": TIMES} for name in ("system", "sluice")}
    memory = {name: {"peak_kib": {"median": 5000, "samples": [5000] * 8}} for name in ("system", "sluice")}
    scenario = {"name": "pair", "cases": [{"name": "pair", "ops": 10, "allocators": places}], "memory": memory}
    return {"schema": "sluice-bench 2", "threads": None, "seed": None, "ops": None, "machine": {"system": "Linux"},
            "partial": False, "scenarios": [scenario]}


def places_in(document):
    """Every container of the document with each of its keys."""
    found = []
    waiting = [document]
    while waiting:
        container = waiting.pop()
        keys = container.keys() if isinstance(container, dict) else range(len(container))
        found += [(container, key) for key in keys]
        waiting += [container[key] for key in keys if isinstance(container[key], (dict, list))]
    return found


def damaged(text, rng):
    """The document with a part of another kind, without a part, or with other bytes."""
    how = rng.randrange(4)
    if how < 2:
        document = json.loads(text)
        container, key = rng.choice(places_in(document))
        if how == 0:
            container[key] = rng.choice(VALUES)
        else:
            del container[key]
        return json.dumps(document).encode()
    data = bytearray(text.encode())
    if how == 2:
        return bytes(data[:rng.randrange(len(data))])
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data))
        data[at:at + rng.randrange(3)] = rng.choice([b"9" * 400, b"e999", b"\x00", b"\xff", b"{", b"]", b'"', b"-", b","])
    return bytes(data)


def with_control_characters(text):
    """The document with these in each of its strings in turn, and in each name of a member."""
    for number in range(len(places_in(json.loads(text)))):
        document = json.loads(text)
        container, key = places_in(document)[number]
        if isinstance(container[key], str):
            container[key] += CONTROLS
        elif isinstance(key, str):
            container[key + CONTROLS] = container.pop(key)
        yield json.dumps(document).encode()


def complaint(command, files):
    """What is wrong with the way in which the command ends; empty if nothing is."""
    result = subprocess.run(command, capture_output=True, timeout=60)
    if result.returncode in (0, 1) and not result.stderr:
        bad = [byte for byte in result.stdout if byte < 32 and byte != 10]
        return f"prints the control characters {bad[:5]}" if bad else ""
    lines = result.stderr.splitlines()
    names_one = any(file.encode() in result.stderr for file in files)
    if result.returncode == 2 and len(lines) == 1 and lines[0].startswith(b"sluice: ") and names_one \
            and b"json.exception" not in result.stderr:
        return ""
    return f"exit status {result.returncode}, {result.stderr[:300]!r}"


def main():
    if sys.argv[1] == "--write":
        json.dump({"compare": compare_report, "bench": bench_report}[sys.argv[2]](), open(sys.argv[3], "w"))
        return
    command, fixtures = sys.argv[1:]
    rng = random.Random(20)
    json.dump(compare_report(), open("compare.json", "w"))
    json.dump(bench_report(), open("bench.json", "w"))
    dump = os.path.join(fixtures, "before.json")
    readers = [("one dump", dump, ["stats", "broken.json"]), ("two dumps", dump, ["stats", dump, "broken.json"]),
               ("comparisons", "compare.json", ["compare", "--diff", "compare.json", "broken.json"]),
               ("earlier comparison", "compare.json", ["compare", "--diff", "broken.json", "compare.json"]),
               ("a comparison and itself", "compare.json", ["compare", "--diff", "broken.json", "broken.json"]),
               ("scenarios and themselves", "bench.json", ["compare", "--diff", "broken.json", "broken.json"]),
               ("scenarios", "bench.json", ["compare", "--diff", "bench.json", "broken.json"])]
    wrong = 0
    for name, good, arguments in readers:
        text = open(good).read()
        files = [damaged(text, rng) for _ in range(ROUNDS)] + list(with_control_characters(text))
        for number, data in enumerate(files):
            open("broken.json", "wb").write(data)
            problem = complaint([command, *arguments], ["broken.json", good])
            if problem:
                wrong += 1
                kept = f"{name.replace(' ', '_')}_{number}.json"
                os.rename("broken.json", kept)
                print(f"{name}, file {number}: {problem}: {open(kept, 'rb').read()[:200]!r}")
    sys.exit(wrong != 0)


main()
