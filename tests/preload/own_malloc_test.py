"""Programs that define a part of malloc's family themselves: what is theirs is passed on to them.

Open it when such a program stops under the secure build. own_malloc.cpp and own_new.cpp say what they do.
"""

import os

from preload_process import PreloadTest, main, paths

LINE = ("sluice: this program has a malloc of its own, which operator new and delete are passed on to and no report "
        "is of\n")


class OwnMalloc(PreloadTest):
    def expect(self, program, library, output, errors="", **variables):
        done = self.run_program(paths[program], preload=paths[library], **variables)
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), (output, errors))

    def test_operator_new_and_delete_are_those_of_a_program_with_its_own_malloc(self):
        self.expect("own_malloc", "libsluice", "operator new calls malloc\n")
        self.expect("own_malloc", "secure", "operator new calls malloc\n", LINE)

    def test_they_are_so_with_guarded_blocks_and_exact_counts(self):
        for library in ("libsluice", "secure"):
            self.expect("own_malloc", library, "operator new calls malloc\n", LINE, SLUICE_GUARD_RATE="1")
            self.expect("own_malloc", library, "operator new calls malloc\n", LINE,
                        SLUICE_STATS=f"json:{self.folder}/%p.json")
            ((name, dump),) = self.dumps().items()
            os.remove(os.path.join(self.folder, name))
            self.assertGreater(dump["foreign"]["frees"], 100)
            self.assertEqual(dump["foreign"]["frees"], dump["foreign"]["passed_to_libc"])

    def test_what_it_leaks_is_unknown(self):
        profile = os.path.join(self.folder, "profile")
        self.expect("own_malloc", "libsluice", "operator new calls malloc\n", LINE, SLUICE_PROFILE=profile,
                    SLUICE_PROFILE_RATE="1", SLUICE_PROFILE_LEAKS="1")
        with open(profile, "rb") as file:
            self.assertIn(b"sluice.reachability=unknown: the program has a malloc of its own", file.read())

    def test_a_malloc_that_wraps_ours_changes_nothing(self):
        for library in ("libsluice", "secure"):
            self.expect("own_malloc_wraps", library, "operator new does not call malloc\n")

    def test_a_program_may_have_operator_new_alone(self):
        for library in ("libsluice", "secure"):
            self.expect("own_new", library, "both are used\n")


if __name__ == "__main__":
    main()
