"""Reports as a headless Chromium shows them: without errors and without the network, with charts that hold data, tables
that sort, a filter, dark colours, room on a phone, and no text of a document that becomes markup.

Run by html_report.sh: html_report.py PAGE ARGUMENT, where PAGE is one that the command has written of a program with
this argument. The documents report_*.json are put in the place of its own. Open it when a page looks right and works
wrong.
"""
import json
import pathlib
import re
import sys
import tempfile
import unittest

from chromium import Browser, find_chromium

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENTS = {path.stem.removeprefix("report_"): json.loads(path.read_text(encoding="utf-8"))
             for path in sorted(HERE.glob("report_*.json"))}
DATA = re.compile(r'(<script type="application/json" id="document">)(.*?)(</script>)', re.DOTALL)
CHART_JS = re.compile(r"<script>\s*/\*!\s*\* Chart\.js v.*?</script>", re.DOTALL)

# What the checks in the page share; each is called as check.NAME().
CHECKS = """
window.check = {
  frame: () => new Promise(requestAnimationFrame),
  open: () => document.querySelectorAll("details").forEach((each) => (each.open = true)),
  charts: async () => {  // scrolls to each chart in turn; returns what is wrong with it
    const faults = [];
    for (const canvas of document.querySelectorAll("canvas")) {
      canvas.scrollIntoView({ block: "center" });
      for (let frames = 0; frames < 300 && !Chart.getChart(canvas); ++frames) await check.frame();
      await check.frame();
      const chart = Chart.getChart(canvas);
      if (!chart) return ["never drawn: " + canvas.getAttribute("aria-label")];
      const data = chart.data.datasets.flatMap(({ data }) => data);
      const number = (value) => Number.isFinite(typeof value === "object" && value !== null ? value.y : value);
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      const name = canvas.getAttribute("aria-label");
      if (!data.some(number)) faults.push("without data: " + name);
      if (!pixels.some((value) => value !== 0)) faults.push("blank: " + name);
      if (!(chart.chartArea.width > 40)) faults.push("no room: " + name);
    }
    return faults;
  },
  table: (caption) => [...document.querySelectorAll("table")].find((each) => each.caption.textContent === caption),
  rows: (caption) => [...check.table(caption).tBodies[0].rows],
  column: (caption, column) => check.rows(caption).map((row) => row.cells[column].sort_value ?? null),
  heading: (caption, column) => check.table(caption).tHead.rows[0].cells[column],
  shown: () => [...document.querySelectorAll("h3")].filter((each) => each.offsetParent).map((each) => each.textContent),
  background: () => getComputedStyle(document.body).backgroundColor,
  contrast: (front, back) => {
    const light = (name) => {
      const hex = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
      const part = (at) => parseInt(hex.slice(at, at + 2), 16) / 255;
      const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      return 0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5));
    };
    const [low, high] = [light(front), light(back)].sort((left, right) => left - right);
    return (high + 0.05) / (low + 0.05);
  },
};
"""


def page_of(document, template):
    """Returns the page with another document in it."""
    data = json.dumps(document).replace("<", "\\u003c")
    return DATA.sub(lambda found: found[1] + data + found[3], template)


class Page(unittest.TestCase):
    """A test of pages in the one browser."""

    def setUp(self):
        self.faults_expected = False
        browser.size(1600, 1000)
        browser.prefer("light")

    def tearDown(self):
        if not self.faults_expected:
            self.assertEqual(browser.faults, [], "errors in the page")
        self.assertEqual(browser.requests, [], "the page asked the network")

    def show(self, document, charts=True):
        page = page_of(document, template)
        if not charts:
            page = CHART_JS.sub("", page)
        path = pathlib.Path(folder, "shown.html")
        path.write_text(page, encoding="utf-8")
        self.open(path)

    def open(self, path):
        browser.open(path)
        browser.value(CHECKS)

    def prefer(self, scheme):
        """Sets what the system prefers; the page hears of it with the next frame."""
        browser.prefer(scheme)
        browser.value("check.frame().then(check.frame)")

    def text(self, selector="body"):
        return browser.value(f"document.querySelector({json.dumps(selector)}).innerText")


class EveryDocument(Page):
    def test_charts_hold_data(self):
        if not has_charts:
            self.skipTest("built without Chart.js")
        for name, document in DOCUMENTS.items():
            for width in (1600, 375):
                with self.subTest(document=name, width=width):
                    browser.size(width, 900)
                    self.show(document)
                    self.assertEqual(browser.value("check.charts()"), [])
                    if "odd" not in name:
                        self.assertGreater(browser.value("document.querySelectorAll('canvas').length"), 5)

    def test_fits_the_screen(self):
        for name, document in DOCUMENTS.items():
            for width in (375, 700, 1600):
                with self.subTest(document=name, width=width):
                    browser.size(width, 800)
                    self.show(document)
                    browser.value("check.open()")
                    self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), width)

    def test_says_all_that_a_reader_needs(self):
        for name, document in DOCUMENTS.items():
            with self.subTest(document=name):
                self.show(document)
                headings = browser.value("[...document.querySelectorAll('h2')].map((each) => each.textContent)")
                for heading in ("Summary", "Reproduce", "Machine and versions", "How to read it"):
                    self.assertIn(heading, headings)
                self.assertEqual("Partial results." in self.text(), bool(document["partial"]))
                for allocator in document["allocators"]:
                    self.assertIn(allocator["name"], self.text("main"))

    def test_texts_stay_texts(self):
        for name, document in DOCUMENTS.items():
            with self.subTest(document=name):
                self.show(document)
                foreign = "document.querySelectorAll('img, iframe, b > b, main script').length"
                self.assertEqual(browser.value(foreign), 0)
                read = browser.value("JSON.stringify(JSON.parse(document.getElementById('document').textContent))")
                self.assertEqual(json.loads(read), document)

    def test_colours_follow(self):
        for name in ("compare", "bench"):
            with self.subTest(document=name):
                self.show(DOCUMENTS[name])
                light = browser.value("check.background()")
                self.prefer("dark")
                self.assertNotEqual(browser.value("check.background()"), light)
                if has_charts:
                    self.assertEqual(browser.value("check.charts()"), [])
                browser.value("document.getElementById('theme').click()")
                self.assertEqual(browser.value("check.background()"), light)
                self.prefer("light")

    def test_contrast_suffices(self):
        self.show(DOCUMENTS["compare"])
        for scheme in ("light", "dark"):
            self.prefer(scheme)
            pairs = [("text", "best", 4.5), ("bad", "bad-ground", 4.5), ("text", "warning-ground", 4.5)]
            for back in ("ground", "surface"):
                pairs += [(front, back, 4.5) for front in ("text", "muted", "link", "less", "more", "bad")]
                pairs += [(f"series-{number}", back, 3) for number in range(8)]
            for front, back, least in pairs:
                with self.subTest(scheme=scheme, front=front, back=back):
                    self.assertGreaterEqual(browser.value(f"check.contrast('{front}', '{back}')"), least)

    def test_prints_everything(self):
        browser.prefer("dark")
        for name in ("compare", "bench"):
            with self.subTest(document=name):
                self.show(DOCUMENTS[name])
                browser.value("dispatchEvent(new Event('beforeprint'))")
                self.assertEqual(browser.value("document.querySelectorAll('details:not([open])').length"), 0)
                if has_charts:
                    browser.value("check.frame().then(check.frame)")  # what leaves the view changes nothing
                    missing = "[...document.querySelectorAll('canvas')].filter((each) => !Chart.getChart(each)).length"
                    self.assertEqual(browser.value(missing), 0)
                    self.assertEqual(browser.value("document.documentElement.dataset.theme"), "light")
                    browser.value("dispatchEvent(new Event('afterprint'))")
                    self.assertEqual(browser.value("document.documentElement.dataset.theme"), "dark")

    def test_tables_suffice_without_charts(self):
        for name, document in DOCUMENTS.items():
            with self.subTest(document=name):
                self.show(document, charts=False)
                self.assertIn("Without charts:", self.text())
                self.assertEqual(browser.value("document.querySelectorAll('canvas').length"), 0)
                self.assertEqual(browser.value("document.querySelectorAll('details:not([open])').length"), 0)
                self.assertGreater(browser.value("document.querySelectorAll('td').length"), 0)


class OneDocument(Page):
    def assert_sorted(self, caption, column, descending):
        values = browser.value(f"check.column({json.dumps(caption)}, {column})")
        known = [value for value in values if value is not None]
        self.assertEqual(values, known + [None] * (len(values) - len(known)), "rows without a value come last")
        self.assertEqual(known, sorted(known, reverse=descending))
        return known

    def test_headings_sort(self):
        self.show(DOCUMENTS["bench"])
        caption = "Time per operation"
        before = browser.value(f"check.column('{caption}', 1)")
        self.assertNotEqual(before, sorted(filter(None, before)))
        for descending, direction in ((False, "ascending"), (True, "descending")):
            browser.value(f"check.heading('{caption}', 1).querySelector('button').click()")
            self.assertGreater(len(self.assert_sorted(caption, 1, descending)), 3)
            self.assertEqual(browser.value(f"check.heading('{caption}', 1).getAttribute('aria-sort')"), direction)
        # By the keyboard, and the mark moves on.
        browser.value(f"check.heading('{caption}', 2).querySelector('button').focus()")
        for kind in ("rawKeyDown", "char", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, text="\r")
        self.assert_sorted(caption, 2, False)
        self.assertEqual(browser.value("document.querySelectorAll('[aria-sort]').length"), 1)

    def test_filter_chooses(self):
        document = DOCUMENTS["bench"]
        self.show(document)
        names = [scenario["name"] for scenario in document["scenarios"]]
        shown = lambda: [name for name in browser.value("check.shown()") if name in names]  # noqa: E731
        rows = "[...check.table('Time per operation').tBodies[0].rows].filter((row) => row.offsetParent).length"

        def search(text):
            browser.value(f"search.value = {json.dumps(text)}; search.dispatchEvent(new Event('input'))")

        def choose(control, value):
            browser.value(f"{control}.value = {json.dumps(value)}; {control}.dispatchEvent(new Event('change'))")

        self.assertEqual(shown(), names)
        every_row = browser.value(rows)
        search("REQUEST")
        chosen = [name for name in names if "request" in name]
        self.assertEqual(shown(), chosen)
        self.assertLess(browser.value(rows), every_row)
        self.assertIn(f"{len(chosen)} of {len(names)}", self.text("[role=status]").replace("\u00a0", " "))
        choose("kind", "program")
        self.assertEqual(shown(), [])
        search("")
        self.assertEqual(shown(), [each["name"] for each in document["scenarios"] if each["kind"] == "program"])
        choose("kind", "")
        search("no such scenario")
        self.assertEqual(browser.value(rows), 0)
        search("")
        for view in range(browser.value("view.options.length")):
            choose("view", str(view))
            self.assertGreater(browser.value("document.querySelectorAll('table.cases tbody tr').length"), 0)
        choose("jump", browser.value("jump.options[2].value"))
        self.assertIn(names[1], browser.value("document.querySelector(location.hash).textContent"))

    def test_verdicts_are_words(self):
        self.show(DOCUMENTS["compare"])
        text = self.text("main")
        for words in ("no sure difference", "more", "baseline"):
            self.assertIn(words, text)

    def bests(self):
        return browser.value("document.querySelectorAll('td.best').length")

    def cards(self):
        """Returns the headings of the rankings, and of each entry its place and allocator."""
        entry = "[each.querySelector('.place')?.textContent ?? null, each.querySelector('.allocator').textContent]"
        return browser.value("[...document.querySelectorAll('.card')].map((card) => [card.querySelector('h3').textContent, "
                             f"[...card.querySelectorAll('li')].map((each) => {entry})])")

    def test_only_what_is_surely_better_is_called_best(self):
        bench = DOCUMENTS["bench"]
        self.show(bench)
        cases = [entry for scenario in bench["scenarios"] for case in scenario["cases"]
                 for entry in case["allocators"].values()]
        peaks = [entry["peak_kib"] for scenario in bench["scenarios"] for entry in scenario["memory"].values()]
        surely = [sum(entry["best"] for entry in entries) for entries in (cases, peaks)]
        self.assertGreater(sum(surely), 0)
        self.assertEqual(self.bests(), 2 * surely[0] + surely[1])  # all cases, and each scenario's tables
        self.assertEqual([place for _, entries in self.cards() for place, _ in entries if place], [])
        # The medians stay different, and nobody is the best.
        for entry in cases + peaks:
            entry["best"] = False
        self.show(bench)
        self.assertEqual(self.bests(), 0)

    def test_who_does_not_differ_shares_a_place_and_is_not_the_best(self):
        self.show(DOCUMENTS["compare"])
        self.assertEqual(self.bests(), 0)
        (time, ranked), (memory, _) = self.cards()
        self.assertEqual((time, memory), ("Fastest first", "Least memory of the largest process first"))
        self.assertEqual([place for place, _ in ranked], ["1.", "1.", "1.", "1.", "2."])
        alike = json.loads(json.dumps(DOCUMENTS["compare"]))
        for allocator in alike["allocators"]:
            allocator["metrics"]["wall_seconds"]["place"] = 1
            del allocator["metrics"]["peak_rss_kib"]["place"]  # as of too few runs, or an earlier version
        self.show(alike)
        (time, ranked), (memory, others) = self.cards()
        self.assertEqual((time, memory), ("Time: no significant difference", "Memory of the largest process"))
        self.assertEqual({place for place, _ in ranked + others}, {None})

    def test_a_figure_of_the_programs_own_decides(self):
        self.show(DOCUMENTS["metric"])
        title, ranked = self.cards()[0]
        self.assertEqual(title, "Best by Requests/sec first")
        self.assertEqual(ranked, [["1.", "sluice"], ["2.", "system"]])
        self.assertIn("Best by Requests/sec: sluice, then system.", self.text("main"))
        remark = browser.value("(({textContent, className}) => [textContent, className])"
                               "(document.querySelector('.card .remark'))")
        self.assertEqual(remark, ["2.0 times as much, better", "remark less"])
        column = "check.rows('Medians of a run').map((row) => row.cells[1].className.includes('best'))"
        self.assertEqual(browser.value(column), [False, True])
        worse = json.loads(json.dumps(DOCUMENTS["metric"]))
        worse["metrics"][0]["better"] = "less"
        self.show(worse)
        self.assertIn("2.0 times as much, worse", self.text("main"))

    def test_memory_is_that_of_all_processes(self):
        self.show(DOCUMENTS["metric"])
        self.assertEqual(self.cards()[1][0], "Least memory first")
        self.assertIn("12.0\u00a0ms apart at most", self.text("main"))
        headings = browser.value("[...check.table('Medians of a run').tHead.rows[0].cells].map((each) => each.innerText)")
        self.assertLess(headings.index("Peak memory"), headings.index("Largest process"))
        # An earlier version knew the largest one only, and the page says so.
        self.show(DOCUMENTS["compare"])
        self.assertIn("does not know what all held together", self.text("main"))

    def test_real_programs_have_average_memory(self):
        document = json.loads(json.dumps(DOCUMENTS["bench"]))
        (document["scenarios"],) = [[each] for each in document["scenarios"] if each["kind"] == "program"]
        headings = "[...check.table('Memory').tHead.rows[0].cells].map((each) => each.innerText.split('\\n')[0])"
        self.show(document, charts=False)
        self.assertNotIn("Average", browser.value(headings))
        for memory in document["scenarios"][0]["memory"].values():
            memory["average_kib"] = {"median": 123 * 1024, "samples": [123 * 1024]}
        self.show(document, charts=False)
        column = browser.value(headings).index("Average")
        cell = f"check.table('Memory').tBodies[0].rows[0].cells[{column}].innerText"
        self.assertEqual(browser.value(cell).replace("\u00a0", " "), "123 MiB")

    def test_speed_ups_are_lines_and_the_linear_one_is_dashed(self):
        if not has_charts:
            self.skipTest("built without Chart.js")
        document = DOCUMENTS["curves"]
        self.show(document)
        self.assertEqual(browser.value("check.charts()"), [])
        canvases = "[...document.querySelectorAll('canvas[aria-label^=\"Speed-up\"]')]"
        self.assertEqual(browser.value(f"{canvases}.length"), len(document["curves"]))
        names = [each["name"] for each in document["allocators"]]
        for index, curve in enumerate(document["curves"]):
            with self.subTest(curve=curve["name"]):
                lines = browser.value(f"""(async () => {{
                  const canvas = {canvases}[{index}];
                  canvas.scrollIntoView({{ block: "center" }});
                  while (!Chart.getChart(canvas)) await check.frame();
                  return Chart.getChart(canvas).data.datasets.map(({{ label, data, borderDash }}) => [
                    label, borderDash.length > 0, data.map(({{ threads, speed_up }}) => [threads, speed_up])]);
                }})()""")
                points = curve["points"]
                fewest = points[0]["threads"]
                expected = [[name, False, [[point["threads"], point["allocators"][name]["speed_up"]] for point in points]]
                            for name in names]
                linear = [[point["threads"], point["threads"] / fewest] for point in points]
                self.assertEqual(lines, expected + [["linear", True, linear]])

    def test_speed_ups_stand_in_tables(self):
        document = json.loads(json.dumps(DOCUMENTS["curves"]))
        curve = document["curves"][0]
        del curve["points"][1]["allocators"]["mimalloc"]  # it failed there
        curve["points"][2]["allocators"]["mimalloc"].update(speed_up=None, of_linear=None)
        figures = curve["points"][2]["allocators"]["sluice"]
        figures.update(median=25, speed_up=2.125, of_linear=0.53125)
        for charts in (True, False):
            self.show(document, charts=charts)
            rows = browser.value(f"check.rows('{curve['name']}: time per operation, speed-up and its share of the linear one')"
                                 ".map((row) => [...row.cells].map((cell) => cell.textContent.replaceAll('\u00a0', ' ')))")
            self.assertEqual([row[0] for row in rows], ["1", "2", "4over-committed"])
            self.assertEqual([point["over_committed"] for point in curve["points"]], [False, False, True])
            self.assertEqual(rows[2][2], "25.0 ns (2.13 ×, 53 %)")
            self.assertEqual(rows[1][3], "–")
            self.assertTrue(rows[2][3].endswith("(–, –)"), rows[2][3])
            self.assertIn("2 processors could be used", self.text("main").replace("\u00a0", " "))
        # Where there are processors for all threads, nothing is said of them; and nothing of speed-ups without any.
        for point in document["curves"][0]["points"] + document["curves"][1]["points"] + document["curves"][2]["points"]:
            point["over_committed"] = False
        self.show(document)
        self.assertNotIn("over-committed", self.text("main").lower())
        document["curves"] = []
        self.show(document)
        self.assertNotIn("speed-up", self.text("main").lower())

    def test_a_scenario_with_several_numbers_of_threads_counts_once(self):
        self.show(DOCUMENTS["curves"])
        self.assertEqual(self.text("h1").replace("\u00a0", " "), "2 scenarios with 1, 2 and 4 threads × 3 allocators")
        cases = browser.value("check.rows('Time per operation').map((row) => row.cells[0].textContent)")
        self.assertIn("pair@2", cases)
        self.assertIn("thread_churn@4: together", cases)

    def test_a_latency_of_nothing_is_below_the_clocks_step(self):
        document = json.loads(json.dumps(DOCUMENTS["metric"]))
        document["allocators"][0]["latency"]["free"]["p50"] = 0
        self.show(document)
        cells = browser.value("check.rows('Latencies by percentile').flatMap((row) => [...row.cells])"
                              ".map((cell) => cell.textContent)")
        self.assertIn("below the clock\u2019s step", cells)
        self.assertNotIn("0\u00a0ns", cells)

    def test_failures_are_seen(self):
        self.show(DOCUMENTS["odd_bench"])
        failures = sum(len(scenario.get("failures") or {}) for scenario in DOCUMENTS["odd_bench"]["scenarios"])
        self.assertEqual(browser.value("document.querySelectorAll('main > .note.bad li').length"), failures)
        cells = "check.rows('Time per operation').flatMap((row) => [...row.cells]).map((cell) => cell.textContent)"
        rows = [(len(scenario.get("cases") or [0]), len(scenario.get("failures") or {}))
                for scenario in DOCUMENTS["odd_bench"]["scenarios"]]
        self.assertEqual(browser.value(cells).count("failed"), sum(count * failed for count, failed in rows))
        self.assertIn("Not applicable under", self.text("main").replace("\n", " "))
        self.show(DOCUMENTS["odd_compare"])
        self.assertIn("failed: " + DOCUMENTS["odd_compare"]["allocators"][0]["failure"], self.text("main"))

    def test_unknown_documents_are_refused(self):
        self.faults_expected = True
        for document in ({"schema": "another 1"}, {"schema": "constructor"}, {}, [], 5, None, "text"):
            with self.subTest(document=document):
                self.show(document)
                self.assertIn("This document cannot be shown", self.text())

    def test_a_document_may_lack_everything(self):
        for schema in ("sluice-compare 1", "sluice-bench 2"):
            self.show({"schema": schema, "partial": False})
            self.assertIn("How to read it", self.text())


class PageOfTheCommand(Page):
    def test_shows_the_command(self):
        self.open(written)
        self.assertIn(argument, self.text("h1"))
        self.assertEqual(browser.value("document.querySelectorAll('img').length"), 0)
        self.assertIn("system", self.text("main"))
        if has_charts:
            self.assertEqual(browser.value("check.charts()"), [])


if __name__ == "__main__":
    written, argument = sys.argv[1:]
    chromium = find_chromium()
    if chromium is None:
        print("no Chromium is installed")
        sys.exit(77)
    template = pathlib.Path(written).read_text(encoding="utf-8")
    has_charts = CHART_JS.search(template) is not None
    with tempfile.TemporaryDirectory() as folder, Browser(chromium, folder) as browser:
        unittest.main(argv=sys.argv[:1], verbosity=2)
