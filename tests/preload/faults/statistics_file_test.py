"""The file of SLUICE_STATS=json:FILE when the program is killed in the middle of it, the disk is full, or the file is no
ordinary one: a reader meets an earlier dump, the new one or none, and never a part.

Open it when a dump is cut short, or when a file lies where none should. stats_subject writes nothing but its dump.
"""

import json
import os
import resource
import stat
import subprocess
import threading

from preload_process import LIMIT_SECONDS, main, paths
from refusal import RefusalTest

CALLS = "write,openat,rename,close"
OLD = '{"an": "earlier dump"}\n'


class StatisticsFile(RefusalTest):
    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.folder, "place")
        os.mkdir(self.place)
        self.file = os.path.join(self.place, "dump.json")

    def write_old(self, mode=0o644):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(OLD)
        os.chmod(self.file, mode)

    def content(self, path=None):
        with open(path or self.file, encoding="utf-8") as file:
            return file.read()

    def assert_whole(self, text):
        self.assertEqual(json.loads(text)["schema"], "sluice-stats")
        self.assertTrue(text.endswith("}\n"), text[-80:])

    def run_subject(self, target=None, **options):
        """Runs to the end; the exit status is the program's own, whatever becomes of the dump."""
        done = self.run_program(paths["stats_subject"], "status", "7", SLUICE_STATS=f"json:{target or self.file}", **options)
        self.assertEqual((done.returncode, done.stdout), (7, "output\n"), done.stderr)
        return done.stderr

    def refuse_subject(self, *how):
        done, counted, refused = self.refuse(*how, command=[paths["stats_subject"], "status", "7"],
                                             SLUICE_STATS=f"json:{self.file}")
        return done, counted, refused

    def only_the_dump_is_there(self):
        self.assertEqual(os.listdir(self.place), ["dump.json"])

    def test_a_new_file_is_whole_and_alone(self):
        self.assertEqual(self.run_subject(), "")
        self.assert_whole(self.content())
        self.only_the_dump_is_there()
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o666 & ~mask)

    def test_a_kill_at_any_call_leaves_no_part_under_the_name(self):
        for there in (False, True):
            n, killed = 0, True
            while killed:
                n += 1
                for name in os.listdir(self.place):
                    os.remove(os.path.join(self.place, name))
                if there:
                    self.write_old()
                done, _, refused = self.refuse_subject("--calls", CALLS, "--nth", str(n), "--kill")
                killed = refused == 1
                self.assertEqual(done.returncode, 128 + 9 if killed else 7)
                if there or os.path.exists(self.file):
                    text = self.content()
                    if not (there and text == OLD):
                        self.assert_whole(text)
            self.assertGreater(n, 8)
            self.only_the_dump_is_there()

    def test_an_earlier_dump_is_replaced_and_keeps_its_permissions(self):
        self.write_old(mode=0o640)
        self.assertEqual(self.run_subject(), "")
        self.assert_whole(self.content())
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o640)
        self.only_the_dump_is_there()

    def test_a_full_disk_leaves_the_earlier_dump_and_costs_one_line(self):
        for error in ("ENOSPC", "EIO"):
            for mode, n in (("--nth", 2), ("--onwards", 2)):
                self.write_old()
                # The first write is the subject's output, the second the whole dump.
                done, _, refused = self.refuse_subject("--calls", "write", mode, str(n), "--error", error)
                self.assertGreater(refused, 0)
                self.assertEqual((done.returncode, done.stdout), (7, "output\n"))
                if mode == "--nth":
                    self.assertIn(self.file, done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertEqual(self.content(), OLD)
                self.only_the_dump_is_there()

    def test_a_file_size_limit_costs_one_line_and_not_the_program(self):
        self.write_old()
        stderr = self.run_subject(prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
        self.assertEqual(len(stderr.splitlines()), 1, stderr)
        self.assertIn(self.file, stderr)
        self.assertEqual(self.content(), OLD)
        self.only_the_dump_is_there()

    def test_where_nothing_can_be_renamed_the_file_is_written_in_place(self):
        for there in (False, True):
            if there:
                self.write_old()
            done, _, refused = self.refuse_subject("--calls", "rename", "--onwards", "1", "--error", "EPERM")
            self.assertEqual((done.returncode, refused, done.stderr), (7, 1, ""))
            self.assert_whole(self.content())
            self.only_the_dump_is_there()

    def test_in_a_folder_that_cannot_be_written_the_file_is_written_in_place(self):
        self.write_old(mode=0o666)
        os.chmod(self.place, 0o555)
        os.chmod(self.folder, 0o755)
        nobody = 65534

        def become_nobody():
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(nobody, nobody, nobody)
                os.setresuid(nobody, nobody, nobody)

        try:
            if os.geteuid() == 0:
                reachable = subprocess.run(["test", "-r", paths["libsluice"], "-a", "-x", paths["stats_subject"]], check=False,
                                           preexec_fn=become_nobody)
                if reachable.returncode != 0:
                    self.skipTest("the build cannot be read by other users")
            self.assertEqual(self.run_subject(prepare=become_nobody), "")
            self.assert_whole(self.content())
            os.chmod(self.file, 0o444)
            self.assertIn(self.file, self.run_subject(prepare=become_nobody))
            self.assert_whole(self.content())
        finally:
            os.chmod(self.place, 0o755)
        self.only_the_dump_is_there()

    def test_links_and_other_names_go_on_to_the_same_file(self):
        self.write_old()
        link, name = os.path.join(self.place, "link"), os.path.join(self.place, "name")
        os.symlink("dump.json", link)
        self.assertEqual(self.run_subject(link), "")
        self.assertTrue(os.path.islink(link))
        self.assert_whole(self.content())
        self.write_old()
        os.link(self.file, name)
        self.assertEqual(self.run_subject(), "")
        self.assertTrue(os.path.samefile(self.file, name))
        self.assert_whole(self.content(name))
        self.assertEqual(sorted(os.listdir(self.place)), ["dump.json", "link", "name"])

    def test_who_holds_an_empty_file_open_reads_the_dump_there(self):
        with open(self.file, "w+", encoding="utf-8") as file:
            self.assertEqual(self.run_subject(), "")
            self.assert_whole(file.read())
            self.assertTrue(os.path.samestat(os.fstat(file.fileno()), os.stat(self.file)))
        self.only_the_dump_is_there()

    def test_a_named_pipe_is_written_to(self):
        os.mkfifo(self.file)
        received = []
        reader = threading.Thread(target=lambda: received.append(self.content()), daemon=True)
        reader.start()
        self.assertEqual(self.run_subject(), "")
        reader.join(LIMIT_SECONDS)
        self.assert_whole(received[0])
        self.assertTrue(stat.S_ISFIFO(os.stat(self.file).st_mode))
        self.only_the_dump_is_there()

    def test_descriptors_are_written_to(self):
        self.assert_whole(self.run_subject("/dev/stderr"))
        with open(self.file, "w+", encoding="utf-8") as file:
            done = subprocess.run([paths["stats_subject"], "status", "7"], check=False, timeout=LIMIT_SECONDS,
                                  stdout=subprocess.DEVNULL, pass_fds=[file.fileno()],
                                  env=self.environment(SLUICE_STATS=f"json:/dev/fd/{file.fileno()}"))
            self.assertEqual(done.returncode, 7)
            self.assert_whole(file.read())
        self.only_the_dump_is_there()

    def test_a_full_device_costs_one_line(self):
        self.assertEqual(len(self.run_subject("/dev/full").splitlines()), 1)

    def test_many_processes_with_one_file_leave_one_whole_dump(self):
        environment = self.environment(SLUICE_STATS=f"json:{self.file}")
        for _ in range(3):
            processes = [subprocess.Popen([paths["stats_subject"]], env=environment) for _ in range(6)]
            for process in processes:
                self.assertEqual(process.wait(timeout=LIMIT_SECONDS), 0)
            self.assert_whole(self.content())
            self.only_the_dump_is_there()


if __name__ == "__main__":
    main()
