"""The documentation: links, names that must be there, and the site's own tools. Its code is run by `make docs`."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import symdual
from symdual.bench.timing import Timing

ROOT = Path(__file__).resolve().parent.parent
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks/README.md"])
GALLERY = sorted((ROOT / "examples/gallery").glob("[a-z]*.py"))
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def tool(name: str, folder: str = "docs/site_tools") -> ModuleType:
    """A module that is no part of the package: by default one of the site's own tools."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def without_code(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"(?m)^    .*$", "", re.sub(r"(?s)```.*?```", "", text))


def slugs(text: str) -> set[str]:
    """The names of the headings of a page."""
    titles = re.findall(r"(?m)^#+ (.*)$", without_code(text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for address in LINK.findall(without_code(page.read_text())):
        path, _, place = address.partition("#")
        if "://" in address or path.startswith("gallery/"):  # made by the build, which looks at those itself
            continue
        target = page.parent / path if path else page
        assert target.exists(), address
        assert not place or place in slugs(target.read_text()), address


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "docs/index.md").read_text().split()
    assert [page.stem for page in (ROOT / "docs").glob("*.md") if page.stem not in (*contents, "index")] == []


def test_every_decision_is_in_the_contents_short_and_dated() -> None:
    listed = (ROOT / "docs/decisions/index.md").read_text().split()
    assert [page.stem[:4] for page in DECISIONS] == [f"{i:04d}" for i in range(1, len(DECISIONS) + 1)]
    for page in DECISIONS:
        title, _, fate, *text = page.read_text().splitlines()
        assert page.stem in listed
        assert title.startswith(f"# {page.stem[:4]} ")
        assert re.fullmatch(r"\*\d{4}-\d\d-\d\d\. (Kept|Not kept)\.\*", fate), page.name
        assert len(text) <= 40, page.name


#: a page says how things are; what was is a decision or in the history
DIARY = re.compile(r"\b(since then|once more|at a load of|until now|on another day)\b", re.IGNORECASE)


@pytest.mark.parametrize(("page", "lines"), [("docs/architecture.md", 120), ("CHANGELOG.md", 60), ("README.md", 120)])
def test_maps_are_short(page: str, lines: int) -> None:
    assert len((ROOT / page).read_text().splitlines()) <= lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_no_diaries(page: Path) -> None:
    assert DIARY.findall(page.read_text()) == []


def test_the_tables_of_the_benchmarks_are_those_of_their_results() -> None:
    markdown = tool("markdown", "benchmarks")
    results = json.loads(markdown.RESULTS.read_text())
    text = markdown.README.read_text()
    assert text == markdown.readme(text, results), "run `python benchmarks/markdown.py`"
    assert markdown.RESULTS.read_text() == markdown.stored(results)
    assert all(one["machine"] and re.fullmatch(r"\d{4}-\d\d-\d\d", one["date"]) for one in results.values())
    assert text.count("\n## ") == len(results)


def test_a_table_that_a_program_prints_is_taken_over() -> None:
    markdown = tool("markdown", "benchmarks")
    printed = "made ready\n| model | ms |\n|---|---|\n| waves | 0.2 |\n| swing | 1.3 |\n3 s\n"
    entry = {"question": "How fast?", "command": "x", "machine": "m", "date": "2026-01-02", "under": "", "reading": ""}
    assert markdown.section(entry | markdown.measured(printed)) == (
        "## How fast?\n\n`x`, 2026-01-02, m.\n\n| model | ms |\n|---|---|\n| waves | 0.2 |\n| swing | 1.3 |"
    )
    timing = Timing(2, "ekf", "symdual", "generated", 1.5, in_loop=False, error=0.0)
    columns, rows = markdown.ratios(markdown.measured(json.dumps({"timings": [timing._asdict()]}))["timings"])
    assert [row for row in zip(columns, rows[0], strict=True) if row[1]] == [
        ("features", "2"),
        ("", "symdual"),
        ("EKF step", "1.5 us*"),
    ]


def test_every_public_name_is_on_the_page_of_the_interface() -> None:
    text = (ROOT / "docs/interface.md").read_text()
    named = set(re.findall(r"auto(?:class|function|module|data):: (?:symdual\.(?:\w+\.)*)?(\w+)", text))
    assert set(symdual.__all__) - named == {"__version__"}


@pytest.mark.parametrize("program", GALLERY, ids=lambda path: path.stem)
def test_pages_of_the_gallery_say_what_they_must(program: Path) -> None:
    text = program.read_text()
    assert re.match(r'"""\n([^\n]+)\n=+\n', text), "a title"
    if "from a recording" not in text:
        for part in ("What is unknown", "What dual control does about it", "When it is not worth it"):
            assert f"**{part}.**" in text


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(
        '<a href="two.html#there"></a><a href="https://away.example/x"></a><p id="p"></p>'
    )
    (tmp_path / "two.html").write_text(
        '<h1 id="there"></h1><a href="one.html#q"></a><img src="no.png"><a href="#there"></a>'
    )
    assert list(tool("links").broken(tmp_path)) == [
        "two.html: one.html#q has no such place",
        "two.html: no.png does not exist",
    ]


def test_docstrings_become_what_sphinx_reads() -> None:
    given = ["Sum of x_k and *args.", "", "    L = sum_k x_k' W x_k", "", "Then `a*b`.", "", "Args:", "    x: one|two."]
    assert tool("docstrings").translated(given) == [
        "Sum of x_k and \\*args.",
        "",
        "::",
        "",
        "    L = sum_k x_k' W x_k",
        "",
        "Then `a*b`.",
        "",
        "Args:",
        "    x: one\\|two.",
    ]


def test_rows_of_formulas_are_rows_of_tables() -> None:
    pytest.importorskip("sphinx")
    rows = tool("formulas")._typeset(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "block")
    assert rows.count("<mtr>") == 2 and "&<" not in rows


def test_rows_of_evidence_say_no_more_than_the_runs_can_tell() -> None:
    pytest.importorskip("sphinx")
    tell, percent = tool("evidence"), "\N{NO-BREAK SPACE}%"  # which stay together
    assert tell.difference(-2.0, 0.5, 10.0) == f"-2 +- 0.5: 20{percent} less"
    assert tell.difference(0.9, 0.5, -10.0) == "+0.9 +- 0.5: no clear difference"
    assert tell.difference(0.0, 1e-12, 10.0) == "0"
    costs = {"ce": 10.0, "cautious": 8.0, "dual": 6.0, "oracle": 5.0}
    row = {"runs": 40, "baseline": "ce", "costs": costs, "gap": -4.0, "error": 1.0, "violated": {}}
    assert tell.cells(row, False, " why ") == ["40", "10", "5", f"-4 +- 1: 40{percent} less", "why"]
    row |= {"baseline": "cautious", "gap": -2.0, "violated": {"ce": 0.5, "cautious": 0.012, "dual": 0.02}}
    assert tell.cells(row, True, "") == [
        "40",
        *(f"{share}{percent}" for share in ("50", "1.2", "2")),
        f"-2 +- 1: 25{percent} less",
        "",
    ]
