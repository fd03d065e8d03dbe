"""Pages of plans and scaling laws, opened in Chromium: nothing is asked of the network, nothing is complained of, everything that should be drawn is."""

from browser import Browser
from harness import Case, main


class Pages(Case):
    def check(self, browser, path, marks: dict[str, int]):
        """marks: how many of a selector's elements show."""
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

    def test_a_fault_is_seen(self):
        path = self.file("faulty.html", "<title>t</title><body style='width:3000px'><img src='http://127.0.0.1:9/x.png'><script>nope()</script>")
        with Browser() as browser:
            page = browser.open(path, 360)
            self.assertIn("nope", " ".join(page.console))
            self.assertEqual(page.requests, ["http://127.0.0.1:9/x.png"])
            self.assertGreater(page.overflow, 2000)


if __name__ == "__main__":
    main()
