"""The page of `sluice profile --html` in a headless Chromium: flame graph, memory over time and sites work, by mouse and by
keys, in light and dark and on a phone, without the network, and no name of a function becomes markup.

Run by profile_html.sh: profile_html.py COMMAND, in a folder of its own. Open it when that page looks right and works wrong.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from chromium import Browser, find_chromium  # noqa: E402
import profile_writer  # noqa: E402
from profile_writer import HOSTILE, Profile, demo, values  # noqa: E402

NODES = "[...document.querySelectorAll('.flame .node')]"
HELPERS = f"""
window.flame = {{
  nodes: () => {NODES},
  names: () => {NODES}.map((each) => each.textContent),
  node: (text) => {NODES}.find((each) => each.textContent === text),
  width: (text) => flame.node(text).getBoundingClientRect().width / document.querySelector(".flame").clientWidth,
  line: () => document.querySelector(".flame-line").textContent,
  show: (key) => document.querySelector(`input[name=measure][value=${{key}}]`).click(),
  type: (selector, text) => {{
    const box = document.querySelector(selector);
    box.value = text;
    box.dispatchEvent(new Event("input"));
  }},
  sites: () => [...document.querySelectorAll("#sites tbody tr")].filter((row) => !row.hidden)
    .map((row) => row.querySelector("button.site").textContent),
}};
"""


class Page(unittest.TestCase):
    def setUp(self):
        browser.size(1400, 1000)
        browser.prefer("light")

    def tearDown(self):
        self.assertEqual(browser.faults, [], "errors in the page")
        self.assertEqual(browser.requests, [], "the page asked the network")

    def show(self, profile):
        profile.write("shown.pb")
        subprocess.run([command, "profile", "shown.pb", "--html", "shown.html"], check=True)
        browser.open("shown.html")
        browser.value(HELPERS)

    def value(self, expression):
        return browser.value(expression)

    def press(self, key):
        self.value("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', "
                   f"{{ key: {json.dumps(key)}, bubbles: true, cancelable: true }}))")

    def focused(self):
        return self.value("document.activeElement.textContent")

    def text(self, selector="body"):
        return self.value(f"document.querySelector({json.dumps(selector)}).innerText")


class Profiles(Page):
    def test_tells_what_a_reader_needs(self):
        self.show(demo())
        text = self.text()
        for words in ("demo", "1.03\u00a0GiB allocated", "96.4\u00a0MiB alive at the end", "±13\u00a0%", "3\u00a0stacks could not",
                      "Memory over time", "Flame graph", "Sites"):
            self.assertIn(words, text)
        self.assertIn("peak: 193\u00a0MiB after 1.50\u00a0s", self.value("document.querySelector('.timeline svg').textContent"))
        self.assertEqual(self.value("document.querySelectorAll('.timeline .peak').length"), 1)

    def test_no_name_becomes_markup(self):
        self.show(demo(program=HOSTILE.replace("/", "")))
        self.assertEqual(self.value("document.querySelectorAll('img, i, main b').length"), 0)
        self.assertIn("<script><img src=x", self.text("h1"))
        self.assertIn("<b>.cpp:1", self.text("#sites"))
        self.value("document.querySelectorAll('button.site')[2].click()")
        self.assertIn("<i>thread</i>", self.text("#site"))

    def test_the_flame_graph_switches(self):
        self.show(demo())
        self.assertEqual(self.value("flame.nodes()[0].textContent"), "all")
        self.assertGreater(self.value("flame.width('Table::add')"), 0.95)
        self.assertNotIn("make_message", self.value("flame.names()"))
        self.value("flame.show('alloc')")
        self.assertGreater(self.value("flame.width('make_message')"), 0.85)
        self.assertLess(self.value("flame.width('Table::add')"), 0.15)
        self.value("flame.show('short_lived')")
        self.assertIn("blocks", self.value("flame.line()"))
        self.value("flame.show('peak')")
        self.assertGreater(self.value("flame.width('Table::add')"), 0.4)

    def test_the_flame_graph_zooms(self):
        self.show(demo())
        self.value("flame.show('alloc'), flame.node('Table::add').click()")
        self.assertGreater(self.value("flame.width('Table::add')"), 0.99)
        self.assertNotIn("make_message", self.value("flame.names()"))
        self.assertIn("main", self.value("flame.names()"))  # what is above stays in reach
        self.value("[...document.querySelectorAll('button')].find((each) => each.textContent === 'Whole graph').click()")
        self.assertIn("make_message", self.value("flame.names()"))

    def test_the_flame_graph_takes_keys(self):
        self.show(demo())
        self.value("flame.show('alloc'), document.querySelector('.flame [tabindex=\"0\"]').focus()")
        self.assertEqual(self.focused(), "all")
        self.press("ArrowDown")
        self.press("ArrowDown")
        self.assertEqual(self.focused(), "serve")  # the widest
        self.press("ArrowRight")
        self.assertEqual(self.focused(), "load")
        self.press("Enter")
        self.assertGreater(self.value("flame.width('load')"), 0.99)
        self.assertEqual(self.focused(), "load")
        self.assertIn("load", self.value("flame.line()"))
        self.press("Escape")
        self.assertEqual(self.focused(), "all")
        self.assertLess(self.value("flame.width('load')"), 0.2)
        self.assertEqual(self.value("document.querySelectorAll('.flame [tabindex=\"0\"]').length"), 1)

    def test_the_flame_graph_is_searched(self):
        self.show(demo())
        self.value("flame.show('alloc'), flame.type('#flame-search', 'TABLE::')")
        self.assertEqual(self.value("document.querySelectorAll('.flame .found').length"), 1)
        self.assertIn("found: 95.4\u00a0MiB (9.0\u00a0%)", self.value("flame.line()"))

    def test_sites_sort_and_are_searched(self):
        self.show(demo())
        self.assertEqual(self.value("flame.sites()")[0], "Table::add")
        heading = "[...document.querySelectorAll('#sites thead button')].find((each) => each.textContent === 'Allocated')"
        self.value(f"{heading}.click(), {heading}.click()")
        self.assertEqual(self.value("flame.sites()")[0], "make_message")
        for words, found in (("cache", ["cache_put"]), ("worker", ["make_message", "cache_put"]), ("XMALLOC", ["cache_put"]),
                             ("nosuch", []), ("", 4)):
            self.value(f"flame.type('#search', {json.dumps(words)})")
            sites = self.value("flame.sites()")
            self.assertEqual(sites if isinstance(found, list) else len(sites), found, words)

    def test_a_site_has_details(self):
        self.show(demo())
        self.assertTrue(self.value("document.querySelector('#site').hidden"))
        self.value("[...document.querySelectorAll('button.site')].find((each) => each.textContent === 'cache_put').click()")
        text = self.text("#site")
        for words in ("xmalloc (x.c:5)", "main (demo.cpp:10)", "worker", "up to 104\u00a0B", "100,000"):
            self.assertIn(words, text)
        self.assertEqual(self.value("document.activeElement.id"), "site")

    def test_fits_a_phone_and_the_dark(self):
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            for width in (375, 1400):
                browser.size(width, 800)
                self.show(demo())
                self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)
                colours = self.value("[document.body, flame.nodes()[0]].map((each) => getComputedStyle(each))"
                                     ".map((each) => [each.color, each.backgroundColor])")
                for front, back in colours:
                    self.assertGreater(contrast(front, back), 4.5, (scheme, front, back))

    def test_profiles_that_lack_things(self):
        go = Profile(types=profile_writer.TYPES[:4], duration_ms=0)
        go.sample([[("main.work", "/src/work.go", 3)]], [10, 1000, 5, 500])
        self.show(go)
        self.assertIn("main.work", self.text("#sites"))
        self.assertEqual(self.value("document.querySelectorAll('input[name=measure]').length"), 2)
        self.show(Profile())
        self.assertIn("No sample has anything to show", self.text())
        damaged = Profile(comments=["sluice.timeline=1:2 x:y", "sluice.peak_ns=99999999999999999999", "sluice.pid=<b>"])
        self.show(damaged.sample([[("f", "", 0)]], values(1, 1)))
        self.assertIn("f", self.text("#sites"))

    def test_thousands_of_deep_stacks(self):
        many = Profile()
        for number in range(3000):
            many.sample([[(f"function_{(number * depth) % 97}", "/src/many.cpp", depth)] for depth in range(1, 120)],
                        values(number + 1, 100))
        self.show(many)
        self.assertGreater(self.value("flame.nodes().length"), 100)
        self.value("flame.show('alloc'), flame.nodes()[150].click()")


DH_VIEW = pathlib.Path("/usr/libexec/valgrind/dh_view.html")


class Dhat(Page):
    @unittest.skipUnless(DH_VIEW.exists(), "no dh_view.html of Valgrind")
    def test_valgrind_s_viewer_shows_it(self):
        demo().write("shown.pb")
        subprocess.run([command, "profile", "shown.pb", "--dhat", "shown.json"], check=True)
        browser.open(DH_VIEW)
        data = pathlib.Path("shown.json").read_text(encoding="utf-8")
        browser.value(f"gFilename = 'shown', gData = JSON.parse({json.dumps(data)}), buildTree(), displayTree(0, 0, 0), 0")
        text = self.text()
        for words in ("Command: demo", "PID:     4711", "1,110,050,000 bytes", "t-gmax: 1,500 ms (60% of program duration)",
                      "make_message (/src/message.cpp:8)", "in 1,101,010 blocks"):
            self.assertIn(words, text)
        browser.requests.clear()  # the viewer has a style and a script of its own


def contrast(front, back):
    """Returns the ratio of two colours' luminances, as WCAG has it."""
    def luminance(colour):
        parts = [int(each) / 255 for each in colour[colour.index("(") + 1:-1].split(",")[:3]]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    low, high = sorted((luminance(front), luminance(back)))
    return (high + 0.05) / (low + 0.05)


if __name__ == "__main__":
    command = os.path.abspath(sys.argv.pop(1))
    chromium = find_chromium()
    if chromium is None:
        print("no Chromium")
        sys.exit(77)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Browser(chromium, folder) as browser:
        result = unittest.main(exit=False).result
    sys.exit(0 if result.wasSuccessful() else 1)
