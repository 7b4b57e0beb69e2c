"""The heap profile of programs under libsluice.so: each site's blocks and bytes, threads, ends, children, mistakes.

Open it when SLUICE_PROFILE writes nothing, too much or the wrong sites. profile_subject.c says what is allocated.
"""

import os
import platform
import signal
import stat
import subprocess
import unittest

from preload_process import PreloadTest, main, paths
from pprof import Profile

# Blocks and bytes of each site of profile_subject; None: what is left at the end.
KNOWN = {"site_small": (1000, 100), "site_medium": (200, 5000), "site_large": (20, 300000), "site_zeroed": (100, 300),
         "site_aligned": (100, 640)}


class ProfileTest(PreloadTest):
    def profile_of(self, *arguments, rate="1", status=0, name="profile.pb", program="profile_subject", **variables):
        path = os.path.join(self.folder, name)
        done = self.run_program(paths[program], *arguments, SLUICE_PROFILE=path, SLUICE_PROFILE_RATE=rate, **variables)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr, "")
        return Profile(path)

    def sites(self, profile):
        return profile.by_site(paths["profile_subject"])


class Sites(ProfileTest):
    def test_at_a_rate_of_one_blocks_and_bytes_of_each_site_are_exact(self):
        profile = self.profile_of()
        sites = self.sites(profile)
        for name, (count, size) in KNOWN.items():
            self.assertEqual(sites[name]["inuse_objects"], count, name)
            self.assertEqual(sites[name]["inuse_space"], count * size, name)
            self.assertEqual(sites[name]["alloc_space"], count * size, name)
        dropped = sites["site_dropped"]
        self.assertEqual((dropped["alloc_objects"], dropped["alloc_space"]), (500, 100000))
        self.assertEqual((dropped["inuse_objects"], dropped["inuse_space"]), (0, 0))
        self.assertEqual(dropped["short_lived_objects"], 500)
        grown = sites["site_grown"]
        self.assertEqual((grown["inuse_objects"], grown["inuse_space"]), (1, 655360))
        self.assertEqual((profile.comments["sluice.dropped"], profile.comments["sluice.truncated"]), ("0", "0"))

    def test_a_growing_block_keeps_the_stack_of_its_first_allocation(self):
        profile = self.profile_of()
        name = profile.symbols(paths["profile_subject"])
        stacks = {tuple(sample.stack) for sample in profile.samples
                  if any(name(location) == "site_grown" for location in sample.stack)}
        self.assertEqual(len(stacks), 1)

    def test_sampled_sums_lie_within_the_error_of_sampling(self):
        for rate in (512, 4096):
            sites = self.sites(self.profile_of(rate=str(rate)))
            for name, (count, size) in KNOWN.items():
                p = 1 - 2.718281828459045 ** (-(size + 15) / rate)
                error = 6 * (count * (1 - p) / p) ** 0.5 + 2
                found = sites.get(name, {"inuse_objects": 0})["inuse_objects"]
                self.assertLess(abs(found - count), error, f"{name} at {rate}")

    def test_stacks_reach_the_start_of_the_program_and_leave_the_library_out(self):
        profile = self.profile_of()
        name = profile.symbols(paths["profile_subject"])
        for sample in profile.samples:
            names = [name(location) for location in sample.stack]
            if "main" in names:
                self.assertEqual(names[-1], "_start")
            for _, mapping in sample.stack:
                self.assertNotEqual(os.path.realpath(profile.mappings[mapping].file), os.path.realpath(paths["libsluice"]))
        self.assertTrue(any("main" in map(name, sample.stack) for sample in profile.samples))

    def test_mappings_have_files_and_build_ids(self):
        profile = self.profile_of()
        program = next(m for m in profile.mappings.values() if m.file == paths["profile_subject"])
        notes = subprocess.run(["readelf", "-n", program.file], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn(f"Build ID: {program.build_id}\n", notes)
        self.assertGreater(len(program.build_id), 15)

    @unittest.skipUnless(platform.machine() == "x86_64", "elsewhere all code is followed by its frame pointers")
    def test_stacks_go_on_through_code_without_tables_and_code_of_no_file(self):
        profile = self.profile_of("generated")
        name = profile.symbols(paths["profile_subject"])
        stacks = [list(map(name, sample.stack)) for sample in profile.samples]
        through = [stack for stack in stacks if "site_small" in stack]
        self.assertTrue(through)
        for stack in through:
            self.assertEqual(stack[stack.index("site_small"):][:4], ["site_small", "without_table", None, "generated"])
            self.assertEqual(stack[-1], "_start")
        self.assertEqual(profile.comments["sluice.truncated"], "0")

    @unittest.skipUnless(platform.machine() == "x86_64", "elsewhere frames on another stack are not followed")
    def test_stacks_go_on_where_go_changes_the_stack_and_end_where_others_do(self):
        for program, goes_on in (("profile_subject_go", True), ("profile_subject", False)):
            profile = self.profile_of("switched", program=program)
            name = profile.symbols(paths[program])
            stacks = [list(map(name, sample.stack)) for sample in profile.samples]
            through = [stack for stack in stacks if "site_small" in stack]
            self.assertTrue(through)
            for stack in through:
                inner = stack[stack.index("site_small"):]
                self.assertEqual(inner[:2], ["site_small", "on_another_stack"])
                self.assertEqual((len(inner) > 2, inner[-1] == "_start"), (goes_on, goes_on), inner)
            self.assertEqual(profile.comments["sluice.truncated"] == "0", goes_on)

    def test_stacks_go_on_where_the_parts_of_a_program_lie_apart(self):
        profile = self.profile_of(program="profile_subject_apart")
        self.assertEqual(profile.comments["sluice.truncated"], "0")
        self.assertGreater(int(profile.comments["sluice.samples"]), 1000)

    def test_what_is_sampled_is_sampled_also_while_blocks_are_guarded_and_counted(self):
        for variables in ({"SLUICE_GUARD_RATE": "3"}, {"SLUICE_STATS": "json:/dev/null"},
                          {"SLUICE_GUARD_RATE": "2", "SLUICE_STATS": "json:/dev/null"}):
            sites = self.sites(self.profile_of(**variables))
            for name, (count, size) in KNOWN.items():
                self.assertEqual(sites[name]["inuse_space"], count * size, f"{name} {variables}")


class ThreadsAndHandlers(ProfileTest):
    def test_threads_are_told_by_name_and_frees_elsewhere_are_counted(self):
        profile = self.profile_of("threads")
        name = profile.symbols(paths["profile_subject"])
        objects = {}
        for sample in profile.samples:
            if any(name(location) == "site_in_thread" for location in sample.stack):
                key = sample.labels["thread"]
                objects[key] = objects.get(key, 0) + sample.values["alloc_objects"]
        self.assertEqual(objects, dict.fromkeys(("first", "second", "third", "fourth"), 250))
        site = self.sites(profile)["site_in_thread"]
        self.assertEqual((site["inuse_objects"], site["freed_elsewhere_objects"]), (500, 500))

    def test_handlers_allocate_and_their_stacks_go_on_with_what_they_interrupted(self):
        profile = self.profile_of("handlers")
        name = profile.symbols(paths["profile_subject"])
        site = self.sites(profile)["site_in_handler"]
        self.assertEqual((site["alloc_objects"], site["inuse_objects"]), (200, 100))
        for sample in profile.samples:
            names = [name(location) for location in sample.stack]
            if "site_in_handler" in names:
                self.assertIn("on_signal", names)
                self.assertIn("handlers", names)
                self.assertEqual(names[-1], "_start")

    def test_signals_in_the_middle_of_malloc_do_no_harm(self):
        for rate in ("1", "1000"):
            profile = self.profile_of("storm", rate=rate)
            self.assertGreater(int(profile.comments["sluice.samples"]), 100)


class Ends(ProfileTest):
    def test_every_end_of_a_process_writes_the_file(self):
        for mode, status in (("exit", 0), ("_exit", 0), ("quick_exit", 0), ("SIGTERM", -signal.SIGTERM)):
            profile = self.profile_of(mode, status=status, name=f"{mode}.pb")
            self.assertEqual(self.sites(profile)["site_small"]["inuse_objects"], 1000, mode)

    def test_each_signal_writes_a_file_of_its_own(self):
        self.profile_of("signals", SLUICE_PROFILE_SIGNAL="USR2")
        self.assertEqual(sorted(os.listdir(self.folder)), ["profile.pb", "profile.pb.1", "profile.pb.2", "profile.pb.3"])
        for i, name in enumerate(("profile.pb.1", "profile.pb.2", "profile.pb.3", "profile.pb")):
            sites = self.sites(Profile(os.path.join(self.folder, name)))
            self.assertEqual(sites["site_small"]["inuse_objects"], min(i + 1, 3) * 100, name)

    def test_nothing_but_the_file_is_left(self):
        self.profile_of()
        self.assertEqual(os.listdir(self.folder), ["profile.pb"])

    def test_statistics_and_the_profile_are_written_both(self):
        statistics = os.path.join(self.folder, "statistics.json")
        self.profile_of("_exit", SLUICE_STATS=f"json:{statistics}")
        self.assertGreater(os.path.getsize(statistics), 100)

    def test_a_forked_child_writes_only_where_the_name_has_its_pid(self):
        self.assertIn("site_small", self.sites(self.profile_of("children")))
        self.assertNotIn("site_in_child", self.sites(Profile(os.path.join(self.folder, "profile.pb"))))
        os.unlink(os.path.join(self.folder, "profile.pb"))
        done = self.run_program(paths["profile_subject"], "children", SLUICE_PROFILE=f"{self.folder}/%p.pb",
                                SLUICE_PROFILE_RATE="1")
        self.assert_ended_well(done)
        profiles = [Profile(os.path.join(self.folder, name)) for name in os.listdir(self.folder)]
        self.assertEqual(len(profiles), 2)
        self.assertEqual(len({profile.comments["sluice.pid"] for profile in profiles}), 2)
        (child,) = [sites for sites in map(self.sites, profiles) if "site_in_child" in sites]
        self.assertEqual(child["site_in_child"]["inuse_space"], 777)
        self.assertEqual(child["site_small"]["inuse_objects"], 1, "what was alive at the fork is alive in the child")

    def test_a_program_that_is_executed_has_a_profile_of_its_own(self):
        sites = self.sites(self.profile_of("exec"))
        self.assertEqual(sites["site_in_thread"]["alloc_objects"], 1000)
        self.assertNotIn("site_small", sites)

    def test_samples_of_a_library_that_was_closed_stay(self):
        profile = self.profile_of("library", paths["profile_library"])
        name = profile.symbols(paths["profile_subject"])
        found = [sample for sample in profile.samples if sample.labels["bytes"] == 352 and
                 any(name(location) == "library" for location in sample.stack)]
        self.assertEqual(sum(sample.values["inuse_space"] for sample in found), 3 * 321)
        files = {profile.mappings[mapping].file for sample in found for _, mapping in sample.stack[:1]}
        self.assertEqual(files, {paths["profile_library"]})
        library = profile.symbols(paths["profile_library"])
        self.assertEqual({library(sample.stack[0]) for sample in found}, {"allocate"})
        self.assertGreater(min(len(m.build_id) for m in profile.mappings.values() if m.file in files), 15)


class Options(ProfileTest):
    def test_without_the_option_nothing_is_written(self):
        done = self.run_program(paths["profile_subject"], SLUICE_PROFILE="", SLUICE_PROFILE_RATE="1")
        self.assert_ended_well(done)
        self.assertEqual((done.stderr, os.listdir(self.folder)), ("", []))

    def test_a_bad_rate_is_one_line_and_the_default(self):
        path = os.path.join(self.folder, "profile.pb")
        for bad in ("0", "often", "-1"):
            done = self.run_program(paths["profile_subject"], SLUICE_PROFILE=path, SLUICE_PROFILE_RATE=bad)
            self.assert_ended_well(done)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("SLUICE_PROFILE_RATE", done.stderr)
            self.assertEqual(Profile(path).period, 512 * 1024)

    def test_a_file_that_cannot_be_written_is_one_line(self):
        done = self.run_program(paths["profile_subject"], SLUICE_PROFILE=os.path.join(self.folder, "none", "file"))
        self.assert_ended_well(done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("sluice: profile: cannot write", done.stderr)

    def test_the_secure_library_says_that_it_takes_none(self):
        path = os.path.join(self.folder, "profile.pb")
        done = self.run_program(paths["profile_subject"], preload=paths["secure"], SLUICE_PROFILE=path)
        self.assert_ended_well(done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("libsluice-secure.so", done.stderr)
        self.assertFalse(os.path.exists(path))

    def test_a_profile_is_readable_as_files_are_made(self):
        self.profile_of()
        mode = stat.S_IMODE(os.stat(os.path.join(self.folder, "profile.pb")).st_mode)
        umask = os.umask(0)
        os.umask(umask)
        self.assertEqual(mode, 0o666 & ~umask)

    def test_little_address_space_makes_the_tables_small(self):
        path = os.path.join(self.folder, "profile.pb")
        for limit in (1 << 29, 1 << 27):
            done = subprocess.run(["prlimit", f"--as={limit}", paths["profile_subject"]], check=False,
                                  env=self.environment(SLUICE_PROFILE=path, SLUICE_PROFILE_RATE="4096"),
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0, f"{limit} {done.stderr}")


if __name__ == "__main__":
    main()
