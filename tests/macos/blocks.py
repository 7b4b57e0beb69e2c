"""Blocks that a test has got, each filled with a pattern of its own: no two overlap, each is aligned, and what was
written stays. Open it when a test says that it does not."""
import bisect


class Blocks:
    def __init__(self, process):
        self.process = process
        self.starts = []
        self.sizes = {}  # start -> (size asked for, bytes that may be used, pattern)
        self.next_pattern = 1

    def __len__(self):
        return len(self.starts)

    def pattern(self, number, size):
        return (number * 0x9E3779B97F4A7C15 % (1 << 64)).to_bytes(8, "little") * (size // 8 + 1)

    def fill(self, start, size):
        """Writes all that was asked for of small blocks, and both ends of large ones."""
        pattern = self.next_pattern
        self.next_pattern += 1
        content = self.pattern(pattern, size)[:size]
        if size <= 8192:
            self.process.uc.mem_write(start, content)
        else:
            self.process.uc.mem_write(start, content[:4096])
            self.process.uc.mem_write(start + size - 4096, content[size - 4096:])
        return pattern

    def check_content(self, start, size, pattern, whole_size):
        content = self.pattern(pattern, whole_size)[:size]
        ends = [(0, size)] if whole_size <= 8192 else [(0, min(4096, size)), (whole_size - 4096, size)]
        for low, high in ends:
            if low < high and bytes(self.process.uc.mem_read(start + low, high - low)) != content[low:high]:
                raise AssertionError(f"block {start:#x} of {whole_size} bytes has other contents than were written")

    def add(self, start, size, alignment=16, zeroed=False):
        process = self.process
        assert start, f"no memory for {size} bytes"
        assert start % alignment == 0, f"{start:#x} is no multiple of {alignment}"
        usable = process.malloc_size(start)
        assert usable >= size, f"{usable} bytes where {size} were asked for"
        i = bisect.bisect_right(self.starts, start)
        if i and self.starts[i - 1] + self.sizes[self.starts[i - 1]][1] > start:
            raise AssertionError(f"block {start:#x} lies in one at {self.starts[i - 1]:#x}")
        if i < len(self.starts) and start + usable > self.starts[i]:
            raise AssertionError(f"block {start:#x} of {usable} bytes reaches into one at {self.starts[i]:#x}")
        if zeroed and bytes(process.uc.mem_read(start, min(size, 65536))).strip(b"\0"):
            raise AssertionError(f"block {start:#x} of calloc is not clear")
        self.starts.insert(i, start)
        self.sizes[start] = (size, usable, self.fill(start, size))

    def remove(self, start):
        """The block is about to be freed. Returns its size."""
        size, _, pattern = self.sizes.pop(start)
        self.check_content(start, size, pattern, size)
        del self.starts[bisect.bisect_left(self.starts, start)]
        return size

    def resized(self, old, new, size):
        """realloc has made `new` of `old`."""
        old_size, _, pattern = self.sizes.pop(old)
        self.check_content(new, min(old_size, size), pattern, old_size)
        del self.starts[bisect.bisect_left(self.starts, old)]
        self.add(new, size)

    def any(self, random):
        return random.choice(self.starts)

    def check_all(self):
        for start in self.starts:
            size, _, pattern = self.sizes[start]
            self.check_content(start, size, pattern, size)
