"""libsluice.so beside another preloaded malloc, before and behind it: the first of the list serves, and the program does
what it does with that one alone.

Open it when a program hangs or dies at its start with two allocators in LD_PRELOAD.
"""

import ctypes.util
import os
import re

from preload_process import PreloadTest, main, paths

# What the loader finds by itself under these names.
OTHERS = ("libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4")


def is_installed(name):
    return ctypes.util.find_library(re.match(r"lib(.*)\.so", name).group(1)) is not None


class OtherAllocators(PreloadTest):
    def each(self):
        installed = [name for name in OTHERS if is_installed(name)]
        for name in set(OTHERS) - set(installed):
            print(f"left out: {name} is not installed")
        if not installed:
            self.skipTest("no other allocator is installed")
        return installed

    def programs(self):
        yield [paths["entry_points"], "good"]
        yield [paths["traffic"], "4"]
        for call in ("malloc", "free-null", "calloc", "memalign", "posix_memalign", "malloc_trim",
                     "malloc-after-40-keys"):
            yield [paths["first_call"], call]
        yield [paths["loading"], paths["allocating_library"]]

    def test_that_comes_behind_is_not_used(self):
        for other in self.each():
            for command in self.programs():
                with self.subTest(other=other, command=command):
                    done = self.run_program(*command, preload=f"{paths['libsluice']}:{other}",
                                            SLUICE_STATS=f"json:{self.folder}/last.json")
                    self.assert_ended_well(done)
                    self.assertEqual(done.stderr, "")
                    self.assertGreater(self.dumps()["last.json"]["mallocs"], 10)
                    os.remove(os.path.join(self.folder, "last.json"))

    def test_that_comes_first_serves_as_it_does_alone(self):
        for other in self.each():
            for command in self.programs():
                with self.subTest(other=other, command=command):
                    alone = self.run_program(*command, preload=other)
                    done = self.run_program(*command, preload=f"{other}:{paths['libsluice']}")
                    self.assertEqual((done.returncode, done.stdout, done.stderr),
                                     (alone.returncode, alone.stdout, alone.stderr))


if __name__ == "__main__":
    main()
