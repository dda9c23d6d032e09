"""The arena: its statistics against published values and by hand, its systems, and the tables of its page."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.arena import roster, scores, tables
from benchmarks.arena.scores import Played, Score
from symdual.controllers import NAMES

SYSTEMS = sorted((roster.HERE / "systems").glob("[!_]*.py"))


def played(name: str, **found: tuple[float, float | None]) -> Played:
    """A system in which each controller has a cost and a p."""
    rows = {who: Score(cost, 0.1, cost - 1.0, 0.1, p, None, None, 1.0, 0, None) for who, (cost, p) in found.items()}
    return Played(name, "", "oracle", 10, 5, rows, {})


def test_holm_is_that_of_his_table() -> None:
    """p = .01, .04, .03, .005: times 3, 1, 2, 4, and never below a smaller one before."""
    one = played("a", ce=(1.0, None), dual=(0.9, 0.01), planned=(0.8, 0.04), cautious=(1.1, 0.03))
    found = scores.holm([one, played("b", ce=(1.0, None), dual=(0.9, 0.005), beb=(1.0, None))])
    expected = {("b", "dual"): 0.02, ("a", "dual"): 0.03, ("a", "cautious"): 0.06, ("a", "planned"): 0.06}
    assert found == pytest.approx(expected)


def test_critical_differences_are_those_of_demsar() -> None:
    """His example has 4 classifiers on 14 data sets; the quantiles of his Table 5(a) are 1.960, 2.569 and 3.164."""
    assert scores.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    for k, quantile in ((2, 1.960), (4, 2.569), (10, 3.164)):
        assert scores.critical_difference(k, 6) / math.sqrt(k * (k + 1) / 36) == pytest.approx(quantile, abs=2e-3)


def test_ranks_are_means_over_systems_and_ties_are_shared() -> None:
    names = ("ce", "dual", "planned")
    everyone = [
        played("a", ce=(3.0, None), dual=(2.0, None), planned=(1.0, None)),
        played("b", ce=(5.0, None), dual=(5.0 + 1e-12, None), planned=(7.0, None)),
        played("c", ce=(-1.0, None), dual=(-3.0, None), planned=(-2.0, None)),
        played("left out", ce=(1.0, None), dual=(2.0, None)),
    ]
    found = scores.ranks(everyone, names)
    assert found.mean == pytest.approx({"ce": 7.5 / 3, "dual": 4.5 / 3, "planned": 2.0})
    assert found.systems == 3


def test_groups_are_those_within_the_critical_difference() -> None:
    found = scores.Ranks({"a": 1.0, "b": 1.8, "c": 2.6, "d": 4.0}, 10, 0.01, 1.0)
    assert scores.cliques(found) == [("a", "b"), ("b", "c")]


def test_chances_are_two_sided_and_need_a_difference() -> None:
    assert scores.chance(np.zeros(5)) is None
    assert scores.chance(np.array([1.0, -1.0, 1.0, -1.0])) == pytest.approx(1.0)
    assert scores.chance(np.array([1.0, 1.1, 0.9, 1.0])) == scores.chance(-np.array([1.0, 1.1, 0.9, 1.0]))


def test_scores_go_through_json() -> None:
    one = played("a", ce=(1.0, None), dual=(0.9, 0.01))
    assert Played.from_json(one.to_json()) == one


@pytest.mark.parametrize("file", SYSTEMS, ids=lambda file: file.stem)
def test_a_system_says_what_it_is_and_where_it_is_from(file: Path) -> None:
    tree = ast.parse(file.read_text())
    first, *rest = (ast.get_docstring(tree) or "").split("\n\n")
    assert first.count("\n") == 0 and "Source:" in rest[0] and "Why:" in rest[0]
    assigned = [one.id for node in tree.body if isinstance(node, ast.Assign) for one in _names(node)]
    imported = [a.asname or a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names]
    assert "scenario" in assigned + imported


def _names(node: ast.Assign) -> list[ast.Name]:
    found: list[Any] = []
    for target in node.targets:
        found += target.elts if isinstance(target, ast.Tuple) else [target]
    return [one for one in found if isinstance(one, ast.Name)]


def test_there_are_systems_and_controllers_enough() -> None:
    assert len(SYSTEMS) >= 14 and set(roster.CONTROLLERS) <= set(NAMES)
    chosen = roster.Chosen.read(roster.HERE / "settings.json")
    assert chosen.options.numbers and chosen.bonus > 0.0


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    text = tables.PAGE.read_text()
    assert text.count("<!-- arena: ") >= 6
    assert tables.renewed(text) == text, "run `python -m benchmarks.arena --write`"


@pytest.mark.soak
def test_the_exact_loss_of_the_unknown_gain_is_what_the_optimum_leaves(tmp_path: Path) -> None:
    """The best input costs nothing beyond the optimum, and standing still costs more."""
    (system,) = roster.systems(tmp_path, ("unknown_gain",))
    losses = system.losses
    assert losses is not None
    from symdual.runtime.unknown_gain import UnknownGain

    best, inputs = UnknownGain(a=1.0, noise=1.0, weight=1.0), np.zeros((1, 10, 1))
    means, variances = np.tile([1.0, 0.5], (1, 11, 1)), np.tile([0.0, 1.0], (1, 11, 1))
    still = losses(inputs, means, variances)
    for k in range(10):
        inputs[0, k, 0] = best.best(10 - k, 1.0, 0.5, 1.0)[1]
    assert abs(losses(inputs, means, variances)[0]) < 0.01 < still[0]
