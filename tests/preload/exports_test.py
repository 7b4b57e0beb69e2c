"""A library of ours as a file: its exports and their versions are the table's, it needs libc alone, and its TLS and flags are as
promised.

Open it when a symbol is missing from a release, or when the library cannot be loaded somewhere.
"""

import os
import platform
import re
import subprocess
import unittest

from preload_process import main, paths


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def versions():
    """Returns the version of each exported symbol, as nm writes it after the name: "" where it has none."""
    found = {}
    for line in output_of("nm", "-D", "--defined-only", paths["libsluice"]).splitlines():
        _, kind, symbol = line.split()
        name, _, version = symbol.partition("@")
        if kind != "A":  # the name of a version itself
            found[name] = version and "@" + version
    return found


def exported():
    return set(versions())


def table(kinds=r"\w+"):
    with open(paths["symbols"], encoding="utf-8") as file:
        return re.findall(rf"^SLUICE_SYMBOL\((\w+), (?:{kinds})\)", file.read(), re.MULTILINE)


# What a drop-in malloc for glibc has to serve, whatever the table says.
DEMANDED = set("""
    malloc calloc realloc free reallocarray memalign aligned_alloc posix_memalign valloc pvalloc cfree malloc_usable_size
    free_sized free_aligned_sized malloc_trim mallopt mallinfo mallinfo2 malloc_stats malloc_info
    __libc_malloc __libc_calloc __libc_realloc __libc_free __libc_memalign __libc_valloc __libc_pvalloc __posix_memalign
    _Znwm _Znam _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t _ZnwmSt11align_val_t _ZnamSt11align_val_t
    _ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t
    _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t
    _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t _ZdlPvSt11align_val_tRKSt9nothrow_t
    _ZdaPvSt11align_val_tRKSt9nothrow_t
""".split())


class Exports(unittest.TestCase):
    def test_every_row_of_the_table_is_exported(self):
        rows = table()
        self.assertGreater(len(rows), 40)
        self.assertEqual(len(rows), len(set(rows)), "a symbol stands in the table twice")
        self.assertEqual(set(rows) - exported(), set())

    def test_nothing_else_is_exported(self):
        self.assertEqual(exported() - set(table()), set())

    def test_the_table_is_complete(self):
        self.assertEqual(DEMANDED - set(table()), set())

    def test_the_c_interface_is_exported(self):
        for name in ("sluice_version", "sluice_stats_get", "sluice_stats_print"):
            self.assertIn(name, exported())

    def test_the_c_interface_has_the_version_that_programs_are_linked_to(self):
        found = versions()
        self.assertEqual({name: found[name] for name in table("interface")},
                         {name: "@@SLUICE_1.0" for name in table("interface")})

    def test_what_is_taken_over_has_no_version_and_serves_a_reference_to_any(self):
        found = versions()
        self.assertEqual({name: found[name] for name in table("standard|glibc") if found[name]}, {})

    def test_every_allocator_name_of_libc_is_taken_over(self):
        # A name of the family that libc adds one day would hand out blocks of another heap.
        family = re.compile(r"^(__libc_)?(malloc|calloc|realloc|reallocarray|free|cfree|memalign|valloc|pvalloc|"
                            r"aligned_alloc|(__)?posix_memalign|malloc_usable_size|free_sized|free_aligned_sized)$")
        lines = output_of("nm", "-D", "--defined-only", paths["libc"]).splitlines()
        names = {line.split()[-1].split("@")[0] for line in lines
                 if line.split()[-2] in "TWi" and not line.endswith("@GLIBC_PRIVATE")}
        self.assertEqual({name for name in names if family.match(name)} - exported(), set())


class Library(unittest.TestCase):
    def setUp(self):
        self.dynamic = output_of("readelf", "-dW", paths["libsluice"])
        self.segments = output_of("readelf", "-lW", paths["libsluice"])

    def test_has_the_interface_s_number_in_its_name(self):
        name = re.search(r"\(SONAME\).*\[(.*)\]", self.dynamic)[1]
        self.assertEqual(name, os.path.basename(paths["libsluice"]) + ".1")
        self.assertTrue(os.path.samefile(paths["libsluice"], os.path.join(os.path.dirname(paths["libsluice"]), name)))

    def test_needs_libc_and_the_loader_alone(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", self.dynamic)
        self.assertIn("libc.so.6", needed)
        self.assertEqual([name for name in needed if name != "libc.so.6" and not name.startswith("ld-linux")], [])

    @unittest.skipUnless(platform.machine() in ("x86_64", "aarch64"), "the oldest glibc is written down for these alone")
    def test_needs_no_glibc_newer_than_2_17(self):
        rows = re.findall(r"\*UND\*\s+\w+\s+\(?(GLIBC_\w[\w.]*)\)?\s+(\w+)$", output_of("objdump", "-T", paths["libsluice"]), re.MULTILINE)
        self.assertGreater(len(rows), 30)
        newer = {name: version for version, name in rows if tuple(map(int, version[6:].split("."))) > (2, 17)}
        self.assertEqual(newer, {}, "preload/CMakeLists.txt lists what preload/glibc_floor.cpp stands before")
        # The loader asks for each version of this list, whatever its symbols are.
        needed = re.search(r"^Version References:\n(.*)", output_of("objdump", "-p", paths["libsluice"]), re.MULTILINE | re.DOTALL)[1]
        self.assertEqual(set(re.findall(r"\d\d (\S+)$", needed, re.MULTILINE)), {version for version, _ in rows})

    def test_thread_local_storage_is_16_bytes_at_most_and_initial_exec(self):
        tls = re.findall(r"^\s*TLS\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x(\w+)", self.segments, re.MULTILINE)
        self.assertEqual(len(tls), 1)
        self.assertLessEqual(int(tls[0], 16), 16)
        self.assertIn("STATIC_TLS", self.dynamic)
        self.assertNotRegex(output_of("nm", "-D", paths["libsluice"]), "__tls_get_addr")
        self.assertNotRegex(output_of("readelf", "-rW", paths["libsluice"]), "DTPMOD|TLSDESC")

    def test_is_bound_at_once_and_never_unloaded(self):
        self.assertRegex(self.dynamic, r"FLAGS_1.*\bNOW\b")
        self.assertRegex(self.dynamic, r"FLAGS_1.*\bNODELETE\b")

    def test_is_hardened(self):
        self.assertNotIn("TEXTREL", self.dynamic)
        self.assertRegex(self.segments, r"GNU_STACK.* RW +0x")
        self.assertIn("GNU_RELRO", self.segments)
        self.assertNotRegex(self.dynamic, "RPATH|RUNPATH")

    def test_uses_no_stdio_locale_or_getenv(self):
        undefined = output_of("nm", "-D", "--undefined-only", paths["libsluice"])
        names = {line.split()[-1].split("@")[0] for line in undefined.splitlines()}
        self.assertEqual(names & {"getenv", "secure_getenv", "printf", "fprintf", "snprintf", "fopen", "setlocale", "brk"}, set())


if __name__ == "__main__":
    main()
