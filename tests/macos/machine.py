"""A machine with one process of macOS in it: memory, a processor, threads, and functions of libSystem that Python
stands in for. Open it when a thread does not wake up, or when code ends at an address that is nobody's.

A thread runs until it returns, waits (__ulock_wait, sched_yield, nanosleep, pthread_join), or has used up its turn. Time
is a number that goes on with each call of a clock and to the next deadline when all threads wait: a run is the same
each time.
"""
import random
import struct

from unicorn import UC_HOOK_CODE, UcError

from memory import END, EXEC, READ, WRITE, Memory
from processor import PROCESSORS

STUBS = 0x7FF800000000  # a return instruction for each function that Python stands in for
STUB_BYTES = 16
STUB_AREA = 1 << 16
THREAD_BYTES = 1 << 16  # of a pthread with its slots
SLOTS = 768
FIRST_KEY, LAST_KEY = 256, 767
STACK_BYTES = 512 << 10
MOST_STEPS = 200_000  # of threads in turn until a call returns


class Wait(Exception):
    """Raised by a function of libSystem whose thread must wait. `again`: asked until it says yes, or `until` has come."""

    def __init__(self, again, until=None, result=0):
        super().__init__()
        self.again, self.until, self.result = again, until, result


class Aborted(AssertionError):
    """The process has ended itself by abort()."""


class Fault(AssertionError):
    """The process has touched memory that it may not, or run what is no code."""


class Thread:
    def __init__(self, machine, number):
        memory = machine.memory
        self.number = number
        self.address = memory.map(0, THREAD_BYTES, READ | WRITE)
        self.slots = self.address + 256
        self.stack = memory.map(0, STACK_BYTES, READ | WRITE)
        self.stack_top = self.stack + STACK_BYTES - 256
        self.errno = self.address + 16
        self.context = None
        self.wait = None
        self.running = False
        self.result = 0
        self.ended = False
        self.name = ""
        machine.write_word(self.slots, self.address)


class Machine:
    def __init__(self, processor, page_size=None):
        self.processor = PROCESSORS[processor]
        self.page_size = page_size or self.processor.page_size
        self.uc = self.processor.make()
        self.memory = Memory(self.uc, self.page_size)
        self.functions = []  # of libSystem, by number of their stub
        self.stub_of = {}
        self.images = []
        self.now = 1_000_000_000_000  # nanoseconds
        self.calls = {}  # how often each function was called
        self.failing = set()  # functions that fail now
        self.newer_functions = set()  # of systems after macOS 12, which it has
        self.pending = None
        self.turn = 0  # instructions of a turn; 0: no end
        self.random = random.Random(1)
        self.memory.add(STUBS, STUB_AREA, READ | EXEC)
        self.uc.mem_write(STUBS, self.processor.return_instruction.ljust(STUB_BYTES, b"\0") * (STUB_AREA // STUB_BYTES))
        self.stop = STUBS + STUB_AREA - STUB_BYTES
        self.uc.hook_add(UC_HOOK_CODE, self.on_stub, begin=STUBS, end=self.stop - 1)
        self.keys = {}  # key -> destructor
        self.threads = []
        self.current = None
        self.main = self.new_thread()
        self.enter(self.main)

    # Words and text of the process.

    def read_word(self, address):
        return struct.unpack("<Q", self.uc.mem_read(address, 8))[0]

    def write_word(self, address, value):
        self.uc.mem_write(address, struct.pack("<Q", value & (1 << 64) - 1))

    def read_text(self, address):
        text = b""
        while b"\0" not in text:
            text += bytes(self.uc.mem_read(address + len(text), 16))
        return text.split(b"\0")[0].decode()

    # Functions that Python stands in for.

    def stub(self, name, function):
        """The address at which the process finds a function; arguments come as numbers."""
        if name not in self.stub_of:
            self.stub_of[name] = STUBS + STUB_BYTES * len(self.functions)
            self.functions.append((name, function, function.__code__.co_argcount - 1))
        return self.stub_of[name]

    def on_stub(self, _uc, address, _size, _data):
        name, function, count = self.functions[(address - STUBS) // STUB_BYTES]
        self.calls[name] = self.calls.get(name, 0) + 1
        arguments = [self.uc.reg_read(register) for register in self.processor.argument_registers[:count]]
        try:
            result = function(self, *arguments)
            self.uc.reg_write(self.processor.result_register, (result or 0) & (1 << 64) - 1)
        except Wait as wait:
            self.current.wait = wait
            self.uc.emu_stop()
        except Exception as error:  # would be lost in the emulator
            self.pending = error
            self.uc.emu_stop()

    # Threads.

    def new_thread(self):
        thread = Thread(self, len(self.threads))
        self.threads.append(thread)
        return thread

    def enter(self, thread):
        """The processor goes on with a thread."""
        if self.current is thread:
            return
        if self.current is not None:
            self.current.context = self.uc.context_save()
        self.current = thread
        if thread.context is not None:
            self.uc.context_restore(thread.context)
        self.processor.set_thread(self.uc, thread.slots)

    def begin(self, thread, function, *arguments):
        """A thread is to call a function; run() lets it."""
        assert not thread.running, "a call within a call"
        self.enter(thread)
        for register, argument in zip(self.processor.argument_registers, arguments):
            self.uc.reg_write(register, argument & (1 << 64) - 1)
        self.uc.reg_write(self.processor.frame_register, 0)
        self.processor.push_call(self, thread.stack_top, self.stop)
        self.uc.reg_write(self.processor.instruction_register, function)
        thread.running = True

    def step(self, thread):
        """Lets a thread run until it returns, waits, or its turn ends."""
        self.enter(thread)
        if thread.wait is not None:
            if not self.may_go_on(thread.wait):
                return
            self.uc.reg_write(self.processor.result_register, thread.wait.result & (1 << 64) - 1)
            thread.wait = None
            self.processor.leave_function(self)
        instruction = self.uc.reg_read(self.processor.instruction_register)
        turn = self.random.randint(1, self.turn) if self.turn else 0
        if instruction != self.stop:
            try:
                self.uc.emu_start(instruction, self.stop, count=turn)
            except UcError as error:
                raise Fault(f"{error} at {self.describe()}") from error
        if self.pending is not None:
            error, self.pending = self.pending, None
            raise error
        if thread.wait is None and self.uc.reg_read(self.processor.instruction_register) == self.stop:
            thread.running = False
            thread.result = self.uc.reg_read(self.processor.result_register)

    def may_go_on(self, wait):
        return wait.again() or (wait.until is not None and self.now >= wait.until)

    def run(self, awaited):
        """Lets all threads run, in turn, until those of `awaited` have returned."""
        steps = 0
        while any(thread.running for thread in awaited):
            steps += 1
            if steps > MOST_STEPS:
                raise AssertionError(f"it does not end: {self.describe()}")
            runnable = [thread for thread in self.threads
                        if thread.running and (thread.wait is None or self.may_go_on(thread.wait))]
            if not runnable:
                deadlines = [thread.wait.until for thread in self.threads
                             if thread.running and thread.wait.until is not None]
                if not deadlines:
                    raise AssertionError("every thread waits for ever")
                self.now = max(self.now, min(deadlines))
                continue
            self.step(runnable[0] if len(runnable) == 1 else self.random.choice(runnable))

    def call(self, function, *arguments, thread=None):
        """Calls a function of the process and returns its result."""
        thread = thread or self.main
        self.begin(thread, function, *arguments)
        if self.turn == 0:  # most calls neither wait nor are interrupted
            self.step(thread)
        if thread.running:
            self.run([thread])
        return thread.result

    def end_thread(self, thread):
        """Does what libpthread does at the end of a thread: calls the destructors of its slots, in four rounds."""
        for _ in range(4):
            for key in range(FIRST_KEY, LAST_KEY + 1):
                value = self.read_word(thread.slots + 8 * key)
                if key not in self.keys or value == 0:
                    continue
                self.write_word(thread.slots + 8 * key, 0)
                if self.keys[key] != 0:
                    self.call(self.keys[key], value, thread=thread)
        thread.ended = True

    def describe(self):
        """Where the processor is, for messages."""
        instruction = self.uc.reg_read(self.processor.instruction_register)
        image = self.image_at(instruction)
        return f"{instruction:#x} ({image.name_of(instruction)})" if image else f"{instruction:#x}"

    def caller(self):
        """Who has called the function that Python stands in for."""
        address = self.processor.return_address(self)
        image = self.image_at(address)
        return image.name_of(address) if image else f"{address:#x}"

    def image_at(self, address):
        return next((image for image in self.images if image.start <= address < image.end), None)


assert STUBS + STUB_AREA < END
