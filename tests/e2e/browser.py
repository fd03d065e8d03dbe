"""A real browser, Chromium without a window, for pages that the program writes. Debian's chromium, chromium-driver and python3-selenium.

    with Browser() as browser:
        page = browser.open(path, width=360, dark=True)
        page.console, page.requests, page.overflow
"""

import json
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
         "--disable-background-networking", "--disable-component-update"]
AXE = Path(__file__).resolve().parents[2] / ".cache/axe/axe.min.js"  # tools/fetch_axe.py brings it
PAPER = 673  # CSS pixels between the margins of A4 in the pages' style sheet

# Relative luminance of a computed colour; a background that is transparent shows what lies below it.
LUMINANCE = """
const luminance = (color) => {
  const [r, g, b, a] = color.match(/[0-9.]+/g).map(Number);
  const channel = (c) => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  return a === 0 ? null : 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
};
const named = (e) => e.tagName.toLowerCase() + '.' + (e.getAttribute('class') || '') + ' ' + e.textContent.slice(0, 30);
"""


class Page(NamedTuple):
    title: str
    console: list[str]  # what the page wrote, warnings and errors
    requests: list[str]  # addresses beyond the page's own
    overflow: int  # pixels by which it is wider than its window


class Keyboard(NamedTuple):
    unreached: list[str]  # what can be used and the Tab key does not come to
    unmarked: list[str]  # what shows no outline when it has the focus


class Paper(NamedTuple):
    dark: list[str]  # elements with a dark background
    faint: list[str]  # elements whose text stands out from white by less than 4.5:1
    overflow: int  # pixels by which the page is wider than the paper


class Browser:
    def __enter__(self):
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.downloads = tempfile.TemporaryDirectory(prefix="transept-")
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": self.downloads.name})
        return self

    def __exit__(self, *_):
        self.driver.quit()
        self.downloads.cleanup()

    def emulate(self, width: int, dark: bool, media: str = ""):
        command = self.driver.execute_cdp_cmd
        command("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        command("Emulation.setEmulatedMedia", {"media": media, "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def open(self, path: Path, width: int = 1600, dark: bool = False) -> Page:
        self.emulate(width, dark)
        own = Path(path).resolve().as_uri()
        self.driver.get_log("browser"), self.driver.get_log("performance")  # what came before
        self.driver.get(own)
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        return Page(self.driver.title, [entry["message"] for entry in self.driver.get_log("browser")],
                    [url for url in asked if url != own and not url.startswith("data:")],
                    self.run("return document.documentElement.scrollWidth - window.innerWidth"))

    def run(self, script: str, *arguments):
        """A script's return value; it runs in the page."""
        return self.driver.execute_script(script, *arguments)

    def eventually(self, script: str):
        """The script's value once it is not empty: what an event fills that comes after the click."""
        deadline = time.monotonic() + 10
        while not (value := self.run(script)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return value

    def visible(self, selector: str) -> int:
        """How many of a selector's elements show."""
        return self.run("return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility()).length", selector)

    def click(self, selector: str):
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def download(self, selector: str, index: int) -> tuple[str, str]:
        """Clicks the selector's element of that index; name and text of the file that it saves."""
        folder = Path(self.downloads.name)
        # Chromium drops what is more than ten downloads with less than a second between each and the next.
        time.sleep(1.1 if index > 0 and index % 4 == 0 else 0)
        self.driver.find_elements(By.CSS_SELECTOR, selector)[index].click()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            # The name is there, empty, before what it names.
            files = [path for path in folder.iterdir() if path.suffix in (".csv", ".svg") and path.stat().st_size > 0]
            if files:
                text = files[0].read_text()
                files[0].unlink()
                return files[0].name, text
            time.sleep(0.02)
        raise TimeoutError(f"{selector} [{index}] saved no file")

    def accessibility(self) -> list[str]:
        """What axe-core, by all of its rules, objects to in the page as it stands, everything that folds unfolded. Of a table only the
        first rows stay: the others are like them, and it takes minutes for some thousand. The page is of no other use after that."""
        if not self.run("return typeof axe === 'object'"):
            self.run(AXE.read_text())
        self.driver.set_script_timeout(120)
        result = self.driver.execute_async_script("""const done = arguments[0];
            document.querySelectorAll('details').forEach((d) => { d.open = true; });
            setTimeout(() => {  // what fills itself when it unfolds has done so
              document.querySelectorAll('tbody tr:nth-child(n + 6)').forEach((row) => row.remove());
              axe.run(document, { resultTypes: ['violations'] }).then(done, (e) => done({ error: String(e) }));
            }, 50)""")
        if "error" in result:
            raise RuntimeError(result["error"])
        return [f"{v['id']}: {v['help']}: {node['html'][:120]}" for v in result["violations"] for node in v["nodes"]]

    def keyboard(self) -> Keyboard:
        """Presses Tab until everything must have been met."""
        self.driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
        count = self.run(LUMINANCE + """
            window.usable = [...document.querySelectorAll('button, summary, a[href], input, select, textarea, [tabindex="0"]')]
                .filter((e) => e.checkVisibility());
            window.met = new Map();
            document.addEventListener('focusin', ({ target }) => {
              const style = getComputedStyle(target);
              window.met.set(target, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1);
            });
            return window.usable.length""")
        for _ in range(count + 2):
            for kind in ("keyDown", "keyUp"):
                self.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9})
        return Keyboard(*self.run(LUMINANCE + """
            return [window.usable.filter((e) => !window.met.has(e)).map(named), [...window.met].filter(([, marked]) => !marked).map(([e]) => named(e))]"""))

    def small_targets(self) -> list[str]:
        """What can be pressed and is smaller than 24 by 24 pixels (WCAG 2.2, 2.5.8)."""
        return self.run(LUMINANCE + """
            return [...document.querySelectorAll('button, summary, a[href], input, select')].filter((e) => {
              const { width, height } = e.getBoundingClientRect();
              return e.checkVisibility() && Math.min(width, height) < 24;
            }).map(named)""")

    def paper(self) -> Paper:
        """How the page would be printed from a dark screen."""
        self.emulate(PAPER, True, "print")
        found = Paper(*self.run(LUMINANCE + """
            const shown = [...document.querySelectorAll('html, body, body *')].filter((e) => e.checkVisibility());
            const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
            const color = (e) => getComputedStyle(e)[e.namespaceURI.endsWith('svg') ? 'fill' : 'color'];
            const dark = (e) => { const l = luminance(getComputedStyle(e).backgroundColor); return l !== null && l < 0.8; };
            return [shown.filter(dark).map(named), shown.filter((e) => own(e) && 1.05 / (luminance(color(e)) + 0.05) < 4.5).map(named),
                document.documentElement.scrollWidth - window.innerWidth]"""))
        self.emulate(PAPER, True)
        return found
