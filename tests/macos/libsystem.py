"""Functions of libSystem that Python stands in for, by their names in the symbol table. Each takes the machine and the
arguments as numbers; those of files are in files.py. An import that is in neither nor in system.c fails the test: what a
port needs of the system is seen. Open it when the library asks the system for something new."""

from machine import FIRST_KEY, LAST_KEY, STACK_BYTES, Aborted, Wait
from memory import READ

FUNCTIONS = {}
MAP_FAILED = (1 << 64) - 1
MAP_FIXED, MAP_ANON, MAP_PRIVATE, MAP_SHARED, MAP_NORESERVE = 0x10, 0x1000, 0x2, 0x1, 0x40
EINVAL, ENOMEM, EAGAIN = 22, 12, 35
TAG = 240 << 24  # VM_MAKE_TAG(VM_MEMORY_APPLICATION_SPECIFIC_1)


def function(implementation):
    FUNCTIONS["_" + implementation.__name__] = implementation
    return implementation


def signed(value, bits=32):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def fail(machine, error, result=-1):
    machine.uc.mem_write(machine.current.errno, error.to_bytes(4, "little"))
    return result


# Memory.

@function
def mmap(machine, address, length, protection, flags, descriptor, _offset):
    if "mmap" in machine.failing:
        return fail(machine, ENOMEM)
    flags, descriptor = signed(flags), signed(descriptor)
    is_no_heap = flags in (MAP_PRIVATE | MAP_ANON, MAP_SHARED | MAP_ANON) and descriptor == -1
    assert is_no_heap or flags & ~MAP_FIXED == MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, f"flags {flags:#x}"
    assert descriptor in (TAG - (1 << 32) if TAG >> 31 else TAG, -1), f"tag {descriptor:#x}"
    length = (length + machine.page_size - 1) // machine.page_size * machine.page_size
    got = machine.memory.map(address, length, protection & 7, bool(flags & MAP_FIXED))
    return fail(machine, ENOMEM) if got is None else got


@function
def munmap(machine, address, length):
    length = (length + machine.page_size - 1) // machine.page_size * machine.page_size
    return 0 if machine.memory.unmap(address, length) else fail(machine, EINVAL)


@function
def mprotect(machine, address, length, protection):
    if "mprotect" in machine.failing:
        return fail(machine, ENOMEM)
    return 0 if machine.memory.protect(address, length, protection & 7) else fail(machine, ENOMEM)


@function
def mincore(machine, address, length, out):
    machine.memory.check(address, length)
    for i in range(length // machine.page_size):
        at = address + i * machine.page_size
        resident = machine.memory.is_mapped(at, at + machine.page_size)
        machine.uc.mem_write(out + i, b"\x01" if resident else b"\0")
    return 0


@function
def vm_region_64(machine, _task, address, size, _flavor, _info, _count, _name):
    found = machine.memory.region_at(machine.read_word(address))
    if found is None:
        return 1  # KERN_INVALID_ADDRESS
    machine.write_word(address, found[0])
    machine.write_word(size, found[1] - found[0])
    return 0


@function
def vm_read_overwrite(machine, _task, address, size, to, out_size):
    page = machine.page_size
    for at in range(address // page * page, address + size, page):
        region = machine.memory.region_at(at)
        if region is None or region[0] > at or not region[2] & READ:
            return 1
    machine.uc.mem_write(to, bytes(machine.uc.mem_read(address, size)))
    machine.write_word(out_size, size)
    return 0


# Images.

@function
def task_info(machine, _task, flavor, out, _count):
    assert flavor == 17, "TASK_DYLD_INFO"
    machine.write_word(out, machine.image_list)
    return 0


@function
def dlsym(machine, handle, name):
    """Finds what only newer systems have, where the process is to run on one. Earlier ones would not load what imports it."""
    assert signed(handle, 64) == -2  # RTLD_DEFAULT
    name = machine.read_text(name)
    assert name == "at_quick_exit", name
    return machine.stub(name, lambda _machine, _function: 0) if "at_quick_exit" in machine.newer_functions else 0


@function
def dladdr(machine, address, out):
    """The image, and no function."""
    image = machine.image_at(address)
    if image is None:
        return 0
    for i, word in enumerate((machine.text(image.path), image.start, 0, 0)):
        machine.write_word(out + 8 * i, word)
    return 1


@function
def getsegmentdata(machine, header, name, out):
    """Of an image that is there."""
    image = next(image for image in machine.images if image.start == header)
    segment = image.binary.get_segment(machine.read_text(name))
    machine.write_word(out, segment.virtual_size)
    return segment.virtual_address + image.slide


# Threads.

@function
def pthread_self(machine):
    return machine.current.address


@function
def pthread_get_stackaddr_np(machine, thread):
    thread = next(each for each in machine.threads if each.address == thread)
    return thread.stack + STACK_BYTES


@function
def pthread_get_stacksize_np(_machine, _thread):
    return STACK_BYTES


@function
def pthread_key_create(machine, out, destructor):
    for key in range(FIRST_KEY, LAST_KEY + 1):
        if key not in machine.keys:
            machine.keys[key] = destructor
            machine.write_word(out, key)
            return 0
    return EAGAIN


@function
def pthread_setspecific(machine, key, value):
    assert key in machine.keys
    machine.write_word(machine.current.slots + 8 * key, value)
    return 0


@function
def pthread_create(machine, out, _attributes, start, argument):
    if "pthread_create" in machine.failing:
        return EAGAIN
    thread = machine.new_thread()
    machine.write_word(out, thread.address)
    creator = machine.current
    machine.later.append((thread, start, argument))
    assert creator is machine.current
    return 0


@function
def pthread_join(machine, address, _out):
    thread = next(each for each in machine.threads if each.address == address)
    raise Wait(lambda: not thread.running)


@function
def pthread_setname_np(machine, name):
    machine.current.name = machine.read_text(name)
    return 0


@function
def pthread_getname_np(machine, _thread, out, _size):
    machine.uc.mem_write(out, b"\0")
    return 0


@function
def pthread_main_np(machine):
    return 1 if machine.current is machine.main else 0


@function
def pthread_threadid_np(machine, _thread, out):
    machine.write_word(out, 100 + machine.current.number)
    return 0


for _name in ("pthread_attr_init", "pthread_attr_destroy", "pthread_attr_setstacksize", "pthread_sigmask",
              "pthread_setcancelstate", "pthread_kill", "sigpending", "sigwait", "poll"):
    FUNCTIONS["_" + _name] = lambda machine: 0


@function
def sched_yield(machine):
    raise Wait(lambda: True)


@function
def __ulock_wait(machine, operation, address, value, microseconds):
    assert operation == 0x01000001, f"{operation:#x}"  # 32 bits, no errno
    seen = int.from_bytes(machine.uc.mem_read(address, 4), "little")
    if seen != value & 0xFFFFFFFF:
        return 0
    ticket = machine.wakes.get(address, 0)
    raise Wait(lambda: machine.wakes.get(address, 0) != ticket,
               machine.now + microseconds * 1000 if microseconds else None)


@function
def __ulock_wake(machine, operation, address, _value):
    assert operation == 0x01000001, f"{operation:#x}"
    machine.wakes[address] = machine.wakes.get(address, 0) + 1
    return 0


@function
def nanosleep(machine, _duration, _left):
    raise Wait(lambda: False, machine.now + 1_000_000)


@function
def sigaction(machine, signal, action, _before):
    if action:
        machine.handlers[signal] = machine.read_word(action)
    return 0


# Time, chance, the process.

@function
def clock_gettime_nsec_np(machine, _clock):
    machine.now += 1000
    return machine.now


@function
def mach_absolute_time(machine):
    machine.now += 1000
    return machine.now


@function
def getentropy(machine, out, size):
    machine.uc.mem_write(out, machine.random.randbytes(size))
    return 0


@function
def getpid(machine):
    return machine.pid


@function
def geteuid(machine):
    return 501


@function
def issetugid(machine):
    return 1 if machine.privileged else 0


@function
def getrlimit(machine, _what, out):
    machine.write_word(out, (1 << 63) - 1)
    machine.write_word(out + 8, (1 << 63) - 1)
    return 0


def _NSGetEnviron(machine):
    return machine.environment


FUNCTIONS["__NSGetEnviron"] = _NSGetEnviron


def _NSGetExecutablePath(machine, out, size):
    machine.uc.mem_write(out, machine.executable.encode() + b"\0")
    return 0


FUNCTIONS["__NSGetExecutablePath"] = _NSGetExecutablePath


@function
def getprogname(machine):
    return machine.text(machine.executable.rpartition("/")[2])


def __error(machine):
    return machine.current.errno


FUNCTIONS["___error"] = __error


def __cxa_atexit(machine, destructor, argument, _image):
    machine.at_exit.append((destructor, argument))
    return 0


FUNCTIONS["___cxa_atexit"] = __cxa_atexit


@function
def abort(machine):
    raise Aborted("abort() at " + machine.describe())


def _exit(machine, status):
    raise AssertionError(f"_exit({status})")


FUNCTIONS["__exit"] = _exit


# Text. Python is quick enough for the few calls there are.

@function
def strlen(machine, text):
    return len(machine.read_text(text).encode())


@function
def strnlen(machine, text, most):
    return min(len(machine.read_text(text).encode()), most)


@function
def strcmp(machine, a, b):
    a, b = machine.read_text(a), machine.read_text(b)
    return (a > b) - (a < b)


@function
def strncmp(machine, a, b, most):
    a, b = machine.read_text(a)[:most], machine.read_text(b)[:most]
    return (a > b) - (a < b)


@function
def strchr(machine, text, character):
    found = (machine.read_text(text).encode() + b"\0").find(bytes([character & 255]))
    return 0 if found < 0 else text + found


@function
def strrchr(machine, text, character):
    found = machine.read_text(text).encode().rfind(bytes([character & 255]))
    return 0 if found < 0 else text + found


@function
def memchr(machine, text, character, size):
    found = bytes(machine.uc.mem_read(text, size)).find(bytes([character & 255]))
    return 0 if found < 0 else text + found


@function
def dyld_stub_binder(machine):
    raise AssertionError("a function was to be bound at its first call")


FUNCTIONS["dyld_stub_binder"] = dyld_stub_binder


def never(machine):
    raise AssertionError("a function was called that only the compiler's own library refers to")


# Of programs: zig adds its library of helpers, which nothing here calls.
for _name in ("pthread_key_delete", "pthread_once", "fprintf", "_tlv_bootstrap"):
    FUNCTIONS["_" + _name] = never
DATA = {"_mach_task_self_": 0x103, "___stderrp": 0}
