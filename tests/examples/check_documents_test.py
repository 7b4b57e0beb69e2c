#!/usr/bin/env python3
"""Tests that scripts/check-documents finds what is wrong in documents, and nothing else.

usage: check_documents_test.py PATH_OF_CHECK_DOCUMENTS
"""
import importlib.machinery
import importlib.util
import re
import sys
import unittest

RECORD = "# 1. T\n\nDate: 2026-01-31\n\n" + "".join(
    f"## {title}\n\nText.\n\n" for title in ["Context", "Others", "Decision", "Measurement", "What did not work"])


def load(path):
    loader = importlib.machinery.SourceFileLoader("check_documents", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_documents", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class CheckDocuments(unittest.TestCase):
    def faults(self, texts, paths=()):
        return list(checks.Documents(texts, [*texts, *paths]).faults())

    def assert_one_fault(self, texts, words, paths=()):
        faults = self.faults(texts, paths)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(words, faults[0])

    def test_links_to_files_folders_and_headings_are_right(self):
        text = "# Two `words`, here\n[a](src/a.cpp) [b](src) [c](#two-words-here) [d](DOC.md#x) [e](https://e.org/none)\n"
        self.assertEqual(self.faults({"README.md": text, "DOC.md": "## X\n"}, ["src/a.cpp"]), [])

    def test_a_link_that_leads_nowhere_is_found(self):
        self.assert_one_fault({"README.md": "line\n[a](src/b.cpp)\n"}, "README.md:2: src/b.cpp: there is no src/b.cpp")
        self.assert_one_fault({"a/DOC.md": "[a](../b/c.md)\n"}, "there is no b/c.md")

    def test_a_heading_that_is_missing_is_found(self):
        self.assert_one_fault({"README.md": "# One\n[a](#two)\n"}, "no heading for #two")
        self.assert_one_fault({"README.md": "[a](DOC.md#two)\n", "DOC.md": "```sh\n# two\n```\n"}, "no heading for #two")

    def test_the_second_heading_of_a_name_has_a_number(self):
        self.assertEqual(self.faults({"README.md": "# A\n# A\n[a](#a-1)\n"}), [])

    def test_code_holds_no_links(self):
        self.assertEqual(self.faults({"README.md": "`[a](b)`\n```\n[a](b)\n```\n"}), [])

    def test_a_source_file_that_maintainers_are_sent_to_exists(self):
        text = "see `lib/src/heap/slab.cpp` and `slab.cpp`, not `…_test.cpp` or `NAME_test.cpp`\n"
        self.assertEqual(self.faults({"lib/src/README.md": text}, ["lib/src/heap/slab.cpp"]), [])
        self.assertEqual(len(self.faults({"lib/src/README.md": text}, ["lib/src/pages/lab.cpp"])), 2)
        self.assertEqual(self.faults({"README.md": text}), [])

    def test_each_script_stands_in_contributing(self):
        self.assertEqual(self.faults({"CONTRIBUTING.md": "`demo`\n"}, ["scripts/demo", "scripts/lib/common.sh"]), [])
        self.assert_one_fault({"CONTRIBUTING.md": "demo\n"}, "no word of scripts/demo", ["scripts/demo"])

    def test_a_long_readme_and_a_page_without_a_link_are_found(self):
        self.assert_one_fault({"README.md": "x" * 9001}, "9001 bytes")
        self.assertEqual(self.faults({"README.md": "x" * 9000}), [])
        self.assert_one_fault({"lib/docs/a.md": "x\n"}, "no document links to it")

    def test_a_record_has_a_number_a_date_and_its_sections(self):
        def folder(**records):
            texts = {f"lib/docs/decisions/{name}": text for name, text in records.items()}
            links = " ".join(f"[r]({path})" for path in texts)
            return {**texts, "README.md": links}
        self.assertEqual(self.faults(folder(**{"001-a.md": RECORD, "002-b.md": RECORD})), [])
        self.assert_one_fault(folder(**{"002-b.md": RECORD}), "gaps")
        self.assert_one_fault(folder(**{"001-a.md": RECORD.replace("Date", "Day")}), "no line 'Date")
        self.assert_one_fault(folder(**{"001-a.md": RECORD.replace("Others", "Else")}), "its sections are")
        self.assert_one_fault(folder(**{"a.md": RECORD}), "named NNN-title.md")

    def test_figures_that_a_page_repeats_are_those_of_the_results(self):
        texts = {name: (checks.ROOT / name).read_text(encoding="utf-8") for name in ["README.md", "scenarios/results.md"]}

        def figure_faults(page, old, new):
            self.assertIn(old, texts[page])
            return list(checks.copied_figures.faults({**texts, page: texts[page].replace(old, new, 1)}))
        self.assertEqual(list(checks.copied_figures.faults(texts)), [])
        figure = re.search(r"one thread to another .*(\| \d+\.\d)\d \|\n", texts["README.md"])[1]
        for page, old, new in [("README.md", figure, figure + "0"), ("README.md", " real programs | ", " programs | "),
                               ("README.md", "mean of 13 real", "mean of 14 real"), ("README.md", "| glibc 2.36 |", "| musl |"),
                               ("scenarios/results.md", "| peak memory, scenarios |", "| peak memory |")]:
            self.assertNotEqual(figure_faults(page, old, new), [], old)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip().splitlines()[-1])
    checks = load(sys.argv.pop())
    unittest.main(argv=sys.argv[:1], verbosity=2)
