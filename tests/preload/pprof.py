"""Reads profiles in pprof's format, uncompressed, without any library; for profile_test.py."""

import subprocess
from collections import namedtuple

Mapping = namedtuple("Mapping", "start limit offset file build_id")
Sample = namedtuple("Sample", "stack values labels")  # stack: addresses, innermost first; values and labels by name


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Yields (number, value) for each field of a message: an int, or the bytes of what has a length."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            if len(value) != length:
                raise ValueError("cut short")
        else:
            raise ValueError(f"wire type {tag & 7}")
        yield tag >> 3, value


def numbers(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


class Profile:
    def __init__(self, path):
        with open(path, "rb") as file:
            parts = list(fields(file.read()))
        strings = [value.decode() for number, value in parts if number == 6]
        message = {n: [dict(fields(v)) for number, v in parts if number == n] for n in (1, 3, 4)}
        self.types = [strings[m[1]] for m in message[1]]
        self.mappings = {m[1]: Mapping(m.get(2, 0), m.get(3, 0), m.get(4, 0), strings[m.get(5, 0)], strings[m.get(6, 0)])
                         for m in message[3]}
        self.locations = {m[1]: (m.get(3, 0), m.get(2, 0)) for m in message[4]}
        self.period = dict(parts)[12]
        self.comments = dict(strings[v].split("=", 1) for n, v in parts if n == 13)
        self.samples = []
        for number, value in parts:
            if number != 2:
                continue
            sample = list(fields(value))
            labels = [dict(fields(v)) for n, v in sample if n == 3]
            self.samples.append(Sample(
                [self.locations[i] for n, v in sample if n == 1 for i in numbers(v)],
                dict(zip(self.types, (x for n, v in sample if n == 2 for x in numbers(v)))),
                {strings[m[1]]: strings[m[2]] if 2 in m else m.get(3, 0) for m in labels}))

    def symbols(self, binary):
        """Returns a function from a location to the name of a function of that file; None where it is none of it."""
        listed = subprocess.run(["nm", "-S", "--defined-only", binary], stdout=subprocess.PIPE, text=True, check=True)
        functions = []
        for line in listed.stdout.splitlines():
            part = line.split()
            if len(part) == 4 and part[2] in "tT":
                functions.append((int(part[0], 16), int(part[0], 16) + int(part[1], 16), part[3]))

        def name(location):
            address, mapping = location
            if mapping == 0 or self.mappings[mapping].file != binary:
                return None
            offset = address - self.mappings[mapping].start + self.mappings[mapping].offset
            return next((n for start, end, n in functions if start <= offset < end), None)
        return name

    def by_site(self, binary, prefix="site_"):
        """Returns, for each function of the file with that prefix, the sums of its samples' values."""
        name = self.symbols(binary)
        sums = {}
        for sample in self.samples:
            site = next((n for n in map(name, sample.stack) if n and n.startswith(prefix)), None)
            total = sums.setdefault(site, dict.fromkeys(self.types, 0))
            for key, value in sample.values.items():
                total[key] += value
        return sums
