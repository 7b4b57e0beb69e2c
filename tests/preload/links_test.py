"""SLUICE_STATS=json:LINK: a symbolic link is followed, unless another user may have put it there.

Open it when a dump is refused that should be written, or ends in a file that somebody else chose.
"""

import json
import os
import unittest

from preload_process import PreloadTest, main, paths

OTHER = 65534
OLD = "what was there"


class Links(PreloadTest):
    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.folder, "place")
        self.target = os.path.join(self.folder, "target")
        self.link = os.path.join(self.place, "link")
        os.mkdir(self.place)

    def make_link(self, mode, owner=None, folder_owner=None, to=None):
        with open(self.target, "w", encoding="utf-8") as file:
            file.write(OLD)
        if os.path.lexists(self.link):
            os.remove(self.link)
        os.symlink(to or self.target, self.link)
        if owner is not None:
            os.lchown(self.link, owner, owner)
        os.chown(self.place, os.geteuid() if folder_owner is None else folder_owner, -1)
        os.chmod(self.place, mode)

    def dump_to(self, path, **options):
        done = self.run_program(paths["stats_subject"], "status", "7", SLUICE_STATS=f"json:{path}", **options)
        self.assertEqual((done.returncode, done.stdout), (7, "output\n"), done.stderr)
        return done.stderr

    def assert_followed(self):
        self.assertEqual(self.dump_to(self.link), "")
        self.assertTrue(os.path.islink(self.link))
        with open(self.target, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["schema"], "sluice-stats")

    def assert_refused(self):
        (line,) = self.dump_to(self.link).splitlines()
        self.assertRegex(line, f"^sluice: .*{self.link} is a symbolic link")
        with open(self.target, encoding="utf-8") as file:
            self.assertEqual(file.read(), OLD)
        self.assertEqual(os.listdir(self.place), ["link"])

    def test_ones_own_is_followed_wherever_it_lies(self):
        for mode in (0o755, 0o775, 0o777, 0o1777):
            for to in (None, "../target"):
                self.make_link(mode, to=to)
                self.assert_followed()

    def test_ones_own_to_nothing_makes_a_file(self):
        for mode in (0o755, 0o777):
            self.make_link(mode)
            os.remove(self.target)
            self.assert_followed()

    @unittest.skipUnless(os.geteuid() == 0, "only root can make links of other users")
    def test_anothers_is_not_followed_where_others_can_write(self):
        for mode in (0o775, 0o777, 0o1777):
            self.make_link(mode, owner=OTHER)
            self.assert_refused()
        self.make_link(0o755, owner=OTHER, folder_owner=OTHER)
        self.assert_refused()

    @unittest.skipUnless(os.geteuid() == 0, "only root can make links of other users")
    def test_anothers_is_followed_where_nobody_else_can_write(self):
        self.make_link(0o755, owner=OTHER)
        self.assert_followed()

    def test_those_of_the_system_are_followed(self):
        for path in ("/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"):
            self.assertEqual(json.loads(self.dump_to(path))["schema"], "sluice-stats")
        done = self.run_program(paths["stats_subject"], "status", "7", SLUICE_STATS="json:/proc/self/fd/1")
        self.assertEqual(json.loads(done.stdout.removeprefix("output\n"))["schema"], "sluice-stats")

    def test_a_link_to_itself_costs_one_line(self):
        for mode in (0o755, 0o777):
            self.make_link(mode, to="link")
            (line,) = self.dump_to(self.link).splitlines()
            self.assertIn(self.link, line)


if __name__ == "__main__":
    main()
