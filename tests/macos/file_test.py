"""What the files libsluice.dylib and libsluice-secure.dylib must be, read without running it: file_test.py LIBRARY PROCESSOR SYMBOLS_DEF."""
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
import lief  # noqa: E402
import lief.MachO as macho  # noqa: E402

lief.logging.disable()
LIBRARY, PROCESSOR, SYMBOLS = sys.argv[1:4]
NAME = pathlib.Path(LIBRARY).stem

# Each must be put in the place of libSystem's: a program that gets a block from one of ours and gives it to one of
# libSystem's ends there.
FAMILY = {"malloc", "calloc", "free", "vfree", "realloc", "reallocf", "valloc", "aligned_alloc", "posix_memalign",
          "malloc_size", "malloc_good_size", "malloc_zone_free", "malloc_zone_realloc", "malloc_zone_batch_free"}
# The same where Apple's compilers tell types apart; older systems do not have them.
TYPED = {"malloc_type_" + name for name in ("malloc", "calloc", "free", "realloc", "valloc", "aligned_alloc",
                                            "posix_memalign")}
# What the linker adds.
OF_THE_FILE = {"__mh_dylib_header", "___dso_handle"}


class File(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.library = macho.parse(LIBRARY).at(0)

    def section(self, name):
        return next((section for section in self.library.sections if section.name == name), None)

    def test_is_a_library_for_its_processor(self):
        self.assertEqual(self.library.header.file_type, macho.Header.FILE_TYPE.DYLIB)
        expected = {"aarch64": macho.Header.CPU_TYPE.ARM64, "x86_64": macho.Header.CPU_TYPE.X86_64}[PROCESSOR]
        self.assertEqual(self.library.header.cpu_type, expected)

    def test_needs_nothing_but_libsystem(self):
        loaded = [command.name for command in self.library.commands if command.command == macho.LoadCommand.TYPE.LOAD_DYLIB]
        self.assertEqual(loaded, ["/usr/lib/libSystem.B.dylib"])

    def test_is_found_by_rpath_where_programs_link_it(self):
        named = next(command.name for command in self.library.commands if command.command == macho.LoadCommand.TYPE.ID_DYLIB)
        self.assertEqual(named, f"@rpath/{NAME}.1.dylib")

    def test_runs_on_macos_12(self):
        version = self.library.build_version
        self.assertEqual(version.platform, macho.BuildVersion.PLATFORMS.MACOS)
        self.assertEqual(list(version.minos)[:2], [12, 0])

    @unittest.skipUnless(PROCESSOR == "aarch64", "Intel's processors run code that is not signed")
    def test_is_signed(self):
        self.assertTrue(self.library.has_code_signature, "by itself (ad hoc)")

    def test_interposes_the_whole_family(self):
        section = self.section("__interpose")
        self.assertEqual(section.segment_name, "__DATA")
        self.assertEqual(section.size, 16 * len(FAMILY | TYPED))
        places = range(section.virtual_address, section.virtual_address + section.size)
        replaced = {binding.symbol.name[1:]: binding for binding in self.library.bindings
                    if binding.has_symbol and binding.address in places}
        self.assertEqual(set(replaced), FAMILY | TYPED)
        for name, binding in replaced.items():
            self.assertEqual((binding.address - section.virtual_address) % 16, 8, f"{name}: ours, theirs")
            self.assertEqual(binding.weak_import, name in TYPED, name)
        ours = {relocation.address for relocation in self.library.relocations if relocation.address in places}
        self.assertEqual(ours, set(places[::16]), "each has a function of ours")

    def test_exports_the_c_interface_and_nothing_else(self):
        rows = re.findall(r"SLUICE_SYMBOL\((\w+), interface\)", pathlib.Path(SYMBOLS).read_text(encoding="utf-8"))
        self.assertTrue(rows)
        exported = {symbol.name for symbol in self.library.exported_symbols}
        self.assertEqual(exported - OF_THE_FILE, {"_" + name for name in rows})

    def test_has_no_thread_local_variables(self):
        for name in ("__thread_vars", "__thread_data", "__thread_bss", "__thread_ptrs"):
            self.assertIsNone(self.section(name), "the loader makes them by malloc")
        self.assertNotIn("__tlv_bootstrap", {symbol.name for symbol in self.library.imported_symbols})

    def test_defines_nothing_that_the_loader_would_share_among_images(self):
        weak = [binding.symbol.name for binding in self.library.bindings
                if binding.binding_class == macho.DyldBindingInfo.CLASS.WEAK]
        self.assertEqual(weak, [])

    def test_starts_with_what_start_and_exit_need(self):
        self.assertEqual(self.section("__mod_init_func").size, 16, "start(), and the registration of finish()")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
