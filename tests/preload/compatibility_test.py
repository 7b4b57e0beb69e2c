"""Checks that each test which README.md beside this file names exists. Usage: compatibility_test.py BUILD_FOLDER

Open it when a test was renamed, or a row of the README names one that never was.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
KINDS = "preload|unit|stress|cli|real|style|pages"


def registered_tests(build):
    """Returns the names of ctest's tests, without those that GoogleTest's programs list by themselves."""
    names = set()
    for file in build.rglob("CTestTestfile.cmake"):
        names |= set(re.findall(r"^add_test\(\[=*\[(.+?)\]=*\]", file.read_text(encoding="utf-8"), re.MULTILINE))
        names |= set(re.findall(r"^add_test\(([\w.+]+) ", file.read_text(encoding="utf-8"), re.MULTILINE))
    return names


def listed_tests():
    """Returns the names of GoogleTest's tests of tests/unit and tests/stress, and of their suites."""
    names = set()
    for kind in ("unit", "stress"):
        for file in (HERE.parent / kind).glob("*.cpp"):
            for suite, name in re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", file.read_text(encoding="utf-8"), re.MULTILINE):
                names |= {f"{kind}.{suite}", f"{kind}.{suite}.{name}"}
    return names


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    known = registered_tests(pathlib.Path(sys.argv[1])) | listed_tests()
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    table = [line for line in readme.splitlines() if line.startswith("| ")][1:]
    faults = [f"README.md: no test is named {name}" for name in re.findall(rf"`((?:{KINDS})\.[\w.+]+)`", readme) if name not in known]
    for line in table:
        last = line.rstrip(" |").split("| ")[-1]
        if last != "none" and not re.search(rf"`(?:{KINDS})\.", last):
            faults.append(f"README.md: a row without a test: {line[:60]}")
    if len(table) < 20:
        faults.append("README.md: where is the table?")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(table)} rows, {len(known)} tests")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
