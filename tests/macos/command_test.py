"""The command of macOS, executed: command_test.py COMMAND PROCESSOR SYSTEM LIBRARY UNWINDER [TEST...]. It runs on the
library's malloc, in an emulated process (process.py), with files that are in memory (files.py), up to where it becomes
another program. Open it to add what the command must do there."""
import json
import pathlib
import re
import stat
import sys
import unittest

sys.dont_write_bytecode = True
import lief  # noqa: E402

lief.logging.disable()
COMMAND, PROCESSOR, SYSTEM, LIBRARY, UNWINDER = sys.argv[1:6]

import macho_files  # noqa: E402
from files import OWNER, File, Opened  # noqa: E402
from libc import Executed  # noqa: E402
from process import Process  # noqa: E402
from zone import zones_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DUMPS = ROOT / "tests/preload/cli"
SECURE = pathlib.Path(LIBRARY).with_name("libsluice-secure.dylib")
OWN = "/usr/local/lib/libsluice.dylib"
OF_LINUX = "libsluice.so|libsluice-secure.so|LD_PRELOAD|compare|bench|attach|leaks|profile|docs"
VERSION = re.search(r"SLUICE_VERSION \"(.*)\"", (ROOT / "lib/include/sluice/sluice.h").read_text(encoding="utf-8"))[1]


class Outcome:
    """What the command wrote, and its status, or what it became."""

    def __init__(self, process, status, executed):
        self.status, self.executed = status, executed
        self.output = process.written.get(1, b"").decode()
        self.error = process.written.get(2, b"").decode()


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.environment = ["PATH=/opt/bin:/bin", "HOME=/Users/me"]
        self.failing = set()
        self.is_on_arm = PROCESSOR == "aarch64"
        self.is_installed = True
        self.input = b""
        self.files = []
        self.links = {}
        self.add("/opt/bin/program", macho_files.program(PROCESSOR))

    def add(self, path, content, mode=0o755, **settings):
        self.files.append((path, content, {"mode": stat.S_IFREG | mode, **settings}))

    def process(self):
        process = Process(PROCESSOR, LIBRARY, SYSTEM, environment=self.environment)
        process.executable = "/usr/local/bin/sluice"
        process.failing, process.is_on_arm = self.failing, self.is_on_arm
        process.files.opened[0] = Opened(File(bytearray(self.input)))
        process.files.links = self.links
        process.files.add(process.executable, b"")
        if self.is_installed:
            process.files.add(OWN, pathlib.Path(LIBRARY).read_bytes())
            process.files.add("/usr/local/lib/libsluice-secure.dylib", SECURE.read_bytes())
        for path, content, settings in self.files:
            process.files.add(path, content, **settings)
        return process

    def run_command(self, *arguments):
        process = self.process()
        executed = status = None
        try:
            status = process.run_program(COMMAND, *arguments, helpers=[UNWINDER])
            process.exit()
        except Executed as other:
            executed, process.main.running = other, False
        self.assertEqual(zones_of(process)[0].check(), 1, "the heap is whole")
        self.assertEqual(process.system_word("system_faults"), 0)
        return Outcome(process, status, executed)

    def text(self, *arguments):
        outcome = self.run_command(*arguments)
        self.assertEqual((outcome.status, outcome.error, outcome.executed), (0, "", None))
        return outcome.output

    def expect_refusal(self, status, words, *arguments):
        """One line on standard error, which says why, and nothing is executed."""
        outcome = self.run_command(*arguments)
        self.assertIsNone(outcome.executed)
        self.assertRegex(outcome.error, rf"\Asluice: .*{words}.*\n\Z")
        self.assertEqual((outcome.status, outcome.output), (status, ""))

    def becomes(self, *arguments):
        outcome = self.run_command(*arguments)
        self.assertIsNotNone(outcome.executed, outcome.error)
        self.assertEqual((outcome.output, outcome.error), ("", ""))
        return outcome.executed


class Help(Case):
    def test_it_is_of_macos(self):
        for subcommand in ([], ["run"], ["options"], ["stats"]):
            with self.subTest(subcommand):
                text = self.text(*subcommand, "--help")
                self.assertIn(" ".join(["Usage: sluice", *subcommand]), text)
                self.assertIn("Exit codes:", text)
                self.assertNotRegex(text, OF_LINUX)
        self.assertIn("libsluice.dylib preloaded", self.text("run", "--help"))

    def test_the_version_is_that_of_the_header(self):
        self.assertEqual(self.text("--version"), f"sluice {VERSION}\n")

    def test_what_it_does_not_know_it_refuses(self):
        self.expect_refusal(2, "no subcommand 'rum'; did you mean 'run'", "rum")
        self.expect_refusal(2, "unknown option --frce.*--force", "run", "--frce", "program")
        self.expect_refusal(2, "which program", "run")
        self.expect_refusal(2, "FILE is required", "stats")

    def test_output_that_cannot_be_written_is_told(self):
        self.failing = {"write"}
        process = self.process()
        self.assertEqual(process.run_program(COMMAND, "options", helpers=[UNWINDER]), 1)
        self.assertNotIn(1, process.written)


class Options(Case):
    rows = re.findall(r"^SLUICE_OPTION\(\w+, (\w+),", (ROOT / "lib/src/base/options.def").read_text(encoding="utf-8"), re.M)

    def test_all_are_told(self):
        self.assertGreater(len(self.rows), 20)
        for way in ([], ["--markdown"], ["--man"]):
            text = self.text("options", *way)
            for row in self.rows:
                self.assertRegex(text, rf"(?m)^(\| `|\.B )?SLUICE_{row}\b")
        self.assertEqual([row["name"] for row in json.loads(self.text("options", "--json"))],
                         ["SLUICE_" + row for row in self.rows])


class Stats(Case):
    def dump(self, name):
        return (DUMPS / name).read_bytes()

    def test_a_dump_is_shown_as_on_linux(self):
        self.add("/dumps/before.json", self.dump("before.json"))
        self.assertEqual(self.text("stats", "/dumps/before.json"), self.dump("before.txt").decode())
        self.input = self.dump("before.json")
        self.assertEqual(self.text("stats", "-"), self.dump("before.txt").decode())

    def test_two_dumps_are_compared_as_on_linux(self):
        for name in ("before.json", "after.json"):
            self.add("/" + name, self.dump(name))
        self.assertEqual(self.text("stats", "before.json", "after.json"), self.dump("difference.txt").decode())

    def test_what_the_library_writes_is_read(self):
        process = Process(PROCESSOR, LIBRARY, SYSTEM, environment=["SLUICE_STATS=json:/tmp/%p.json"], files={"/tmp/old": b""})
        kept = [process.malloc(1000) for _ in range(50)]
        process.free(kept.pop())
        process.exit()
        written = bytes(process.files.find("/tmp/4711.json").content)
        self.assertEqual(sorted(path for path in process.files.by_path if path.startswith("/tmp/")), ["/tmp/4711.json", "/tmp/old"])
        self.add("/tmp/dump", written)
        text = self.text("stats", "/tmp/dump")
        self.assertIn(f"sluice {VERSION}: pid 4711, emulated\n", text)
        self.assertRegex(text, r"live .* bytes in +49 blocks")
        totals = json.loads(written)
        self.assertEqual((totals["mallocs"], totals["frees"]), (50, 1))

    def test_what_is_no_dump_is_refused(self):
        dump = self.dump("before.json")
        for content, words in ((b"", "is empty"), (dump[:1000], "not JSON: error at byte 1001"), (b"{}", "schema is missing"),
                               (dump.replace(b'"sluice-stats"', b'"other"'), "schema is not sluice-stats"),
                               (bytes(range(256)), "not JSON"), (dump.replace(b'"pid": ', b'"pid": -'), "pid is not")):
            self.files = []
            self.add("/dump", content)
            self.expect_refusal(2, "/dump: .*" + words, "stats", "/dump")
        self.expect_refusal(2, "/nothing: cannot be read: No such file or directory", "stats", "/nothing")
        self.expect_refusal(2, "/usr: cannot be read: Is a directory", "stats", "/usr")


class Run(Case):
    def test_the_program_gets_the_library_and_its_arguments(self):
        executed = self.becomes("run", "--", "program", "-x", "--help", "")
        self.assertEqual((executed.path, executed.arguments), ("/opt/bin/program", ["program", "-x", "--help", ""]))
        self.assertEqual(executed.environment,
                         {"PATH": "/opt/bin:/bin", "HOME": "/Users/me", "DYLD_INSERT_LIBRARIES": OWN})

    def test_what_is_inserted_already_stays_behind_it(self):
        for before, after in (("/x.dylib:/y.dylib", OWN + ":/x.dylib:/y.dylib"), (OWN + ":/x.dylib", OWN + ":/x.dylib"), ("", OWN)):
            self.environment[1:] = ["DYLD_INSERT_LIBRARIES=" + before]
            self.assertEqual(self.becomes("run", "program").environment["DYLD_INSERT_LIBRARIES"], after)

    def test_options_become_variables(self):
        self.add("/opt/stats", b"")
        executed = self.becomes("run", "--stats=json:opt/stats", "--only", "program,other", "-o", "guard_rate=100",
                                "--option", "SLUICE_PURGE_DELAY=never", "program")
        self.assertEqual({name: value for name, value in executed.environment.items() if name.startswith("SLUICE_")},
                         {"SLUICE_STATS": "json:/opt/stats", "SLUICE_STATS_PROGRAM": "program,other",
                          "SLUICE_GUARD_RATE": "100", "SLUICE_PURGE_DELAY": "never"})
        self.expect_refusal(2, "unknown option 'GARD_RATE'; did you mean 'GUARD_RATE'", "run", "-o", "GARD_RATE=1", "program")
        self.expect_refusal(2, "GUARD_RATE: bad value 'x'", "run", "-o", "GUARD_RATE=x", "program")

    def test_another_library_is_taken_where_it_is_named(self):
        secure = "/usr/local/lib/libsluice-secure.dylib"
        self.assertEqual(self.becomes("run", "--secure", "program").environment["DYLD_INSERT_LIBRARIES"], secure)
        self.assertEqual(self.becomes("run", "--lib", "usr/local/lib/libsluice-secure.dylib", "program")
                         .environment["DYLD_INSERT_LIBRARIES"], secure)

    def test_the_library_is_found_from_a_link_and_by_its_number(self):
        self.links = {"/usr/local/bin/sluice": "/opt/sluice/bin/sluice"}
        self.is_installed = False
        self.add("/opt/sluice/bin/sluice", b"")
        self.add("/opt/sluice/lib/libsluice.1.dylib", pathlib.Path(LIBRARY).read_bytes())
        self.assertEqual(self.becomes("run", "program").environment["DYLD_INSERT_LIBRARIES"],
                         "/opt/sluice/lib/libsluice.1.dylib")

    def test_a_program_whose_signature_allows_it_is_run(self):
        self.add("/opt/bin/hardened", macho_files.program(PROCESSOR, flags=macho_files.RUNTIME, entitlements=(
            macho_files.ALLOWS_VARIABLES, macho_files.ALLOWS_OTHERS)))
        self.add("/opt/bin/script", b"#!/opt/bin/hardened -x\n")
        self.assertEqual(self.becomes("run", "hardened").path, "/opt/bin/hardened")
        self.assertEqual(self.becomes("run", "script").path, "/opt/bin/script")

    def test_a_program_of_intels_is_translated_if_the_library_is_of_intels_too(self):
        self.add("/opt/bin/other", macho_files.program("x86_64" if PROCESSOR == "aarch64" else "aarch64"))
        self.is_on_arm = True
        self.assertEqual(self.becomes("run", "program").path, "/opt/bin/program")
        self.expect_refusal(125, "other runs as .*, and the library is for ", "run", "other")


class Refusals(Case):
    def add_library(self, content):
        self.is_installed = False
        self.add(OWN, content)

    def test_no_program(self):
        self.expect_refusal(127, "nothing: not found", "run", "nothing")
        self.expect_refusal(127, "/opt/nothing: not found", "run", "--", "/opt/nothing")
        self.expect_refusal(127, r"ls -l: not found; a command line is given word by word \(-- ls -l\)$", "run", "--", "ls -l")

    def test_a_program_that_cannot_be_executed(self):
        self.add("/opt/bin/text", b"text", mode=0o644)
        self.expect_refusal(126, "text: Permission denied", "run", "text")
        self.expect_refusal(126, "/opt/bin: Is a directory", "run", "/opt/bin")
        self.add("/opt/bin/script", b"#!/opt/bin/nothing\n")
        self.expect_refusal(126, "/opt/bin/nothing, the interpreter of script, cannot be executed", "run", "script")

    def test_a_program_that_the_kernel_refuses(self):
        self.failing = {"execvp"}
        self.expect_refusal(126, "program: cannot be executed: Malformed Mach-o file", "run", "program")

    def test_programs_of_the_system(self):
        self.add("/bin/ls", macho_files.program(PROCESSOR))
        self.add("/opt/marked", macho_files.program(PROCESSOR), flags=0x80000)  # SF_RESTRICTED
        self.links = {"/opt/bin/list": "/bin/ls"}
        self.expect_refusal(125, r"ls is one of the system's own programs \(/bin\), which System Integrity Protection", "run", "ls")
        self.expect_refusal(125, r"list is one of the system's own programs \(/bin\)", "run", "list")
        self.expect_refusal(125, "/opt/marked is one of the system's own programs", "run", "/opt/marked")
        self.add("/opt/bin/script", b"#!/bin/ls\n")
        self.expect_refusal(125, "/bin/ls, the interpreter of script, is one of the system's", "run", "script")
        self.assertEqual(self.becomes("run", "--force", "ls").environment["DYLD_INSERT_LIBRARIES"], OWN)

    def test_the_hardened_runtime(self):
        for flags, entitlements, words in (
                (macho_files.RUNTIME, (), "has the hardened runtime, without the entitlement " + macho_files.ALLOWS_VARIABLES),
                (macho_files.RUNTIME, (macho_files.ALLOWS_VARIABLES,), "takes no library of another signer"),
                (macho_files.LIBRARY_VALIDATION, (), "takes no library of another signer"),
                (macho_files.RESTRICT, (), "is signed with the flag `restrict`")):
            self.add("/opt/bin/hardened", macho_files.program(PROCESSOR, flags=flags, entitlements=entitlements))
            self.expect_refusal(125, "hardened " + words, "run", "hardened")

    def test_arm64e(self):
        self.add("/opt/bin/other", macho_files.program("aarch64", variant=macho_files.ARM64E))
        words = "runs as arm64e, and the library is for arm64" if PROCESSOR == "aarch64" else "is for arm64e, which this machine"
        self.expect_refusal(125, "other " + words, "run", "other")

    def test_programs_with_more_rights(self):
        content = macho_files.program(PROCESSOR)
        self.add("/opt/bin/setuid", content, mode=0o4755, owner=0)
        self.add("/opt/bin/setgid", content, mode=0o2755, group=0)
        self.add("/opt/bin/mine", content, mode=0o4755, owner=OWNER)
        self.expect_refusal(125, "setuid is setuid", "run", "setuid")
        self.expect_refusal(125, "setgid is setgid", "run", "setgid")
        self.assertEqual(self.becomes("run", "mine").path, "/opt/bin/mine")

    def test_a_damaged_program(self):
        whole = macho_files.program(PROCESSOR)
        for content in (b"", bytes(200), whole[:3], whole[1:], b"echo a script without a first line\n"):
            self.add("/opt/bin/damaged", content)
            self.expect_refusal(125, "damaged is no program of macOS", "run", "damaged")
        self.add("/opt/bin/unreadable", whole, mode=0o111)
        self.assertEqual(self.becomes("run", "unreadable").path, "/opt/bin/unreadable")

    def test_a_library_that_is_not_there_or_damaged(self):
        self.expect_refusal(125, "/opt/no.dylib: no such library", "run", "--lib", "/opt/no.dylib", "program")
        self.is_installed = False
        self.expect_refusal(125, "no libsluice.dylib in /usr/local/lib: name it with --lib", "run", "program")
        for content in (b"", b"text", pathlib.Path(LIBRARY).read_bytes()[4:], macho_files.program(PROCESSOR)):
            self.add_library(content)
            self.expect_refusal(125, "libsluice.dylib is not a shared library", "run", "program")
        self.add("/opt/a:b/x.dylib", pathlib.Path(LIBRARY).read_bytes())
        self.expect_refusal(125, "DYLD_INSERT_LIBRARIES takes no path with a colon", "run", "--lib", "/opt/a:b/x.dylib", "program")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[6:])
