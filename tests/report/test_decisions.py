"""The page of decisions, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import symdual
from symdual.report.decisions import decisions_page, safe_json
from symdual.runtime.explained import Explained
from symdual.runtime.loading import LoadedPackage

if TYPE_CHECKING:
    from tests.conftest import Browser

STEPS = 4


@pytest.fixture(scope="module")
def explained(toy_package: LoadedPackage) -> Explained:
    return symdual.explain(symdual.problem(toy_package).changed(horizon=STEPS), ["ce", "dual"], seed=1)


@pytest.fixture(scope="module")
def page(explained: Explained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return explained.html(tmp_path_factory.mktemp("page") / "decisions.html")


def key(browser: Browser, name: str) -> None:
    browser.run(
        "document.body.dispatchEvent(new KeyboardEvent('keydown',"
        f" {{key: {json.dumps(name)}, bubbles: true, cancelable: true}}))"
    )


def step(browser: Browser) -> int:
    return int(browser.run("return document.documentElement.dataset.step"))


CHOSEN = (
    "return [...document.querySelectorAll('#costs .mark.chosen')].map(m => Number(m.getAttribute('x1')));"  # pixels
)
INPUTS = "return [...document.querySelectorAll('#decision dl > div:first-child dd')].map(d => d.textContent)"


@pytest.mark.parametrize("width", [1280, 360])
def test_it_opens_cleanly(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width)
    assert browser.console() == [] and browser.requests() == []
    assert browser.overflow() <= 0
    assert browser.run("return document.querySelectorAll('svg').length") == 2 * 4  # cost, x, u, b of two controllers
    sides = browser.run(
        "return [...document.querySelectorAll('#states figure')].map(f => f.getBoundingClientRect().top)"
    )
    assert (sides[0] == sides[1]) == (width == 1280)  # side by side where there is room


def test_the_slider_moves_what_it_should(browser: Browser, page: Path, explained: Explained) -> None:
    browser.open(page, 1280)
    seen = []
    for k in range(STEPS):
        browser.run(f"const s = document.getElementById('step'); s.value = {k}; s.dispatchEvent(new Event('input'))")
        assert browser.run("return document.getElementById('now').textContent") == f"step {k} of {STEPS}"
        said = browser.run(INPUTS)
        for text, episode in zip(said, explained.values(), strict=True):
            value = float(text.removeprefix("u = ").replace("−", "-"))  # noqa: RUF001
            assert value == pytest.approx(episode.decisions[k].u[0], rel=1e-3, abs=1e-3)
        now = browser.run("return Number(document.querySelector('#states .mark.now').getAttribute('x1'))")
        points = browser.run("return document.querySelector('#states .line.truth').getAttribute('d').split('L').length")
        seen.append((now, points, browser.run(CHOSEN)))
    assert [points for _, points, _ in seen] == [1, 2, 3, 4]
    assert np.all(np.diff([now for now, _, _ in seen]) > 50)
    assert seen[0][2] != seen[1][2]


def test_the_marks_are_where_the_numbers_are(browser: Browser, page: Path, explained: Explained) -> None:
    """The mark of the chosen input, read back from its pixels through the range of the curve."""
    browser.open(page, 1280)
    for at, episode in zip(browser.run(CHOSEN), explained.values(), strict=True):
        values = episode.decisions[0].curves[0].values
        read = values[0] + (at - 52) / (460 - 52 - 10) * (values[-1] - values[0])
        assert read == pytest.approx(episode.decisions[0].u[0], abs=2e-3 * np.ptp(values))


def test_keys(browser: Browser, page: Path) -> None:
    browser.open(page, 1280)
    walk = []
    for name in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home", "ArrowLeft", "PageDown", "x"):
        key(browser, name)
        walk.append(step(browser))
    assert walk == [1, 2, 1, STEPS, STEPS, 0, 0, STEPS, STEPS]
    key(browser, " ")
    assert browser.run("return document.getElementById('play').textContent") == "Pause"
    assert step(browser) == 0
    key(browser, "ArrowRight")
    assert browser.run("return document.getElementById('play').textContent") == "Play"


@pytest.mark.parametrize("dark", [False, True])
def test_dark_and_light(browser: Browser, page: Path, dark: bool) -> None:
    browser.open(page, 1280, dark=dark)
    colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    curve = "return getComputedStyle(document.querySelector('.line.total')).stroke"

    def brightness(colour: str) -> int:
        return sum(map(int, colour[4:-1].split(",")[:3]))

    def contrast() -> int:
        ink, paper = map(brightness, browser.run(colours))
        assert abs(brightness(browser.run(curve)) - paper) > 300
        return ink - paper

    first = contrast()
    assert (first > 450) if dark else (first < -450)
    browser.run("document.getElementById('scheme').click()")
    assert contrast() * first < 0 and abs(contrast()) > 450
    browser.run("document.getElementById('scheme').click()")
    assert contrast() == first


def test_names_are_never_code(explained: Explained, browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>document.title='bad'</script><img src=x onerror=document.title='bad'>&\u2028"
    text = safe_json({"states": [evil]})
    assert not set("<>&\u2028") & set(text) and json.loads(text) == {"states": [evil]}
    whole = decisions_page(explained).replace('"states":["x"]', f'"states":{safe_json([evil])}')
    assert safe_json(evil) in whole
    (tmp_path / "evil.html").write_text(whole, encoding="utf-8")
    browser.open(tmp_path / "evil.html", 1280)
    assert browser.run("return document.title").startswith("toy")
    assert browser.run("return document.querySelector('#states h3').textContent") == evil
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.console() == []


def test_a_script_that_is_not_ours_does_not_run(explained: Explained, browser: Browser, tmp_path: Path) -> None:
    broken = decisions_page(explained).replace("</body>", "<script>document.title='bad'</script></body>")
    (tmp_path / "page.html").write_text(broken, encoding="utf-8")
    browser.open(tmp_path / "page.html", 1280)
    assert browser.run("return document.title").startswith("toy")


def test_what_constraints_make_of_the_costs_is_said(explained: Explained, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "back-off from the constraints" not in decisions_page(explained)
    monkeypatch.setattr("symdual.report.decisions.constraints_of", lambda package: ("x - 1 <= 0",))
    assert "back-off from the constraints" in decisions_page(explained)
