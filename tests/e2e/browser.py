"""A real browser, Chromium without a window, for pages that the program writes. Debian's chromium, chromium-driver and python3-selenium.

    with Browser() as browser:
        page = browser.open(path, width=360, dark=True)
        page.console, page.requests, page.overflow
"""

import json
from pathlib import Path
from typing import NamedTuple

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
         "--disable-background-networking", "--disable-component-update"]


class Page(NamedTuple):
    title: str
    console: list[str]  # what the page wrote, warnings and errors
    requests: list[str]  # addresses beyond the page's own
    overflow: int  # pixels by which it is wider than its window


class Browser:
    def __enter__(self):
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def open(self, path: Path, width: int = 1600, dark: bool = False) -> Page:
        command = self.driver.execute_cdp_cmd
        command("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
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

    def visible(self, selector: str) -> int:
        """How many of a selector's elements show."""
        return self.run("return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility()).length", selector)

    def click(self, selector: str):
        self.driver.find_element(By.CSS_SELECTOR, selector).click()
