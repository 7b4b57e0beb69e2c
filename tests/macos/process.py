"""A process of macOS with libsluice.dylib in it, or with a program that has libsluice.a: loads the images, binds and
interposes as dyld does, and calls what is interposed, or defined by the program, by the names that programs use."""
import pathlib
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from image import Image  # noqa: E402
from libsystem import DATA, FUNCTIONS  # noqa: E402
from machine import Machine  # noqa: E402
from memory import READ, WRITE  # noqa: E402

SYSTEM_AT, LIBRARY_AT, PROGRAM_AT = 0x180000000, 0x104000000, 0x100000000
SCRATCH_BYTES = 1 << 20


class Process(Machine):
    def __init__(self, processor, library, system, environment=(), start=True):
        super().__init__(processor)
        self.wakes, self.at_exit, self.written, self.later, self.handlers = {}, [], {}, [], {}
        self.pid, self.privileged = 4711, False
        self.scratch = self.memory.map(0, SCRATCH_BYTES, READ | WRITE)
        self.scratch_used = SCRATCH_BYTES // 2  # the lower half is the tests'
        self.environment = self.array([self.text(entry) for entry in environment] + [0])
        self.environment = self.array([self.environment])
        self.data = {name: self.array([value]) for name, value in DATA.items()}
        self.system = Image(self, system, SYSTEM_AT)
        self.library = Image(self, library, LIBRARY_AT)
        self.is_static = self.library.is_program
        self.images = [self.system, self.library]
        self.system.bind(self.find)
        self.library.bind(self.find)
        self.interposed = self.library.own_symbols() if self.is_static else self.library.interposed()
        if start:
            self.start()

    def start(self):
        """What dyld does when all is bound."""
        for initialiser in self.library.initialisers():
            self.call(initialiser)

    def find(self, name, weak):
        name = name.split("$")[0]  # x86-64 has variants: _fstat$INODE64
        if name in self.system.exports:
            return self.system.exports[name]
        if name in self.data:
            return self.data[name]
        if name in FUNCTIONS:
            return self.stub(name, FUNCTIONS[name])
        if weak:
            return 0
        raise AssertionError(f"the library needs {name}, which nobody offers")

    def run_program(self, path):
        """Loads a program, whose calls the loader interposes, and calls its main(). Returns what that returns."""
        program = Image(self, path, PROGRAM_AT)
        self.images.append(program)
        program.bind(lambda name, weak: self.interposed.get(name) or self.library.exports.get(name) or self.find(name, weak))
        main = program.binary.main_command.entrypoint + PROGRAM_AT
        return self.call(main, 1, self.array([self.text(str(path)), 0])) & 0xFFFFFFFF

    def run_own_main(self):
        return self.call(self.library.exports["_main"]) & 0xFFFFFFFF

    def step(self, thread):
        super().step(thread)
        self.start_threads()

    def start_threads(self):
        while self.later:
            thread, start, argument = self.later.pop()
            current = self.current
            self.begin(thread, start, argument)
            self.enter(current)

    # Memory of the tests.

    def array(self, words):
        self.scratch_used = (self.scratch_used + 15) // 16 * 16
        at = self.scratch + self.scratch_used
        self.uc.mem_write(at, struct.pack(f"<{len(words)}Q", *words))
        self.scratch_used += 8 * len(words)
        return at

    def text(self, text):
        at = self.scratch + self.scratch_used
        self.uc.mem_write(at, text.encode() + b"\0")
        self.scratch_used += len(text.encode()) + 1
        return at

    # Calls by name: what the program calls, and what a library calls that the loader does not reach.

    def __getattr__(self, name):
        if name.startswith("_") or "interposed" not in self.__dict__:
            raise AttributeError(name)
        address = self.interposed.get("_" + name) or self.library.exports.get("_" + name) or \
            self.system.exports.get("_" + name)
        if address is None:
            raise AttributeError(name)

        def call(*arguments, thread=None):
            return self.call(address, *arguments, thread=thread)

        self.__dict__[name] = call
        return call

    def unreached(self, name, *arguments, thread=None):
        """Calls libSystem's function itself."""
        return self.call(self.system.exports["_" + name], *arguments, thread=thread)

    def errno(self, thread=None):
        return struct.unpack("<i", self.uc.mem_read((thread or self.main).errno, 4))[0]

    def set_errno(self, value, thread=None):
        self.uc.mem_write((thread or self.main).errno, struct.pack("<i", value))

    def system_word(self, name):
        return self.read_word(self.system.exports["_" + name])

    def exit(self):
        for destructor, argument in reversed(self.at_exit):
            self.call(destructor, argument)
