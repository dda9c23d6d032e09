"""What commands print: as it is, and whole."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from symdual.commands.terminal import headed, new_console
from symdual.report.progress import new_progress

HOSTILE = ["[/nope]", "[red]x[/red]", ":cat:", "\\[", "[link=https://x]a[/link]"]


@pytest.mark.parametrize("name", HOSTILE)
def test_words_of_others_mean_nothing(name: str) -> None:
    console = new_console()
    console.file = io.StringIO()
    table = Table(box=None, padding=0)
    table.add_column(name)
    table.add_row(name)
    console.print(name)
    console.print(headed(name, f" and {name}"))
    console.print(table)
    assert [line.strip() for line in console.file.getvalue().splitlines()] == [name, f"{name} and {name}", name, name]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bar_takes_any_description(name: str) -> None:
    with new_progress() as progress:
        progress.add_task(name, total=1.0)
        (described,) = progress.make_tasks_table(progress.tasks).columns[0].cells
        assert str(described) == name


@pytest.mark.parametrize("columns", ["20", "80", None])
def test_nothing_is_cut(columns: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a narrow window nor in a pipe."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    console = new_console()
    console.file = io.StringIO()
    cells = [f"{i}.123456 ± 0.000{i}" for i in range(12)]
    table = Table(box=None)
    for _ in cells:
        table.add_column("", no_wrap=True)
    table.add_row(*cells)
    console.print(table)
    console.print("word " * 100)
    first, second = console.file.getvalue().strip("\n").split("\n")[-2:]
    assert first.split("  ") != [] and all(cell in first for cell in cells)
    assert second.split() == ["word"] * 100
