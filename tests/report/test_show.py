"""`symdual show --html` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from symdual.cli import main

MODEL = Path(__file__).parents[2] / "symdual/paper/models/toy.py"


def test_show_writes_a_page(tmp_path: Path) -> None:
    file = tmp_path / "toy.html"
    result = CliRunner().invoke(main, ["show", str(MODEL), "--html", str(file), "--no-check"])
    assert result.exit_code == 0, result.output
    assert "page written to" in result.output
    text = file.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n") and "<h1>toy</h1>" in text
    assert [p.name for p in tmp_path.iterdir()] == ["toy.html"]


def test_the_same_model_gives_the_same_page(tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        CliRunner().invoke(main, ["show", str(MODEL), "--html", str(tmp_path / name), "--no-check"])
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


@pytest.mark.parametrize("place", ["missing/page.html", "."])
def test_a_file_that_cannot_be_written_is_refused_in_one_sentence(tmp_path: Path, place: str) -> None:
    result = CliRunner().invoke(main, ["show", str(MODEL), "--html", str(tmp_path / place), "--no-check"])
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert result.output.startswith(f"symdual: cannot write {tmp_path / place}")
