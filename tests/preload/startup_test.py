"""Start-up and the loader: any first call, either preload order, an auditor, libraries that come and go.

Open it when a program hangs or dies before main, or when a library is loaded.
"""

import os
import re
import subprocess

from preload_process import PreloadTest, main, paths


class FirstCall(PreloadTest):
    def first_calls(self):
        with open(os.path.join(os.path.dirname(__file__), "first_call.c"), encoding="utf-8") as file:
            calls = re.findall(r'strcmp\(name, "([^"]+)"\)', file.read())
        self.assertGreater(len(calls), 15)
        return calls

    def assert_all_reach_the_end(self, preload=None, **variables):
        for call in self.first_calls():
            with self.subTest(call=call, variables=variables):
                done = self.run_program(paths["first_call"], call, preload=preload, limit=30, **variables)
                self.assert_ended_well(done)
                self.assertEqual((done.stdout, done.stderr), ("reached the end\n", ""))

    def test_may_be_any_entry_point(self):
        self.assert_all_reach_the_end()

    def test_may_be_any_entry_point_while_statistics_are_on(self):
        self.assert_all_reach_the_end(SLUICE_STATS=f"json:{self.folder}/%p.json")
        dumps = self.dumps()
        self.assertEqual(len(dumps), len(self.first_calls()))
        for dump in dumps.values():
            self.assertIs(dump["counting"], True)
            self.assertEqual(dump["allocated_bytes"] - dump["freed_bytes"], dump["live_bytes"])

    def test_may_come_with_lazy_and_with_eager_binding(self):
        for variables in ({"LD_BIND_NOW": "1"}, {"LD_BIND_NOW": ""}):
            done = self.run_program(paths["first_call"], "calloc", **variables)
            self.assert_ended_well(done)

    def test_may_come_from_another_preloaded_library_in_either_order(self):
        sluice, early = paths["libsluice"], paths["early_preload"]
        for order in (f"{sluice}:{early}", f"{early}:{sluice}", f"{early} {sluice}"):
            self.assert_all_reach_the_end(preload=order)
            with self.subTest(order=order):
                done = self.run_program(paths["first_call"], "malloc", preload=order,
                                        SLUICE_STATS=f"json:{self.folder}/{len(order)}-{order[-4]}-%p.json")
                self.assert_ended_well(done)
        for dump in self.dumps().values():
            self.assertGreater(dump["mallocs"], 100)

    def test_may_come_under_an_auditor(self):
        for call in ("malloc", "free-null", "memalign"):
            done = self.run_program(paths["first_call"], call, LD_AUDIT=paths["auditor"])
            self.assert_ended_well(done)
            self.assertEqual((done.stdout, done.stderr), ("reached the end\n", ""))

    def test_contract_holds_under_an_auditor(self):
        done = self.run_program(paths["contract_test"], LD_AUDIT=paths["auditor"])
        self.assert_ended_well(done)

    def test_contract_holds_beside_a_library_whose_hooks_allocate(self):
        for order in ("{libsluice}:{early_preload}", "{early_preload}:{libsluice}"):
            for variables in ({}, {"SLUICE_GUARD_RATE": "3"},
                              {"SLUICE_PROFILE": f"{self.folder}/profile", "SLUICE_PROFILE_RATE": "64"}):
                with self.subTest(order=order, variables=variables):
                    done = self.run_program(paths["contract_test"], preload=order.format(**paths), **variables)
                    self.assert_ended_well(done)

    def test_contract_holds_while_statistics_are_on(self):
        done = self.run_program(paths["contract_test"], SLUICE_STATS=f"json:{self.folder}/%p.json")
        self.assert_ended_well(done)
        (dump,) = self.dumps().values()
        self.assertEqual(dump["program"], "contract_test")


class Loading(PreloadTest):
    def test_libraries_that_allocate_come_and_go(self):
        done = self.run_program(paths["loading"], paths["allocating_library"])
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), ("loaded and unloaded\n", ""))

    def test_libsluice_may_be_opened_by_a_running_program(self):
        done = self.run_program(paths["opened_late"], paths["libsluice"], preload="")
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), ("both heaps served\n", ""))

    def test_statistics_of_a_program_that_opens_libsluice(self):
        done = self.run_program(paths["opened_late"], paths["libsluice"], preload="",
                                SLUICE_STATS=f"json:{self.folder}/%p.json")
        self.assert_ended_well(done)
        (dump,) = self.dumps().values()
        self.assertEqual(dump["foreign"]["frees"], 0)

    def test_a_preload_that_is_listed_twice_is_loaded_once(self):
        done = self.run_program(paths["first_call"], "malloc", preload=f"{paths['libsluice']}:{paths['libsluice']}")
        self.assert_ended_well(done)

    def test_works_without_proc_and_sys(self):
        # A new mount namespace without /proc and /sys; where one may not be made, a chroot cannot be tried either.
        hide = "mount -t tmpfs none /proc && mount -t tmpfs none /sys && exec \"$@\""
        can = subprocess.run(["unshare", "--mount", "sh", "-c", hide, "sh", "true"], check=False, capture_output=True)
        if can.returncode != 0:
            self.skipTest("no mount namespace can be made here")
        done = self.run_program("unshare", "--mount", "sh", "-c", hide, "sh", "env", f"LD_PRELOAD={paths['libsluice']}",
                                paths["first_call"], "malloc", preload="")
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), ("reached the end\n", ""))


if __name__ == "__main__":
    main()
