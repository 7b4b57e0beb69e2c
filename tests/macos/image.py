"""Loads an image (a dylib or a program) into a machine, as dyld does: maps the segments, slides what is absolute, binds what is
imported, and tells of the table of functions that are to be interposed."""
import functools
import struct

import lief
import lief.MachO as macho

from memory import EXEC, READ, WRITE


@functools.lru_cache(maxsize=None)
def parsed(path):
    return macho.parse(path).at(0)


class Image:
    def __init__(self, machine, path, base):
        self.machine = machine
        self.path = str(path)
        self.binary = parsed(self.path)
        self.start = base
        self.slide = base - self.binary.imagebase
        self.exports = {symbol.name: symbol.value + self.slide for symbol in self.binary.exported_symbols}
        self.symbols = sorted((symbol.value + self.slide, symbol.name) for symbol in self.binary.symbols
                              if symbol.value and symbol.name)
        self.is_program = self.binary.header.file_type == macho.Header.FILE_TYPE.EXECUTE
        self.bound = {}  # name -> address
        self.map_segments()
        self.slide_pointers()

    def map_segments(self):
        page = self.machine.page_size
        for segment in self.binary.segments:
            if segment.name in ("__LINKEDIT", "__PAGEZERO") or segment.virtual_size == 0:
                continue
            size = (segment.virtual_size + page - 1) // page * page
            start = segment.virtual_address + self.slide
            self.machine.memory.add(start, size, READ | WRITE)
            self.machine.uc.mem_write(start, bytes(segment.content))
            if segment.name == "__TEXT":
                self.machine.memory.protect(start, size, READ | EXEC)

    @property
    def end(self):
        return self.slide + max(segment.virtual_address + segment.virtual_size for segment in self.binary.segments)

    def slide_pointers(self):
        for relocation in self.binary.relocations:
            place = relocation.address + self.slide
            value = self.machine.read_word(place)
            self.machine.write_word(place, value + self.slide)

    def bind(self, find):
        """Calls find(name, weak) for each import, which returns an address, or 0 for a weak one that is not there."""
        for binding in self.binary.bindings:
            # What is defined weakly in several images is that of the first one; here there is one, and it is bound to itself.
            shared = getattr(binding, "binding_class", None) == macho.DyldBindingInfo.CLASS.WEAK
            if not binding.has_symbol or shared:
                continue
            name = binding.symbol.name
            if name not in self.bound:
                self.bound[name] = find(name, binding.weak_import)
            value = self.bound[name] + binding.addend if self.bound[name] else 0
            self.machine.write_word(binding.address + self.slide, value)

    def bind_thread_variables(self, getter):
        """The first word of each descriptor is the function that finds the variable."""
        at, size = self.section("__thread_vars")
        for descriptor in range(at, at + size, 24):
            self.machine.write_word(descriptor, getter)

    def section(self, name):
        """(address, bytes) of a section; (0, 0) where there is none."""
        for section in self.binary.sections:
            if section.name == name:
                return section.virtual_address + self.slide, section.size
        return 0, 0

    def interposed(self):
        """The table of interposed functions, as {name: address of ours}."""
        at, size = self.section("__interpose")
        names = {address: name for name, address in self.bound.items()}
        words = struct.unpack(f"<{size // 8}Q", self.machine.uc.mem_read(at, size))
        return {names[theirs]: ours for ours, theirs in zip(words[::2], words[1::2]) if theirs}

    def own_symbols(self):
        """What the image defines for others to use, as {name: address}."""
        places = range(self.slide + self.binary.imagebase, self.slide + self.binary.imagebase + (16 << 20))
        return {symbol.name: symbol.value + self.slide for symbol in self.binary.exported_symbols
                if symbol.value + self.slide in places and symbol.name.startswith("_")}

    def initialisers(self):
        at, size = self.section("__mod_init_func")
        return list(struct.unpack(f"<{size // 8}Q", self.machine.uc.mem_read(at, size)))

    def name_of(self, address):
        best = "?"
        for value, name in self.symbols:
            if value > address:
                break
            best = f"{name}+{address - value:#x}"
        return best
