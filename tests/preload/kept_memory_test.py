"""Memory that a program wants to keep: what mallopt's thresholds do, and mlockall under a limit.

Open it when a program that asks for steady times waits for the system, or keeps memory that it does not want. Run for
both libraries.
"""

import resource

from preload_process import PreloadTest, main, paths

MIB = 1 << 20
FILLED = 96  # MiB; see kept_memory.c
SIZES = (1000, 100_000, 500_000, 2 * MIB, 6 * MIB)


class KeptMemory(PreloadTest):
    def printed(self, *words, delay="0", **arguments):
        # Nothing is kept, but by the program's own words or with delay="never".
        done = self.run_program(paths["kept_memory"], *words, SLUICE_PURGE_DELAY=delay, SLUICE_RETAIN="0", **arguments)
        self.assert_ended_well(done)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def kept(self, size, *words):
        return int(self.printed(*words, f"free={size}")[0])

    def test_without_a_word_free_pages_go_back(self):
        for size in SIZES[:3]:
            with self.subTest(size=size):
                self.assertLess(self.kept(size), FILLED / 4)

    def test_a_negative_trim_threshold_keeps_all_but_for_a_trim(self):
        for size in SIZES:
            with self.subTest(size=size):
                kept, left = self.printed("trim=-1", f"free={size}", "trim")
                self.assertGreater(int(kept), FILLED * 7 / 8)
                self.assertLess(int(left), FILLED / 4)

    def test_a_delay_that_never_ends_keeps_all_but_for_a_trim(self):
        for size in SIZES:
            with self.subTest(size=size):
                kept, left = self.printed(f"free={size}", "trim", delay="never")
                self.assertGreater(int(kept), FILLED * 7 / 8)
                self.assertLess(int(left), FILLED / 4)

    def test_what_is_cleared_when_it_is_freed_stays_in_memory_then(self):
        for size in SIZES:
            with self.subTest(size=size):
                kept = int(self.printed(f"free={size}", delay="never", SLUICE_ZERO_ON_FREE="1")[0])
                self.assertGreater(kept, FILLED * 7 / 8)

    def test_a_program_may_say_less_than_a_delay_that_never_ends(self):
        for size in SIZES[:3]:
            with self.subTest(size=size):
                kept = int(self.printed(f"trim={32 * MIB}", f"free={size}", delay="never")[0])
                self.assertLess(kept, 32 + 12)

    def test_a_trim_threshold_keeps_free_pages_until_there_are_more(self):
        for size in SIZES[:3]:
            with self.subTest(size=size):
                # The secure build counts guards, as much again.
                self.assertGreater(self.kept(size, f"trim={256 * MIB}"), FILLED * 7 / 8)
                self.assertLess(self.kept(size, f"trim={32 * MIB}"), 32 + 12)

    def test_an_mmap_threshold_gives_larger_blocks_back_at_once(self):
        if paths["libsluice"].endswith("-secure.so"):
            self.skipTest("the secure build keeps them for its checks")
        for size, stays in ((2 * MIB, False), (MIB, False), (500_000, True), (1000, True)):
            with self.subTest(size=size):
                kept = self.kept(size, "trim=-1", f"mmap={MIB}")
                (self.assertGreater if stays else self.assertLess)(kept, FILLED / 2)

    def test_where_no_block_has_a_mapping_none_goes_back_at_once(self):
        for words in (("mmap_max=0", f"mmap={MIB}"), (f"mmap={MIB}", "mmap_max=0")):
            with self.subTest(words=words):
                self.assertGreater(self.kept(2 * MIB, "trim=-1", *words), FILLED * 7 / 8)

    def test_what_a_thread_keeps_that_is_alone_goes_back_when_it_makes_another(self):
        done = self.run_program(paths["kept_memory"], "cycle=900000", "trim_of_another")
        self.assert_ended_well(done)
        self.assertLess(int(done.stdout), 3)  # of 12

    def test_a_small_program_may_lock_all_its_memory_and_has_room_left(self):
        hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
        limit = 8 * MIB if hard == resource.RLIM_INFINITY else min(hard, 8 * MIB)
        if limit < 6 * MIB:
            self.skipTest(f"only {limit} bytes may be locked here")
        alone = self.printed(f"lock={limit}", "fill=100000", preload="")
        if alone[0] != "locked":
            self.skipTest(f"without the preload it is {alone[0]}, too")
        here = self.printed(f"lock={limit}", "fill=100000")
        self.assertEqual(here[0], "locked")
        # In the secure build the guard behind each block counts, too.
        part = 4 if paths["libsluice"].endswith("-secure.so") else 2
        self.assertGreaterEqual(int(here[1]), int(alone[1]) / part)


if __name__ == "__main__":
    main()
