"""The heap profile of libsluice.dylib, executed: profile_test.py LIBRARY PROCESSOR SYSTEM PROGRAM [TEST...]. What
profile_program.c allocates is compared with the file that the library writes, read as the tests for Linux read it. Open
it when a stack is short or wrong on macOS."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import lief  # noqa: E402

lief.logging.disable()
LIBRARY, PROCESSOR, SYSTEM, PROGRAM = sys.argv[1:5]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "preload"))

from image import parsed  # noqa: E402
from memory import READ, WRITE  # noqa: E402
from pprof import Profile  # noqa: E402
from process import Process  # noqa: E402
from zone import zones_of  # noqa: E402

# Blocks and bytes of what is alive at the end.
KNOWN = {"site_small": (1000, 100), "site_zeroed": (100, 300), "site_large": (20, 300000), "site_aligned": (100, 640),
         "site_of_thread": (40, 50), "site_grown": (1, 655360)}
CALLERS = {"site_of_thread": ["inner", "outer", "run_thread"], "site_grown": ["main"]}
FUNCTIONS = {"main", "inner", "outer", "run_thread", "site_freed", *KNOWN}
SIGUSR2 = 31


def name_of(profile, location):
    """The function of the program that a location lies in; None where it lies elsewhere."""
    address, number = location
    if number == 0 or profile.mappings[number].file != PROGRAM:
        return None
    mapping, binary = profile.mappings[number], parsed(PROGRAM)
    offset = address - mapping.start + mapping.offset
    names = [(symbol.value - binary.imagebase, symbol.name[1:]) for symbol in binary.symbols if symbol.name[1:] in FUNCTIONS]
    return max((start, name) for start, name in names if start <= offset)[1]


class Case(unittest.TestCase):
    def begin(self, rate="1", **variables):
        variables = {"SLUICE_PROFILE": "/tmp/profile", "SLUICE_PROFILE_RATE": rate, **variables}
        self.process = Process(PROCESSOR, LIBRARY, SYSTEM, environment=[f"{n}={v}" for n, v in variables.items()],
                               files={"/tmp/other": b""})
        return self.process

    def read(self, path="/tmp/profile"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.process.files.find(path).content)
            file.flush()
            return Profile(file.name)

    def end(self):
        self.process.exit()
        self.assertEqual(self.process.written.get(2, b""), b"")
        self.assertEqual(zones_of(self.process)[0].check(), 1)
        return self.read()

    def profile_of_program(self, **settings):
        process = self.begin(**settings)
        self.assertEqual(process.run_program(PROGRAM), 0)
        return self.end()

    def stacks(self, profile):
        return [(sample, [name_of(profile, location) for location in sample.stack]) for sample in profile.samples]

    def sums(self, profile):
        """What the samples of each site add up to."""
        sums = {}
        for sample, names in self.stacks(profile):
            site = next((name for name in names if name and name.startswith("site_")), None)
            total = sums.setdefault(site, dict.fromkeys(profile.types, 0))
            for kind, value in sample.values.items():
                total[kind] += value
        return sums


class Sites(Case):
    def test_at_a_rate_of_one_blocks_bytes_and_stacks_are_exact(self):
        profile = self.profile_of_program()
        sums = self.sums(profile)
        for site, (count, size) in KNOWN.items():
            self.assertEqual((sums[site]["inuse_objects"], sums[site]["inuse_space"]), (count, count * size), site)
        self.assertEqual((sums["site_freed"]["alloc_objects"], sums["site_freed"]["alloc_space"]), (500, 100000))
        self.assertEqual((sums["site_freed"]["inuse_objects"], sums["site_freed"]["short_lived_objects"]), (0, 500))
        self.assertEqual((profile.comments["sluice.dropped"], profile.comments["sluice.truncated"]), ("0", "0"))
        seen = set()
        for _, names in self.stacks(profile):
            if names[0] is None:
                continue  # of the system
            seen.add(names[0])
            # What called main(), or the thread's function, lies in no file here.
            self.assertEqual(names[1:], [*CALLERS.get(names[0], ["inner", "outer", "main"]), None], names[0])
        self.assertEqual(seen, FUNCTIONS - {"main", "inner", "outer", "run_thread"})

    def test_addresses_are_the_last_ones_of_calls(self):
        profile = self.profile_of_program()
        of_program = {address for sample in profile.samples for address, number in sample.stack
                      if number and profile.mappings[number].file == PROGRAM}
        self.assertGreater(len(of_program), 10)
        for address in of_program:
            self.assertTrue(self.ends_with_a_call(address), hex(address))

    def ends_with_a_call(self, address):
        code = bytes(self.process.uc.mem_read(address - 4, 5))
        if PROCESSOR == "aarch64":
            word = int.from_bytes(code[1:], "little")
            return word >> 26 == 0x25 or word & 0xFFFFFC1F == 0xD63F0000  # bl, blr
        return code[0] == 0xE8 or code[-2] == 0xFF or code[-3] == 0xFF  # to a distance; through a register

    def test_sums_of_a_sample_lie_within_its_error(self):
        for rate in (512, 4096):
            sums = self.sums(self.profile_of_program(rate=str(rate)))
            for site in ("site_small", "site_zeroed", "site_large", "site_aligned"):
                count, size = KNOWN[site]
                p = 1 - 2.718281828459045 ** (-(size + 15) / rate)
                error = 6 * (count * (1 - p) / p) ** 0.5 + 2
                self.assertLess(abs(sums.get(site, {"inuse_objects": 0})["inuse_objects"] - count), error, f"{site} at {rate}")

    def test_threads_have_their_names(self):
        profile = self.profile_of_program()
        self.assertEqual({sample.labels.get("thread") for sample, names in self.stacks(profile) if "main" in names}, {"emulated"})


class Images(Case):
    def test_mappings_have_files_and_identities(self):
        profile = self.profile_of_program()
        by_file = {mapping.file: mapping for mapping in profile.mappings.values()}
        self.assertEqual(set(by_file), {PROGRAM, LIBRARY, SYSTEM})
        for image in self.process.images:
            mapping, text = by_file[image.path], image.binary.get_segment("__TEXT")
            self.assertEqual((mapping.start, mapping.limit - mapping.start, mapping.offset), (image.start, text.virtual_size, 0))
            self.assertEqual(mapping.build_id, bytes(image.binary.uuid.uuid).hex())

    def test_no_frame_is_the_librarys(self):
        profile = self.profile_of_program()
        for sample in profile.samples:
            for _, number in sample.stack:
                self.assertNotEqual(number and profile.mappings[number].file, LIBRARY)

    def test_a_list_that_is_being_changed_leaves_the_files_out(self):
        process = self.begin()
        self.assertEqual(process.run_program(PROGRAM), 0)
        process.write_word(process.image_list + 8, 0)
        profile = self.end()
        self.assertEqual(profile.mappings, {})
        self.assertEqual(sum(sample.values["alloc_objects"] for sample in profile.samples if len(sample.stack) > 3), 1760)

    def test_an_image_that_was_closed_meanwhile_does_no_harm(self):
        process = self.begin()
        self.assertEqual(process.run_program(PROGRAM), 0)
        entries = process.read_word(process.image_list + 8)
        process.write_word(entries + 24, 0x7000000000)  # where nothing is
        process.write_word(entries + 56, 0x7000000000)  # the name of the third one
        self.assertEqual([mapping.file for mapping in self.end().mappings.values()], [PROGRAM, ""])


class Stacks(Case):
    """Of a call of malloc(1000), made with another stack or frame pointer."""

    def call(self, frame=0, stack=None):
        process, thread = self.process, self.process.main
        usual = thread.stack_top
        thread.stack_top = stack or usual
        process.begin(thread, process.interposed["_malloc"], 1000)
        process.uc.reg_write(process.processor.frame_register, frame)
        process.run([thread])
        thread.stack_top = usual

    def frames(self, profile):
        """How many calls there are, and how many stacks do not reach the outermost one."""
        found = [sample for sample in profile.samples if sample.labels["bytes"] == 1024 and sample.values["inuse_space"]]
        return [len(sample.stack) for sample in found], int(profile.comments["sluice.truncated"])

    def put_frames(self, at, callers):
        """Frames one above the other, each of a function at an address of nothing."""
        for i in range(callers):
            last = i == callers - 1
            self.process.write_word(at + 32 * i, 0 if last else at + 32 * (i + 1))
            self.process.write_word(at + 32 * i + 8, 0x5_0000_0000 + 16 * i)
        return at

    def test_a_stack_of_another_place_is_followed(self):
        process = self.begin()
        other = process.memory.map(0, 64 << 10, READ | WRITE) + (32 << 10)
        self.call(self.put_frames(other, 5), other - 1024)
        self.assertEqual(self.frames(self.end()), ([6], 0))

    def test_from_a_handlers_stack_it_goes_on_to_the_threads(self):
        process = self.begin()
        other = process.memory.map(0, 64 << 10, READ | WRITE) + (32 << 10)
        self.put_frames(other, 3)
        process.write_word(other + 64, self.put_frames(process.main.stack_top - 4096, 4))
        self.call(other, other - 1024)
        self.assertEqual(self.frames(self.end()), ([8], 0))

    def test_a_damaged_stack_makes_a_stack_short(self):
        process = self.begin()
        top, bottom = process.main.stack_top, process.main.stack
        pointer = top - (16 << 10)
        self.call(self.put_frames(top - 2048, 4), pointer)
        circle = self.put_frames(top - 4096, 3)
        process.write_word(circle + 64, circle)
        unmapped, misaligned, below = 0x7000000000, circle + 4, self.put_frames(bottom + 4096, 2)
        for frame in (unmapped, misaligned, below, bottom - 16, circle, 8, (1 << 64) - 16):
            self.call(frame, pointer)
        self.call(self.put_frames(top - 32 * 300, 290), pointer)
        counts, truncated = self.frames(self.end())
        self.assertEqual((sorted(set(counts)), truncated), ([1, 4, 5, 128], 8))

    def test_nothing_is_read_that_cannot_be(self):
        process = self.begin()
        other, page = process.memory.map(0, 64 << 10, READ | WRITE), 16 << 10
        process.memory.protect(other + 3 * page, page, 0)
        for frame in (other + 3 * page, other + 3 * page - 8):
            self.call(frame, other + 2 * page)
        self.assertEqual(self.frames(self.end()), ([1], 2))


class Requests(Case):
    def test_a_signal_writes_a_file_with_a_number(self):
        process = self.begin(SLUICE_PROFILE_SIGNAL="USR2")
        process.malloc(1000)
        process.call(process.handlers[SIGUSR2], SIGUSR2)
        self.assertEqual(sum(sample.values["inuse_space"] for sample in self.read("/tmp/profile.1").samples), 1000)

    def test_it_begins_and_ends_when_the_program_says_so(self):
        process = self.begin(SLUICE_PROFILE="")
        process.malloc(1000)
        self.assertEqual(process.sluice_profile_start(1), 0)
        process.free(process.malloc(2000))
        block = process.malloc(3000)
        self.assertEqual(process.sluice_profile_dump(process.text("/tmp/%p")), 0)
        profile = self.read("/tmp/4711")
        self.assertEqual([sum(sample.values[kind] for sample in profile.samples) for kind in ("alloc_space", "inuse_space")],
                         [5000, 3000])
        self.assertEqual(process.sluice_profile_stop(), 0)
        process.free(block)
        process.malloc(4000)

    def test_leaks_are_not_looked_for(self):
        self.begin(SLUICE_PROFILE_LEAKS="1").malloc(1000)
        self.assertIn("the system makes no copy of the process", self.end().comments["sluice.reachability"])

    def test_sampled_blocks_are_told_of_and_change_as_others(self):
        process = self.begin()
        zone = zones_of(process)[0]
        for size in (1, 100, 5000, 70_000):
            block = process.malloc(size)
            self.assertGreaterEqual(process.malloc_size(block), size)
            self.assertEqual(zone.size(block), process.malloc_size(block))
            process.uc.mem_write(block, b"x" * size)
            block = process.realloc(block, 3 * size)
            self.assertEqual(process.uc.mem_read(block, size), b"x" * size)
            process.unreached("free", block)
        self.assertEqual(process.system_word("system_faults"), 0)
        self.assertEqual(sum(sample.values["inuse_objects"] for sample in self.end().samples), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
