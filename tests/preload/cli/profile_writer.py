"""Writes heap profiles in pprof's format as the library does, for tests of `sluice profile`. Open it to make one that has
something else in it.

    profile_writer.py FILE: writes that of `demo` below, compressed where the name ends in .gz

As a module: Profile().sample(...).bytes().
"""
import gzip
import sys

TYPES = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"),
         ("peak_objects", "count"), ("peak_space", "bytes"), ("freed_elsewhere_objects", "count"),
         ("short_lived_objects", "count"), ("lifetime_total", "milliseconds")]


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value) if value else b""


def element(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, values):
    return element(field, b"".join(map(varint, values))) if values else b""


class Profile:
    """What a process has written. Addresses are given with the mapping that they are in; functions may be given by name
    instead, as in profiles that are symbolised."""

    def __init__(self, types=None, rate=512 << 10, comments=(), duration_ms=2500):
        self.texts = {b"": 0}
        self.parts = []
        self.locations = {}
        self.functions = {}
        self.mappings = 0
        self.types = TYPES if types is None else types
        for name, unit in self.types:
            self.parts.append(element(1, self.value_type(name, unit)))
        self.parts.append(element(11, self.value_type("space", "bytes")) + number(12, rate))
        self.parts.append(number(9, 1_764_000_000 * 10**9) + number(10, duration_ms * 10**6))
        self.parts.append(packed(13, [self.text(each) for each in comments]))

    def text(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        return self.texts.setdefault(data, len(self.texts))

    def value_type(self, name, unit):
        return number(1, self.text(name)) + number(2, self.text(unit))

    def mapping(self, start, limit, offset, path, build_id=""):
        """Returns its id."""
        self.mappings += 1
        self.parts.append(element(3, number(1, self.mappings) + number(2, start) + number(3, limit) + number(4, offset)
                                  + number(5, self.text(path)) + number(6, self.text(build_id))))
        return self.mappings

    def location(self, frame):
        """frame: (mapping id, address), or a list of (function, file, line), the innermost first."""
        key = tuple(frame)
        if key in self.locations:
            return self.locations[key]
        this = self.locations[key] = len(self.locations) + 1
        if isinstance(frame, list):
            body = number(3, 0x1000 + this)
            for name, path, line in frame:
                body += element(4, number(1, self.function(name, path)) + number(2, line))
        else:
            body = number(2, frame[0]) + number(3, frame[1])
        self.parts.append(element(4, number(1, this) + body))
        return this

    def function(self, name, path):
        if (name, path) not in self.functions:
            this = self.functions[name, path] = len(self.functions) + 1
            self.parts.append(element(5, number(1, this) + number(2, self.text(name)) + number(3, self.text(name))
                                      + number(4, self.text(path))))
        return self.functions[name, path]

    def sample(self, frames, values, block=0, thread=""):
        """frames: the innermost first."""
        body = packed(1, [self.location(each) for each in frames]) + packed(2, values)
        if block:
            body += element(3, number(1, self.text("bytes")) + number(3, block) + number(4, self.text("bytes")))
        if thread:
            body += element(3, number(1, self.text("thread")) + number(2, self.text(thread)))
        self.parts.append(element(2, body))
        return self

    def bytes(self):
        default = number(14, self.text("inuse_space"))
        table = b"".join(element(6, text) for text in self.texts)
        return b"".join(self.parts) + default + table

    def write(self, path, compressed=False):
        with open(path, "wb") as file:
            file.write(gzip.compress(self.bytes()) if compressed else self.bytes())


def values(count, size, inuse=1.0, peak=1.0, elsewhere=0.0, short=0.0, lifetime=1):
    """The nine values of a site that allocated `count` blocks of `size` bytes; the rest are parts of the count."""
    freed = count - int(count * inuse)
    return [count, count * size, int(count * inuse), int(count * inuse) * size, int(count * peak),
            int(count * peak) * size, int(freed * elsewhere), int(count * short), freed * lifetime]


HOSTILE = '</script><img src=x onerror="fail()">;|\x1b[31m"é'


def demo(rate=512 << 10, times=1, program="demo", pid=4711):
    """A parser with a table that stays, a cache that leaks and messages that live shortly."""
    main = [("main", "/src/demo.cpp", 10)]
    grow = [("void std::vector<Row, std::allocator<Row> >::_M_realloc_insert<Row>(Row&&)", "/usr/include/vector.tcc", 440),
            ("Table::add(Row const&)", "/src/table.cpp", 31)]
    new = [("operator new(unsigned long)", "", 0)]
    profile = Profile(rate=rate, comments=[
        f"sluice.pid={pid}", f"sluice.program={program}", "sluice.version=0.1.0", "sluice.samples=1234",
        "sluice.dropped=0", "sluice.truncated=3", "sluice.peak_ns=1500000000",
        "sluice.timeline=0:0 500:60000000 1000:150000000 1500:210000000 2000:160000000 2500:110000000"])
    profile.sample([new, grow, [("load", "/src/demo.cpp", 20)], main], values(1000 * times, 100_000, peak=1.0), 98304, "main")
    profile.sample([[("xmalloc", "/src/x.c", 5)], [("cache_put(char const*)", "/src/cache.cpp", 77)], main],
                   values(100_000, 100, inuse=0.1 * times, peak=0.2, elsewhere=0.5, lifetime=20), 104, "worker")
    profile.sample([new, [("make_message", "/src/message.cpp", 8)], [("serve", "/src/demo.cpp", 50)], main],
                   values(1_000_000, 1000, inuse=0, peak=0.1, short=0.98, lifetime=2), 1024, "worker")
    profile.sample([[("malloc", "", 0)], [(HOSTILE, "/src/<b>.cpp", 1)], main], values(10, 5000), 5120, "<i>thread</i>")
    return profile


if __name__ == "__main__":
    demo().write(sys.argv[1], compressed=sys.argv[1].endswith(".gz"))
