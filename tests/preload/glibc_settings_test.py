"""Settings of glibc's own malloc in the environment and in old programs: they do no harm, and no result changes.

Open it when a program behaves otherwise under the preload because of MALLOC_* or GLIBC_TUNABLES.
"""

from preload_process import PreloadTest, main, paths

SETTINGS = (
    {},
    {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "170", "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "1",
     "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_TOP_PAD_": "0", "MALLOC_MMAP_MAX_": "0"},
    {"GLIBC_TUNABLES": "glibc.malloc.check=3:glibc.malloc.perturb=170:glibc.malloc.tcache_count=0"},
    {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=4096"},
    {"LD_BIND_NOW": "1", "MALLOC_TRACE": "/dev/null"},
)


class GlibcSettings(PreloadTest):
    def test_change_nothing(self):
        for settings in SETTINGS:
            with self.subTest(settings=settings):
                done = self.run_program(paths["glibc_settings"], SLUICE_STATS=f"json:{self.folder}/last.json", **settings)
                self.assert_ended_well(done)
                self.assertEqual((done.stdout, done.stderr), ("reached the end\n", ""))
                self.assertGreater(self.dumps()["last.json"]["mallocs"], 4000)

    def test_libraries_that_check_glibcs_malloc_are_harmless(self):
        # With MALLOC_CHECK_, glibc's checks live in a library of their own, which is preloaded; either order.
        checker = "libc_malloc_debug.so.0"
        alone = self.run_program(paths["glibc_settings"], preload=checker, MALLOC_CHECK_="3")
        if "cannot be preloaded" in alone.stderr:
            self.skipTest(f"no {checker} here")
        done = self.run_program(paths["glibc_settings"], preload=f"{paths['libsluice']}:{checker}", MALLOC_CHECK_="3")
        self.assert_ended_well(done)
        self.assertEqual((done.stdout, done.stderr), ("reached the end\n", ""))
        done = self.run_program(paths["glibc_settings"], preload=f"{checker}:{paths['libsluice']}", MALLOC_CHECK_="3")
        self.assertEqual((done.returncode, done.stdout), (alone.returncode, alone.stdout))


if __name__ == "__main__":
    main()
