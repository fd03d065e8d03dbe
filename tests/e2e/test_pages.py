"""Every page that the program writes, opened in Chromium: nothing is asked of the network, nothing is complained of, everything that should
be drawn is; and each can be used by keyboard, read by a screen reader, printed, and taken away as data."""

import csv
import io
import os
import subprocess
import xml.etree.ElementTree as ElementTree

from browser import AXE, Browser
from harness import BIN, Case, main


class PageCase(Case):
    def check(self, browser, path, marks: dict[str, int]):
        """All that holds of any page. marks: how many of a selector's elements show."""
        for width in (360, 1600):
            for dark in (False, True):
                with self.subTest(path=path.name, width=width, dark=dark):
                    page = browser.open(path, width, dark)
                    self.assertEqual((page.console, page.requests, page.overflow), ([], [], 0))
                    for selector, count in marks.items():
                        self.assertEqual(browser.visible(selector), count, selector)
                    background = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
                    shade = sum(int(part) for part in background[background.index("(") + 1:-1].split(",")[:3])
                    self.assertEqual(shade < 3 * 128, dark, background)
                with self.subTest("accessibility", path=path.name, width=width, dark=dark):
                    if not AXE.exists():
                        self.skipTest(f"axe-core is not there, so accessibility is not checked; tools/fetch_axe.py {AXE.parent} brings it")
                    self.assertEqual(browser.accessibility(), [])
            with self.subTest("keyboard", path=path.name, width=width):
                browser.open(path, width)
                self.assertEqual(browser.keyboard(), ([], []))
                self.assertEqual(browser.small_targets(), [])
        with self.subTest("paper", path=path.name):
            browser.open(path)
            self.assertEqual(browser.paper(), ([], [], 0))
        with self.subTest("data", path=path.name):
            browser.open(path, 1600, True)
            self.check_downloads(browser)

    def check_downloads(self, browser):
        """Each chart gives its data and its picture, whole."""
        rows = browser.run("""return [...document.querySelectorAll('figure.chart, figure.maps')].filter((f) => f.querySelector('.tools'))
            .map((f) => f.matches('.chart') ? f.querySelector('tbody').rows.length
                : [...f.querySelectorAll('.map')].reduce((n, map) => n + map.dataset.weights.split(' ').length, 0))""")
        self.assertEqual(len(rows), browser.visible(".tools"))
        for index, count in enumerate(rows):
            name, text = browser.download(".tools .csv", index)
            table = list(csv.reader(io.StringIO(text)))
            self.assertEqual(len(table), 1 + count, name)
            self.assertEqual({len(row) for row in table}, {len(table[0])}, name)
            self.assertTrue(any(self.is_number(cell) for row in table[1:] for cell in row), name)
            name, text = browser.download(".tools .svg", index)
            picture = ElementTree.fromstring(text)
            self.assertEqual(picture.tag, "{http://www.w3.org/2000/svg}svg", name)
            self.assertGreater(float(picture.get("width")), 300, name)
            self.assertNotIn("var(", text, name)
            self.assertTrue(all("stroke: rgb" in e.get("style") for e in picture.iter() if "line" in (e.get("class") or "").split()), name)

    @staticmethod
    def is_number(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return False
        return True


class Pages(PageCase):
    def test_plans(self):
        everything, few, one = self.tmp / "all.html", self.tmp / "few.html", self.tmp / "one.html"
        presets = self.json("presets")
        self.run_ok("plan", "--compare", "all", "--dtype", "bf16", "--out", everything)
        self.run_ok("plan", "mistral-7b", "--variants", "--out", few)
        self.run_ok("plan", "deepseek-v3", "--out", one)
        cached = sum(self.json("plan", p["name"])["kv_cache"]["elements_per_token"] > 0 for p in presets)
        with Browser() as browser:
            # A point a model, where a logarithmic axis has room for it, in each of two charts.
            self.check(browser, everything, {".chart": 2, ".points .plot svg": 2, ".plot g > .marker": len(presets) + cached})
            self.check(browser, few, {".chart": 4, ".bars .plot rect": 3 * 6, ".lines .plot path.line": 6})
            self.check(browser, one, {".chart": 3, ".lines .plot path.line": 1})

            browser.open(everything)
            under_pointer = """const marks = [...document.querySelectorAll('.points .plot g')].filter((g) => g.checkVisibility());
                const box = marks[0].getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
                return [marks[0], document.elementFromPoint(x, y).closest('g')].map((g) => g.querySelector('title').textContent)"""
            mine, found = browser.run(under_pointer)
            self.assertEqual(mine, found)
            self.assertIn(found, [p["name"] for p in presets])
            rows = "return [...document.querySelectorAll('.table tbody tr')].map((row) => row.cells[0].textContent)"
            self.assertEqual(browser.run(rows), [p["name"] for p in presets])
            browser.click(".table thead th:nth-child(2) button")
            by_size = browser.run(rows)
            totals = {p["name"]: p["parameters"] for p in presets}
            self.assertEqual([totals[name] for name in by_size], sorted(totals.values()))

    def test_scaling_laws(self):
        path = self.tmp / "scale.html"
        self.run_ok("scale", "--flops", "1e21", "--smaller", "1B", "--out", path)
        with Browser() as browser:
            self.check(browser, path, {})
            self.assertEqual(browser.visible(".chart"), browser.run("return document.querySelectorAll('.chart').length"))
            self.assertGreaterEqual(browser.visible(".chart"), 3)
            # Each chart draws something, at the one size that shows.
            drawn = "return [...document.querySelectorAll('.chart')].every((c) => c.querySelectorAll('svg path.line, svg .marker, svg rect').length > 0)"
            self.assertTrue(browser.run(drawn))

    def test_training(self):
        out = self.tmp / "run"
        self.run_ok("train", self.spec(), "--data", self.text(), "--out", out, "--steps", 20, "--batch", 2, "--report")
        with Browser() as browser:
            self.check(browser, out / "report.html", {".chart": 3, ".lines .plot path.line": 3, ".samples pre": 1})
            # Values under the pointer, from the table behind the chart.
            browser.open(out / "report.html")
            tip = browser.run("""const plot = document.querySelector('.lines .plot'), box = plot.getBoundingClientRect();
                plot.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }));
                return plot.querySelector('.tip').textContent""")
            self.assertIn("Training", tip)


    def test_study(self):
        program, path = BIN.with_name("study_report_test"), self.tmp / "study.html"
        if not program.exists():
            self.skipTest(f"{program} is not built, so there is no page of a study")
        subprocess.run([program, "--gtest_filter=StudyReport.WholeAndEmptyPagesAreWellFormed"], env={**os.environ, "TRANSEPT_STUDY_PAGE": str(path)},
                       check=True, stdout=subprocess.DEVNULL)
        with Browser() as browser:
            self.check(browser, path, {".chart": 3, ".lines .plot path.band": 3, ".bars .plot .whisker": 2 * 3, ".maps": 1, ".map button": 2,
                                       ".maps .plot svg": 1, ".maps .plot .cells path": 3})
            # The second map becomes the large one; its table and the value under the pointer follow.
            browser.open(path, 360)
            browser.click(".map:nth-child(2) button")
            self.assertEqual(browser.run("return document.querySelector('.chosen').textContent"), "layer 0, head 1")
            pressed = "return [...document.querySelectorAll('.map button')].map((b) => b.getAttribute('aria-pressed'))"
            self.assertEqual(browser.run(pressed), ["false", "true"])
            browser.click(".maps summary")
            cells = "return [...document.querySelectorAll('.maps tbody tr')].map((row) => [...row.cells].map((c) => c.textContent))"
            self.assertEqual(browser.eventually(cells), [["a", "0.5", ""], ["␣b", "0.125", "0.875"]])
            tip = browser.run("""const svg = [...document.querySelectorAll('.maps .plot svg')].find((s) => s.checkVisibility());
                const box = svg.querySelector('.cells rect').getBoundingClientRect();
                svg.parentNode.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + 0.75 * box.width, clientY: box.y + 0.75 * box.height }));
                return [...svg.parentNode.querySelectorAll('.tip > *')].map((line) => line.textContent)""")
            self.assertEqual(tip, ["layer 0, head 1", "Query 2  ␣b", "Key 2  ␣b", "Weight  0.875"])


class Checkers(PageCase):
    """What the checks are there for must be seen by them."""

    def test_a_fault_is_seen(self):
        path = self.file("faulty.html", "<title>t</title><body style='width:3000px'><img src='http://127.0.0.1:9/x.png'><script>nope()</script>")
        with Browser() as browser:
            page = browser.open(path, 360)
            self.assertIn("nope", " ".join(page.console))
            self.assertEqual(page.requests, ["http://127.0.0.1:9/x.png"])
            self.assertGreater(page.overflow, 2000)

    def test_an_obstacle_is_seen(self):
        if not AXE.exists():
            self.skipTest(f"axe-core is not there; tools/fetch_axe.py {AXE.parent} brings it")
        path = self.file("obstacle.html", "<!DOCTYPE html><title>t</title><body><h1>t</h1><button></button><p style='color:#ccc'>pale"
                         "<div style='height:2em;overflow:auto'><p>one<p>two<p>three</div><details><summary>s</summary><img></details>")
        with Browser() as browser:
            browser.open(path, 360)
            rules = {finding.split(":")[0] for finding in browser.accessibility()}
            self.assertLessEqual({"button-name", "color-contrast", "html-has-lang", "image-alt", "region"}, rules)

    def test_an_obstacle_of_the_keyboard_is_seen(self):
        path = self.file("keyboard.html", "<!DOCTYPE html><title>t</title><style>button{min-height:2em;min-width:2em}#b{min-height:0;height:1em}#b:focus{outline:none}</style><button id='a'>a</button>"
                         "<button id='b'>b</button><button tabindex='-1'>c</button><div inert><button>d</button></div>")
        with Browser() as browser:
            browser.open(path)
            self.assertEqual(browser.keyboard(), (["button. c", "button. d"], ["button. b"]))
            self.assertEqual(browser.small_targets(), ["button. b"])

    def test_a_page_that_prints_badly_is_seen(self):
        path = self.file("paper.html", "<!DOCTYPE html><title>t</title><style>@media (prefers-color-scheme:dark){body{background:#111;color:#eee}}"
                         "pre{width:50cm}</style><pre>wide</pre>")
        with Browser() as browser:
            browser.open(path)
            paper = browser.paper()
            self.assertEqual((len(paper.dark), paper.faint), (1, ["pre. wide"]))
            self.assertGreater(paper.overflow, 1000)


if __name__ == "__main__":
    main()
