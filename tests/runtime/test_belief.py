"""What a belief says by name: moments, intervals, draws and tables, in whatever units."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symdual.common.errors import SymdualError
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import problem

# a temperature in K, a rate in 1/s that goes with it, and three weights of a family of which one is known
MEAN = np.array([400.0, 7e10, 0.1, -0.2, 0.3])
DEVIATIONS = np.array([5.0, 2e9, 1e-6, 0.0, 0.5])
CORRELATIONS = np.eye(5)
CORRELATIONS[0, 1] = CORRELATIONS[1, 0] = -0.8
REACTOR = Belief(MEAN, CORRELATIONS * np.outer(DEVIATIONS, DEVIATIONS), None, ("T", "k0", "v[0]", "v[1]", "v[2]"))


def test_a_belief_is_asked_by_name_or_symbol(pair_package: LoadedPackage) -> None:
    prior = problem(pair_package).prior
    assert (prior["d"].mean, prior["d"].deviation) == (-0.5, pytest.approx(2.0**0.5)) and prior["q"].mean == -1.0
    assert prior[sp.Symbol("d")].mean == -0.5
    assert repr(prior["d"]) == "<d = -0.5 +- 1.4>"
    assert prior[0] is prior.mean and prior[3] is prior.names and prior[np.int64(0)] is prior.mean
    with pytest.raises(SymdualError, match='the belief says nothing of "e", only of p, q, b, c, d'):
        prior["e"]


def test_the_name_of_a_family_stands_for_its_weights() -> None:
    weights = REACTOR["v"]
    assert weights.mean.tolist() == [0.1, -0.2, 0.3] and weights.deviation.tolist() == [1e-6, 0.0, 0.5]
    assert weights.samples(7).shape == (7, 3)
    lower, upper = weights.interval()
    assert np.all((lower <= weights.mean) & (weights.mean <= upper)) and lower[1] == upper[1] == -0.2
    assert repr(weights) == "<v: 3 numbers>"
    assert REACTOR["v[2]"].mean == 0.3
    two_kinds = REACTOR._replace(names=("x", "v_sin[0]", "v_other_sin[0]", "v_cos[0]", "v_scale"))
    assert two_kinds["v"].mean.tolist() == [7e10, -0.2] and two_kinds["v_other"].mean.tolist() == [0.1]


def test_draws_have_the_moments_of_the_belief_in_any_units() -> None:
    drawn = REACTOR.samples(20_000, seed=3)
    known = DEVIATIONS > 0.0
    off = (drawn.mean(axis=0) - MEAN)[known] / DEVIATIONS[known]
    assert np.all(np.abs(off) < 4 / np.sqrt(20_000)) and np.all(drawn[:, 3] == -0.2)
    assert np.corrcoef(drawn[:, known].T) == pytest.approx(CORRELATIONS[np.ix_(known, known)], abs=0.03)
    assert drawn[:, known].std(axis=0) == pytest.approx(DEVIATIONS[known], rel=0.03)


def test_draws_of_two_names_belong_together() -> None:
    together = np.corrcoef(REACTOR["T"].samples(5000, seed=1), REACTOR["k0"].samples(5000, seed=1))[0, 1]
    assert together == pytest.approx(-0.8, abs=0.03)
    assert np.array_equal(REACTOR["T"].samples(5, seed=1), REACTOR["T"].samples(5, seed=1))
    assert not np.array_equal(REACTOR["T"].samples(5, seed=1), REACTOR["T"].samples(5, seed=2))


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_an_interval_holds_its_share_of_the_draws(share: float) -> None:
    lower, upper = REACTOR["k0"].interval(share)
    drawn = REACTOR["k0"].samples(20_000)
    assert np.mean((lower < drawn) & (drawn < upper)) == pytest.approx(share, abs=0.015)
    assert np.mean(drawn < lower) == pytest.approx((1 - share) / 2, abs=0.015)


def test_a_table_has_the_names() -> None:
    table = REACTOR.to_pandas()
    assert list(table.index) == list(REACTOR.names) and table.loc["T", "deviation"] == 5.0
    assert table.loc["k0", ["lower", "upper"]].tolist() == list(REACTOR["k0"].interval())
    assert list(Belief(MEAN, REACTOR.covariance).to_pandas().index) == ["z[0]", "z[1]", "z[2]", "z[3]", "z[4]"]


def test_what_makes_no_sense_is_refused() -> None:
    for share in (0.0, 1.0, 95.0, float("nan")):
        with pytest.raises(SymdualError, match="the probability of an interval must be between 0 and 1"):
            REACTOR["T"].interval(share)
    with pytest.raises(SymdualError, match="the number of samples must be at least 1, not 0"):
        REACTOR.samples(0)
    with pytest.raises(SymdualError, match="has no samples"):
        REACTOR._replace(memory=np.zeros(3)).samples()
