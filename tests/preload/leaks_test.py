"""Leaks of programs under libsluice.so: what SLUICE_PROFILE_LEAKS says of blocks whose fate is known.

Open it when a block that the program still has is called leaked, or a leaked one is not. leak_subject.cpp says what is
kept where.
"""

import os
import platform
import resource
import shutil
import subprocess
import unittest

from preload_process import PreloadTest, main, paths
from pprof import Profile


class LeaksTest(PreloadTest):
    def profile_of(self, *arguments, status=0, errors="", program=None, leaks="1", rate="1", **variables):
        path = os.path.join(self.folder, "profile.pb")
        done = self.run_program(program or paths["leak_subject"], *arguments, SLUICE_PROFILE=path, SLUICE_PROFILE_RATE=rate,
                                SLUICE_PROFILE_LEAKS=leaks, **variables)
        if done.returncode == 77:
            self.skipTest("no filter of system calls")
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(errors, done.stderr)
        if not errors:
            self.assertEqual(done.stderr, "")
        return Profile(path)

    def verdicts(self, *arguments, **variables):
        """Returns, by site, blocks that are alive, leaked directly and leaked indirectly."""
        profile = self.profile_of(*arguments, **variables)
        self.assertEqual(profile.comments["sluice.reachability"], "known")
        self.assertEqual(profile.comments["sluice.dropped"], "0")
        names = ("inuse_objects", "leaked_objects", "indirectly_leaked_objects")
        return {site: tuple(sums[name] for name in names)
                for site, sums in profile.by_site(paths["leak_subject"]).items() if site}


class Verdicts(LeaksTest):
    def test_what_nothing_points_to_is_leaked_directly_and_what_hangs_on_it_indirectly(self):
        expected = {"site_direct": (2, 2, 0), "site_head": (1, 1, 0), "site_chain": (9, 0, 9), "site_circle": (5, 1, 4)}
        self.assertEqual(self.verdicts("leaks"), expected)
        for rate in ("1", "2"):
            self.assertEqual(self.verdicts("leaks", SLUICE_GUARD_RATE=rate), expected)

    def test_indirect_leaks_name_the_site_that_leads_to_them(self):
        profile = self.profile_of("leaks")
        name = profile.symbols(paths["leak_subject"])
        leaders = {s.labels["site"]: name(s.stack[0]) for s in profile.samples if "site" in s.labels}
        led = {name(s.stack[0]): leaders[s.labels["under"]] for s in profile.samples if "under" in s.labels}
        self.assertEqual(led, {"site_chain": "site_head", "site_circle": "site_circle"})

    def test_blocks_are_found_wherever_a_program_keeps_pointers(self):
        reached, leaked = (1, 0, 0), (1, 1, 0)
        expected = {
            "site_in_tls": reached, "site_interior": reached, "site_in_mapping": reached,
            "site_in_shared_mapping": reached, "site_large": reached, "site_in_large": reached,
            "site_in_library": reached, "site_specific": reached, "site_no_bytes": reached, "site_closed": reached, "site_tagged_low": reached,
            "site_tagged_high": leaked, "site_behind_end": leaked, "site_self": leaked, "site_unaligned": leaked}
        self.assertEqual(self.verdicts("places", paths["leak_library"]), expected)
        self.assertEqual(self.verdicts("places", paths["leak_library"], SLUICE_GUARD_RATE="1")["site_in_large"], reached)

    def test_threads_that_live_keep_what_is_on_their_stacks_and_those_that_have_ended_do_not(self):
        self.assertEqual(self.verdicts("threads"), {
            "site_in_ended_thread": (3, 3, 0), "site_in_living_thread": (1, 0, 0), "site_in_thread_tls": (1, 0, 0),
            "site_passed_to_thread": (1, 0, 0), "site_in_result": (1, 0, 0)})

    @unittest.skipIf(platform.machine() != "x86_64", "the registers of this machine are others")
    def test_the_stack_and_the_registers_of_the_thread_that_calls_exit_count_and_what_it_has_left_does_not(self):
        self.assertEqual(self.verdicts("exit"), {"site_on_stack": (1, 0, 0), "site_in_register": (1, 0, 0)})
        self.assertEqual(self.verdicts("exit_without"), {"site_on_stack": (1, 1, 0), "site_in_register": (1, 1, 0)})

    def test_nothing_is_leaked_by_containers_that_are_alive(self):
        profile = self.profile_of("containers")
        self.assertEqual(sum(s.values["inuse_objects"] for s in profile.samples), 102)
        for name in ("leaked_objects", "leaked_space", "indirectly_leaked_objects", "indirectly_leaked_space"):
            self.assertEqual(sum(s.values[name] for s in profile.samples), 0)

    def test_all_ends_of_a_process_say_it(self):
        self.assertEqual(self.verdicts("_exit", status=3), {"site_direct": (1, 1, 0)})
        self.assertEqual(self.verdicts("signal", status=-15), {"site_direct": (1, 1, 0)})
        self.assertEqual(self.verdicts("nothing"), {})


class Births(LeaksTest):
    def test_each_profile_says_which_blocks_were_born_after_the_ones_before(self):
        final = self.profile_of("between", SLUICE_PROFILE_SIGNAL="USR2")
        path = os.path.join(self.folder, "profile.pb")
        born = []
        for number, profile in enumerate((Profile(path + ".1"), Profile(path + ".2"), final), 1):
            self.assertEqual(profile.comments["sluice.number"], str(number))
            name = profile.symbols(paths["leak_subject"])
            sums = {}
            for s in profile.samples:
                key = name(s.stack[0]), s.labels.get("born", 0)
                sums[key] = sums.get(key, 0) + s.values["inuse_objects"]
            born.append({key: count for key, count in sums.items() if count})
        first = {("site_first", 0): 10}
        second = {("site_first", 0): 5, ("site_first", 1): 5, ("site_second", 1): 20}
        self.assertEqual(born, [first, second, {**second, ("site_third", 2): 31}])
        leaked = [s for s in final.samples if s.values["leaked_objects"]]
        self.assertEqual([(s.labels["born"], s.values["leaked_objects"]) for s in leaked], [(2, 1)])


class Refusals(LeaksTest):
    def assert_unknown(self, profile, why):
        self.assertEqual(profile.comments["sluice.reachability"], f"unknown: {why}")
        self.assertNotIn("leaked_objects", profile.types)
        self.assertEqual(profile.by_site(paths["leak_subject"])["site_direct"]["inuse_objects"], 1)

    def test_without_a_copy_of_the_process_the_profile_says_that_it_does_not_know(self):
        self.assert_unknown(self.profile_of("refused"), "the system makes no copy of the process, which looks for pointers")

    def test_a_copy_that_ends_early_takes_nothing_with_it(self):
        self.assert_unknown(self.profile_of("ended"), "the copy of the process that looks for pointers has ended early")

    def test_samples_do_not_tell_what_is_leaked(self):
        profile = self.profile_of("leaks", rate="2", errors="SLUICE_PROFILE_LEAKS needs SLUICE_PROFILE_RATE=1")
        self.assertNotIn("sluice.reachability", profile.comments)

    def test_limited_address_space_suffices(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
        self.assertEqual(self.verdicts("leaks", prepare=limit)["site_chain"], (9, 0, 9))


class RealPrograms(LeaksTest):
    def test_programs_end_as_ever(self):
        for program, *arguments in (("bash", "-c", "f() { local x=$(echo 1); echo $x; }; for i in 1 2 3; do f; done"),
                                    ("sqlite3", ":memory:", "create table t(x); insert into t values(1); select * from t"),
                                    ("python3", "-c", "import json, threading; print(json.dumps([1] * 1000))")):
            found = shutil.which(program)
            if found is None:
                continue
            expected = subprocess.run([found, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
            path = os.path.join(self.folder, f"{program}.%p.pb")
            done = self.run_program(found, *arguments, SLUICE_PROFILE=path, SLUICE_PROFILE_RATE="1",
                                    SLUICE_PROFILE_LEAKS="1")
            self.assert_ended_well(done)
            self.assertEqual((done.stdout, done.stderr), (expected, ""))
            files = [os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.startswith(program)]
            self.assertTrue(files)
            for file in files:
                self.assertEqual(Profile(file).comments["sluice.reachability"], "known")


if __name__ == "__main__":
    main()
