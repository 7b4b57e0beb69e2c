"""Prints how each test of `python3 -m test --junit-xml FILE` ended, in the order of their names, and what failed.

Usage: outcomes.py FILE. Open it with run_python_tests of real_workloads_languages.sh.
"""

import re
import sys
import xml.etree.ElementTree

outcomes = []
for case in xml.etree.ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    outcome = case.get("result")
    for part in case:
        if part.tag == "skipped":
            outcome = "skipped"
        elif part.tag in ("failure", "error"):
            # The message without the numbers, which may differ.
            last = (part.text or "").strip().rpartition("\n")[2]
            outcome = f"{part.tag}: {re.sub('[0-9a-f]*[0-9][0-9a-f]*', 'N', last)}"
    outcomes.append(f"{case.get('name')} {outcome}")
print("\n".join(sorted(outcomes)))
