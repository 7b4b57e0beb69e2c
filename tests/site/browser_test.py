"""The web site in a headless Chromium, as files: no page is wider than a telephone or a screen, none asks for anything
that is not its own, the search finds names and leads to them, and light and dark differ.

Run by scripts/test site: browser_test.py SITE. Open it when the site looks right and works wrong.
"""
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "preload/cli"))
from chromium import Browser, find_chromium  # noqa: E402

# The search is in a shadow tree. Its answer comes from another script: it is waited for, and a hang ends the test.
SEARCH = """
new Promise((resolve) => {
  document.querySelector(".md-search button").click();
  const tree = () => [...document.querySelectorAll("*")].map((each) => each.shadowRoot).find(Boolean);
  let typed = false;
  const look = () => {
    const input = tree() && tree().querySelector("input");
    if (input && !typed) {
      input.value = %s;
      input.dispatchEvent(new Event("input", { bubbles: true }));
      typed = true;
    }
    const found = typed ? [...tree().querySelectorAll("a[href]")].map((each) => each.href) : [];
    found.length ? resolve(found) : setTimeout(look, 50);
  };
  look();
})"""


class Site(unittest.TestCase):
    def setUp(self):
        browser.size(1280, 900)
        browser.prefer("light")

    def open(self, page):
        browser.open(page)
        self.assertEqual(browser.faults, [], f"errors in {page}")
        foreign = [address for address in browser.requests if not address.startswith(site.as_uri())]
        self.assertEqual(foreign, [], f"{page} asks for what is not its own")

    def test_pages_fit_a_telephone_and_ask_nobody(self):
        pages = sorted(site.rglob("*.html"))
        self.assertGreater(len(pages), 50)
        browser.size(390, 844)
        for page in pages:
            if page.name != "404.html":  # its links are those of a server
                self.open(page)
                self.assertLessEqual(browser.value("document.scrollingElement.scrollWidth"), 390, page)

    def test_wide_pages_fit_a_screen(self):
        for name in ("index", "docs/options", "docs/memory-errors", "results/results", "results/parts",
                     "reference/inline_map_hpp"):
            self.open(site / f"{name}.html")
            self.assertLessEqual(browser.value("document.scrollingElement.scrollWidth"), 1280, name)

    def test_search_finds_a_function_and_an_option(self):
        for words, target in (("try_acquire", "reference/pool_hpp.html"), ("SLUICE_PURGE_DELAY", "docs/")):
            for name in ("index", "docs/limits"):
                self.open(site / f"{name}.html")
                found = browser.value(SEARCH % json.dumps(words))
                self.assertTrue(any(f"{site.as_uri()}/{target}" in each for each in found), f"{words}: {found[:5]}")
                self.assertEqual(browser.faults, [])

    def test_a_chart_shows_each_case(self):
        self.open(site / "results/results.html")
        rows = browser.value("document.querySelectorAll('figure.chart')[1].querySelectorAll('g').length")
        told = browser.value("document.querySelectorAll('figure.chart')[1].querySelector('figcaption').textContent")
        self.assertGreater(rows, 50)
        self.assertIn(f"{rows} cases", told)

    def test_light_and_dark_differ_and_can_be_read(self):
        colours = {}
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            self.open(site / "results/results.html")
            colours[scheme] = browser.value(
                "[getComputedStyle(document.body).backgroundColor, "
                "getComputedStyle(document.querySelector('p')).color, "
                "getComputedStyle(document.querySelector('figure.chart text')).fill]")
        for light, dark in zip(colours["light"], colours["dark"]):
            self.assertNotEqual(light, dark)
        for background, text, chart in colours.values():
            self.assertNotIn(background, (text, chart))


if __name__ == "__main__":
    site = pathlib.Path(sys.argv.pop(1)).resolve()
    chromium = find_chromium()
    if chromium is None:
        sys.exit("FAILED: there is no chromium here, with which the site is tested (scripts/setup)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Browser(chromium, folder) as browser:
        unittest.main(verbosity=2)
