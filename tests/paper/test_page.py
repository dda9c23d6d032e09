"""Typeset mathematics and the page: self-contained, escaped, and right in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import symdual.paper
from symdual.paper import checking
from symdual.paper.case import Derivation
from symdual.paper.checking import Result
from symdual.paper.derivations import DERIVATIONS
from symdual.paper.equations import EQUATIONS
from symdual.paper.typeset import display, expand
from symdual.paper.wording import FAULTS, prose

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

FRAME = """<!DOCTYPE html><html><body style="margin:0">
<iframe id="frame" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>
<script>
window.addEventListener("load", () => {{
  const page = document.getElementById("frame").contentDocument;
  const formulas = [...page.querySelectorAll("math")].map(m => m.getBoundingClientRect());
  document.documentElement.setAttribute("data-measured", JSON.stringify({{
    count: formulas.length,
    smallest: Math.min(...formulas.map(r => Math.min(r.width, r.height))),
    overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    width: page.documentElement.clientWidth,
  }}));
}});
</script></body></html>
"""
"""A frame is as narrow as it is told to be; a browser window is not."""


def _dumped(path: Path, folder: Path) -> str:
    """The page as the browser has it after its scripts have run."""
    assert CHROMIUM is not None
    options = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    options += f" --disable-component-update --disable-sync --window-size=1400,900 --user-data-dir={folder / 'user'}"
    command = [CHROMIUM, *options.split(), "--dump-dom", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout


def _all_latex() -> list[str]:
    corrections = [d.correction.latex for d in DERIVATIONS.values() if isinstance(d, Derivation) and d.correction]
    return [equation.latex for equation in EQUATIONS] + corrections


def test_macros_of_the_paper_are_expanded() -> None:
    assert expand(r"\Kn_{j+1}\T") == r"\bar{K} _{j+1}^{\intercal} "
    assert expand(r"\nicefrac{F}{2}") == "{F/2}"
    assert expand(r"\theta\tau") == r"\theta\tau"


def test_every_formula_becomes_well_formed_mathml_without_raw_latex() -> None:
    for latex in _all_latex():
        markup = display(latex)
        ElementTree.fromstring(f"<div>{markup}</div>")
        assert "\\" not in markup, latex
        assert "mathvariant" not in markup, latex
        assert ">&amp;<" not in markup, latex


def test_brackets_around_tall_things_are_drawn_and_those_around_flat_ones_are_letters() -> None:
    """No font is needed for a border to grow with its content."""
    for latex, kind in (
        (r"\begin{bmatrix} a \\ b \end{bmatrix}\T", "square"),
        (r"\begin{pmatrix} a & b \end{pmatrix}", "round"),
        (r"\left( \frac{a}{b} \right)\inv", "round"),
    ):
        markup = display(latex)
        assert f'<mrow class="{kind}">' in markup
        assert not re.search(r"<mo[^>]*>[\[\]()]</mo>", markup), latex
    assert "class" not in display("f(x)") and "(" in display("f(x)")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt install chromium chromium-driver)")
def test_drawn_brackets_are_as_tall_as_what_they_hold(tmp_path: Path) -> None:
    formula = display(r"\begin{bmatrix} a \\ b \\ c \end{bmatrix}")
    script = """<script>addEventListener("load", () => {
      const height = name => document.querySelector(name).getBoundingClientRect().height;
      document.documentElement.setAttribute("data-ratio", height("mrow.square") / height("mtable"));
    });</script>"""
    style = (Path(symdual.paper.__file__).parent / "check.css").read_text(encoding="utf-8")
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><html><style>{style}</style><body>{formula}{script}</body></html>")
    found = re.search(r'data-ratio="([^"]*)"', _dumped(path, tmp_path))
    assert found is not None and 1.0 <= float(found[1]) < 1.3


def test_every_row_of_what_not_to_copy_says_something_by_itself(results: tuple[Result, ...]) -> None:
    for result in results:
        if result.judgement.verdict in FAULTS:
            assert len(checking.remark(result.judgement).split()) >= 4, result.equation.id


def test_prose_with_plain_formulas() -> None:
    assert prose("x_{k+1} and F^-1 < theta") == "x<sub>k+1</sub> and F<sup>-1</sup> &lt; \u03b8"


def test_page_is_self_contained(results: tuple[Result, ...]) -> None:
    page = checking.page(results)
    assert "<script" not in page
    addresses = set(re.findall(r"https?://[^\"'<> ]+", page))
    assert addresses == {"http://www.w3.org/1998/Math/MathML"}
    assert page.count("<article") == len(EQUATIONS)
    faults = [r for r in results if r.judgement.correction is not None]
    assert page.count("<figcaption>corrected</figcaption>") == len(faults)


def test_names_are_escaped(results: tuple[Result, ...]) -> None:
    first = results[0]
    hostile = replace(first, equation=replace(first.equation, title="<script>alert(1)</script>", machine="a<b"))
    page = checking.page([hostile])
    assert "<script>alert" not in page and "&lt;script&gt;" in page and "a&lt;b" in page


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (Debian: apt install chromium chromium-driver)")
@pytest.mark.parametrize("width", [1280, 360])
def test_in_a_browser(results: tuple[Result, ...], width: int, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    page = html.escape(checking.page(results))
    path.write_text(FRAME.format(width=width, page=page), encoding="utf-8")
    found = re.search(r'data-measured="([^"]*)"', _dumped(path, tmp_path))
    assert found is not None
    measured = json.loads(html.unescape(found.group(1)))
    assert measured["count"] >= len(EQUATIONS)
    assert measured["smallest"] > 3
    assert measured["overflow"] <= 0
    assert width - 30 < measured["width"] <= width
