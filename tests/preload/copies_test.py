"""Several copies of the library in one process: the one that serves reports, the others are silent, and one line says so
where anything was asked for.

Open it when a program that links libsluice.a, or has a library that does, gets two reports under the preload, or an
empty one. copies.c says what the program does.
"""

import os

from pprof import Profile
from preload_process import PreloadTest, main, paths

MALLOCS = 1011  # of the program, with libc's buffer for stdout


def line(serving, aside):
    """Returns what a copy says that stands aside."""
    return (f"sluice: two copies of Sluice are in this process: that of {serving} serves and reports, that of {aside} "
            "stands aside\n")


class Copies(PreloadTest):
    def expect(self, program, errors, preload=None, **variables):
        done = self.run_program(paths[program], preload=preload, **variables)
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), ("done\n", errors))

    def statistics(self, program, errors, preload=None):
        self.expect(program, errors, preload, SLUICE_STATS=f"json:{self.folder}/dump.json")
        ((_, dump),) = self.dumps().items()
        os.remove(os.path.join(self.folder, "dump.json"))
        return dump

    def profile(self, program, errors, preload=None):
        file = os.path.join(self.folder, "profile")
        self.expect(program, errors, preload, SLUICE_PROFILE=file, SLUICE_PROFILE_RATE="1", SLUICE_PROFILE_LEAKS="1")
        profile = Profile(file)
        os.remove(file)
        return profile

    def leaked_blocks(self, profile):
        return sum(sample.values.get("leaked_objects", 0) for sample in profile.samples)

    def test_a_program_with_its_own_copy_reports_by_it_with_and_without_the_preload(self):
        said = line("the program itself", paths["libsluice"])
        for preload, errors in (("", ""), (None, said)):
            self.assertEqual(self.statistics("program", errors, preload)["mallocs"], MALLOCS)
            self.assertEqual(self.leaked_blocks(self.profile("program", errors, preload)), 10)

    def test_nothing_is_said_where_nothing_is_asked_for(self):
        self.expect("program", "")
        self.expect("program", "", SLUICE_PURGE_DELAY="10", SLUICE_STATS="0")
        self.expect("program", "", SLUICE_STATS="1", SLUICE_STATS_PROGRAM="another")

    def test_it_is_said_of_every_report(self):
        for variable, value in (("SLUICE_STATS_SIGNAL", "USR2"), ("SLUICE_GUARD_RATE", "1000000"), ("SLUICE_ATTACH", "1")):
            self.expect("program", line("the program itself", paths["libsluice"]), **{variable: value})

    def test_the_text_table_is_printed_once(self):
        for preload in (None, ""):
            done = self.run_program(paths["program"], preload=preload, SLUICE_STATS="1")
            self.assert_ended_well(done)
            self.assertEqual(done.stderr.count("requested"), 1)

    def test_the_secure_library_always_says_that_it_does_not_serve(self):
        said = line("the program itself", paths["secure"])
        self.expect("program", said, paths["secure"])
        self.assertEqual(self.statistics("program", said, paths["secure"])["mallocs"], MALLOCS)

    def test_a_copy_in_a_library_serves_where_there_is_no_preload(self):
        self.assertEqual(self.statistics("in_whole", "", "")["mallocs"], MALLOCS)

    def test_the_preload_serves_a_library_with_a_copy(self):
        said = line(paths["libsluice"], paths["whole"])
        self.expect("in_whole", "")
        self.assertEqual(self.statistics("in_whole", said)["mallocs"], MALLOCS)
        self.assertEqual(self.leaked_blocks(self.profile("in_whole", said)), 10)

    def test_a_copy_that_a_library_keeps_to_itself_does_not_report_beside_the_preload(self):
        said = line(paths["libsluice"], paths["own"])
        self.expect("in_own", "")
        self.assertEqual(self.statistics("in_own", said)["mallocs"], MALLOCS - 1000)
        self.assertEqual(self.leaked_blocks(self.profile("in_own", said)), 10)


if __name__ == "__main__":
    main()
