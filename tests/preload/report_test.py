"""Reports that cannot be written, or that many ask for: nothing else waits for them, and each comes out in one piece.

Open it when a fork hangs while statistics are printed, or when dumps are mixed. report_subject.cpp is the program.
"""

import json
import os
import socket
import subprocess
import threading
from xml.etree import ElementTree

from preload_process import LIMIT_SECONDS, PreloadTest, main, paths


class NobodyReads(PreloadTest):
    def go_on(self, mode, **variables):
        """Runs the program; its stderr is not read until it has gone on without. Returns what stderr got."""
        process = subprocess.Popen([paths["report_subject"], mode], env=self.environment(**variables),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        dog = threading.Timer(LIMIT_SECONDS, process.kill)
        dog.start()
        try:
            self.assertEqual(process.stdout.readline(), b"forked\n", f"{mode}: a hang")
            _, err = process.communicate(timeout=LIMIT_SECONDS)
        finally:
            dog.cancel()
            process.kill()
        self.assertEqual(process.returncode, 0, mode)
        return err.replace(b"\0", b"").decode()

    def test_a_report_of_malloc_stats_holds_up_neither_forks_nor_other_threads(self):
        self.assertEqual(self.go_on("stats").count("\ntotals\n"), 2)

    def test_a_thread_cancelled_in_malloc_stats_leaves_nothing_behind(self):
        self.assertEqual(self.go_on("cancel").count("\ntotals\n"), 2)

    def test_a_dump_on_a_signal_holds_up_neither_forks_nor_other_threads(self):
        self.assertEqual(self.go_on("signal", SLUICE_STATS_SIGNAL="USR2").count("\ntotals\n"), 2)

    def test_a_report_of_a_guarded_block_holds_up_neither_forks_nor_other_threads(self):
        err = self.go_on("guard", SLUICE_GUARD_RATE="1", SLUICE_GUARD_ABORT="0")
        self.assertEqual(err.count("sluice: double free"), 1, err)

    def test_malloc_info_to_a_locked_stream_holds_up_neither_forks_nor_other_threads(self):
        self.go_on("info")

    def test_threads_cancelled_in_malloc_info_leave_nothing_behind(self):
        self.go_on("info-cancel")


class OneWrite(PreloadTest):
    """Each write to a socket of packets is a packet, so that a dump in one write arrives as one."""

    def packets(self, *command, **variables):
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(LIMIT_SECONDS)
        with ours, its:
            received = []
            reader = threading.Thread(target=lambda: received.extend(iter(lambda: ours.recv(1 << 20).decode(), "")))
            reader.start()
            done = self.run_program(*command, stderr=its, **variables)
            its.close()
            reader.join()
        self.assertEqual(done.returncode, 0)
        return received

    def test_a_dump_as_text_is_one_write(self):
        (dump,) = self.packets(paths["stats_subject"], SLUICE_STATS="1")
        self.assertRegex(dump, r"^sluice \d")
        self.assertTrue(dump.endswith("\n"))
        self.assertGreater(len(dump.splitlines()), 50)

    def test_a_dump_as_json_is_one_write(self):
        (dump,) = self.packets(paths["stats_subject"], SLUICE_STATS="json")
        self.assertGreater(len(json.loads(dump)["classes"]), 30)

    def test_dumps_that_many_threads_ask_for_at_once_are_whole(self):
        info = os.path.join(self.folder, "info.xml")
        packets = self.packets(paths["report_subject"], "many", info, SLUICE_STATS="json", SLUICE_STATS_SIGNAL="USR2")
        text = [packet for packet in packets if packet.startswith("sluice ")]
        self.assertEqual(len(text), 2 * 20)
        for dump in text:
            self.assertRegex(dump, r"(?s)^sluice [^\n]*\n\ntotals\n.*\n  late calls +\d+ [^\n]*\n$")
        dumps = [json.loads(packet) for packet in packets if packet not in text]
        self.assertGreater(len(dumps), 1)
        for dump in dumps:
            self.assertEqual(dump["allocated_bytes"] - dump["freed_bytes"], dump["live_bytes"])
            self.assertLess(dump["live_bytes"], 1 << 40)
        with open(info, encoding="utf-8") as file:
            documents = file.read().split("</malloc>\n")
        self.assertEqual((len(documents), documents[-1]), (2 * 20 + 1, ""))
        for document in documents[:-1]:
            self.assertEqual(ElementTree.fromstring(document + "</malloc>").tag, "malloc")


if __name__ == "__main__":
    main()
