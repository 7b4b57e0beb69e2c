"""Huge pages: a large heap of small blocks lies in them without being told, and takes no more memory for it.

Open it when a heap grows slowly, or when memory stays that was given back. See tests/unit/huge_pages_fault_test.cpp for
when huge pages are asked for.
"""

import re
import unittest

from preload_process import PreloadTest, main, paths

MIB = 96
SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"


def setting():
    try:
        with open(SETTING, encoding="ascii") as file:
            return re.search(r"\[(\w+)\]", file.read()).group(1)
    except OSError:
        return "never"


class HugePages(PreloadTest):
    def measured(self, **options):
        """Returns the peak, what of it was huge, and what was left after a trim, in KiB."""
        done = self.run_program(paths["huge_pages"], str(MIB), **options)
        self.assert_ended_well(done)
        self.assertEqual(done.stderr, "")
        return tuple(map(int, done.stdout.split()))

    @unittest.skipUnless(setting() == "madvise", f"only where {SETTING} is madvise it shows who asked")
    def test_a_large_heap_has_some(self):
        # The system may have none left to give, or be slow to make them: then the heap asks for no more for a while.
        self.assertTrue(any(self.measured()[1] > 0 for _ in range(5)))
        self.assertEqual(self.measured(SLUICE_HUGE_SLABS="off")[1], 0)

    @unittest.skipUnless(setting() == "madvise", f"only where {SETTING} is madvise it shows who asked")
    def test_the_secure_build_asks_for_none(self):
        self.assertEqual(self.measured(preload=paths["secure"])[1], 0)

    def test_it_takes_no_more_memory(self):
        with_them, _, left = self.measured()
        without, _, left_without = self.measured(SLUICE_HUGE_SLABS="off")
        self.assertLess(with_them, without + 3 * 1024)
        self.assertLess(left, left_without + 1024)


if __name__ == "__main__":
    main()
