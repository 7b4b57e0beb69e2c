"""Libraries that are loaded with RTLD_DEEPBIND: they get this malloc, and the loader still sees who loads them.

Open it when a plug-in is not found under the preload, or gives a block to the wrong malloc. deepbind.c says what happens.
"""

import os
import unittest

from preload_process import PreloadTest, main, paths

CLEARED_BY_EXCHANGE = 4  # the opener, and a plug-in in each of three ways


class Deepbind(PreloadTest):
    def ask(self, mode, **options):
        done = self.run_program(paths["deepbind"], mode, paths["opener"], **options)
        self.assert_ended_well(done)
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def builds(self):
        """Returns the path and the name of each library."""
        return [(paths[name], os.path.basename(paths[name])) for name in ("libsluice", "secure")]

    def test_blocks_cross_both_ways_and_the_caller_is_seen(self):
        for library, file in self.builds():
            expected = [f"runpath: {file}", f"origin: {file}", f"namespace: {file}"]
            self.assertEqual(self.ask("exchange", preload=library), expected)
            self.assertEqual(self.ask("exchange", preload=library, SLUICE_GUARD_RATE="1"), expected)

    def test_blocks_cross_under_an_auditor(self):
        for library, file in self.builds():
            self.assertEqual(self.ask("exchange", preload=library, LD_AUDIT=paths["auditor"])[0], f"runpath: {file}")

    def test_a_preload_may_load_before_everything_has_started(self):
        for library, _ in self.builds():
            for order in (f"{library}:{paths['early']}", f"{paths['early']}:{library}"):
                self.assertEqual(self.ask("nothing", preload=order, DEEPBIND_PLUGIN=paths["plugin"]), ["early"])

    def test_a_preload_may_stand_before_dlsym(self):
        for library, file in self.builds():
            preload = f"{paths['dlsym_wrapper']}:{library}"
            self.assertEqual(self.ask("exchange", preload=preload)[0], f"runpath: {file}")

    def test_a_namespace_of_its_own_has_its_own_libc(self):
        for library, _ in self.builds():
            self.assertEqual(self.ask("namespace", preload=library), ["together: libc.so.6"])

    def test_errors_are_those_of_the_loader(self):
        for library, _ in self.builds():
            self.assertEqual(self.ask("errors", preload=library), ["as ever"])

    def test_the_flag_stays_when_asked(self):
        for library, file in self.builds():
            self.assertEqual(self.ask("look", preload=library), [file])
            self.assertEqual(self.ask("look", preload=library, SLUICE_DEEPBIND="1"), ["libc.so.6"])

    def test_the_statistics_count_calls_that_lost_the_flag(self):
        file = os.path.join(self.folder, "%p.json")
        for library, _ in self.builds():
            for mode, options, count in (("exchange", {}, CLEARED_BY_EXCHANGE), ("nothing", {}, 0),
                                         ("look", {"SLUICE_DEEPBIND": "1"}, 0)):
                self.ask(mode, preload=library, SLUICE_STATS=f"json:{file}", **options)
                ((name, dump),) = self.dumps().items()
                os.remove(os.path.join(self.folder, name))
                self.assertEqual(dump["foreign"]["deepbinds_cleared"], count, mode)
                self.assertEqual(dump["foreign"]["frees"], 0, mode)

    def test_the_table_tells_of_them(self):
        for mode, expected in (("exchange", [f"  dlopen      {CLEARED_BY_EXCHANGE} calls lost RTLD_DEEPBIND"]), ("nothing", [])):
            done = self.run_program(paths["deepbind"], mode, paths["opener"], SLUICE_STATS="1")
            self.assert_ended_well(done)
            self.assertEqual([line for line in done.stderr.splitlines() if "DEEPBIND" in line], expected)


if __name__ == "__main__":
    main()
