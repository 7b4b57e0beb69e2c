"""The programs of tests/attacks on libsluice-secure.dylib, executed: attacks_test.py LIBRARY PROCESSOR SYSTEM FOLDER. What
is found is compared with the table of lib/docs/memory-errors.md, which is about Linux. Open it when a mistake with the
heap is not found on macOS."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
import lief  # noqa: E402

lief.logging.disable()
LIBRARY, PROCESSOR, SYSTEM, FOLDER = sys.argv[1:5]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "attacks"))

from machine import Aborted, Fault  # noqa: E402
from process import Process  # noqa: E402
from run_attacks import HARMLESS, VARYING, documented, message_of  # noqa: E402

# What macOS changes. malloc_size() is asked whose an address is, and answers 0 for what is no block. A block of no bytes
# would be nobody's: it has one. operator delete is libc++'s, and frees without the size.
ON_MACOS = {"size_query_of_freed": "harmless", "size_query_interior": "harmless",
            "zero_size_write": "missed", "zero_size_read": "missed", "sized_delete": "missed"}


def outcome(program):
    """What run_attacks.py calls it, and what was written to standard error."""
    process = Process(PROCESSOR, LIBRARY, SYSTEM)
    try:
        status = process.run_program(program)
        process.exit()
        word = {0: "missed", HARMLESS: "harmless"}.get(status, f"status {status}")
    except Aborted:
        word = "named" if b"sluice: " in process.written.get(2, b"") else "crashed"
    except Fault:
        word = "stopped"
    return word, process.written.get(2, b"").decode()


class Attacks(unittest.TestCase):
    def test_each_is_found_as_on_linux(self):
        table = documented()
        attacks = sorted({attack for attack, _ in table})
        self.assertEqual(attacks, sorted(path.name for path in pathlib.Path(FOLDER).iterdir()))
        for attack in attacks:
            with self.subTest(attack):
                expected = VARYING.get((attack, "sluice-secure"), (ON_MACOS.get(attack, table[attack, "sluice-secure"]),))
                word, text = outcome(pathlib.Path(FOLDER) / attack)
                self.assertIn(word, expected, text)
                if word == "named":
                    self.assertRegex(text, "sluice: .*(" + message_of(attack) + ")")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
