"""Programs that end by a signal or by _exit print their statistics, and end as they would without.

Open it when a dump is missing at such an end, when there is one too many, or when a program finds its signals changed.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from preload_process import LIMIT_SECONDS, PreloadTest, main, paths

WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ends(PreloadTest):
    def start(self, *command, prepare=None, preload=None, **variables):
        """Starts a program and waits for its "ready". It has a time limit."""
        variables.setdefault("SLUICE_STATS", f"json:{self.folder}/%p.json")
        process = subprocess.Popen(command, env=self.environment(preload, **variables), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=prepare)
        dog = threading.Timer(LIMIT_SECONDS, process.kill)
        dog.start()
        self.addCleanup(dog.cancel)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n", command)
        return process

    def end(self, process, number, ends_by=None):
        process.send_signal(number)
        out, err = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(process.returncode, -number if ends_by is None else ends_by, err)
        return out, err

    def the_dump_of(self, process):
        """The only dump, taken out of the folder."""
        dumps = self.dumps()
        self.assertEqual(list(dumps), [f"{process.pid}.json"])
        os.remove(f"{self.folder}/{process.pid}.json")
        self.assertEqual(os.listdir(self.folder), [])
        (dump,) = dumps.values()
        self.assertEqual(dump["allocated_bytes"] - dump["freed_bytes"], dump["live_bytes"])
        return dump

    def test_a_signals_default_action_prints_and_ends_as_ever(self):
        for number in WATCHED:
            process = self.start(paths["ends_subject"], "wait")
            self.assertEqual(self.end(process, number), ("", ""))
            self.assertGreater(self.the_dump_of(process)["mallocs"], 0)

    def test_the_dump_goes_to_standard_error_too(self):
        _, err = self.end(self.start(paths["ends_subject"], "wait", SLUICE_STATS="1"), signal.SIGTERM)
        self.assertEqual(err.count("\ntotals\n"), 1)

    def test_other_signals_and_no_statistics_are_as_ever(self):
        self.end(self.start(paths["ends_subject"], "wait"), signal.SIGUSR1)
        self.end(self.start(paths["ends_subject"], "wait"), signal.SIGKILL)
        for variables in ({"SLUICE_STATS": "0"}, {"SLUICE_STATS": "", "SLUICE_STATS_SIGNAL": "USR2"},
                          {"SLUICE_STATS_PROGRAM": "another"}):
            self.assertEqual(self.end(self.start(paths["ends_subject"], "wait", **variables), signal.SIGTERM), ("", ""))
        self.assertEqual(self.dumps(), {})

    def test_a_program_does_not_see_that_its_signals_are_watched(self):
        for ignored in (False, True):
            prepare = (lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) if ignored else None
            seen = []
            for preload in ("", None):
                done = self.run_program(paths["ends_subject"], "actions", preload=preload, prepare=prepare, SLUICE_STATS="json:/dev/null")
                self.assertEqual(done.returncode, 0)
                seen.append(done.stdout)
            self.assertEqual(seen[0].splitlines()[0], "DDDDII" if ignored else "DDDDDD")
            self.assertEqual(seen[1], seen[0])

    def test_what_is_ignored_at_the_start_stays_so(self):
        process = self.start(paths["ends_subject"], "wait", prepare=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(process.returncode, 0)
        self.the_dump_of(process)

    def test_a_programs_own_handler_is_called(self):
        for how in ("sigaction", "signal"):
            process = self.start(paths["ends_subject"], "own", how)
            self.end(process, signal.SIGTERM, ends_by=9)
            self.the_dump_of(process)

    def test_a_program_that_cleans_up_and_raises_the_signal_again_prints(self):
        for how in ("sigaction", "signal", "bsd_signal", "ssignal", "sysv_signal", "sigset"):
            process = self.start(paths["ends_subject"], "clean-up", how)
            self.end(process, signal.SIGTERM)
            self.the_dump_of(process)

    def test_python_is_interrupted_as_ever(self):
        code = "try:\n  print('ready', flush=True)\n  import time; time.sleep(100)\nexcept KeyboardInterrupt: print('caught')"
        process = self.start(sys.executable, "-c", code)
        self.assertEqual(self.end(process, signal.SIGINT, ends_by=0), ("caught\n", ""))
        self.the_dump_of(process)

    def test_a_signal_in_the_middle_of_an_allocation_prints_and_ends(self):
        for threads in ("0", "1", "6"):
            for _ in range(15):
                process = self.start(paths["ends_subject"], "busy", threads)
                self.assertEqual(self.end(process, signal.SIGTERM), ("", ""))
                self.assertGreater(self.the_dump_of(process)["mallocs"], 0)

    def slowed(self, calls, microseconds):
        """A command in front of a program whose system calls of that name (a regular expression) take so much longer."""
        slow = ("strace", "-D", "-f", "-o", os.devnull, "-e", f"trace=/{calls}", "-e", f"inject=/{calls}:delay_enter={microseconds}")
        if shutil.which("strace") is None or subprocess.run([*slow, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no strace that may trace and delay calls")
        return (*slow, "-E", f"LD_PRELOAD={paths['libsluice']}", paths["ends_subject"])

    def test_a_thread_that_prints_while_the_handler_orders_its_next_attempt_is_left_to_it(self):
        for _ in range(10):
            process = self.start(*self.slowed("timer_settime", 3000), "busy", "6", preload="")
            self.end(process, signal.SIGTERM)
            self.assertGreater(self.the_dump_of(process)["mallocs"], 0)

    def test_a_signal_that_comes_twice_at_once_prints(self):
        def prints(second):
            process = self.start(*self.slowed("^rename", 50000), "wait", preload="")
            process.send_signal(signal.SIGTERM)
            time.sleep(0.01)
            process.send_signal(second)
            process.communicate(timeout=LIMIT_SECONDS)
            return f"{process.pid}.json" in self.dumps()

        for second in (signal.SIGTERM, signal.SIGHUP):
            self.assertTrue(any(prints(second) for _ in range(5)))  # on a busy machine they may not come at once

    def test_a_signal_ends_a_program_whose_dump_nobody_reads(self):
        process = self.start(paths["ends_subject"], "full", SLUICE_STATS="1")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=LIMIT_SECONDS), -signal.SIGTERM)
        process.communicate()

    def test_a_second_signal_ends_it_at_once(self):
        process = self.start(paths["ends_subject"], "full", SLUICE_STATS="1")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)  # what comes within 0.2 s counts as the same
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(timeout=LIMIT_SECONDS), -signal.SIGHUP)
        process.communicate()

    def test__exit_in_a_handler_that_interrupts_an_allocation_ends_the_program(self):
        for _ in range(15):
            done = self.run_program(paths["ends_subject"], "late", SLUICE_STATS=f"json:{self.folder}/%p.json")
            self.assertEqual(done.returncode, 5)
            (dump,) = self.dumps().values() if done.stderr == "" else (None,)
            self.assertIn(len(done.stderr.splitlines()), (0, 1))
            if dump is not None:
                os.remove(f"{self.folder}/{dump['pid']}.json")

    def test_a_child_of_vfork_prints_nothing(self):
        for children in ("0", "1"):
            done = self.run_program(paths["ends_subject"], "vfork", SLUICE_STATS="1", SLUICE_STATS_CHILDREN=children)
            self.assert_ended_well(done)
            self.assertEqual(done.stderr.count("\ntotals\n"), 1)

    def test_children_of_fork_print_when_asked(self):
        for how in ("_exit", "TERM"):
            for children, dumps in (("0", 1), ("1", 2)):
                done = self.run_program(paths["ends_subject"], "fork", how, SLUICE_STATS=f"json:{self.folder}/%p.json",
                                        SLUICE_STATS_CHILDREN=children)
                self.assert_ended_well(done)
                found = self.dumps()
                self.assertEqual(len(found), dumps, how)
                self.assertEqual(f"{done.stdout.strip()}.json" in found, children == "1")
                for name in found:
                    os.remove(os.path.join(self.folder, name))


if __name__ == "__main__":
    main()
