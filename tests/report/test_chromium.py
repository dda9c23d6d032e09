"""The derivation page in a real browser."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from symdual.report.page import page_of_file

if TYPE_CHECKING:
    from tests.conftest import Browser

ROOT = Path(__file__).parents[2]
MODELS = (
    "examples/vehicle.py",
    "examples/greenhouse.py",
    "symdual/paper/models/schedule.py",
    "symdual/paper/models/relevance.py",
)


@cache
def text_of(model: str) -> str:
    return page_of_file(ROOT / model, checked=False)


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("model", MODELS)
def test_page_opens_cleanly(browser: Browser, tmp_path: Path, model: str, width: int) -> None:
    file = tmp_path / "page.html"
    file.write_text(text_of(model), encoding="utf-8")
    browser.open(file, width)
    assert browser.run("return window.innerWidth") == width
    assert browser.console() == []
    assert browser.requests() == []
    assert browser.overflow() <= 0
    sizes = browser.formula_sizes()
    assert len(sizes) > 25
    assert all(w > 3 and h > 5 for w, h in sizes)


def test_wide_formulas_scroll_in_their_own_box(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(text_of("examples/greenhouse.py"), encoding="utf-8")
    browser.open(file, 360)
    boxes = browser.run(
        "return [...document.querySelectorAll('.formula')].map(b => [b.scrollWidth - b.clientWidth,"
        " b.getBoundingClientRect().right, getComputedStyle(b).overflowX])"
    )
    assert any(hidden > 100 for hidden, _, _ in boxes)
    assert all(right <= 360 and overflow == "auto" for _, right, overflow in boxes)


def test_fractions_stand_above_each_other_and_indices_below(browser: Browser, tmp_path: Path) -> None:
    """The mathematics is typeset, not run together as text."""
    file = tmp_path / "page.html"
    file.write_text(text_of("examples/vehicle.py"), encoding="utf-8")
    browser.open(file, 1280)
    above, below = browser.run(
        "const [a, b] = document.querySelector('mfrac').children;"
        "return [a.getBoundingClientRect().bottom, b.getBoundingClientRect().top]"
    )
    assert above <= below + 1
    base, index = browser.run(
        "const [a, b] = document.querySelector('.formula msub').children;"
        "return [a.getBoundingClientRect(), b.getBoundingClientRect()].map(r => [r.bottom, r.height])"
    )
    assert index[0] > base[0] or index[1] < base[1]


def test_folds_open_without_a_script(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(text_of("examples/vehicle.py"), encoding="utf-8")
    browser.open(file, 360)
    height = "return document.documentElement.scrollHeight"
    before = browser.run(height)
    for summary in browser.driver.find_elements("css selector", "summary"):
        summary.click()
    assert browser.run(height) > before
    assert browser.overflow() <= 0


def test_the_page_is_readable_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(text_of("examples/vehicle.py"), encoding="utf-8")
    colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    seen = []
    for dark in (False, True):
        browser.open(file, 1280, dark=dark)
        ink, paper = (sum(map(int, c[4:-1].split(",")[:3])) for c in browser.run(colours))
        seen.append((ink, paper))
    (light_ink, light_paper), (dark_ink, dark_paper) = seen
    assert light_paper - light_ink > 450
    assert dark_ink - dark_paper > 450


def test_the_page_prints_on_paper_of_usual_size(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(text_of("examples/vehicle.py"), encoding="utf-8")
    browser.open(file, 1280)
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    assert len(printed["data"]) > 20_000
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
