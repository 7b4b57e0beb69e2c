"""Guarded blocks: each kind of bug is reported with the words and traces that it deserves, and the process ends as it
should; programs without bugs are left in peace.

Open it when a report of SLUICE_GUARD_RATE is wrong or missing. guard_subject.c has one function for each bug.
"""

import os
import platform
import re
import signal
import subprocess
import unittest

from preload_process import PreloadTest, main, paths


class Guard(PreloadTest):
    def run_subject(self, case, rate=1, **variables):
        """Runs a case of the subject where `rate` is the rate of guarding; 0 leaves it off."""
        if rate != 0:
            variables["SLUICE_GUARD_RATE"] = str(rate)
        return self.run_program(paths["guard_subject"], case, **variables)

    def assert_reported(self, done, ending, first_line, *traces):
        """The process ended by the signal after one report; each trace is its heading and the functions that it names."""
        self.assertEqual(done.returncode, -ending, done.stderr)
        self.assertNotIn("went on", done.stdout)
        self.assert_report(done.stderr, first_line, *traces)

    def assert_report(self, text, first_line, *traces):
        lines = text.splitlines()
        self.assertRegex(lines[0], "^sluice: " + first_line + "$")
        headings = [i for i, line in enumerate(lines) if re.fullmatch(r"  \w+ by thread \d+ at:", line)]
        self.assertEqual([lines[i].split()[0] for i in headings], [heading for heading, *_ in traces], text)
        for (heading, *functions), start, end in zip(traces, headings, headings[1:] + [len(lines)]):
            frames = lines[start + 1:end]
            self.assertGreaterEqual(len(frames), len(functions), text)
            for number, frame in enumerate(frames):
                self.assertRegex(frame, rf"^    #{number} 0x[0-9a-f]+  \S+\+0x[0-9a-f]+( \(\S+\+0x[0-9a-f]+\))?$")
            for frame, function in zip(frames, functions):
                self.assertIn(f"({function}+", frame, f"{heading}: {text}")

    def test_a_write_after_the_end_faults_at_once(self):
        self.assert_reported(self.run_subject("write_after_the_end"), signal.SIGSEGV,
                             r"overflow: write at 0x\w+, 0 bytes after the end of a block of 48 bytes at 0x\w+",
                             ("done",), ("allocated", "the_allocator"))

    def test_a_read_far_after_the_end_faults_at_once(self):
        self.assert_reported(self.run_subject("read_far_after_the_end"), signal.SIGSEGV,
                             r"overflow: read at 0x\w+, \d+ bytes after the end of a block of 100000 bytes at 0x\w+",
                             ("done",), ("allocated", "the_allocator"))

    def test_a_write_before_the_start_faults_at_once(self):
        self.assert_reported(self.run_subject("write_before_the_start"), signal.SIGSEGV,
                             r"underflow: write at 0x\w+, 1 bytes before a block of 48 bytes at 0x\w+",
                             ("done",), ("allocated", "the_allocator"))

    def test_damage_between_the_end_and_the_page_is_found_by_free(self):
        self.assert_reported(self.run_subject("damage_after_the_end"), signal.SIGABRT,
                             r"overflow, found when the block was freed: a byte was written at 0x\w+, "
                             r"0 bytes after the end of a block of 25 bytes at 0x\w+",
                             ("allocated", "the_allocator"), ("freed", "the_freer"))

    def test_a_read_after_free_faults_and_names_both_threads(self):
        done = self.run_subject("read_after_free")
        self.assert_reported(done, signal.SIGSEGV,
                             r"use after free: read at 0x\w+, 8 bytes into a block of 24 bytes at 0x\w+",
                             ("done",), ("allocated", "the_allocator"), ("freed", "the_freer"))
        access, allocated, freed = re.findall(r"by thread (\d+) at:", done.stderr)
        self.assertEqual(access, allocated)
        self.assertNotEqual(allocated, freed)

    def test_a_write_after_free_faults(self):
        self.assert_reported(self.run_subject("write_after_free"), signal.SIGSEGV,
                             r"use after free: write at 0x\w+, 20000 bytes into a block of 30000 bytes at 0x\w+",
                             ("done",), ("allocated", "the_allocator"), ("freed", "the_freer"))

    def test_a_double_free_is_found(self):
        self.assert_reported(self.run_subject("free_twice"), signal.SIGABRT,
                             r"double free of (0x\w+), 0 bytes into a block of 24 bytes at \1",
                             ("done", "the_freer"), ("allocated", "the_allocator"), ("freed", "the_freer"))

    def test_resizing_a_freed_block_is_a_double_free(self):
        self.assert_reported(self.run_subject("resize_after_free"), signal.SIGABRT,
                             r"double free of (0x\w+), 0 bytes into a block of 24 bytes at \1",
                             ("done",), ("allocated", "the_allocator"), ("freed", "the_freer"))

    def test_a_free_inside_a_block_is_found(self):
        self.assert_reported(self.run_subject("free_inside"), signal.SIGABRT,
                             r"invalid free of 0x\w+, 100000 bytes into a block of 200000 bytes at 0x\w+",
                             ("done", "the_freer"), ("allocated", "the_allocator"))

    def test_the_process_goes_on_after_one_report_of_a_block_where_that_is_asked_for(self):
        for case, reports in (("write_after_the_end", 6), ("read_far_after_the_end", 8), ("write_before_the_start", 2),
                              ("damage_after_the_end", 1), ("read_after_free", 1), ("write_after_free", 1),
                              ("free_twice", 1), ("resize_after_free", 1), ("free_inside", 1)):
            with self.subTest(case):
                done = self.run_subject(case, SLUICE_GUARD_ABORT="0")
                self.assert_ended_well(done)
                self.assertEqual(done.stdout, "went on\n")
                self.assertEqual(len(re.findall("^sluice: ", done.stderr, re.M)), reports, done.stderr)

    def test_reports_go_to_a_file(self):
        done = self.run_subject("free_twice", SLUICE_GUARD_LOG=f"{self.folder}/%p.log")
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGABRT, ""))
        (name,) = os.listdir(self.folder)
        self.assertRegex(name, r"^\d+\.log$")
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            self.assert_report(file.read(), r"double free of .*", ("done", "the_freer"), ("allocated", "the_allocator"),
                               ("freed", "the_freer"))

    def test_leaks_are_listed_at_exit_by_where_they_come_from(self):
        done = self.run_subject("leak", SLUICE_GUARD_LEAKS="1")
        self.assert_ended_well(done)
        lines = done.stderr.splitlines()
        self.assertRegex(lines[0], r"^sluice: leaks: 5 guarded blocks with 200 bytes are still allocated, from 1 places$")
        self.assertRegex(lines[1], r"^  5 blocks with 200 bytes, the first allocated by thread \d+ at:$")
        self.assertIn("(the_allocator+", lines[2])

    def test_leaks_are_not_listed_unless_asked(self):
        done = self.run_subject("leak")
        self.assert_ended_well(done)
        self.assertEqual(done.stderr, "")

    def test_faults_of_others_end_the_process_as_without_guarding(self):
        for case in ("follow_null", "send_a_fault"):
            for rate in (0, 1):
                done = self.run_subject(case, rate)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (-signal.SIGSEGV, "", ""), (case, rate))

    def test_a_handler_of_the_program_gets_its_faults(self):
        self.assertEqual(self.run_subject("handle_own_fault").returncode, 33)

    def test_no_handler_is_there_while_guarding_is_off(self):
        self.assertEqual(self.run_subject("print_action", 0).stdout, "default\nwent on\n")
        self.assertEqual(self.run_subject("print_action", 1).stdout, "handler\nwent on\n")

    def test_a_child_of_a_fork_reports_and_leaves_the_parent_in_peace(self):
        done = self.run_subject("fault_in_child")
        self.assert_ended_well(done)
        self.assert_report(done.stderr, r"use after free: read at .*", ("done",), ("allocated", "the_allocator"),
                           ("freed", "the_freer"))

    def test_blocks_of_all_sizes_and_alignments_are_guarded_at_rate_1(self):
        done = self.run_subject("use_all_kinds")
        self.assert_ended_well(done)
        self.assertEqual(done.stderr, "")

    def test_the_rate_is_kept_to_on_average(self):
        for case in ("count_guarded", "count_guarded_in_scope"):
            for rate, low, high in ((0, 0, 0), (1, 10000, 10000), (10, 850, 1150), (90, 70, 160)):
                done = self.run_subject(case, rate)
                self.assert_ended_well(done)
                guarded = int(done.stdout.split()[0])
                self.assertTrue(low <= guarded <= high, (case, rate, guarded))

    def test_live_guarded_blocks_are_bounded_by_the_slots(self):
        for slots, low, high in ((1, 1, 1), (32, 20, 32), (1024, 800, 1024)):
            done = self.run_subject("count_live_guarded", SLUICE_GUARD_SLOTS=str(slots))
            self.assert_ended_well(done)
            guarded = int(done.stdout.split()[0])
            self.assertTrue(low <= guarded <= high, (slots, guarded))

    @unittest.skipUnless(platform.machine() == "x86_64", "the code is generated for x86-64")
    def test_code_whose_tables_were_registered_runs_on(self):
        for case in ("call", "unwind"):
            for library in (paths["libsluice"], paths["secure"]):
                done = self.run_program(paths["registered_code"], case, preload=library, SLUICE_GUARD_RATE="1")
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "went on\n", ""), (case, library))

    def test_real_programs_do_the_same_work(self):
        programs = (("python3", "-c", "import json; print(len(json.dumps([{'a': i} for i in range(20000)])))"),
                    ("sh", "-c", "x=; for i in 1 2 3 4 5 6 7 8 9; do x=$x$(echo $i); done; echo $x | sort"))
        for program in programs:
            plain = subprocess.run(program, env=self.environment(preload=""), capture_output=True, text=True, check=True)
            for rate in (1, 7, 1000):
                done = self.run_program(*program, SLUICE_GUARD_RATE=str(rate))
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, plain.stdout, ""), (program, rate))


if __name__ == "__main__":
    main()
