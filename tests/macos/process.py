"""A process of macOS with libsluice.dylib in it, or with a program that has libsluice.a: loads the images, binds and
interposes as dyld does, and calls what is interposed, or defined by the program, by the names that programs use."""
import pathlib
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import libc  # noqa: E402
import libsystem  # noqa: E402
from files import Files  # noqa: E402
from image import Image  # noqa: E402
from machine import Machine  # noqa: E402
from memory import READ, WRITE  # noqa: E402

SYSTEM_AT, LIBRARY_AT, PROGRAM_AT = 0x180000000, 0x104000000, 0x100000000
HELPERS_AT, HELPER_BYTES = 0x110000000, 0x1000000
SCRATCH_BYTES = 1 << 20


class Process(Machine):
    def __init__(self, processor, library, system, environment=(), start=True, files=()):
        super().__init__(processor)
        self.wakes, self.at_exit, self.written, self.later, self.handlers = {}, [], {}, [], {}
        self.pid, self.privileged, self.is_on_arm = 4711, False, processor == "aarch64"
        self.files, self.streams, self.thread_variables = Files(files), {}, {}
        self.executable = "/usr/local/bin/emulated"
        self.scratch = self.memory.map(0, SCRATCH_BYTES, READ | WRITE)
        self.scratch_used = SCRATCH_BYTES // 2  # the lower half is the tests'
        self.environment = self.array([self.text(entry) for entry in environment] + [0])
        self.environment = self.array([self.environment])
        self.data = {}
        self.image_list = self.bytes(bytes(512))
        self.system = Image(self, system, SYSTEM_AT)
        self.library = Image(self, library, LIBRARY_AT)
        self.is_static = self.library.is_program
        self.images = [self.system, self.library]
        self.system.bind(self.find)
        self.library.bind(self.find)
        self.list_images()
        self.interposed = self.library.own_symbols() if self.is_static else self.library.interposed()
        if start:
            self.start()

    def list_images(self):
        """As dyld tells debuggers of them, the program first: dyld_all_image_infos."""
        images = sorted(self.images, key=lambda image: not image.is_program)
        entries = self.array([word for image in images for word in (image.start, self.text(image.path), 0)])
        self.write_word(self.image_list, 17 | len(self.images) << 32)
        self.write_word(self.image_list + 8, entries)

    def start(self):
        """What dyld does when all is bound."""
        for initialiser in self.library.initialisers():
            self.call(initialiser)

    def find(self, name, weak):
        found = self.find_in(name, libsystem)
        if found is None and not weak:
            raise AssertionError(f"the library needs {name}, which nobody offers")
        return found or 0

    def find_in(self, name, module):
        """What libSystem has by a name; of the functions of Python, those of a module."""
        name = name.split("$")[0]  # x86-64 has variants: _fstat$INODE64
        if name in self.system.exports:
            return self.system.exports[name]
        if name in module.FUNCTIONS:
            return self.stub(name, module.FUNCTIONS[name])
        if name not in self.data and name in module.DATA:
            value = module.DATA[name]
            self.data[name] = self.bytes(value) if isinstance(value, bytes) else self.array([value])
        return self.data.get(name)

    def find_for_program(self, name, weak):
        """A function that nobody offers may be imported, but not called."""
        found = self.interposed.get(name) or self.library.exports.get(name) or \
            next((helper.exports[name] for helper in self.helpers if name in helper.exports), None) or \
            self.find_in(name, libc) or self.find_in(name, libsystem)
        return found or (0 if weak else self.stub(name, libc.missing(name)))

    def run_program(self, path, *arguments, helpers=()):
        """Loads a program, whose calls the loader interposes, and calls its main(). Returns what that returns. `helpers`:
        libraries that the program needs."""
        program = Image(self, path, PROGRAM_AT)
        self.helpers = [Image(self, helper, HELPERS_AT + HELPER_BYTES * i) for i, helper in enumerate(helpers)]
        self.images += [program, *self.helpers]
        self.list_images()
        for image in (*self.helpers, program):
            image.bind(self.find_for_program)
            image.bind_thread_variables(self.stub("variable_of_thread", libc.variable_of_thread))
        for initialiser in program.initialisers():
            self.call(initialiser)
        texts = self.array([self.text(text) for text in (self.executable, *arguments)] + [0])
        main = program.binary.main_command.entrypoint + PROGRAM_AT
        return self.call(main, 1 + len(arguments), texts, self.read_word(self.environment)) & 0xFFFFFFFF

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

    def bytes(self, data):
        at = self.scratch + self.scratch_used
        self.uc.mem_write(at, data)
        self.scratch_used += len(data)
        return at

    def text(self, text):
        return self.bytes(text.encode() + b"\0")

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
        while self.at_exit:
            self.call(*self.at_exit.pop())
        libc.flush_all(self)
