"""A million steps, lost measurements and absurd ones, with each thing that a problem can say.

Through C, which compiles in no time; all of it takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import symdual
from symdual.backends.c import compilers
from symdual.common.errors import SymdualError
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.controller import controller
from symdual.runtime.problem import Problem

MODELS = Path(__file__).resolve().parents[1] / "models"
pytestmark = pytest.mark.soak

#: what is used, the model that uses it, and the numbers with which it can go on for ever
PROBLEMS = {
    "signals": ("scenarios.py", "heated", {}),
    "costs by expressions": ("scenarios.py", "priced", {"truth": np.linspace(-0.3, 0.3, 10)}),
    "previous, constraints and signals in them": ("scenarios.py", "walled", {}),
    "choices": ("scenarios.py", "valved", {}),
    "choices beside constraints": ("scenarios.py", "narrow", {"truth": np.linspace(-0.2, 0.2, 8)}),
    "noise that depends, on signals and the past too": ("noises.py", "lit_rooted", {}),
}


@pytest.fixture(scope="module", params=list(PROBLEMS))
def problem(request: pytest.FixtureRequest, shared_models: Callable[[Path], Path]) -> Problem:
    try:
        compilers.compiler()
    except compilers.NoCompiler as missing:
        pytest.skip(str(missing))
    file, name, changes = PROBLEMS[request.param]
    return symdual.problem(symdual.load(shared_models(MODELS / file) / name, backend="c")).changed(**changes)  # type: ignore[arg-type]


def test_a_million_steps(problem: Problem) -> None:
    (episodes,) = simulate(problem, ["ce"], 1, settings=Settings(window=2, length=1_000_000)).values()
    assert episodes.outcomes.tolist() == [0]
    assert np.isfinite(episodes.states).all() and np.isfinite(episodes.means).all()
    assert np.all(episodes.variances >= 0.0)
    low, high = problem.bounds
    assert np.all(episodes.inputs >= low) and np.all(episodes.inputs <= high)
    first, last = (np.abs(episodes.states[0, part]).max() for part in (slice(1000), slice(-1000, None)))
    assert last < 10.0 * first + 10.0  # nothing has been building up


@pytest.mark.parametrize("name", ["ce", "cautious", "dual"])
def test_ten_thousand_decisions_that_count_what_is_unknown(problem: Problem, name: str) -> None:
    (episodes,) = simulate(problem, [name], 1, settings=Settings(window=3, length=10_000)).values()
    assert episodes.outcomes.tolist() == [0]
    assert np.isfinite(episodes.states).all() and np.isfinite(episodes.variances).all()


@pytest.mark.parametrize("name", ["ce", "dual"])
def test_lost_and_absurd_measurements(problem: Problem, name: str) -> None:
    """Nothing, parts, the same again and again, sizes beyond reason: an input within its bounds comes back."""
    one, ny = controller(problem, name, window=3), problem.package.NY
    low, high = problem.bounds
    for k in range(60):
        y = np.full(ny, [np.nan, 1e6, -1e6, 1e-300, 0.0][k % 5])
        y[k % ny] = [np.nan, 3.0][k % 2]
        u = one.act(y)
        assert np.isfinite(u).all() and np.all(u >= low) and np.all(u <= high), k
    for infinite in (np.inf, -np.inf):
        with pytest.raises(SymdualError, match="the measurement is infinite"):
            one.act(np.full(ny, infinite))
    with pytest.raises(SymdualError):
        one.act(np.zeros(ny + 1))
    assert np.isfinite(one.act(np.zeros(ny))).all()  # it has not lost itself
