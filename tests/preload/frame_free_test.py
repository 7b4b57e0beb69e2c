"""Memory of a frame that is given to free or realloc: ignored by the default build, named by its checks and by the secure
build.

Open it when such a mistake goes unnoticed. frame_free.c makes it.
"""

import signal

from preload_process import PreloadTest, main, paths

CHECKED = [("libsluice", {"SLUICE_FRAME_CHECKS": "1"}), ("libsluice", {"SLUICE_GUARD_RATE": "1"}), ("secure", {})]
MISTAKES = {"free": "free", "inside": "free", "far": "free", "realloc": "realloc"}


class FrameFree(PreloadTest):
    def run_mistake(self, what, library, **variables):
        return self.run_program(paths["frame_free"], what, preload=paths[library], **variables)

    def test_it_is_ignored_without_checks(self):
        for what in MISTAKES:
            done = self.run_mistake(what, "libsluice")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "the frame is whole\n", ""), what)

    def test_checks_name_it_and_stop_the_process(self):
        for what, call in MISTAKES.items():
            for library, variables in CHECKED:
                done = self.run_mistake(what, library, **variables)
                self.assertEqual((done.returncode, done.stdout), (-signal.SIGABRT, ""), (what, library, variables))
                self.assertRegex(done.stderr, rf"^sluice: invalid {call}: memory of a frame lies at 0x[0-9a-f]+; "
                                              r"the process is stopped\n$")

    def test_the_process_goes_on_when_asked(self):
        for what, call in MISTAKES.items():
            for library, variables in CHECKED:
                done = self.run_mistake(what, library, SLUICE_ABORT_ON_CORRUPTION="0", **variables)
                self.assertEqual((done.returncode, done.stdout), (0, "the frame is whole\n"), (what, library, variables))
                self.assertRegex(done.stderr, rf"^sluice: invalid {call}: memory of a frame lies at 0x[0-9a-f]+; "
                                              r"the process goes on \(SLUICE_ABORT_ON_CORRUPTION=0\)\n$")


if __name__ == "__main__":
    main()
