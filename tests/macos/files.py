"""The files of an emulated process, and its functions that open, read, write and ask about them. They are in memory:
nothing of this machine can be seen. Open it when the command of macOS looks at a file in a new way.

A process without files gets ENOENT for each name. What is written to standard output and error is in `written`.
"""
import stat as modes
import struct
from dataclasses import dataclass, field

from libsystem import FUNCTIONS, fail, function, signed

ENOENT, EBADF, EEXIST, EACCES, EISDIR = 2, 9, 17, 13, 21
O_ACCESS, O_WRONLY, O_CREAT, O_TRUNC, O_EXCL = 3, 1, 0x200, 0x400, 0x800
OWNER, GROUP = 501, 20
STDERR_COPY = 64
FIRST_DESCRIPTOR = 3


@dataclass
class File:
    content: bytearray = field(default_factory=bytearray)
    mode: int = modes.S_IFREG | 0o644
    owner: int = OWNER
    group: int = GROUP
    flags: int = 0


@dataclass
class Opened:
    file: File
    at: int = 0


class Files:
    def __init__(self, files=()):
        self.by_path = {"/": File(mode=modes.S_IFDIR | 0o755)}
        self.links = {}
        self.opened = {}
        self.terminal = File(mode=modes.S_IFCHR | 0o620)  # of what is not opened here
        for path, content in dict(files).items():
            self.add(path, content)

    def add(self, path, content, **settings):
        """A file, with the folders above it."""
        self.by_path[path] = File(bytearray(content), **settings)
        for at in range(1, len(path)):
            if path[at] == "/":
                self.by_path.setdefault(path[:at], File(mode=modes.S_IFDIR | 0o755))
        return self.by_path[path]

    def resolve(self, path):
        """From the root, without links, dots and double slashes."""
        parts = []
        for part in path.split("/"):
            if part == "..":
                parts[-1:] = []
            elif part not in ("", "."):
                parts.append(part)
                link = self.links.get("/" + "/".join(parts))
                if link:
                    parts = self.resolve(link).split("/")[1:]
        return "/" + "/".join(parts)

    def find(self, path):
        return self.by_path.get(self.resolve(path)) if path else None

    def open(self, file):
        number = next(n for n in range(FIRST_DESCRIPTOR, STDERR_COPY) if n not in self.opened)
        self.opened[number] = Opened(file)
        return number


def status_of(file):
    """struct stat."""
    size = len(file.content)
    return struct.pack("<iHHQIIi4x64xqqiII4x16x", 1, file.mode, 1, id(file) & 0xFFFFFFFF, file.owner, file.group, 0, size,
                       (size + 511) // 512, 4096, file.flags, 0)


def opened_at(machine, descriptor):
    return machine.files.opened.get(signed(descriptor))


@function
def open(machine, path, flags):  # pylint: disable=redefined-builtin
    files, name = machine.files, machine.read_text(path)
    file = files.find(name)
    if file is None:
        if not flags & O_CREAT or files.find(name.rpartition("/")[0] or "/") is None:
            return fail(machine, ENOENT)
        file = files.add(files.resolve(name), b"")
    elif flags & O_CREAT and flags & O_EXCL:
        return fail(machine, EEXIST)
    if modes.S_ISDIR(file.mode) and flags & O_ACCESS:
        return fail(machine, EISDIR)
    if not file.mode & (0o222 if flags & O_ACCESS else 0o444):
        return fail(machine, EACCES)
    if flags & O_TRUNC:
        del file.content[:]
    return files.open(file)


@function
def openat(machine, _folder, path, flags):
    assert machine.read_text(path).startswith("/"), "relative to a folder that is open"
    return open(machine, path, flags)


@function
def close(machine, descriptor):
    return 0 if machine.files.opened.pop(signed(descriptor), None) or descriptor == STDERR_COPY else fail(machine, EBADF)


def read_at(machine, opened, at, out, size):
    if modes.S_ISDIR(opened.file.mode):
        return fail(machine, EISDIR)
    part = bytes(opened.file.content[at:at + size])
    machine.uc.mem_write(out, part)
    return len(part)


@function
def pread(machine, descriptor, out, size, at):
    opened = opened_at(machine, descriptor)
    return read_at(machine, opened, at, out, size) if opened else fail(machine, EBADF)


@function
def read(machine, descriptor, out, size):
    opened = opened_at(machine, descriptor)
    if not opened:
        return fail(machine, EBADF)
    got = read_at(machine, opened, opened.at, out, size)
    opened.at += max(got, 0)
    return got


def write_bytes(machine, descriptor, data):
    opened = opened_at(machine, descriptor)
    if opened:
        opened.file.content[opened.at:opened.at + len(data)] = data
        opened.at += len(data)
    else:
        descriptor = 2 if descriptor == STDERR_COPY else descriptor
        machine.written[descriptor] = machine.written.get(descriptor, b"") + data
    return len(data)


@function
def write(machine, descriptor, data, size):
    return write_bytes(machine, descriptor, bytes(machine.uc.mem_read(data, size)))


@function
def fcntl(machine, descriptor, command):
    assert (descriptor, command) == (2, 67), "F_DUPFD_CLOEXEC of stderr is all there is"
    return STDERR_COPY


@function
def isatty(machine, _descriptor):
    return fail(machine, 25, 0)  # ENOTTY


# What is asked about files.

def tell(machine, file, out):
    if file is None:
        return fail(machine, ENOENT)
    machine.uc.mem_write(out, status_of(file))
    return 0


@function
def stat(machine, path, out):
    return tell(machine, machine.files.find(machine.read_text(path)), out)


FUNCTIONS["_lstat"] = stat  # the process is asked for no link


@function
def fstat(machine, descriptor, out):
    opened = opened_at(machine, descriptor)
    return tell(machine, opened.file if opened else machine.files.terminal, out)


@function
def fchmod(machine, descriptor, mode):
    file = opened_at(machine, descriptor).file
    file.mode = modes.S_IFMT(file.mode) | mode
    return 0


@function
def faccessat(machine, _folder, path, mode, _flags):
    file = machine.files.find(machine.read_text(path))
    if file is None:
        return fail(machine, ENOENT)
    return 0 if file.mode & (mode << 6) == mode << 6 else fail(machine, EACCES)


@function
def realpath(machine, path, out):
    resolved = machine.files.resolve(machine.read_text(path))
    if resolved not in machine.files.by_path:
        return fail(machine, ENOENT, 0)
    assert out, "memory of malloc is not given here"
    machine.uc.mem_write(out, resolved.encode() + b"\0")
    return out


@function
def rename(machine, before, after):
    files = machine.files
    file = files.by_path.pop(files.resolve(machine.read_text(before)), None)
    if file is None:
        return fail(machine, ENOENT)
    files.by_path[files.resolve(machine.read_text(after))] = file
    return 0


@function
def unlink(machine, path):
    found = machine.files.by_path.pop(machine.files.resolve(machine.read_text(path)), None)
    return 0 if found else fail(machine, ENOENT)
