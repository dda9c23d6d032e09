"""`symdual show`: equations in the terminal, and pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import sympy as sp
from click.testing import CliRunner

from symdual import Model, unknown
from symdual.commands import main
from symdual.derive.derivation import derive
from symdual.derive.structure import structure
from symdual.report.terminal import filter_text
from symdual.spec.specification import specified

MODEL = Path(__file__).parents[2] / "symdual/paper/models/toy.py"


def test_show_prints_equations_with_the_generic_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text(
        "import sympy as sp\nfrom symdual import Model, features\nx, v, u = sp.symbols('x v u')\n"
        "model = Model([x, v], [u], [x + v, v + features.rbf('g', x, [0.0, 1.0, 2.0]) + u])\n"
    )
    result = CliRunner().invoke(main, ["show", "good.py", "--json", "result.json"])
    assert result.exit_code == 0, result.output
    assert "sum_i(" in result.stdout
    assert "g[i]" in result.stdout
    (shown,) = json.loads((tmp_path / "result.json").read_text())["models"]
    assert shown["structure"]["theta_rows"] == [1]
    assert {e["block"] for e in shown["equations"]} == {"f_x", "f_u", "f_theta", "h_x", "f_zz"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.py", "result.json"]


def test_show_writes_a_page(tmp_path: Path) -> None:
    file = tmp_path / "toy.html"
    result = CliRunner().invoke(main, ["show", str(MODEL), "--html", str(file), "--no-check"])
    assert result.exit_code == 0, result.output
    assert "page written to" in result.output
    text = file.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n") and "<h1>toy</h1>" in text
    assert [p.name for p in tmp_path.iterdir()] == ["toy.html"]


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ("second_order", "second order in what is uncertain"),
        ("iterated", "iterated over the measurement and the step before; fits use the extended filter"),
        (
            "recalibrated_second_order",
            "recalibrated, second order in what is uncertain; fits use the filter of second order",
        ),
    ],
)
def test_show_says_which_filter_runs_and_which_one_fits(filter: str, said: str) -> None:
    x, u = sp.symbols("x u")
    model = specified(Model([x], [u], [unknown("a", 0.5, 0.1) * x + u], observation=[x**3], filter=filter))
    assert filter_text(model, structure(derive(model))) == said


REACTOR = """
import sympy as sp
from symdual import Model, unknown
c, T, q, Tc = sp.symbols("c T q Tc")
k0, E, UA = unknown("k0", 7.2, 0.5), unknown("E", 8.75, 0.1), unknown("UA", 5.0, 1.0)
rate = k0 * sp.exp(10 - E * 100 / T) * c
heat = q / 100 * (350 - T) + 209 * rate + UA / 2 * (Tc - T)
model = Model([c, T], [q, Tc], derivatives=[q / 100 * (1 - c) - rate, heat], step=0.1, method="rk4")
"""


DRAG = """
import sympy as sp
from symdual import Model, unknown
x, u = sp.symbols("x u")
model = Model([x], [u], derivatives=[u - unknown("drag", 0.4, 0.1) * sp.tanh(x)], step=0.1, method="rk4")
"""


def test_long_equations_are_abbreviated(tmp_path: Path) -> None:
    (tmp_path / "drag.py").write_text(DRAG)
    result = CliRunner().invoke(main, ["show", str(tmp_path / "drag.py")])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert "too large" not in result.output and "not shown" not in result.output
    assert any(line.startswith("  d x' / d x = ") and " _" in line for line in lines)
    where = lines.index("where, in the derivatives of f")
    said = [line.split(" = ")[0].strip() for line in lines[where + 1 :] if " = " in line]
    used = set(re.findall(r"\b_\w+", "\n".join(lines)))
    assert used == set(said)  # every name is explained, and none for nothing
    assert len([line for line in lines if line == "f_zz"]) == 1  # a block has one heading


def test_what_nobody_reads_in_a_terminal_is_left_to_the_page(tmp_path: Path) -> None:
    (tmp_path / "reactor.py").write_text(REACTOR)
    files = ["--json", str(tmp_path / "all.json"), "--html", str(tmp_path / "all.html"), "--no-check"]
    result = CliRunner().invoke(main, ["show", str(tmp_path / "reactor.py"), *files])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert len(lines) < 40 and "  d y0 / d c = 1" in lines  # what is short is shown
    (left,) = [line for line in lines if line.startswith("not shown: ")]
    assert "4 of f_x, 4 of f_u, 6 of f_theta" in left and "--html FILE shows all of it" in left
    (model,) = json.loads((tmp_path / "all.json").read_text())["models"]
    assert len([e for e in model["equations"] if e["block"] == "f_x"]) == 4
    assert (tmp_path / "all.html").stat().st_size > 100_000


SPELT = """{first}
import sympy as sp
from symdual import Model
x, u = sp.symbols("x u")
model = Model([x], [u], [x + u])
"""


@pytest.mark.parametrize(
    ("first", "encoding"),
    [
        ('"""Un modèle."""', "utf-8-sig"),
        ('# -*- coding: latin-1 -*-\n"""Un modèle."""', "latin-1"),
        ('"""Un modèle."""', "utf-8"),
    ],
)
def test_a_page_shows_the_file_in_its_own_encoding(tmp_path: Path, first: str, encoding: str) -> None:
    (tmp_path / "m.py").write_bytes(SPELT.format(first=first).encode(encoding))
    result = CliRunner().invoke(
        main, ["show", str(tmp_path / "m.py"), "--html", str(tmp_path / "m.html"), "--no-check"]
    )
    assert result.exit_code == 0, result.output
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert '<p class="lead">Un modèle.</p>' in page
    assert "\ufeff" not in page


def test_a_docstring_may_hold_what_is_no_character(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(SPELT.format(first='"""half a \\ud800 pair"""'))
    result = CliRunner().invoke(
        main, ["show", str(tmp_path / "m.py"), "--html", str(tmp_path / "m.html"), "--no-check"]
    )
    assert result.exit_code == 0, result.output
    assert "half a ? pair" in (tmp_path / "m.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["[/red].html", "[bold]x.html", ":cat:.html", "x[/]y.html"])
def test_a_page_may_have_any_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    result = CliRunner().invoke(main, ["show", str(MODEL), "--html", name, "--no-check"])
    assert result.exit_code == 0, result.output
    assert f"page written to {name}\n" in result.output
    assert file.is_file()


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
