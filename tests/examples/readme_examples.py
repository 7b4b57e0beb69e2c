#!/usr/bin/env python3
"""Compiles the C and C++ examples of a Markdown file and runs each, under the preload and without it.

An example is a block fenced by ```c or ```cpp. One that has a main is compiled as it stands. Others are statements: their
#include lines come first, then the usual headers, and the rest becomes the body of a main. Each must compile without a
warning, and end with status 0 and nothing on stderr. Open it when an example of the README needs something else.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT_SECONDS = 60
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
LANGUAGES = {
    "c": (".c", ["-std=gnu11"], ["stdio.h", "stdlib.h", "string.h"]),
    "cpp": (".cpp", ["-std=c++20"], ["cstdio", "cstdlib", "memory_resource", "string", "vector"]),
}


class Failure(Exception):
    pass


def examples_of(path):
    """Returns (line number, language, text) of each example."""
    found = []
    fence, start, language, lines = None, 0, None, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if fence is None:
            opening = re.match(r" {0,3}(`{3,}|~{3,})\s*([^\s`]*)", line)
            if opening:
                fence, start, language, lines = opening[1], number, opening[2].lower(), []
        elif re.fullmatch(r" {0,3}" + re.escape(fence[0]) + "{" + str(len(fence)) + r",}\s*", line):
            if language in LANGUAGES:
                found.append((start, language, "\n".join(lines) + "\n"))
            fence = None
        else:
            lines.append(line)
    if fence is not None:
        raise Failure(f"{path}:{start}: the block has no end")
    return found


def program_of(language, text):
    """Returns the text of a whole program."""
    if re.search(r"^int main\(", text, re.MULTILINE):
        return text
    lines = text.splitlines()
    own = [line for line in lines if line.startswith("#include")]
    usual = [f"#include <{header}>" for header in LANGUAGES[language][2]]
    body = [line for line in lines if not line.startswith("#include")]
    parameters = "void" if language == "c" else ""
    return "\n".join(own + usual + [f"int main({parameters}) {{"] + body + ["return 0;", "}", ""])


def run(what, command, **options):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT_SECONDS, check=False, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{what}: not done after {LIMIT_SECONDS} seconds") from None
    if done.returncode != 0 or done.stderr:
        raise Failure(f"{what}: status {done.returncode}\n{done.stdout}{done.stderr}")


def check(where, language, text, folder, arguments):
    ending, standard, _ = LANGUAGES[language]
    source = folder / f"example{ending}"
    program = folder / "example"
    source.write_text(program_of(language, text), encoding="utf-8")
    compiler = arguments.c_compiler if language == "c" else arguments.cpp_compiler
    run(f"{where} does not compile", [compiler, *standard, *WARNINGS, "-O2", "-I", arguments.include, "-pthread",
                                      str(source), "-o", str(program)])
    without = {name: value for name, value in os.environ.items()
               if name != "LD_PRELOAD" and not name.startswith("SLUICE_")}
    run(f"{where} does not run without Sluice", [str(program)], env=without)
    run(f"{where} does not run with Sluice", [str(program)], env={**without, "LD_PRELOAD": arguments.preload})
    print(f"{where}: {language} example compiled, ran with Sluice and without")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--c-compiler", required=True)
    parser.add_argument("--cpp-compiler", required=True)
    parser.add_argument("--include", required=True, help="folder that holds sluice/sluice.h")
    parser.add_argument("--preload", required=True, help="libsluice.so")
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        examples = examples_of(arguments.file)
        if not examples:
            raise Failure(f"{arguments.file} has no C or C++ example")
        with tempfile.TemporaryDirectory() as folder:
            for line, language, text in examples:
                check(f"{arguments.file.name}:{line}", language, text, pathlib.Path(folder), arguments)
    except (Failure, OSError, UnicodeDecodeError) as failure:
        sys.exit(f"readme_examples.py: {failure}")


if __name__ == "__main__":
    main()
