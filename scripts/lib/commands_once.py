"""Writes a compile database in which each file stands once, but those that the secure build compiles differently.

usage: commands_once.py DATABASE POLICY OUT

The core is compiled twice, for libsluice.so and libsluice-secure.so; most files are the same in both. A file that names
a constant of POLICY (lib/src/base/policy.hpp) that the secure build sets keeps all its commands. Open it when clang-tidy misses a file.
"""
import json
import pathlib
import re
import sys


def main(database, policy, out):
    words = re.findall(r"^inline constexpr \w+ (\w+) = !?(?:secure|guards_spans)\b", pathlib.Path(policy).read_text(), re.MULTILINE)
    differs = re.compile(rf"\b({'|'.join(words)}|SLUICE_(?:SECURE|ARENA|FRAMES))\b")
    kept, seen = [], set()
    for command in json.loads(pathlib.Path(database).read_text()):
        file = command["file"]
        if file in seen and not differs.search(pathlib.Path(file).read_text()):
            continue
        seen.add(file)
        kept.append(command)
    out = pathlib.Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(kept))


main(*sys.argv[1:])
