"""Limits on address space that change as a program runs, and what the heap gives back before it says ENOMEM.

Open it when a request fails that would not fail without the preload. Run for both libraries.
"""

import resource

from preload_process import PreloadTest, main, paths

MIB = 1 << 20


class AddressSpace(PreloadTest):
    def assert_done(self, *words, soft=None):
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        prepare = None if soft is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        done = self.run_program(paths["changed_limits"], *words, prepare=prepare)
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), ("reached the end\n", ""))

    def test_a_soft_limit_at_the_start_binds_no_longer_than_it_holds(self):
        for soft in (128 * MIB, 500 * MIB):
            with self.subTest(soft=soft):
                self.assert_done("raised", soft=soft)

    def test_a_request_gets_what_was_freed_without_a_trim(self):
        for limit in ("200", "400"):
            with self.subTest(limit=limit):
                self.assert_done("freed", limit)

    def test_a_request_gets_the_address_space_of_what_was_freed_between_live_blocks(self):
        for limit in ("200", "400"):
            with self.subTest(limit=limit):
                self.assert_done("between", limit)

    def test_a_request_gets_what_threads_left_behind_that_ended_or_wait(self):
        self.assert_done("ended", "200")

    def test_locked_memory_is_not_given_back_by_making_it_anew(self):
        if self.run_program(paths["changed_limits"], "locked", preload="").stdout == "not permitted\n":
            self.skipTest("memory cannot be locked here")
        self.assert_done("locked")

    def test_what_the_system_promises_a_program_is_given_and_nothing_else(self):
        self.assert_done("huge")


if __name__ == "__main__":
    main()
