"""The statistics of a threaded program: the JSON is valid, its totals add up, and it counts what the program did.

Open it when a figure of SLUICE_STATS looks wrong. stats_subject.cpp says what the program allocates.
"""

import os
import signal
import subprocess
import threading

from preload_process import LIMIT_SECONDS, PreloadTest, main, paths


class Statistics(PreloadTest):
    def dump_of(self, *arguments, **variables):
        done = self.run_program(paths["stats_subject"], *arguments, SLUICE_STATS=f"json:{self.folder}/%p.json",
                                **variables)
        self.assert_ended_well(done)
        self.assertEqual(done.stderr, "")
        dumps = self.dumps()
        self.assertEqual(len(dumps), 1, dumps.keys())
        ((name, dump),) = dumps.items()
        self.assertEqual(name, f"{dump['pid']}.json")
        return dump

    def assert_adds_up(self, dump):
        self.assertEqual(dump["allocated_bytes"] - dump["freed_bytes"], dump["live_bytes"])
        large = dump["large"]
        self.assertEqual(large["allocated_bytes"] - large["freed_bytes"], large["live_bytes"])
        self.assertEqual(large["mallocs"] - large["frees"], large["live_spans"])
        for figures in dump["classes"]:
            size = figures["block_size"]
            self.assertEqual(figures["mallocs"] - figures["frees"], figures["live_blocks"], size)
            self.assertEqual(figures["allocated_bytes"], figures["mallocs"] * size)
            self.assertEqual(figures["freed_bytes"], figures["frees"] * size)
            self.assertEqual(figures["live_bytes"], figures["live_blocks"] * size)
            self.assertEqual(figures["allocated_bytes"] - figures["freed_bytes"], figures["live_bytes"], size)
            self.assertLessEqual(figures["requested_bytes"], figures["allocated_bytes"], size)
            self.assertLessEqual(figures["live_blocks"] + figures["cached_blocks"], figures["carved_blocks"], size)
            self.assertLessEqual(figures["carved_blocks"] * size, figures["slab_bytes"], size)
            self.assertGreaterEqual(figures["peak_live_blocks"], figures["live_blocks"], size)
        for total in ("mallocs", "frees", "requested_bytes", "allocated_bytes", "freed_bytes", "live_bytes"):
            parts = sum(figures[total] for figures in dump["classes"]) + large[total] if total in large else None
            if parts is not None:
                self.assertEqual(dump[total], parts, total)
        self.assertGreaterEqual(dump["peak_live_bytes"], dump["live_bytes"])
        self.assertGreaterEqual(dump["mapped_bytes"], dump["live_bytes"])
        self.assertGreaterEqual(dump["reserved_bytes"], dump["mapped_bytes"])
        self.assertGreaterEqual(dump["mapped_bytes"], dump["resident_bytes"])
        self.assertEqual(sum(dump["resident"].values()), dump["resident_bytes"])
        self.assertGreater(dump["resident_bytes"], 0)

    def test_totals_add_up_in_a_threaded_program(self):
        dump = self.dump_of()
        self.assertEqual(dump["schema"], "sluice-stats")
        self.assertEqual(dump["schema_version"], 1)
        self.assertEqual(dump["program"], "stats_subject")
        self.assertIs(dump["counting"], True)
        self.assert_adds_up(dump)
        self.assertGreater(dump["resident"]["slab_bytes"], 0)

    def test_totals_add_up_with_guarded_blocks(self):
        for rate in ("1", "10"):
            guarded = self.dump_of(SLUICE_GUARD_RATE=rate)
            self.assert_adds_up(guarded)
            if rate != "1":  # there all blocks may be guarded
                self.assertGreater(guarded["resident"]["slab_bytes"], 0)
            self.assertGreaterEqual(guarded["large"]["mallocs"], 1000)  # each guarded block is one
            self.assertGreaterEqual(guarded["mallocs"], 200000)
            os.remove(f"{self.folder}/{guarded['pid']}.json")

    def test_counts_are_exact(self):
        dump = self.dump_of()
        (rare,) = [figures for figures in dump["classes"] if 7000 <= figures["block_size"] < 7600]
        self.assertEqual(rare["mallocs"], 23)
        self.assertEqual(rare["frees"], 20)
        self.assertEqual(rare["live_blocks"], 3)
        self.assertEqual(rare["requested_bytes"], 23 * 7000)
        self.assertEqual(rare["peak_live_blocks"], 23)
        self.assertGreaterEqual(dump["large"]["mallocs"], 9)
        self.assertGreaterEqual(dump["large"]["live_bytes"], 2 * 3000000)
        self.assertLess(dump["large"]["live_bytes"], 2 * 3000000 + 256 * 300000 + (1 << 20))
        self.assertGreaterEqual(dump["large"]["peak_live_bytes"], 9 * 3000000)
        # 4 threads of mixed traffic with 50,000 steps of one to three allocations each.
        self.assertGreaterEqual(dump["mallocs"], 200000)
        self.assertLess(dump["mallocs"], 600000)

    def test_threads_are_counted(self):
        dump = self.dump_of()
        self.assertEqual(dump["threads"]["started"], 1 + 4 + 4 + 2)
        self.assertGreaterEqual(dump["threads"]["peak"], 2)
        self.assertLessEqual(dump["threads"]["peak"], 5)
        self.assertEqual(dump["threads"]["live"], 1)

    def test_system_calls_are_counted(self):
        calls = self.dump_of()["os"]
        self.assertGreaterEqual(calls["mmap_calls"], 1)
        self.assertEqual(calls["failed_calls"], 0)

    def test_foreign_pointers_are_counted(self):
        foreign = self.dump_of("foreign")["foreign"]
        self.assertEqual(foreign["frees"], 5)
        self.assertEqual(foreign["reallocs"], 3)
        self.assertEqual(foreign["usable_sizes"], 2)
        self.assertEqual(foreign["passed_to_libc"], 0)

    def test_a_program_without_foreign_pointers_has_none(self):
        foreign = self.dump_of()["foreign"]
        self.assertEqual((foreign["frees"], foreign["reallocs"], foreign["usable_sizes"]), (0, 0, 0))

    def test_text_starts_with_proof_of_interposition(self):
        process = subprocess.Popen([paths["stats_subject"]], env=self.environment(SLUICE_STATS="1"), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual((process.returncode, out), (0, ""))
        first = err.splitlines()[0]
        self.assertRegex(first, r"^sluice \d+\.\d+\.\d+")
        self.assertIn(str(process.pid), first)
        self.assertIn("stats_subject", first)
        self.assertGreater(len(err.splitlines()), 10)

    def test_text_goes_to_a_file(self):
        done = self.run_program(paths["stats_subject"], SLUICE_STATS=f"text:{self.folder}/%p.txt")
        self.assert_ended_well(done)
        self.assertEqual(done.stderr, "")
        (name,) = os.listdir(self.folder)
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            self.assertIn(name.removesuffix(".txt"), file.readline())

    def test_one_variable_may_ask_for_all(self):
        path = os.path.join(self.folder, "out.json")
        done = self.run_program(paths["stats_subject"], "status", "7", SLUICE_OPTIONS=f"STATS=json:{path},STATS_COUNT=0,NOPE=1")
        self.assertEqual((done.returncode, done.stdout), (7, "output\n"))
        self.assertRegex(done.stderr, r"\Asluice: SLUICE_OPTIONS: NOPE=1: no such option.*\n\Z")
        (dump,) = self.dumps().values()
        self.assertFalse(dump["counting"])

    def test_json_goes_to_standard_error(self):
        done = self.run_program(paths["stats_subject"], SLUICE_STATS="json")
        self.assert_ended_well(done)
        self.assertTrue(done.stderr.startswith("{"), done.stderr[:200])

    def test_nothing_is_printed_unless_asked(self):
        for variables in ({}, {"SLUICE_STATS": "0"}, {"SLUICE_STATS": ""}):
            done = self.run_program(paths["stats_subject"], **variables)
            self.assert_ended_well(done)
            self.assertEqual((done.stdout, done.stderr), ("", ""), variables)

    def test_forked_children_are_silent_unless_asked(self):
        done = self.run_program(paths["stats_subject"], "fork", SLUICE_STATS=f"json:{self.folder}/%p.json")
        self.assert_ended_well(done)
        (dump,) = self.dumps().values()
        self.assertNotEqual(dump["pid"], int(done.stdout))

    def test_forked_children_print_theirs_when_asked(self):
        done = self.run_program(paths["stats_subject"], "fork", SLUICE_STATS=f"json:{self.folder}/%p.json",
                                SLUICE_STATS_CHILDREN="1")
        self.assert_ended_well(done)
        dumps = self.dumps()
        self.assertEqual(len(dumps), 2)
        self.assertIn(int(done.stdout), [dump["pid"] for dump in dumps.values()])
        for dump in dumps.values():
            self.assert_adds_up(dump)

    def test_without_counts_a_dump_tells_what_is_there(self):
        dump = self.dump_of(SLUICE_STATS_COUNT="0")
        self.assertIs(dump["counting"], False)
        self.assertEqual((dump["mallocs"], dump["frees"], dump["peak_live_bytes"]), (0, 0, 0))
        (rare,) = [figures for figures in dump["classes"] if 7000 <= figures["block_size"] < 7600]
        self.assertEqual((rare["mallocs"], rare["frees"], rare["live_blocks"]), (0, 0, 3))
        self.assertEqual(dump["live_bytes"], sum(figures["live_bytes"] for figures in dump["classes"]) +
                         dump["large"]["live_bytes"] + dump["arena"]["live_bytes"])
        self.assertEqual(sum(dump["resident"].values()), dump["resident_bytes"])

    def test_a_signal_dumps_a_running_process(self):
        process = subprocess.Popen([paths["stats_subject"], "wait"], text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(SLUICE_STATS_SIGNAL="USR2"))
        dog = threading.Timer(LIMIT_SECONDS, process.kill)
        dog.start()
        try:
            self.assertEqual(process.stdout.readline(), "ready\n")
            for _ in range(3):
                process.send_signal(signal.SIGUSR2)
                line = process.stderr.readline()
                while line and not line.startswith("sluice "):
                    line = process.stderr.readline()
                self.assertRegex(line, rf"^sluice .*{process.pid}")
            out, err = process.communicate(timeout=LIMIT_SECONDS)
        finally:
            dog.cancel()
            process.kill()
        self.assertEqual((process.returncode, out), (0, ""))
        self.assertNotIn("sluice ", err, "nothing is printed at exit unless SLUICE_STATS says so")


if __name__ == "__main__":
    main()
