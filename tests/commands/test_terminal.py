"""What commands print: as it is, and whole."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.table import Table

import symdual
from symdual.commands import main
from symdual.commands.terminal import headed, idle_filter, new_console, try_other_filters
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


LEVERS = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, v, u = sp.symbols("x v u")
ratio, lightness = unknown("ratio", 1.0, 0.3**2), unknown("lightness", 1.0, 0.3**2)
given = dict(process_noise=[1e-8, 1e-6], measurement_noise=1e-6)
lever = Model([x, v], [u], [x + 0.3 * v, v + 0.3 * ratio * lightness * u], **given)
straight = Model([x, v], [u], [x + 0.3 * v, v + ratio + u], filter="iterated", **given)
moved = Scenario(lever, 8, input_cost=0.1, start_covariance=0.01, reference=[1.0, 0.0])
drawn = Scenario(straight, 4)
"""


def test_who_is_too_sure_is_told_which_other_filters_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "levers.py"
    file.write_text(LEVERS)
    said = try_other_filters(file, "lever")
    assert "second_order, iterated or iterated_second_order may be more honest here than extended: compare" in said
    assert said.endswith(f"symdual check --belief {file}")
    assert "no filter can differ from iterated on straight: look at noise" in try_other_filters(file, "straight")
    symdual.generate(file, tmp_path / "generated")
    idle, used = (idle_filter(symdual.load(tmp_path / "generated" / name)) for name in ("straight", "lever"))
    assert idle == ["the filter iterated cannot differ from extended on straight"] and used == []
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        main, ["simulate", "levers.py", "--scenario", "moved", "--runs", "30", "--controller", "ce"]
    )
    assert (
        "iterated_second_order may be more honest here than extended: compare by symdual check --belief levers.py"
        in done.output
    )
