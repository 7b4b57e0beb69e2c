"""Every way to end a program, with handlers and objects that allocate and free after the statistics were printed: status
and output are the program's own, with statistics and without.

Open it when a program hangs or dies after its last line. What becomes of the statistics themselves is in exit_test.py.
"""

from preload_process import PreloadTest, main, paths

# These race with the end of their process: each is tried often.
RACES = {"exit-of-thread", "return-while-threads-run", "exit-while-threads-run", "pthread_exit-of-main"}


class Ending(PreloadTest):
    def ways(self):
        done = self.run_program(paths["ending"], "list", preload="")
        self.assertEqual(done.returncode, 0)
        ways = done.stdout.split()
        self.assertLessEqual(RACES, set(ways))
        return ways

    def end(self, way, **variables):
        done = self.run_program(paths["ending"], way, **variables)
        self.assertEqual((done.returncode, done.stdout), (7, "output\n"), (way, done.stderr))
        return done

    def test_is_the_programs_own_whatever_it_leaves_to_be_done(self):
        for way in self.ways():
            with self.subTest(way=way):
                self.end(way, preload="")
                for _ in range(20 if way in RACES else 2):
                    self.assertEqual(self.end(way).stderr, "")

    def test_is_the_programs_own_with_statistics_too(self):
        for way in self.ways():
            with self.subTest(way=way):
                for _ in range(20 if way in RACES else 2):
                    self.end(way, SLUICE_STATS=f"json:{self.folder}/{way}.json")
        dumps = self.dumps()
        self.assertEqual({name.removesuffix(".json") for name in dumps}, set(self.ways()))
        for dump in dumps.values():
            self.assertGreater(dump["mallocs"], 1000)
            self.assertEqual(dump["allocated_bytes"] - dump["freed_bytes"], dump["live_bytes"])


if __name__ == "__main__":
    main()
