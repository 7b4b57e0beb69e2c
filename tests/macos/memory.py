"""The memory of an emulated process, as mmap and its relatives of macOS give it. Open it when a mapping is refused that
should not be, or the other way round.

Every address and length must be a multiple of the page size, where macOS would refuse or round: code that takes all
pages for 4 KiB does not get far on aarch64. Pages that nobody made accessible fault.
"""
import bisect
import ctypes
import mmap as host

from unicorn import UC_PROT_EXEC, UC_PROT_NONE, UC_PROT_READ, UC_PROT_WRITE

NONE, READ, WRITE, EXEC = UC_PROT_NONE, UC_PROT_READ, UC_PROT_WRITE, UC_PROT_EXEC
END = 0x7FFFFE000000  # of user addresses


class Memory:
    def __init__(self, uc, page_size):
        self.uc = uc
        self.page_size = page_size
        self.starts = []  # of the mappings, in order
        self.mappings = {}  # start -> (end, protection, buffer, where its first byte lies in the buffer)
        self.next_free = 0x140000000
        self.touched = set()

    def check(self, address, length):
        if address % self.page_size or length % self.page_size or length <= 0:
            raise AssertionError(f"no whole pages: {address:#x}, {length:#x}")

    def overlapping(self, start, end):
        """The starts of the mappings that lie in a range or reach into it."""
        i = bisect.bisect_right(self.starts, start)
        if i and self.mappings[self.starts[i - 1]][0] > start:
            i -= 1
        found = []
        while i < len(self.starts) and self.starts[i] < end:
            found.append(self.starts[i])
            i += 1
        return found

    def is_free(self, start, end):
        return end <= END and not self.overlapping(start, end)

    def is_mapped(self, start, end):
        at = start
        for each in self.overlapping(start, end):
            if each > at:
                return False
            at = self.mappings[each][0]
        return at >= end

    def region_at(self, address):
        """The mapping at an address or the next one behind it, one with its neighbours of the same protection."""
        found = self.overlapping(address, END)
        if not found:
            return None
        start, end, protection = found[0], self.mappings[found[0]][0], self.mappings[found[0]][1]
        for each in found[1:]:
            if each != end or self.mappings[each][1] != protection:
                break
            end = self.mappings[each][0]
        return start, end, protection

    def find_free(self, length, hint):
        at = hint if hint else self.next_free
        while not self.is_free(at, at + length):
            blocking = self.overlapping(at, at + length)
            if not blocking:
                return None
            at = self.mappings[blocking[-1]][0]
        if not hint:
            self.next_free = at + length
        return at

    def add(self, start, length, protection):
        buffer = host.mmap(-1, length, flags=host.MAP_PRIVATE | host.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
        place = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        self.uc.mem_map_ptr(start, length, protection, place)
        bisect.insort(self.starts, start)
        self.mappings[start] = (start + length, protection, buffer, place)

    def split(self, start, end):
        """Makes mappings end at the two addresses."""
        for border in (start, end):
            for each in self.overlapping(border, border + 1):
                mapping_end, protection, buffer, place = self.mappings[each]
                if each < border < mapping_end:
                    self.mappings[each] = (border, protection, buffer, place)
                    self.mappings[border] = (mapping_end, protection, buffer, place + border - each)
                    bisect.insort(self.starts, border)

    # What the system offers. The numbers of errors are those of macOS.

    def map(self, hint, length, protection, fixed=False):
        """Returns the address, or None."""
        self.check(hint, length)
        if fixed:
            if not self.is_mapped(hint, hint + length):
                raise AssertionError(f"MAP_FIXED over what is not all mapped: {hint:#x}, {length:#x}")
            self.clear(hint, length)
            self.protect(hint, length, protection)
            return hint
        at = self.find_free(length, hint)
        if at is None:
            return None
        self.add(at, length, protection)
        return at

    def unmap(self, start, length):
        self.check(start, length)
        self.split(start, start + length)
        for each in self.overlapping(start, start + length):
            end = self.mappings.pop(each)[0]
            self.starts.remove(each)
            self.uc.mem_unmap(each, end - each)
        return True

    def protect(self, start, length, protection):
        self.check(start, length)
        if not self.is_mapped(start, start + length):
            return False
        self.split(start, start + length)
        for each in self.overlapping(start, start + length):
            end, before, buffer, place = self.mappings[each]
            if before != protection:
                self.uc.mem_protect(each, end - each, protection)
                self.mappings[each] = (end, protection, buffer, place)
        return True

    def clear(self, start, length):
        for each in self.overlapping(start, start + length):
            end, _, _, place = self.mappings[each]
            low, high = max(start, each), min(start + length, end)
            ctypes.memset(place + low - each, 0, high - low)
