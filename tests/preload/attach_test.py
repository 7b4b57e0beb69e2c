"""A running process that is asked: `sluice attach`, `sluice top`, and what the library does for them (SLUICE_ATTACH=1).

Open it when a process cannot be asked, or notices that it can. attach_subject.c has the programs.
"""

import glob
import json
import os
import platform
import pty
import re
import select
import shutil
import signal
import socket
import subprocess

from preload_process import LIMIT_SECONDS, PreloadTest, main, paths

SECURE = lambda: "secure" in os.path.basename(paths["libsluice"])  # noqa: E731


class AttachTest(PreloadTest):
    def start(self, *arguments, **variables):
        """Starts the subject. Returns the process, whose first line has come."""
        user = variables.pop("user", None)
        environment = self.environment(SLUICE_ATTACH=variables.pop("SLUICE_ATTACH", "1"), **variables)
        process = subprocess.Popen([paths["attach_subject"], *arguments], env=environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, user=user)
        self.addCleanup(process.kill)
        self.first_line = process.stdout.readline().strip()
        return process

    def end(self, process):
        output, errors = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual((process.returncode, errors), (0, ""), output)

    def command(self, *words, **options):
        return subprocess.run([paths["sluice"], *map(str, words)], env=self.environment(preload=""), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT_SECONDS, check=False, **options)

    def attach(self, *words):
        done = self.command("attach", *words)
        self.assert_ended_well(done)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def assert_refused(self, part, *words, code=1):
        done = self.command("attach", *words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, f"^sluice: attach: [^\n]*{part}[^\n]*\n$")

    def place(self, pid):
        with open("/proc/net/unix", encoding="ascii", errors="replace") as sockets:
            return next(("\0" + found[1] for found in map(re.compile(rf"@(sluice-attach-{pid}-\S+)").search, sockets)
                         if found), None)


class Requests(AttachTest):
    def test_statistics_purge_and_options(self):
        process = self.start("serves", SLUICE_PURGE_DELAY="5000")
        text = self.attach(process.pid)
        self.assertEqual(self.attach(process.pid, "stats").split("\n")[0], text.split("\n")[0])
        self.assertIn(f"pid {process.pid}, attach_subject", text)
        dump = json.loads(self.attach(process.pid, "stats", "--json"))
        self.assertEqual(dump["pid"], process.pid)
        self.assertRegex(self.attach(process.pid, "purge"), "system|nothing")
        for value in ("PURGE_DELAY=20", "retain=1M", "profile-rate=64K"):
            self.assertEqual(self.attach(process.pid, "set", value), "")
        self.assert_refused("stays as it was", process.pid, "set", "CACHE=1K")
        self.assert_refused("never", process.pid, "set", "PURGE_DELAY=never")
        for words in (("set", "RETAIN=much"), ("set", "RETAIN"), ("set", "NOTHING=1"), ("stats", "more"), ("sing",),
                      ("profile",), ("profile", "dump"), ("purge", "--json"), ("purge", "--rate", "1")):
            done = self.command("attach", process.pid, *words)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.end(process)

    def test_a_profile_starts_is_written_and_stops_in_all_threads(self):
        process = self.start("serves")
        path = os.path.join(self.folder, "profile.pb")
        if SECURE():
            self.assert_refused("no profile", process.pid, "profile", "start")
            return self.end(process)
        self.assert_refused("no profile was started", process.pid, "profile", "dump", path)
        self.assertEqual(os.listdir(self.folder), [])
        self.attach(process.pid, "profile", "start", "--rate", "1")
        self.assert_refused("running already", process.pid, "profile", "start")
        for _ in range(3):
            process.stdin.write("x")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "held\n")
        self.attach(process.pid, "profile", "dump", path)
        report = self.command("profile", path)
        self.assert_ended_well(report)
        self.assertRegex(report.stdout, r"293 KiB[^\n]*hold_memory")
        table = self.command("top", "--once")
        self.assert_ended_well(table)
        self.assertRegex(table.stdout, rf"alive in {process.pid} attach_subject[^\n]*\n +293 KiB  hold_memory")
        self.attach(process.pid, "profile", "stop")
        self.assert_refused("no profile was started", process.pid, "profile", "stop")
        self.end(process)

    def test_what_cannot_be_attached_is_told_apart(self):
        asked = self.start("serves", SLUICE_ATTACH="0")
        self.assert_refused("not open to attaching", asked.pid)
        self.end(asked)
        self.assert_refused("there is no process", asked.pid)
        self.assert_refused("does not run on", os.getpid())
        self.assertEqual(self.command("attach", "me").returncode, 2)
        stopped = self.start("serves")
        stopped.send_signal(signal.SIGSTOP)
        os.waitpid(stopped.pid, os.WUNTRACED)  # the signal may take a while
        self.assert_refused("is stopped", stopped.pid)
        self.assertRegex(self.command("top", "--once").stdout, rf"\n{stopped.pid} .* stopped|no answer")
        stopped.send_signal(signal.SIGCONT)
        self.end(stopped)
        strict = self.start("strict")
        self.assert_refused("sandbox", strict.pid)
        self.assertRegex(self.command("top", "--once").stdout, rf"\n{strict.pid} [^\n]*in a sandbox")
        self.end(strict)
        sandboxed = self.start("sandbox")
        self.assert_refused("sandbox", sandboxed.pid)
        self.assertIn("attach_subject", self.attach(sandboxed.pid, "--force"))
        self.end(sandboxed)

    def test_another_user_is_refused_and_root_is_not(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        process = self.start("serves")
        name = self.place(process.pid)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setuid(12345)
                client = socket.socket(socket.AF_UNIX)
                client.connect(name)
                os.write(writing, client.recv(1000))
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            self.assertRegex(answer.read(), "^error not permitted")
        os.waitpid(child, 0)
        self.assertIn("attach_subject", self.attach(process.pid))
        self.end(process)

    def test_root_that_may_not_trace_is_served(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        process = self.start("serves", user=12345)
        words = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", paths["sluice"]]
        for more in (["attach", str(process.pid)], ["top", "--once"]):
            done = subprocess.run(words + more, env=self.environment(preload=""), stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_SECONDS, check=False)
            self.assert_ended_well(done)
            self.assertRegex(done.stdout, rf"{process.pid},? +attach_subject")
        self.end(process)

    def test_the_table_of_another_user_ends_no_process_by_its_sandbox(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        strict = self.start("strict")
        command = os.path.join(self.folder, "sluice")
        shutil.copy(paths["sluice"], command)
        for path in (self.folder, command):
            os.chmod(path, 0o755)
        done = subprocess.run([command, "top", "--once"], env=self.environment(preload=""), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS,
                              check=False, user=12345, group=12345, extra_groups=[])
        self.assert_ended_well(done)
        self.assertNotIn(f"\n{strict.pid} ", done.stdout)
        self.end(strict)


class Survival(AttachTest):
    def test_large_variables_of_threads_leave_the_thread_its_stack(self):
        programs = glob.glob(paths["attach_subject"] + "_[0-9]*")
        self.assertGreater(len(programs), 5)
        for program in programs:
            process = subprocess.Popen([program, "serves"], env=self.environment(SLUICE_ATTACH="1"),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            self.assertEqual(process.stdout.readline(), "ready\n", program)
            self.assertIn(f"pid {process.pid},", self.attach(process.pid))
            self.assertIn(f'"pid": {process.pid}', self.attach(process.pid, "--json"))
            self.end(process)

    def test_the_program_does_not_see_the_socket_and_closes_nothing_of_it(self):
        path = os.path.join(self.folder, "file")
        with open(path, "wb") as file:
            file.write(b"foreign" * 1000)
        process = self.start("closes", path)
        for _ in range(3):
            self.assertIn("attach_subject", self.attach(process.pid))
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"foreign" * 1000)
        self.assertEqual({os.readlink(f"/proc/{process.pid}/fd/{n}") for n in os.listdir(f"/proc/{process.pid}/fd")
                          if int(n) > 2}, {path})
        self.end(process)

    def test_clients_that_hang_lie_or_are_many_stop_nobody(self):
        process = self.start("serves")
        name = self.place(process.pid)
        clients = [socket.socket(socket.AF_UNIX) for _ in range(6)]
        for client in clients:
            client.settimeout(LIMIT_SECONDS)
            client.connect(name)
        clients[0].sendall(b"stats tex")  # and no more
        clients[1].sendall(b"x" * 1000)   # no line
        clients[2].sendall(b"stats json\n")  # whose answer nobody takes
        clients[3].close()
        clients[4].sendall(b"\0\n")
        self.assertIn("attach_subject", self.attach(process.pid))
        self.assertRegex(clients[4].recv(100), b"^error .*does not know")
        try:
            self.assertEqual(clients[1].recv(100), b"")  # dropped
        except ConnectionResetError:
            pass
        process.stdin.write("x")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "held\n")
        for client in clients:
            client.close()
        self.end(process)

    def test_forked_children_have_a_place_where_they_are_asked_and_never_their_parents(self):
        process = self.start("forks")
        self.assert_refused("not open to attaching", self.first_line)
        self.assertIn("attach_subject", self.attach(process.pid))
        self.end(process)
        process = self.start("forks", SLUICE_ATTACH_CHILDREN="1")
        self.assertIn(f"pid {self.first_line},", self.attach(self.first_line))
        self.assertIn(f"pid {process.pid},", self.attach(process.pid))
        self.end(process)

    def test_a_process_whose_threads_have_all_ended_ends(self):
        for mode in ("leaves", "lost"):
            done = self.run_program(paths["attach_subject"], mode, SLUICE_ATTACH="1")
            self.assertEqual((done.returncode, done.stderr), (0, ""), mode)

    def test_the_last_place_for_a_thread_is_the_programs(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        done = self.run_program(paths["attach_subject"], "full", SLUICE_ATTACH="1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ready\n", ""))

    def test_outside_of_sandboxes_a_process_opens_no_file_and_is_ended_as_fast_as_without(self):
        log = os.path.join(self.folder, "opened")
        tracer = ("strace", "-f", "-o", log, "-e", "trace=openat,prctl")
        if shutil.which("strace") is None or subprocess.run([*tracer, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no strace that may trace")
        self.assert_ended_well(self.run_program(*tracer, "-E", f"LD_PRELOAD={paths['libsluice']}", "-E", "SLUICE_ATTACH=1", "true",
                                                preload=""))
        with open(log, encoding="utf-8") as file:
            calls = file.read()
        self.assertIn('PR_SET_NAME, "sluice-attach"', calls)
        self.assertNotIn("/proc/", calls)

    def test_its_own_calls_pass_libraries_that_redirect_sockets(self):
        if platform.machine() != "x86_64":
            self.skipTest("calls pass libc there")
        for order in ("{libsluice}:{socket_preload}", "{socket_preload}:{libsluice}"):
            process = self.start("serves", preload=order.format(**paths))
            self.assertEqual(self.first_line, "ready")
            self.assertIn("attach_subject", self.attach(process.pid))
            self.end(process)

    def test_where_the_system_allows_no_socket_the_program_runs_as_before(self):
        done = self.run_program(paths["attach_subject"], "execs", paths["attach_subject"], "none", SLUICE_ATTACH="1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ready\n", ""))

    def test_programs_that_are_executed_have_their_own(self):
        process = subprocess.Popen(["sh", "-c", 'echo x; exec "$0" serves', paths["attach_subject"]],
                                   env=self.environment(SLUICE_ATTACH="1"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assertEqual([process.stdout.readline() for _ in range(2)], ["x\n", "ready\n"])
        self.assertIn(f"pid {process.pid}, attach_subject", self.attach(process.pid))
        process.communicate(timeout=LIMIT_SECONDS)


class Top(AttachTest):
    def test_one_table_has_each_process_with_its_figures_in_order(self):
        first, second = self.start("serves", SLUICE_STATS="/dev/null"), self.start("serves")
        done = self.command("top", "--sort", "pid", "--interval", "0.1")
        self.assert_ended_well(done)
        rows = {row.split()[0]: row.split() for row in done.stdout.splitlines() if row.strip()[:1].isdigit()}
        self.assertEqual(rows[str(first.pid)][1], "attach_subject")
        self.assertEqual(rows[str(second.pid)][-4:-2], ["-", "-"])  # not counted
        self.assertEqual([row for row in rows if row in (str(first.pid), str(second.pid))],
                         sorted((str(first.pid), str(second.pid)), key=int))
        for process in (first, second):
            process.kill()
            process.communicate(timeout=LIMIT_SECONDS)

    def test_on_a_terminal_keys_sort_and_quit_and_the_terminal_is_as_it_was(self):
        process = self.start("serves")
        for ending, status in ((b"q", 0), (b"\x03", -2)):
            pid, terminal = pty.fork()
            if pid == 0:
                os.execve(paths["sluice"], ["sluice", "top", "--interval", "0.1"],
                          {**self.environment(preload=""), "TERM": "xterm"})
            seen = b""
            while str(process.pid).encode() not in seen:
                self.assertTrue(select.select([terminal], [], [], LIMIT_SECONDS)[0], seen)
                seen += os.read(terminal, 4096)
            os.write(terminal, b"p")
            while b"by pid" not in seen:
                seen += os.read(terminal, 4096)
            os.write(terminal, ending)
            try:
                while part := os.read(terminal, 4096):
                    seen += part
            except OSError:  # the other end is closed
                pass
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), status)
            os.close(terminal)
            self.assertTrue(seen.startswith(b"\x1b[?1049h"), seen)
            self.assertIn(b"\x1b[?25h\x1b[?1049l", seen[-40:])
        self.end(process)


if __name__ == "__main__":
    main()
