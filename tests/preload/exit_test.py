"""How a program ends under the preload: its exit status and output are its own, whatever becomes of the statistics.

Open it when a program ends with another status than it should, or dies while the statistics are printed.
"""

import os
import resource
import signal
import subprocess

from preload_process import LIMIT_SECONDS, PreloadTest, main, paths


class Exit(PreloadTest):
    def subject(self, *arguments, **options):
        return self.run_program(paths["stats_subject"], *arguments, **options)

    def test_status_is_kept_with_statistics(self):
        for status in (0, 1, 7, 255):
            done = self.subject("status", str(status), SLUICE_STATS="1")
            self.assertEqual((done.returncode, done.stdout), (status, "output\n"))
            self.assertTrue(done.stderr.startswith("sluice "))

    def test__exit_prints_and_keeps_the_status(self):
        done = self.subject("_exit", "5", SLUICE_STATS="1")
        self.assertEqual((done.returncode, done.stdout), (5, "output\n"))
        self.assertEqual(done.stderr.count("\ntotals\n"), 1)
        done = self.subject("_exit", "5")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "output\n", ""))

    def test_abort_stays_an_abort(self):
        done = self.subject("abort", SLUICE_STATS="1",
                            prepare=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        self.assertEqual((done.returncode, done.stdout), (-signal.SIGABRT, "output\n"))

    def test_closed_standard_error_is_survived(self):
        for mode in ("1", "json"):
            done = self.subject("status", "7", SLUICE_STATS=mode, stderr=None, prepare=lambda: os.close(2))
            self.assertEqual((done.returncode, done.stdout), (7, "output\n"))

    def test_all_descriptors_closed_is_survived(self):
        done = self.subject("status", "7", SLUICE_STATS="1", stdout=None, stderr=None,
                            prepare=lambda: os.closerange(0, 3))
        self.assertEqual(done.returncode, 7)

    def test_a_file_that_took_the_number_of_closed_standard_error_is_left_alone(self):
        # With stderr closed, the next file that the program opens gets number 2: the statistics must not land there.
        script = 'exec 2>&-; exec 2>"$1"; exec "$2" status 7'
        target = os.path.join(self.folder, "data")
        done = self.run_program("/bin/sh", "-c", script, "sh", target, paths["stats_subject"], preload="")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(os.path.getsize(target), 0)

    def test_full_device_is_survived(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.subject("status", "7", SLUICE_STATS="1", stderr=full)
        self.assertEqual((done.returncode, done.stdout), (7, "output\n"))
        done = self.subject("status", "7", SLUICE_STATS="json:/dev/full")
        self.assertEqual((done.returncode, done.stdout), (7, "output\n"))

    def test_broken_pipe_is_survived(self):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = self.subject("status", "7", SLUICE_STATS="1", stderr=writer,
                                prepare=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        finally:
            os.close(writer)
        self.assertEqual((done.returncode, done.stdout), (7, "output\n"))

    def test_file_that_cannot_be_written_costs_one_line(self):
        done = self.subject("status", "7", SLUICE_STATS="json:/nonexistent/folder/file.json")
        self.assertEqual((done.returncode, done.stdout), (7, "output\n"))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("/nonexistent/folder/file.json", done.stderr)

    def test_killed_by_a_signal_stays_so(self):
        process = subprocess.Popen([paths["stats_subject"], "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment(SLUICE_STATS="1"))
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.terminate()
        process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(process.returncode, -signal.SIGTERM)


class Options(PreloadTest):
    def stderr_with(self, **variables):
        done = self.run_program(paths["stats_subject"], "status", "3", **variables)
        self.assertEqual((done.returncode, done.stdout), (3, "output\n"), variables)
        return done.stderr

    def test_bad_value_costs_one_line_that_names_it(self):
        for name, value in (("RETAIN", "abc"), ("RETAIN", "-1"), ("RETAIN", "12Q"), ("PURGE_DELAY", "soon"),
                            ("STATS_CHILDREN", "maybe"), ("STATS_SIGNAL", "NOSUCH"), ("RESERVE", "1"),
                            ("CACHE", "99999999999999999999999999")):
            lines = self.stderr_with(**{f"SLUICE_{name}": value}).splitlines()
            self.assertEqual(len(lines), 1, lines)
            self.assertIn(f"SLUICE_{name}", lines[0])
            self.assertIn(value, lines[0])

    def test_unknown_name_costs_one_line_that_names_it(self):
        lines = self.stderr_with(SLUICE_NOSUCH="1").splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("SLUICE_NOSUCH", lines[0])

    def test_each_mistake_has_its_line(self):
        lines = self.stderr_with(SLUICE_NOSUCH="1", SLUICE_RETAIN="abc").splitlines()
        self.assertEqual(len(lines), 2, lines)

    def test_good_values_are_taken_silently(self):
        for variables in ({"SLUICE_RETAIN": "0"}, {"SLUICE_RETAIN": "64M"}, {"SLUICE_RETAIN": "1g"},
                          {"SLUICE_PURGE_DELAY": "0"}, {"SLUICE_CACHE": "0"}, {"SLUICE_CACHE": "16K"},
                          {"SLUICE_RESERVE": "64M"}, {"SLUICE_RESERVE": "4G"}, {"SLUICE_HUGE_PAGES": "on"},
                          {"SLUICE_STATS_SIGNAL": "SIGUSR2"}, {"SLUICE_STATS_SIGNAL": "12"}):
            self.assertEqual(self.stderr_with(**variables), "", variables)

    def test_mistakes_are_found_when_the_first_call_comes_before_libc_is_ready(self):
        done = self.run_program(paths["first_call"], "malloc", SLUICE_NOSUCH="1")
        self.assertEqual((done.returncode, done.stdout), (0, "reached the end\n"))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("SLUICE_NOSUCH", done.stderr)


if __name__ == "__main__":
    main()
