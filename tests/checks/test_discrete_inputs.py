"""The check of decisions over choices: it passes where they are right, and says so where another one was taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.backends.c import compilers
from symdual.checks import discrete_inputs
from symdual.checks.discrete_inputs import check_discrete_inputs
from symdual.checks.kernels import BlockResult
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import contents_of

MODELS = Path(__file__).resolve().parents[1] / "models" / "scenarios.py"


@pytest.fixture(scope="module")
def valved(shared_models: Callable[[Path], Path]) -> LoadedPackage:
    """A valve with three positions and a free input beside it, through C, which compiles in no time."""
    try:
        compilers.compiler()
    except compilers.NoCompiler as missing:
        pytest.skip(str(missing))
    return symdual.load(shared_models(MODELS) / "valved", backend="c")


def _failed(package: LoadedPackage) -> tuple[list[BlockResult], set[str]]:
    contents = contents_of(MODELS)
    results = check_discrete_inputs(
        contents.specifications["valved"], package, scenarios=list(contents.scenarios.values())
    )
    return results, {r.block.partition(",")[0] for r in results if not r.passed}


def test_decisions_over_choices_agree_with_all_combinations(valved: LoadedPackage) -> None:
    results, failed = _failed(valved)
    assert not failed
    assert {r.block.partition(", ")[2] for r in results} == {"ce", "dual", "cautious"}
    costs = [r for r in results if r.block.startswith("cost of every choice")]
    assert [r.entries for r in costs] == [9, 9, 9] and all(r.error < 1e-12 for r in costs)


def _worst(package: LoadedPackage) -> Callable[..., int]:
    """Take the dearest combination."""
    sound, rows = package.decision.decide_at, package.search.DISCRETE_ROWS

    def decide_at(*arguments: Any) -> int:
        status = int(sound(*arguments))
        table, u = arguments[-2:]
        costs = table.out[rows : rows + 3, 0]
        u[:] = table.candidates[rows + int(np.argmax(costs))]
        return status

    return decide_at


def _rounded(package: LoadedPackage) -> Callable[..., int]:
    """Do not find the free input beside the valve."""
    sound, rows = package.decision.decide_at, package.search.DISCRETE_ROWS

    def decide_at(address: int, searching: bool, floor: float, *arguments: Any) -> int:
        status = int(sound(address, searching, floor, *arguments))
        table, u = arguments[-2:]
        table.candidates[rows : rows + 3, 1] = u[1] = 0.9
        return status

    return decide_at


@pytest.mark.parametrize(
    ("spoil", "named"),
    [(_worst, {"best choice"}), (_rounded, {"cost of every choice", "free inputs beside it"})],
)
def test_a_wrong_choice_is_noticed(
    valved: LoadedPackage,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[LoadedPackage], Callable[..., int]],
    named: set[str],
) -> None:
    monkeypatch.setattr(valved.decision, "decide_at", spoil(valved))
    monkeypatch.setattr(discrete_inputs, "COSTS", discrete_inputs.COSTS[1:2])
    assert named <= _failed(valved)[1]


def test_without_choices_there_is_nothing_to_compare(valved: LoadedPackage) -> None:
    assert check_discrete_inputs(contents_of(MODELS).specifications["valved"], valved) == []
