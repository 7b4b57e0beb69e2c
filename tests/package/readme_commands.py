"""Runs the commands of README.md and then of lib/docs/*.md, in their order, in a fresh clone of a checkout's HEAD, as
their reader would.

readme_commands.py CHECKOUT [--list]

Commands are the lines of its blocks of shell, and what stands in backquotes in its text and begins like one. They are run
as they stand but for the replacements below, each of which is printed with its reason where it is made. What a command
needs and this machine lacks is said; nothing is left out in silence. Exit status: 77 where there is no git repository.
"""
import argparse
import contextlib
import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

# The text, what stands instead, and why: regular expressions, applied one after the other.
REPLACEMENTS = [
    (r"^sudo (cmake --install build/release).*", r"\1 --prefix {prefix}", "the installation goes to a folder of the test"),
    (r"/usr/local", "{prefix}", "the installation's folder"),
    (r"^scripts/demo\b.*", "scripts/demo --rounds 1", "takes long"),
    (r"^scripts/test$|^scripts/test (--all$|(?!-).*)", "scripts/test --list", "takes long"),
    (r"^scripts/(soak|bench-build|bench-profilers|bench-library|bench|site|release|peers)\b.*", r"scripts/\1 --help", "takes long"),
    (r"^scripts/port( --build)? (\S+)", r"scripts/port --list | grep -x -- \2", "takes long"),
    (r"^scripts/port$", "scripts/port --list", "takes long"),
    (r"^cmake --preset release -DSLUICE_TESTS=OFF", r"\g<0> -DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON",
     "a fresh machine has no Google Benchmark"),
    (r"^sluice bench --all", "sluice bench run pair --ops 10000", "takes long"),
    (r"^sluice bench run (?!.*--with).*", r"\g<0> --with system,sluice", "takes long"),
    (r"^sluice bench run (?!.*--ops)(?!redis).*", r"\g<0> --seconds 0.05", "takes long"),
    (r"^sluice bench run.*", r"\g<0> --rounds 1 --quiesce 0 --timeout 300", "takes long"),
    (r"^(\S+/)?sluice compare (?!.*--runs|.*--diff|.*--help)", r"\g<0>--runs 2 ", "takes long"),
    (r"^sluice advise (?!.*--runs|.*--help)", r"\g<0>--runs 5 ", "takes long"),
    (r"--runs 40", "--runs 2", "takes long"),
    (r"\bredis-benchmark ", r"\g<0>-n 1000 ", "takes long"),
    (r"^sluice (compare|bench|run|stats|attach|profile|leaks|advise)$", r"\g<0> --help", "a name"),
    (r"^cmake --install$", r"\g<0> build/release --prefix {prefix}", "a name"),
    (r"^sluice docs$", r"\g<0> --help", "scripts/site, which makes what it opens, takes long"),
    (r"\b4711\b|\bPID\b", "{pid}", "a process of the test"),
    (r"\bSERVER &$", "true &", "any program"),
    (r"^(SLUICE_STATS\w*=\S+) +\.\.\.", r"\1 LD_PRELOAD={prefix}/lib/libsluice.so PROGRAM", "the dots"),
    (r"/tmp/libsluice.so", "{prefix}/lib/libsluice.so", "any other library"),
    (r"/tmp/(stats|profile)", r"{folder}/\1", "a folder of the test"),
    (r"\bPROGRAM ARGUMENTS", "ls -l", "any program"),
    (r"\bPROGRAM\b", "ls", "any program"),
    (r"\bSCRIPT\b", "./script.sh", "any script"),
    (r"\b7777\b", "{port}", "a port that is free"),
    (r"\| flamegraph.pl .*> graph.svg", "> graph.txt", "a script of its own project"),
    (r"^cc program.c .*", r"\g<0> && ./a.out", "what is built is run, too"),
]
# Files that the reader has, and the commands of this machine that make them.
FIXTURES = """
sqlite3 test.db 'create table t(x); insert into t values(1)'
echo 'print(sum(range(1000)))' >script.py
printf '#!/bin/sh\\nsort script.py\\n' >script.sh
chmod +x script.sh
echo 'print(#string.rep("x", 1000))' >script.lua
echo 'int answer() { return 42; }' >file.cpp
printf '#include <sluice/sluice.h>\\nint main(void) { return !sluice_present(); }\\n' >program.c
"""
# Made by the installed command, so after the installation.
LATER_FIXTURES = """
sluice run --stats=json:stats.json -- ls
cp stats.json before.json
sluice run --stats=json:after.json -- ls -l
sluice run --option PROFILE=before.1234 -- ls
sluice run --option PROFILE=after.1240 -- ls -l
cp before.1234 profile.1234
sluice run --option PROFILE=p.1234.pb --option PROFILE_SIGNAL=USR2 -- sh -c 'kill -USR2 $$; kill -USR2 $$; true'
sluice compare --runs 5 --with system,sluice --json old.json -- true
cp old.json new.json
"""
NEEDED = ["redis-server", "redis-benchmark", "sqlite3", "lua", "g++", "python3", "pkg-config", "pgbench"]
INLINE = re.compile(r"`((?:sluice|cmake|scripts/)[^`\n]*)`")
LIMIT = 900  # seconds, of a command that hangs


def commands_of(name, text):
    """Each command with the file and line that it begins on."""
    commands = []
    block, pending, begin = None, "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            block = None if block is not None else line[3:].strip()
        elif block == "sh":
            begin = begin if pending else number
            pending += line
            if pending.endswith("\\"):
                pending = pending[:-1].rstrip() + " "
                continue
            if pending.strip():
                commands.append((f"{name}:{begin}", re.sub(r"\s+", " ", pending).strip() if "'" not in pending else pending.strip()))
            pending = ""
        elif block is None:
            commands += [(f"{name}:{number}", match) for match in INLINE.findall(line)
                         if match.startswith(("sluice ", "cmake ")) or re.match(r"scripts/[\w-]+", match)]
    return commands


def commands_in(checkout):
    """The commands of all documents of a checkout, those of README.md first: it installs what the others use."""
    pages = sorted(glob.glob(os.path.join(checkout, "lib/docs/*.md")))
    found = []
    for path in [os.path.join(checkout, "README.md"), *pages]:
        with open(path, encoding="utf-8") as file:
            found += commands_of(os.path.relpath(path, checkout), file.read())
    return found


def replaced(command, values):
    """The command as it is run, and why it differs."""
    code, hash_sign, comment = command.partition(" #")
    code, reasons = code.rstrip(), []
    for pattern, text, why in REPLACEMENTS:
        changed = re.sub(pattern, text, code)
        if changed != code:
            reasons.append(why)
            code = changed
    for name, value in values.items():
        code = code.replace("{" + name + "}", value)
    return code, reasons


def missing_in(code):
    """What the command names and this machine lacks."""
    words = set(re.findall(r"[\w+.-]+", code))
    if "postgresql" in words:
        words.add("pgbench")
    if "redis" in words:
        words.add("redis-server")
    missing = [name for name in NEEDED if name in words and shutil.which(name) is None]
    if "nsenter" in words and subprocess.run(["nsenter", "-n", "-t", str(os.getpid()), "true"], stderr=subprocess.DEVNULL).returncode:
        missing.append("right to enter a network namespace")
    return missing


def run(code, folder, environment):
    """Runs it. Returns: the exit status and what it printed."""
    try:
        result = subprocess.run(["bash", "-c", code], cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=LIMIT,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return result.returncode, result.stdout
    except subprocess.TimeoutExpired as expired:
        return -1, f"it took more than {LIMIT} s: {expired.stdout}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def environment_for(clone, prefix):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "LD_"))}
    environment["PATH"] = f"{prefix}/bin:{environment['PATH']}"
    environment["PKG_CONFIG_PATH"] = f"{prefix}/lib/pkgconfig:{prefix}/lib/x86_64-linux-gnu/pkgconfig"
    if shutil.which("ccache"):  # what was compiled before is not compiled again
        environment.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CMAKE_CXX_COMPILER_LAUNCHER="ccache", CCACHE_BASEDIR=clone,
                           CCACHE_DEPEND="1", CCACHE_SLOPPINESS="pch_defines,time_macros,include_file_mtime")
    return environment


def prepare(folder, checkout):
    """Clones HEAD. Returns: the clone."""
    head = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True)
    if not os.path.exists(os.path.join(checkout, ".git")):
        print(f"skipped: {checkout} is no git repository")
        sys.exit(77)
    if head.returncode != 0:
        sys.exit(f"FAILED: git cannot read {checkout}: {head.stderr}")
    clone = os.path.join(folder, "sluice")
    subprocess.run(["git", "clone", "-q", "--no-checkout", "--shared", checkout, clone], check=True)
    subprocess.run(["git", "-C", clone, "checkout", "-q", head.stdout.strip()], check=True)
    return clone


@contextlib.contextmanager
def attachable(environment, prefix):
    """A process that `sluice attach` can ask. Yields: its id."""
    options = {"SLUICE_ATTACH": "1", "LD_PRELOAD": f"{prefix}/lib/libsluice.so"}
    with subprocess.Popen(["sleep", "3600"], env=environment | options, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            yield str(process.pid)
        finally:
            process.kill()


def run_all(commands, clone, folder, cleanup):
    """Runs them; what must end after them goes to cleanup. Returns: whether all went well."""
    prefix = os.path.join(folder, "prefix")
    values = {"prefix": prefix, "folder": folder, "port": free_port()}
    environment = environment_for(clone, prefix)
    failures, left_out = [], []
    status, output = run("set -e\n" + FIXTURES, clone, environment)
    if status != 0:
        sys.exit(f"FAILED: the files that the commands work on: {output}")
    for line, command in commands:
        code, reasons = replaced(command, values)
        missing = missing_in(code)
        if missing:
            left_out.append(command)
            print(f"{line}: $ {command}\n  NOT RUN: this machine has no {', '.join(missing)}")
            continue
        print(f"{line}: $ {command}" + (f"\n  run as: {code}  ({'; '.join(reasons)})" if reasons else ""), flush=True)
        begin = time.monotonic()
        status, output = run(code, clone, environment)
        print(f"  exit status {status} after {time.monotonic() - begin:.1f} s")
        if status != 0 or "cannot be preloaded" in output:  # which is a warning
            failures.append(f"{line}: {code}")
            print("  FAILED:\n" + "\n".join("    " + each for each in output.splitlines()[-30:]))
        if "pid" not in values and os.path.exists(f"{prefix}/lib/libsluice.so"):
            values["pid"] = cleanup.enter_context(attachable(environment, prefix))
            status, output = run("set -e\n" + LATER_FIXTURES, clone, environment)
            if status != 0:
                sys.exit(f"FAILED: the files that the installed command makes: {output}")
    print(f"{len(commands)} commands, {len(left_out)} not run for what this machine lacks, {len(failures)} failed")
    for failure in failures:
        print(f"FAILED: {failure}")
    return not failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout")
    parser.add_argument("--list", action="store_true", help="print the commands, and as what they are run")
    arguments = parser.parse_args()
    if arguments.list:
        for line, command in commands_in(arguments.checkout):
            print(f"{line}: {command}\n    {replaced(command, {})}")
        return
    folder = tempfile.mkdtemp(prefix="sluice-readme-")
    try:
        clone = prepare(folder, os.path.abspath(arguments.checkout))
        commands = commands_in(clone)
        with contextlib.ExitStack() as cleanup:
            good = len(commands) > 40 and run_all(commands, clone, folder, cleanup)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if good else 1)


main()
