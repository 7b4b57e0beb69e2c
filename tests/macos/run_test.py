"""libsluice.dylib, libsluice-secure.dylib or static_program.c with libsluice.a, executed: run_test.py FILE PROCESSOR SYSTEM
[TEST...]. A process of macOS is emulated
(process.py); what a program, the system's libraries and its fork would call is called, and what comes back is compared
with what was to come. Open it to add what must hold on macOS."""
import pathlib
import random
import struct
import sys
import unittest

sys.dont_write_bytecode = True
import lief  # noqa: E402

lief.logging.disable()
LIBRARY, PROCESSOR, SYSTEM = sys.argv[1:4]

from blocks import Blocks  # noqa: E402
from machine import Aborted  # noqa: E402
from process import Process  # noqa: E402
from zone import zones_of  # noqa: E402

EINVAL, ENOMEM = 22, 12
IN_USE, REGION = 1, 2  # MALLOC_PTR_IN_USE_RANGE_TYPE, MALLOC_PTR_REGION_RANGE_TYPE
MANY_CALLS = 110_000
SECURE = pathlib.Path(LIBRARY).stem == "libsluice-secure"
STATIC = not LIBRARY.endswith(".dylib")


def new_process(**settings):
    return Process(PROCESSOR, LIBRARY, SYSTEM, **settings)


def live_blocks_of(process, zone):
    """What the zone's enumerator tells, as {address: bytes}."""
    def record(machine, _task, _context, kind, ranges, count):
        assert kind == IN_USE
        words = struct.unpack(f"<{2 * count}Q", machine.uc.mem_read(ranges, 16 * count))
        machine.told.update(zip(words[::2], words[1::2]))

    process.told = {}  # and not a variable of this call: the stub is made once
    assert process.call(zone.field("enumerator"), 0, 0, IN_USE, zone.address, 0, process.stub("record", record)) == 0
    return process.told


class Case(unittest.TestCase):
    environment = ()

    def setUp(self):
        self.process = new_process(environment=self.environment)
        self.zone = zones_of(self.process)[0]

    def tearDown(self):
        """Whatever happened, the heap is whole, and libmalloc would not have ended the process."""
        self.assertEqual(self.zone.zone_locked(), 0)
        self.assertEqual(self.zone.check(), 1)
        self.assertEqual(self.process.system_word("system_faults"), 0)

    def live_blocks(self):
        return live_blocks_of(self.process, self.zone)


class Calls:
    """Random calls of all that allocates and frees, on several threads, one call at a time."""

    def __init__(self, process, zone, seed):
        self.process, self.zone = process, zone
        self.random = random.Random(seed)
        self.blocks = Blocks(process)
        self.threads = [process.main, process.new_thread(), process.new_thread()]
        self.done = 0

    def size(self):
        kind = self.random.random()
        if kind < 0.7:
            return self.random.randint(0, 512)
        if kind < 0.95:
            return self.random.randint(0, 8192)
        if kind < 0.995:
            return self.random.randint(0, 100_000)
        return self.random.randint(0, 2_000_000)

    def allocate(self, thread):
        p, z, size = self.process, self.zone, self.size()
        alignment = 1 << self.random.randint(4, 15)
        kind = self.random.randint(0, 13)
        if kind <= 3:
            return self.blocks.add(p.malloc(size, thread=thread), size)
        if kind == 4:
            return self.blocks.add(p.calloc(1, size, thread=thread), size, zeroed=True)
        if kind == 5:
            return self.blocks.add(p.calloc(16, size // 16, thread=thread), size // 16 * 16, zeroed=True)
        if kind == 6:
            out = p.scratch
            assert p.posix_memalign(out, alignment, size, thread=thread) == 0
            return self.blocks.add(p.read_word(out), size, alignment)
        if kind == 7:
            return self.blocks.add(p.aligned_alloc(alignment, size, thread=thread), size, alignment)
        if kind == 8:
            return self.blocks.add(z.malloc(size, thread=thread), size)
        if kind == 9:
            return self.blocks.add(z.calloc(2, size // 2, thread=thread), size // 2 * 2, zeroed=True)
        if kind == 10:
            return self.blocks.add(z.memalign(alignment, size, thread=thread), size, alignment)
        if kind == 11:
            return self.blocks.add(p.unreached("malloc", size, thread=thread), size)
        if kind == 12:
            return self.blocks.add(z.malloc_type_memalign(alignment, size, 0, thread=thread), size, alignment)
        if self.random.random() < 0.9:
            return self.blocks.add(z.malloc_type_malloc(size, 0, thread=thread), size)
        return self.blocks.add(p.valloc(size, thread=thread), size, p.page_size)

    def free(self, thread):
        p, z = self.process, self.zone
        block = self.blocks.any(self.random)
        size = self.blocks.remove(block)
        kind = self.random.randint(0, 6)
        if kind <= 2:
            p.free(block, thread=thread)
        elif kind == 3:
            z.free(block, thread=thread)
        elif kind == 4:
            z.free_definite_size(block, size, thread=thread)
        elif kind == 5:
            p.unreached("free", block, thread=thread)
        else:
            p.malloc_zone_free(z.address, block, thread=thread)

    def resize(self, thread):
        p, z, size = self.process, self.zone, self.size()
        block = self.blocks.any(self.random)
        kind = self.random.randint(0, 3)
        if kind == 0:
            moved = z.realloc(block, size, thread=thread)
        elif kind == 1:
            moved = p.malloc_zone_realloc(z.address, block, size, thread=thread)
        elif kind == 2:
            moved = p.reallocf(block, size, thread=thread)
        else:
            moved = p.realloc(block, size, thread=thread)
        self.blocks.resized(block, moved, size)

    def batch(self, thread):
        p, z, size = self.process, self.zone, self.random.randint(1, 300)
        got = z.batch_malloc(size, p.scratch, 20, thread=thread)
        blocks = struct.unpack(f"<{got}Q", p.uc.mem_read(p.scratch, 8 * got))
        for block in blocks:
            self.blocks.add(block, size)
        self.done += got
        leaving = [self.blocks.any(self.random)]
        self.blocks.remove(leaving[0])
        p.uc.mem_write(p.scratch, struct.pack("<2Q", leaving[0], 0))
        z.batch_free(p.scratch, 2, thread=thread)

    def one(self, most):
        thread = self.random.choice(self.threads)
        share = self.random.random()
        if not self.blocks.starts or (share < 0.45 and len(self.blocks) < most):
            self.allocate(thread)
        elif share < 0.8:
            self.free(thread)
        elif share < 0.99:
            self.resize(thread)
        else:
            self.batch(thread)
        self.done += 1


class RandomCalls(Case):
    def test_blocks_are_apart_and_keep_what_was_written(self):
        calls = Calls(self.process, self.zone, 7)
        round_number = 0
        while calls.done < MANY_CALLS:
            most = (3000, 200, 1200, 20)[round_number % 4]  # grows and shrinks, so that memory goes back
            for _ in range(MANY_CALLS // 16):
                calls.one(most)
            while len(calls.blocks) > most:
                calls.free(self.process.main)
                calls.done += 1
            self.process.now += 1_000_000_000
            self.assertEqual(self.zone.check(), 1)
            calls.blocks.check_all()
            round_number += 1
        told = self.live_blocks()
        self.assertEqual(sorted(told), calls.blocks.starts, "the enumerator tells of live blocks and of no others")
        out = self.process.array([0] * 4)
        self.process.call(self.zone.field("statistics"), self.zone.address, out)
        count, in_use, _, allocated = struct.unpack("<4Q", self.process.uc.mem_read(out, 32))
        self.assertEqual(count & 0xFFFFFFFF, len(calls.blocks))
        if SECURE:  # where blocks have the bytes that were asked for, and statistics tell of memory
            self.assertGreaterEqual(in_use, sum(told.values()))
        else:
            self.assertEqual(in_use, sum(told.values()))
        self.assertGreaterEqual(allocated, in_use)
        while calls.blocks.starts:
            calls.free(self.process.main)
        self.assertEqual(self.live_blocks(), {})


class FirstCall(unittest.TestCase):
    def test_any_function_may_be_called_before_the_library_has_started(self):
        for first in ("malloc", "calloc", "free", "realloc", "posix_memalign", "malloc_size"):
            with self.subTest(first):
                process = new_process(start=False)
                arguments = {"malloc": (10,), "calloc": (2, 5), "free": (0,), "realloc": (0, 10), "malloc_size": (0,),
                             "posix_memalign": (process.scratch, 64, 10)}[first]
                getattr(process, first)(*arguments)
                early = process.malloc(100)
                process.uc.mem_write(early, b"early")
                process.start()
                self.assertEqual(process.uc.mem_read(early, 5), b"early")
                late = process.realloc(early, 5000)
                self.assertEqual(process.uc.mem_read(late, 5), b"early")
                process.free(late)
                self.assertEqual(process.system_word("system_faults"), 0)

    @unittest.skipIf(STATIC, "the first call starts the heap")
    def test_options_are_read_when_the_environment_comes_late(self):
        process = new_process(start=False, environment=["SLUICE_STATS=1"])
        place = process.read_word(process.environment)
        process.write_word(process.environment, 0)
        process.free(process.malloc(10))
        process.write_word(process.environment, place)
        process.start()
        process.exit()
        self.assertIn(b"sluice", process.written.get(2, b""))

    def test_options_are_ignored_in_a_program_with_more_rights_than_its_caller(self):
        process = new_process(start=False, environment=["SLUICE_STATS=1"])
        process.privileged = True
        process.start()
        process.exit()
        self.assertEqual(process.written, {})


class Zones(Case):
    def test_ours_is_the_default_zone_and_the_system_keeps_its_own(self):
        self.assertEqual([zone.name for zone in zones_of(self.process)],
                         ["sluice", "DefaultMallocZone", "DefaultPurgeableMallocZone"])

    def test_what_a_zone_must_have_is_there(self):
        optional = {"reserved1", "reserved2", "try_free_default", "malloc_with_options",
                    "malloc_type_malloc_with_options", "enable_discharge_checking", "disable_discharge_checking",
                    "discharge", "enumerate_discharged_pointers", "zone_type"}
        from zone import FIELDS, INTROSPECTION
        for name in FIELDS + INTROSPECTION:
            self.assertEqual(self.zone.field(name) == 0, name in optional, name)
        self.assertEqual(self.zone.field("version") & 0xFFFFFFFF, 16)

    def test_a_block_of_the_system_goes_back_to_the_system(self):
        process = new_process(start=False)
        ways = ["free", "realloc", "zone free", "zone realloc", "default zone free", "batch", "unreached free"]
        blocks = [process.unreached("malloc", 40) for _ in ways]
        for i, block in enumerate(blocks):
            process.uc.mem_write(block, bytes([i + 1]) * 40)
        process.start()
        zone = zones_of(process)[0]
        default = process.malloc_default_zone()
        for i, (way, block) in enumerate(zip(ways, blocks)):
            with self.subTest(way):
                self.assertEqual(process.malloc_size(block), 48)
                before = process.system_word("system_frees")
                moved = 0
                if way == "free":
                    process.free(block)
                elif way == "realloc":
                    moved = process.realloc(block, 1000)
                elif way == "zone free":
                    zone.free(block)
                elif way == "zone realloc":
                    moved = zone.realloc(block, 1000)
                elif way == "default zone free":
                    process.malloc_zone_free(default, block)
                elif way == "batch":
                    own = process.malloc(8)
                    process.uc.mem_write(process.scratch, struct.pack("<2Q", block, own))
                    process.malloc_zone_batch_free(default, process.scratch, 2)
                else:
                    process.unreached("free", block)
                self.assertEqual(process.system_word("system_frees"), before + 1)
                if moved:
                    self.assertEqual(process.uc.mem_read(moved, 40), bytes([i + 1]) * 40)
                    self.assertNotEqual(zone.size(moved), 0)
        self.assertEqual(process.system_word("system_faults"), 0)

    @unittest.skipIf(STATIC, "libSystem's functions of zones are not replaced")
    def test_a_block_of_ours_comes_back_whichever_zone_is_named(self):
        system = zones_of(self.process)[1]
        block = self.process.malloc(64)
        self.process.malloc_zone_free(system.address, block)
        self.assertEqual(self.live_blocks(), {})
        again = self.process.malloc(64)
        self.assertTrue(SECURE or again == block, "it serves again")
        moved = self.process.malloc_zone_realloc(system.address, again, 5000)
        self.assertNotEqual(self.zone.size(moved), 0)
        self.process.unreached("free", moved)
        self.assertEqual(self.live_blocks(), {})

    def test_a_block_of_ours_comes_back_from_before_the_zone_was_there(self):
        process = new_process(start=False)
        early = process.malloc(64)
        process.malloc_zone_free(process.malloc_default_zone(), early)
        self.assertEqual(process.system_word("system_faults"), 0)

    def test_calls_that_tell_types_are_served(self):
        p = self.process
        block = p.malloc_type_malloc(100, 0x1234)
        self.assertEqual(list(self.live_blocks()), [block])
        p.malloc_type_free(block, 0x1234)
        self.assertEqual(self.live_blocks(), {})
        other = p.unreached("malloc_type_malloc", 100, 0)  # by code that the loader does not reach
        p.free(other)
        self.assertEqual(p.system_word("system_frees"), 1)

    def test_a_page_of_the_zone_that_becomes_read_only_does_no_harm(self):
        p = self.process
        self.assertEqual(self.zone.address % 16384, 0)
        p.memory.protect(self.zone.address, 65536, 1)  # malloc_set_zone_name()
        for size in (10, 5000, 500_000):
            p.free(p.malloc(size))
        self.assertEqual(self.zone.check(), 1)

    @unittest.skipIf(SECURE, "it is reported")
    def test_an_address_that_is_nobodys_does_no_harm(self):
        for address in (0, 16, self.process.scratch + 32, 0x7FFFFE000000, self.process.main.stack + 64):
            self.process.free(address)
            self.zone.free(address)
            self.assertEqual(self.process.malloc_size(address), 0)
            self.assertEqual(self.zone.size(address), 0)
        self.assertEqual(self.process.realloc(self.process.scratch, 10), 0)
        self.assertEqual(self.process.system_word("system_frees"), 0)

    @unittest.skipIf(SECURE, "it is reported")
    def test_freed_memory_of_ours_is_not_looked_for_elsewhere(self):
        block = self.process.malloc(1 << 20)
        self.process.free(block)
        self.process.free(block)
        self.assertEqual(self.process.malloc_size(block), 0)

    def test_the_owner_of_a_block_is_found(self):
        block = self.process.malloc(100)
        self.assertEqual(self.process.malloc_zone_from_ptr(block), self.process.malloc_default_zone())
        self.assertEqual(self.zone.claimed_address(block), 1)
        self.assertEqual(self.zone.claimed_address(self.process.scratch), 0)

    def test_the_region_is_told(self):
        block = self.process.malloc(100)
        found = []

        def record(machine, _task, _context, kind, ranges, count):
            self.assertEqual((kind, count), (REGION, 1))
            found.append(struct.unpack("<2Q", machine.uc.mem_read(ranges, 16)))

        recorder = self.process.stub("record_region", record)
        self.process.call(self.zone.field("enumerator"), 0, 0, REGION, self.zone.address, 0, recorder)
        self.assertTrue(found[0][0] <= block < found[0][0] + found[0][1])

    def test_another_process_is_not_read(self):
        never = self.process.stub("never", lambda machine: self.fail("called"))
        self.assertEqual(self.process.call(self.zone.field("enumerator"), 77, 0, IN_USE, self.zone.address, 0, never), 5)

    def test_good_size_is_what_a_request_gets(self):
        for size in [0, 1, 16, 17, 100, 1000, 1025, 4096, 40_000, 65_536, 65_537, 1_000_000]:
            good = self.process.malloc_good_size(size)
            self.assertGreaterEqual(good, size)
            self.assertEqual(self.zone.good_size(size), good)
            block = self.process.malloc(good if SECURE else size)
            self.assertEqual(self.process.malloc_size(block), good)
            self.process.free(block)

    def test_pressure_gives_memory_back(self):
        blocks = [self.process.malloc(200_000) for _ in range(40)]
        for block in blocks:
            self.process.uc.mem_write(block, b"x")
        for block in blocks[:10]:  # most stay, or the pages go without being asked
            self.process.free(block)
        self.assertGreater(self.zone.pressure_relief(0), 1_000_000)
        for block in blocks[10:]:
            self.process.free(block)

    def test_print_writes_the_statistics(self):
        self.process.call(self.zone.field("print"), self.zone.address, 1)
        self.assertIn(b"sluice", self.process.written[2])


class Contract(Case):
    def test_realloc_to_nothing_gives_a_new_block(self):
        block = self.process.malloc(100)
        least = self.process.realloc(block, 0)
        self.assertNotEqual(least, 0)
        self.assertEqual(list(self.live_blocks()), [least])

    def test_errors_are_told(self):
        p = self.process
        huge = (1 << 63) + 5
        for name, arguments in {"malloc": (huge,), "calloc": (1 << 40, 1 << 40), "realloc": (0, huge), "valloc": (huge,),
                                "aligned_alloc": (64, huge)}.items():
            p.set_errno(0)
            self.assertEqual(getattr(p, name)(*arguments), 0, name)
            self.assertEqual(p.errno(), ENOMEM, name)
        p.set_errno(0)
        self.assertEqual(p.aligned_alloc(24, 10), 0)
        self.assertEqual(p.errno(), EINVAL)
        p.set_errno(77)
        for alignment in (0, 4, 24):
            p.write_word(p.scratch, 1234)
            self.assertEqual(p.posix_memalign(p.scratch, alignment, 10), EINVAL)
            self.assertEqual(p.read_word(p.scratch), 1234)
        self.assertEqual(p.posix_memalign(p.scratch, 64, huge), ENOMEM)
        self.assertEqual((p.read_word(p.scratch), p.errno()), (1234, 77))

    def test_free_keeps_errno(self):
        p = self.process
        blocks = [p.malloc(size) for size in (10, 5000, 300_000)] + [p.unreached("malloc", 10)]
        p.set_errno(77)
        for block in blocks:
            p.free(block)
        self.assertEqual(p.errno(), 77)

    def test_without_memory_nothing_is_lost(self):
        p = self.process
        block = p.malloc(50)
        p.uc.mem_write(block, b"kept")
        p.failing = {"mmap", "mprotect"}
        self.assertEqual(p.malloc(300 << 20), 0)
        self.assertEqual(p.errno(), ENOMEM)
        self.assertEqual(p.realloc(block, 300 << 20), 0)
        self.assertEqual(p.uc.mem_read(block, 4), b"kept")
        self.assertEqual(p.reallocf(block, 300 << 20), 0)
        p.failing = set()
        self.assertEqual(self.live_blocks(), {}, "reallocf has freed it")
        self.assertNotEqual(p.malloc(300 << 20), 0, "there is memory again")

    def test_valloc_gives_whole_pages(self):
        for size in (1, 5000, 100_000):
            self.assertEqual(self.process.valloc(size) % self.process.page_size, 0)
            self.assertEqual(self.zone.valloc(size) % self.process.page_size, 0)

    def test_memory_that_went_back_reads_as_zero(self):
        p = self.process
        block = p.malloc(4 << 20)
        p.uc.mem_write(block, b"\xff" * (4 << 20))
        p.free(block)
        self.zone.pressure_relief(0)
        again = p.calloc(1, 4 << 20)
        self.assertEqual(bytes(p.uc.mem_read(again, 4 << 20)).strip(b"\0"), b"")

    def test_a_large_block_grows_without_loss(self):
        p = self.process
        block, size = p.malloc(1 << 20), 1 << 20
        p.uc.mem_write(block, bytes(range(256)) * (size // 256))
        wall = p.malloc(1 << 20)
        block = p.realloc(block, 16 << 20)
        self.assertEqual(bytes(p.uc.mem_read(block, size)), bytes(range(256)) * (size // 256))
        p.free(wall)
        p.free(block)


class Threads(Case):
    def test_calls_past_the_end_of_a_thread_are_served(self):
        p = self.process
        thread = p.new_thread()
        block = p.malloc(100, thread=thread)
        p.end_thread(thread)
        p.uc.mem_write(block, b"y" * 100)
        late = p.malloc(100, thread=thread)
        self.assertNotEqual(late, block)
        p.free(late, thread=thread)
        p.free(block)
        self.assertEqual(self.live_blocks(), {})

    def test_destructors_of_the_program_find_the_thread_served_in_every_round(self):
        p = self.process
        out = p.array([0])
        got = []
        key_at = {}

        def destructor(machine, value):  # libpthread has just cleared the slot
            got.append(value)
            if len(got) < 4:
                machine.write_word(machine.current.slots + 8 * key_at[0], value + 1)
            return 0

        thread = p.new_thread()
        p.malloc(10, thread=thread)
        self.assertEqual(p.call(p.stub("key", p_key_create), out, p.stub("destructor", destructor)), 0)
        key_at[0] = p.read_word(out)
        p.write_word(thread.slots + 8 * key_at[0], 1)
        p.end_thread(thread)
        self.assertEqual(got, [1, 2, 3, 4])
        self.assertNotEqual(p.malloc(10, thread=thread), 0)

    def test_many_short_threads_leave_nothing(self):
        p = self.process
        mapped = []
        for i in range(200):
            thread = p.new_thread()
            blocks = [p.malloc(size, thread=thread) for size in (16, 100, 1000, 9000, 70_000)]
            for block in blocks:
                p.free(block, thread=thread if i % 2 else p.main)
            p.end_thread(thread)
            p.memory.unmap(thread.stack, 512 << 10)
            out = p.array([0] * 4) if not mapped else out
            p.call(self.zone.field("statistics"), self.zone.address, out)
            mapped.append(p.read_word(out + 24))
        self.assertEqual(mapped[-1], mapped[20])
        self.assertEqual(self.live_blocks(), {})

    def test_threads_that_run_at_once_share_the_heap(self):
        p = self.process
        p.turn = 400
        rng = random.Random(3)
        threads = [p.new_thread() for _ in range(4)]
        held = {thread: [] for thread in threads}
        blocks = Blocks(p)
        pending = {}
        for _ in range(1500):
            for thread in threads:
                if thread.running:
                    continue
                if thread in pending:
                    blocks_turn, p.turn = p.turn, 0
                    blocks.add(thread.result, pending.pop(thread))
                    held[thread].append(thread.result)
                    p.turn = blocks_turn
                others = held[rng.choice(threads)]
                if others and rng.random() < 0.5:
                    block = others.pop(rng.randrange(len(others)))
                    blocks.remove(block)
                    p.begin(thread, p.interposed["_free"], block)
                else:
                    size = rng.choice((24, 24, 24, 200, 3000, 70_000))
                    p.begin(thread, p.interposed["_malloc"], size)
                    pending[thread] = size
            for _ in range(6):
                running = [thread for thread in p.threads if thread.running and
                           (thread.wait is None or p.may_go_on(thread.wait))]
                if running:
                    p.step(rng.choice(running))
            p.now += 20_000
        p.run(threads)
        p.turn = 0
        for thread, size in pending.items():
            blocks.add(thread.result, size)
        blocks.check_all()
        self.assertEqual(sorted(self.live_blocks()), blocks.starts)


def p_key_create(machine, out, destructor):
    from libsystem import pthread_key_create
    return pthread_key_create(machine, out, destructor)


class Background(Case):
    environment = ("SLUICE_BACKGROUND=1",)

    def sluice_threads(self):
        return [thread for thread in self.process.threads if thread.name == "sluice"]

    def second_thread(self):
        self.process.free(self.process.malloc(10))
        thread = self.process.new_thread()
        self.process.malloc(10, thread=thread)
        return thread

    def test_there_is_no_thread_of_ours_in_a_program_of_one_thread(self):
        self.process.free(self.process.malloc(10))
        self.assertEqual(self.sluice_threads(), [])

    def test_memory_goes_back_while_the_program_rests(self):
        p = self.process
        self.second_thread()
        self.assertEqual(len(self.sluice_threads()), 1)
        block = p.malloc(8 << 20)
        p.uc.mem_write(block, b"z" * (8 << 20))
        before = p.calls["_mmap"]
        p.free(block)
        if not SECURE:  # which gives it back at once
            before = p.calls["_mmap"]
        own = self.sluice_threads()[0]
        for _ in range(50):
            p.now += 100_000_000
            p.step(own)
        self.assertGreater(p.calls["_mmap"], before)

    def test_a_system_that_makes_no_thread_does_no_harm(self):
        self.process.failing = {"pthread_create"}
        thread = self.second_thread()
        self.assertEqual(self.sluice_threads(), [])
        self.process.free(self.process.malloc(100_000, thread=thread))

    def test_it_ends_with_the_last_thread_of_the_program(self):
        p = self.process
        thread = self.second_thread()
        p.end_thread(thread)
        p.end_thread(p.main)
        self.assertFalse(self.sluice_threads()[0].running)


class Forks(Case):
    def fork(self):
        self.process.call(self.process.system.exports["_system_fork_prepare"])

    def in_parent(self):
        self.process.call(self.process.system.exports["_system_fork_parent"])

    def in_child(self, gone):
        for thread in gone:
            thread.running = False
        self.process.pid += 1
        self.process.call(self.process.system.exports["_system_fork_child"])

    def test_parent_and_child_go_on(self):
        for act in (self.in_parent, lambda: self.in_child([])):
            block = self.process.malloc(100)
            self.fork()
            self.assertEqual(self.zone.zone_locked(), 1)
            act()
            self.assertEqual(self.zone.zone_locked(), 0)
            self.process.free(block)
            self.process.free(self.process.malloc(100_000))
            waited = self.process.calls.get("___ulock_wait", 0)
            for size in (100, 100_000):
                self.process.malloc(size, thread=self.process.new_thread())
            self.assertEqual(self.process.calls.get("___ulock_wait", 0), waited, "a lock is still held for the fork")

    def test_a_child_finds_the_heap_whole_wherever_other_threads_were(self):
        rng = random.Random(11)
        for attempt in range(60):
            p = self.process
            p.turn = 0
            other = p.new_thread()
            held = [p.malloc(rng.choice((40, 500, 20_000)), thread=other) for _ in range(rng.randint(0, 70))]
            p.begin(other, p.interposed["_free"], held.pop()) if held and attempt % 2 else \
                p.begin(other, p.interposed["_malloc"], rng.choice((40, 500, 20_000, 200_000)))
            p.turn = rng.choice((5, 30, 200))
            p.step(other)
            p.turn = 50
            self.fork()
            p.turn = 0
            self.in_child(other for other in p.threads if other is not p.main)
            for block in held:
                p.free(block)
            kept = [p.malloc(rng.randint(1, 3000)) for _ in range(200)]
            self.assertEqual(len(set(kept)), 200)
            for block in kept:
                p.free(block)
            self.assertEqual(self.zone.zone_locked(), 0, attempt)
            self.assertEqual(self.zone.check(), 1, attempt)


@unittest.skipIf(SECURE, "it takes no profile")
class ForksOfAProfiledProgram(Forks):
    environment = ("SLUICE_PROFILE=/tmp/profile", "SLUICE_PROFILE_RATE=500")


class Statistics(Case):
    environment = ("SLUICE_STATS=1",)

    def test_they_are_printed_at_exit_and_count_each_call(self):
        for _ in range(1000):
            self.process.free(self.process.malloc(48))
        self.process.exit()
        self.assertRegex(self.process.written[2].decode(), r"(?s)sluice.*1[ ,.']?0\d\d")

    def test_they_are_printed_at_quick_exit_where_the_system_has_it(self):
        self.assertNotIn("at_quick_exit", self.process.calls)
        process = new_process(start=False, environment=self.environment)
        process.newer_functions = {"at_quick_exit"}
        process.start()
        self.assertEqual(process.calls["at_quick_exit"], 1)


class StatisticsAtASignal(Case):
    environment = ("SLUICE_STATS_SIGNAL=USR2",)

    def test_they_are_printed(self):
        self.process.free(self.process.malloc(100))
        sigusr2 = 31
        self.process.call(self.process.handlers[sigusr2], sigusr2)
        self.assertIn(b"sluice", self.process.written[2])


class Guards(Case):
    environment = ("SLUICE_GUARD_RATE=1",)

    def test_a_block_ends_at_a_page_that_nobody_can_touch(self):
        guarded = 0
        for size in (16, 100, 1000, 5000) * 20:
            block = self.process.malloc(size)
            self.process.uc.mem_write(block, b"g" * size)
            end = (block + size + self.process.page_size - 1) // self.process.page_size * self.process.page_size
            region = self.process.memory.region_at(end)
            guarded += region is None or region[0] > end or region[2] == 0
            self.process.free(block)
        self.assertGreater(guarded, 20)


class Profile(unittest.TestCase):
    """profile_test.py looks at what is in it."""

    @unittest.skipUnless(SECURE, "it has one")
    def test_the_secure_library_says_that_there_is_none(self):
        process = new_process(environment=["SLUICE_PROFILE=/tmp/profile"])
        self.assertRegex(process.written[2], b"SLUICE_PROFILE: .*takes no profile")
        process.free(process.malloc(10))

    @unittest.skipIf(SECURE, "it has none")
    def test_random_calls_are_served_while_blocks_are_sampled(self):
        process = new_process(environment=["SLUICE_PROFILE=/tmp/profile", "SLUICE_PROFILE_RATE=2000"], files={"/tmp/x": b""})
        zone = zones_of(process)[0]
        calls = Calls(process, zone, 17)
        for _ in range(8000):
            calls.one(600)
        self.assertEqual(sorted(live_blocks_of(process, zone)), calls.blocks.starts)
        while calls.blocks.starts:
            calls.free(process.main)
        self.assertEqual(live_blocks_of(process, zone), {})
        self.assertEqual(zone.check(), 1)
        self.assertEqual(process.system_word("system_faults"), 0)
        process.exit()
        self.assertIn("/tmp/profile", process.files.by_path)


class Frames(Case):
    def test_frame_memory_comes_and_goes(self):
        p = self.process
        state = p.array([0] * 16)
        for thread in (p.main, p.new_thread()):
            for size in (1000, 50_000, 500_000):
                p.uc.mem_write(state, bytes(128))
                chunk = p.sluice_frame_chunk_get(state, size, thread=thread)
                self.assertNotEqual(chunk, 0)
                end = p.read_word(chunk + 8)
                self.assertGreaterEqual(end - chunk, size)
                p.uc.mem_write(chunk + 64, b"f" * (size - 64))
                p.sluice_frame_chunk_put(chunk, thread=thread)

    @unittest.skipIf(SECURE, "there are no scopes")
    def test_objects_of_a_scope_are_apart_from_the_heap(self):
        p = self.process
        scope = p.array([0] * 8)
        outside = p.malloc(64)
        self.assertEqual(p.sluice_scope_enter(scope, 1), 0)
        inside = [p.malloc(64) for _ in range(100)]
        self.assertEqual({b - a for a, b in zip(inside, inside[1:])}, {80}, "one after the other, with a header")
        for block in reversed(inside):
            p.uc.mem_write(block, b"o" * 64)
            p.free(block)
        p.sluice_scope_leave(scope)
        p.free(outside)
        self.assertEqual(self.live_blocks(), {})


@unittest.skipUnless(STATIC, "what a program alone has")
class Program(unittest.TestCase):
    def test_it_finds_its_own_malloc_and_that_of_the_rest_of_the_process(self):
        process = new_process()
        self.assertEqual(process.run_own_main(), 0)
        self.assertEqual(process.system_word("system_faults"), 0)
        self.assertEqual(zones_of(process)[0].check(), 1)

    def test_what_its_constructors_allocate_may_end_in_libmalloc(self):
        for first in ("malloc", "calloc", "realloc", "valloc", "aligned_alloc", "malloc_type_malloc"):
            with self.subTest(first):
                process = new_process(start=False)
                arguments = {"calloc": (2, 5), "realloc": (0, 10), "aligned_alloc": (64, 10)}.get(first, (10,))
                block = getattr(process, first)(*arguments)
                self.assertEqual(process.malloc_zone_from_ptr(block), process.malloc_default_zone())
                process.unreached("free", block)
                process.start()
                self.assertEqual(process.system_word("system_faults"), 0)
                self.assertEqual([zone.name for zone in zones_of(process)].count("sluice"), 1)

    def test_it_takes_options(self):
        process = new_process(environment=["SLUICE_STATS=1"])
        self.assertEqual(process.run_own_main(), 0)
        process.exit()
        self.assertIn(b"sluice", process.written[2])


@unittest.skipUnless(SECURE, "what the secure build alone finds")
class Mistakes(unittest.TestCase):
    def process_that_goes_on(self):
        return new_process(environment=["SLUICE_ABORT_ON_CORRUPTION=0"])

    def expect(self, words, mistake, process=None):
        """The mistake stops the process, with words that name it."""
        process = process or new_process()
        with self.assertRaises(Aborted):
            mistake(process)
        self.assertRegex(process.written.get(2, b"").decode(), "sluice: " + words)

    def test_a_double_free_is_found_whichever_function_frees(self):
        for size in (1, 40, 5000, 500_000):
            for first in ("free", "zone", "default zone"):
                for second in ("free", "zone", "default zone", "realloc"):
                    with self.subTest(size=size, first=first, second=second):
                        def mistake(p):
                            zone = zones_of(p)[0]
                            ways = {"free": p.free, "zone": zone.free, "realloc": lambda block: p.realloc(block, 10),
                                    "default zone": lambda block: p.malloc_zone_free(p.malloc_default_zone(), block)}
                            block = p.malloc(size)
                            ways[first](block)
                            ways[second](block)
                        self.expect("(double free|realloc of a freed block)", mistake)

    def test_an_overflow_is_found_when_the_block_is_freed(self):
        for size in (1, 40, 200, 5000, 60_000):
            for end in ("free", "unreached", "realloc"):
                with self.subTest(size=size, end=end):
                    def mistake(p):
                        block = p.malloc(size)
                        p.uc.mem_write(block + size, b"!")
                        {"free": lambda: p.free(block), "unreached": lambda: p.unreached("free", block),
                         "realloc": lambda: p.realloc(block, 2 * size)}[end]()
                    self.expect("overflow", mistake)

    def test_a_write_to_a_freed_block_is_found_at_exit(self):
        def mistake(p):
            block = p.malloc(40)
            p.free(block)
            p.uc.mem_write(block + 16, b"!")
            p.exit()
        self.expect("write to free memory", mistake)

    def test_an_address_that_is_nobodys_is_reported(self):
        for place in ("scratch", "stack", "middle of a block"):
            with self.subTest(place):
                def mistake(p):
                    block = p.malloc(100)
                    p.free({"scratch": p.scratch + 32, "stack": p.main.stack + 64, "middle of a block": block + 16}[place])
                self.expect("invalid free", mistake)

    def test_a_process_may_go_on(self):
        p = self.process_that_goes_on()
        block = p.malloc(40)
        p.free(block)
        p.free(block)
        self.assertIn(b"double free", p.written[2])
        self.assertEqual(len({p.malloc(40) for _ in range(1000)}), 1000)

    def test_to_ask_for_the_size_of_what_is_no_block_is_no_mistake(self):
        p = new_process()
        zone = zones_of(p)[0]
        blocks = {size: p.malloc(size) for size in (1, 40, 5000, 500_000)}
        freed = p.malloc(40)
        p.free(freed)
        for size, block in blocks.items():
            self.assertEqual((p.malloc_size(block), zone.size(block)), (size, size))
            self.assertEqual((p.malloc_size(block + 16), zone.size(block + 16)), (0, 0))
        for nothing in (0, freed, p.scratch + 32):
            self.assertEqual((p.malloc_size(nothing), zone.size(nothing)), (0, 0))
        self.assertNotIn(2, p.written)

    def test_a_block_of_no_bytes_is_found_by_libmalloc(self):
        p = new_process()
        zone = zones_of(p)[0]
        makers = [lambda: p.malloc(0), lambda: p.calloc(0, 8), lambda: p.calloc(8, 0), lambda: p.aligned_alloc(64, 0),
                  lambda: p.realloc(p.malloc(9), 0), lambda: zone.malloc(0), lambda: zone.calloc(0, 0),
                  lambda: zone.realloc(p.malloc(9), 0), lambda: zone.malloc_type_malloc(0, 0), lambda: p.valloc(0)]
        for make in makers:
            block = make()
            self.assertEqual(p.malloc_zone_from_ptr(block), p.malloc_default_zone())
            p.unreached("free", block)
        self.assertEqual(p.system_word("system_faults"), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
