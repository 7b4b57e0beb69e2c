"""Metrics for Prometheus (SLUICE_STATS=prometheus:FILE): their format, that they are renewed while the program runs, and
that a reader never meets half a file.

Open it when node_exporter refuses the file, or finds an old one. metrics_subject.c says what is allocated.
"""

import os
import re
import resource
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

from preload_process import LIMIT_SECONDS, PreloadTest, main, paths

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')


def parse(text):
    """Reads the text format, strictly. Returns values by (name, labels), and types by name."""
    if not text.endswith("\n"):
        raise ValueError("the last line does not end")
    values, types, helps, open_name = {}, {}, set(), None
    for line in text[:-1].split("\n"):
        if line.startswith("# "):
            _, what, name, rest = line.split(" ", 3)
            if not NAME.fullmatch(name) or name in types or not rest:
                raise ValueError(line)
            if what == "HELP":
                if name in helps:
                    raise ValueError("twice: " + line)
                helps.add(name)
            elif what == "TYPE" and rest in ("counter", "gauge"):
                if name not in helps:
                    raise ValueError("without help: " + line)
                types[name] = rest
                open_name = name
            else:
                raise ValueError(line)
            continue
        found = re.fullmatch(r"([a-z_]+)\{(.*)\} (\d+)", line)
        if not found or found[1] != open_name:  # all samples of a metric stand behind its type
            raise ValueError(line)
        labels, rest = {}, found[2]
        while rest:
            label = LABEL.match(rest)
            if not label or label[1] in labels:
                raise ValueError(line)
            labels[label[1]] = label[2]
            rest = rest[label.end():]
        key = found[1], tuple(sorted(labels.items()))
        if key in values:
            raise ValueError("twice: " + line)
        values[key] = int(found[3])
    for name, kind in types.items():
        if (kind == "counter") != name.endswith("_total"):
            raise ValueError(f"{name} is a {kind}")
    return values, types


class MetricsTest(PreloadTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "metrics.prom")

    def start(self, mode, path=None, **variables):
        variables.setdefault("SLUICE_STATS_INTERVAL", "100")
        environment = self.environment(SLUICE_STATS="prometheus:" + (path or self.path), **variables)
        process = subprocess.Popen([paths["metrics_subject"], mode], env=environment, stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        errors = process.communicate(timeout=LIMIT_SECONDS)[1]
        self.assertEqual(process.returncode, 0, errors)
        return errors

    def read(self, path=None):
        with open(path or self.path, encoding="utf-8") as file:
            return file.read(), os.fstat(file.fileno()).st_ino

    def versions(self, count, path=None):
        """Waits until the file has been replaced so often. Returns what was parsed of each; a file cut short fails."""
        seen, found = None, []
        end = time.monotonic() + LIMIT_SECONDS
        while len(found) < count:
            self.assertLess(time.monotonic(), end, "the file is not renewed")
            try:
                text, inode = self.read(path)
            except FileNotFoundError:
                continue
            if (text, inode) != seen:
                seen = text, inode
                found.append(parse(text))
        return found


class Renewal(MetricsTest):
    def assert_grows(self, versions):
        for (before, types), (after, _) in zip(versions, versions[1:]):
            for (name, labels), value in before.items():
                if types[name] == "counter":
                    self.assertGreaterEqual(after[name, labels], value, name)

    def test_a_program_that_allocates_renews_the_file_and_its_counters_only_grow(self):
        for mode in ("same", "many"):
            process = self.start(mode)
            versions = self.versions(4)
            self.assert_grows(versions)
            self.assertEqual(self.end(process), "")
            last = parse(self.read()[0])
            self.assert_grows(versions[-1:] + [last])
            labels = (("pid", str(process.pid)), ("program", "metrics_subject"))
            self.assertGreater(last[0]["sluice_mallocs_total", labels], 1000)
            self.assertEqual(os.listdir(self.folder), ["metrics.prom"])
            os.unlink(self.path)

    def test_without_counting_what_is_counted_is_left_out(self):
        process = self.start("many", SLUICE_STATS_COUNT="0")
        for values, types in self.versions(3):
            self.assertNotIn("sluice_mallocs_total", types)
            self.assertIn("sluice_live_bytes", types)
            self.assertGreater(max(v for (name, _), v in values.items() if name == "sluice_mapped_bytes"), 0)
        self.end(process)

    def test_the_background_thread_renews_it_while_the_program_rests(self):
        process = self.start("rests", SLUICE_BACKGROUND="1")
        self.versions(3)
        self.end(process)

    def test_forked_children_have_files_of_their_own_where_they_are_asked(self):
        path = os.path.join(self.folder, "%p.prom")
        process = self.start("forks", path, SLUICE_STATS_CHILDREN="1")
        own = path.replace("%p", str(process.pid))
        self.versions(2, own)
        end = time.monotonic() + LIMIT_SECONDS
        while len([name for name in os.listdir(self.folder) if name.endswith(".prom")]) < 2:
            self.assertLess(time.monotonic(), end, "the child writes nothing")
        self.end(process)
        for name in os.listdir(self.folder):
            values, _ = parse(self.read(os.path.join(self.folder, name))[0])
            self.assertEqual({dict(labels)["pid"] for _, labels in values}, {name.partition(".")[0]})
        self.assertEqual(len(os.listdir(self.folder)), 2)

    def test_forked_children_that_are_not_asked_leave_the_file_to_their_parent(self):
        process = self.start("forks")
        for values, _ in self.versions(4):
            self.assertEqual({dict(labels)["pid"] for _, labels in values}, {str(process.pid)})
        self.end(process)

    def test_never_is_at_exit_alone(self):
        process = self.start("many", SLUICE_STATS_INTERVAL="never")
        process.stdin.write(" ")
        self.end(process)
        parse(self.read()[0])


class Trouble(MetricsTest):
    def test_a_file_that_cannot_be_written_is_told_of_once(self):
        path = os.path.join(self.folder, "gone", "metrics.prom")
        process = self.start("same", path)
        os.set_blocking(process.stderr.fileno(), True)
        self.assertIn("cannot write", process.stderr.readline())
        os.mkdir(os.path.dirname(path))
        self.versions(2, path)  # it has gone on
        self.assertEqual(self.end(process), "")

    def test_a_limit_of_file_sizes_leaves_the_old_file_and_the_program_alone(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        done = self.run_program(paths["metrics_subject"], "same", SLUICE_STATS="prometheus:" + self.path, prepare=limit)
        self.assertEqual(done.returncode, 0)
        self.assertIn("cannot write", done.stderr)
        self.assertEqual(os.listdir(self.folder), [])


class Format(MetricsTest):
    def test_hostile_names_of_programs_are_labels(self):
        name = 'a"b\\c\nd'
        program = os.path.join(self.folder, name)
        os.symlink(paths["metrics_subject"], program)
        done = self.run_program(program, SLUICE_STATS="prometheus:" + self.path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        values, _ = parse(self.read()[0])
        self.assertEqual({dict(labels)["program"] for _, labels in values}, {'a\\"b\\\\c\\nd'})

    def test_classes_are_told_by_the_size_of_their_blocks(self):
        process = self.start("many")
        values, types = self.versions(2)[-1]
        self.end(process)
        sizes = [int(dict(labels)["block_size"]) for name, labels in values if name == "sluice_class_slabs"]
        self.assertEqual(sizes, sorted(sizes))
        self.assertIn(112, sizes)
        self.assertEqual(types["sluice_class_mallocs_total"], "counter")
        self.assertEqual(types["sluice_class_live_blocks"], "gauge")
        self.assertIn("sluice_info", types)

    def test_it_goes_to_standard_error_without_a_file(self):
        done = self.run_program(paths["metrics_subject"], SLUICE_STATS="prometheus")
        parse(done.stderr)

    def test_promtool_has_nothing_to_say(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool")
        process = self.start("many")
        self.versions(2)
        self.end(process)
        with open(self.path, encoding="utf-8") as file:
            done = subprocess.run([promtool, "check", "metrics"], stdin=file, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_node_exporter_serves_what_is_read_of_it(self):
        exporter = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
        if exporter is None:
            self.skipTest("no node_exporter")
        process = self.start("many")
        self.versions(1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        server = subprocess.Popen([exporter, "--collector.disable-defaults", "--collector.textfile",
                                   f"--collector.textfile.directory={self.folder}", f"--web.listen-address={address}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://{address}/metrics", timeout=LIMIT_SECONDS) as answer:
                    text = answer.read().decode()
                break
            except urllib.error.URLError:
                self.assertLess(time.monotonic(), end, "node_exporter does not answer")
                self.assertIsNone(server.poll(), "node_exporter has ended")
                time.sleep(0.05)
        self.end(process)
        served = {line.split("{")[0] for line in text.splitlines() if line.startswith("sluice_")}
        written = {name for name, _ in parse(self.read()[0])[0]}
        self.assertEqual(served, written)
        self.assertIn("node_textfile_scrape_error 0", text)
        self.assertIn("node_textfile_mtime_seconds", text)


if __name__ == "__main__":
    main()
