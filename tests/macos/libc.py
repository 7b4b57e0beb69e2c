"""What a program in C++ asks of libSystem beside what the library does: streams, the environment, text, the exec of another
program. As in libsystem.py, each function takes the machine and the arguments as numbers; files.py has what is a file's.
Open it when the command of macOS calls something new: the test that fails names it.
"""
import re
import struct
from dataclasses import dataclass

from files import GROUP, OWNER, write_bytes
from files import close as close_descriptor
from files import open as open_file
from files import read as read_descriptor
from libsystem import fail

FUNCTIONS = {}
STDIN, STDOUT, STDERR = 0xF000, 0xF100, 0xF200
DATA = {"___stdinp": STDIN, "___stdoutp": STDOUT, "___stderrp": STDERR}
ENOENT, ENOSPC, ERANGE = 2, 28, 34
MESSAGES = {1: "Operation not permitted", 2: "No such file or directory", 8: "Exec format error", 9: "Bad file descriptor",
            13: "Permission denied", 20: "Not a directory", 21: "Is a directory", 28: "No space left on device",
            88: "Malformed Mach-o file"}
O_RDONLY = 0


def function(implementation):
    FUNCTIONS["_" + implementation.__name__] = implementation
    return implementation


class Executed(Exception):
    """The process has become another program."""

    def __init__(self, path, arguments, environment):
        super().__init__(path)
        self.path, self.arguments, self.environment = path, arguments, environment


# Streams. Standard output is a file: it is written when it is flushed.

@dataclass
class Stream:
    descriptor: int
    waiting: bytes = b""
    failed: bool = False


def stream_at(machine, stream):
    if not machine.streams:
        machine.streams = {STDIN: Stream(0), STDOUT: Stream(1), STDERR: Stream(2)}
    return machine.streams[stream]


def flush(machine, stream):
    if stream.waiting and "write" in machine.failing:
        stream.failed = True
        return fail(machine, ENOSPC)
    write_bytes(machine, stream.descriptor, stream.waiting)
    stream.waiting = b""
    return 0


@function
def fopen(machine, path, mode):
    assert machine.read_text(mode) == "rbe"
    descriptor = open_file(machine, path, O_RDONLY)
    if descriptor < 0:
        return 0
    address = machine.array([0])
    stream_at(machine, STDOUT)
    machine.streams[address] = Stream(descriptor)
    return address


def flush_all(machine):
    """As exit() does."""
    for stream in machine.streams.values():
        flush(machine, stream)


@function
def fclose(machine, stream):
    close_descriptor(machine, machine.streams.pop(stream).descriptor)
    return 0


@function
def fread(machine, out, size, count, stream):
    assert size == 1
    stream = stream_at(machine, stream)
    got = read_descriptor(machine, stream.descriptor, out, count)
    stream.failed = stream.failed or got < 0
    return max(got, 0)


@function
def fwrite(machine, data, size, count, stream):
    stream = stream_at(machine, stream)
    stream.waiting += bytes(machine.uc.mem_read(data, size * count))
    return 0 if stream.descriptor == 2 and flush(machine, stream) else count


@function
def fputc(machine, character, stream):
    stream_at(machine, stream).waiting += bytes([character & 255])
    return character & 255


@function
def fflush(machine, stream):
    return flush(machine, stream_at(machine, stream))


@function
def ferror(machine, stream):
    return int(stream_at(machine, stream).failed)


# The environment: texts that nobody frees.

def entries(machine):
    """The addresses of the entries, and where each is."""
    at = machine.read_word(machine.environment)
    while machine.read_word(at):
        yield at, machine.read_word(at)
        at += 8


@function
def getenv(machine, name):
    name = machine.read_text(name) + "="
    for _, entry in entries(machine):
        if machine.read_text(entry).startswith(name):
            return entry + len(name)
    return 0


@function
def setenv(machine, name, value, _overwrite):
    before = [entry for _, entry in entries(machine)]
    name = machine.read_text(name) + "="
    new = machine.text(name + machine.read_text(value))
    kept = [entry for entry in before if not machine.read_text(entry).startswith(name)]
    machine.write_word(machine.environment, machine.array([*kept, new, 0]))
    return 0


def texts(machine, at):
    while machine.read_word(at):
        yield machine.read_text(machine.read_word(at))
        at += 8


@function
def execvp(machine, path, arguments):
    path = machine.read_text(path)
    if machine.files.find(path) is None:
        return fail(machine, ENOENT)
    if "execvp" in machine.failing:
        return fail(machine, 88)  # EBADMACHO
    environment = dict(entry.split("=", 1) for entry in texts(machine, machine.read_word(machine.environment)))
    raise Executed(path, list(texts(machine, arguments)), environment)


@function
def getuid(machine):
    return OWNER


@function
def getgid(machine):
    return GROUP


@function
def sysconf(machine, name):
    assert name == 29, "_SC_PAGESIZE"
    return machine.page_size


@function
def sysctlbyname(machine, name, out, _size, _new, _new_size):
    assert machine.read_text(name) == "hw.optional.arm64"
    if not machine.is_on_arm:
        return fail(machine, ENOENT)
    machine.uc.mem_write(out, b"\1\0\0\0")
    return 0


# Text.

@function
def strerror(machine, error):
    return machine.text(MESSAGES[error & 0xFFFFFFFF])


@function
def strerror_r(machine, error, out, size):
    machine.uc.mem_write(out, MESSAGES[error & 0xFFFFFFFF].encode()[:size - 1] + b"\0")
    return 0


@function
def strtoull(machine, text, end, base):
    assert base == 10
    digits = re.match(r"\d*", machine.read_text(text))[0]
    if end:
        machine.write_word(end, text + len(digits))
    value = int(digits or 0)
    return value if value < 1 << 64 else fail(machine, ERANGE)


@function
def strtoll(machine, text, end, base):
    assert base == 10
    digits = re.match(r"-?\d*", machine.read_text(text))[0]
    machine.write_word(end, text + len(digits))
    return int(digits)


@function
def snprintf(machine, out, size, form):
    """Numbers alone."""
    form = machine.read_text(form)
    count = len(re.findall("%", form))
    assert count == len(re.findall(r"%[.0-9]*[dXx]", form)), form
    numbers = tuple(word & 0xFFFFFFFF for word in machine.processor.further_arguments(machine, 3, count))
    text = (form % numbers).encode()
    machine.uc.mem_write(out, text[:size - 1] + b"\0")
    return len(text)


@function
def localeconv(machine):
    nothing = machine.text("")
    return machine.array([machine.text("."), *[nothing] * 9, 0])


@function
def wcslen(machine, text):
    length = 0
    while bytes(machine.uc.mem_read(text + 4 * length, 4)) != bytes(4):
        length += 1
    return length


def kind_of(code):
    """The bits of a character in <_ctype.h>."""
    c, bits = chr(code), 0
    for bit, holds in ((0x100, c.isalpha()), (0x200, code < 32 or code == 127), (0x400, c.isdigit()), (0x800, 32 < code < 127),
                       (0x1000, c.islower()), (0x2000, 32 < code < 127 and not c.isalnum()), (0x4000, c in "\t\n\v\f\r "),
                       (0x8000, c.isupper()), (0x10000, c in "0123456789abcdefABCDEF"), (0x20000, c in "\t "),
                       (0x40000, 32 <= code < 127)):
        bits |= bit if holds and code < 128 else 0
    return bits


@function
def __maskrune(machine, character, mask):
    return kind_of(character) & mask if character < 128 else 0


@function
def __tolower(machine, character):
    return ord(chr(character).lower()) if character < 128 else character


@function
def __toupper(machine, character):
    return ord(chr(character).upper()) if character < 128 else character


DATA["__DefaultRuneLocale"] = bytes(60) + struct.pack("<256I", *map(kind_of, range(256))) + bytes(4096)


# Threads and exceptions.

@function
def pthread_mach_thread_np(machine, _thread):
    return 100 + machine.current.number


for _name in ("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_broadcast", "pthread_rwlock_rdlock",
              "pthread_rwlock_wrlock", "pthread_rwlock_unlock", "_dyld_register_func_for_remove_image", "setbuf"):
    FUNCTIONS["_" + _name] = lambda machine: 0


@function
def dlopen(machine, _path, mode):
    assert mode == 0x10, "RTLD_NOLOAD: libc++ asks for another C++ library"
    return 0


def _dyld_find_unwind_sections(machine, address, out):
    image = machine.image_at(address)
    if image is None:
        return 0
    machine.uc.mem_write(out, struct.pack("<5Q", image.start, *image.section("__eh_frame"), *image.section("__unwind_info")))
    return 1


FUNCTIONS["__dyld_find_unwind_sections"] = _dyld_find_unwind_sections


def variable_of_thread(machine, descriptor):
    """Takes the place of tlv_get_addr: the variable of the calling thread."""
    image, offset = machine.image_at(descriptor), machine.read_word(descriptor + 16)
    key = (machine.current.number, image.path)
    if key not in machine.thread_variables:
        machine.thread_variables[key] = machine.array([0] * 64)
    assert offset < 512
    return machine.thread_variables[key] + offset


def missing(name):
    """Of what is imported and, as it turns out, called."""
    def call(machine):
        raise AssertionError(f"{name} was called, which nobody stands in for, by {machine.caller()}")
    return call
