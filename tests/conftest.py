"""A real browser for the tests of pages, shared by all of them."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
).split()


@dataclass(frozen=True)
class Browser:
    """A headless Chromium that opens pages from disk at a given width."""

    driver: Any

    def open(self, file: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Open a page as a laptop (from 700 px on) or as a phone."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get_log("browser")  # forget what earlier pages said
        self.driver.get(file.resolve().as_uri())

    def run(self, script: str) -> Any:
        """The value of a script run in the page by the test (pages themselves need none)."""
        return self.driver.execute_script(script)

    def console(self) -> list[str]:
        """What the page has written to the console since it was opened, errors of loading included."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def formula_sizes(self) -> list[tuple[float, float]]:
        """Width and height of every formula that is not folded away."""
        script = """
            return [...document.querySelectorAll("math")]
              .filter(m => !m.closest("details:not([open])"))
              .map(m => { const r = m.getBoundingClientRect(); return [r.width, r.height]; });
        """
        return [(width, height) for width, height in self.run(script)]

    def requests(self) -> list[str]:
        """The addresses of everything that the page has loaded besides itself."""
        return list(self.run("return performance.getEntriesByType('resource').map(e => e.name)"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser, or a skip that says what is missing."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium here: pages are opened only where chromium and chromedriver are installed")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(executable_path=driver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # selenium's own sockets
        opened = selenium.Chrome(options=options, service=service)
        try:
            yield Browser(opened)
        finally:
            opened.quit()
