"""Programs into which the loader puts no preload, as children of one that has it: they run on their own malloc, and what is
said about it is not said by the library. `sluice run` names them; that is tested in cli/static.sh, privileged.sh and
architecture.sh.

Open it when a statically linked or setuid child of a preloaded program fails or prints lines that it should not.
"""

import os
import platform
import shutil
import stat
import subprocess

from preload_process import PreloadTest, main

NOBODY = 65534
SHELL = shutil.which("bash")  # ends by exit(), so that it prints its statistics


class IgnoredPreload(PreloadTest):
    def run_child(self, program, **variables):
        """Runs the program twice, as a child of a shell that has the preload and prints statistics."""
        return self.run_program(SHELL, "-c", f"{program} && {program}; exit 7", SLUICE_STATS="1", **variables)

    def assert_only_the_shell_reports(self, done, output):
        self.assertEqual((done.returncode, done.stdout), (7, output), done.stderr)
        self.assertEqual(done.stderr.count("sluice "), 1, done.stderr)
        self.assertRegex(done.stderr, r"sluice \S+: pid \d+, bash\n")

    def build(self, text, *options):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("no C compiler")
        program = os.path.join(self.folder, "program")
        built = subprocess.run([compiler, "-x", "c", "-", "-o", program, *options], input=text, text=True, check=False,
                               capture_output=True)
        if built.returncode != 0:
            self.skipTest(f"cc {' '.join(options)} does not link here")
        return program

    HELLO = '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { free(malloc(99)); return puts("ran") < 0; }\n'

    def test_statically_linked_children_run_by_themselves(self):
        for option in ("-static", "-static-pie"):
            with self.subTest(option=option):
                self.assert_only_the_shell_reports(self.run_child(self.build(self.HELLO, option)), "ran\nran\n")

    def test_a_child_of_32_bits_hears_of_it_from_its_loader(self):
        loader = "/lib/ld-linux.so.2"
        if not os.path.exists(loader) or not shutil.which("as") or platform.machine() != "x86_64":
            self.skipTest(f"no {loader} for programs of 32 bits")
        # Prints and ends by system calls, and needs no library, but names the loader.
        text = """.globl _start
            _start: mov $4, %eax; mov $1, %ebx; call next; next: pop %ecx; add $(text - next), %ecx; mov $4, %edx; int $0x80
            mov $1, %eax; xor %ebx, %ebx; int $0x80
            text: .ascii "ran\\n"
            """
        program = os.path.join(self.folder, "narrow")
        subprocess.run(["as", "--32", "-o", f"{program}.o"], input=text, text=True, check=True)
        subprocess.run(["ld", "-m", "elf_i386", "-pie", "-z", "noexecstack", "-dynamic-linker", loader, "-o", program,
                        f"{program}.o"], check=True)
        done = self.run_child(program)
        self.assertEqual((done.returncode, done.stdout), (7, "ran\nran\n"), done.stderr)
        self.assertEqual(done.stderr.count("cannot be preloaded"), 2, done.stderr)
        self.assertEqual(done.stderr.count("pid "), 1, done.stderr)

    def test_setuid_children_run_by_themselves_and_ignore_options(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a program that is setuid to another user")
        program = self.build(self.HELLO)
        os.chmod(self.folder, 0o755)
        os.chown(program, NOBODY, NOBODY)
        os.chmod(program, 0o4755)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest(f"{self.folder} is mounted nosuid")
        self.assertTrue(os.stat(program).st_mode & stat.S_ISUID)
        done = self.run_child(program)
        self.assertEqual((done.returncode, done.stdout), (7, "ran\nran\n"))
        self.assertEqual(done.stderr.count("pid "), 1, done.stderr)


if __name__ == "__main__":
    main()
