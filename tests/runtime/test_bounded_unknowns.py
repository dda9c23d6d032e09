"""Unknowns with bounds: the same as a model that was written with their logarithms, told in the user's units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import symdual
from symdual.common.errors import SymdualError
from symdual.common.transforms import Transform
from symdual.runtime import evaluate
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem, problem

Make = Callable[[str, str], LoadedPackage]

# a tank in which A reacts; what the jacket exchanges is known up to a share between 0 and 1
REACTOR = """
import sympy as sp
from symdual import Model, Scenario, unknown
concentration, temperature, jacket = sp.symbols("concentration temperature jacket")
{unknowns}
bias = unknown("bias", 0.0, 0.25)
rate = k0 * sp.exp(-8750 / temperature) * concentration
{name} = Model(
    states=[concentration, temperature],
    inputs=[jacket],
    derivatives=[
        1.0 - concentration - rate, 350 - temperature + 20 * rate + 2.09 * share * (jacket - temperature) + bias
    ],
    step=0.05,
    method="rk4",
    process_noise=[1e-6, 0.04],
    measurement_noise=[1e-4, 0.25],
    bounds={{jacket: (280, 320)}},
)
scenario = Scenario(
    {name}, horizon=12, state_cost=[0.0, 1.0], input_cost=0.01, input_reference=[300.0], reference=[0.0, 335.0],
    start=[0.8, 330.0], bonus=5.0,
)
"""
BOUNDED = """
k0 = unknown("k0", 7.2e10, 1.44e10**2, positive=True)
share = unknown("share", 0.7, 0.15**2, lower=0.0, upper=1.0)
"""
BY_HAND = """
k0 = sp.exp(unknown("log_k0", {0!r}, {1!r}))
share = 1 / (1 + sp.exp(-unknown("logit_share", {2!r}, {3!r})))
"""
RATE, SHARE = Transform(lower=0.0), Transform(0.0, 1.0)


@pytest.fixture(scope="module")
def reactor(make_quickly: Make) -> Problem:
    """The reactor with bounds on its unknowns."""
    return problem(make_quickly("bounded_reactor", REACTOR.format(name="bounded_reactor", unknowns=BOUNDED)))


@pytest.fixture(scope="module")
def by_hand(make_quickly: Make) -> Problem:
    """The same, written with a logarithm and a logit."""
    numbers = [*RATE.matched(7.2e10, 1.44e10**2), *SHARE.matched(0.7, 0.15**2)]
    text = REACTOR.format(name="reactor_by_hand", unknowns=BY_HAND.format(*numbers))
    return problem(make_quickly("reactor_by_hand", text))


@pytest.mark.parametrize("name", ["ce", "dual", "thompson"])
def test_decisions_are_those_of_the_model_with_logarithms(reactor: Problem, by_hand: Problem, name: str) -> None:
    one, other = symdual.controller(reactor, name), symdual.controller(by_hand, name)
    for y in (None, [0.81, 330.4], [0.79, 331.5], [0.8, 333.0]):
        assert one.act(y)[0] == pytest.approx(other.act(y)[0], abs=1e-4)
        np.testing.assert_allclose(one.belief.mean, other.belief.mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(one.belief.covariance, other.belief.covariance, rtol=1e-7, atol=1e-9)


def test_nees_is_that_of_the_logarithms(reactor: Problem, by_hand: Problem) -> None:
    given = [symdual.simulate(p, "ce", runs=12, seed=3) for p in (reactor, by_hand)]
    own, other = (one.array("ce", "nees_parameters") for one in given)
    np.testing.assert_allclose(own, other, rtol=1e-5)
    np.testing.assert_allclose(given[0]["ce"].truths["k0"], np.exp(given[1]["ce"].truths["log_k0"]), rtol=1e-9)


def test_the_prior_is_what_was_said(reactor: Problem) -> None:
    prior = reactor.prior
    assert (prior["k0"].mean, prior["k0"].deviation) == pytest.approx((7.2e10, 1.44e10), rel=1e-12)
    assert (prior["share"].mean, prior["share"].deviation) == pytest.approx((0.7, 0.15), rel=1e-12)
    assert prior["bias"].mean == 0.0 and prior["temperature"].mean == 330.0
    samples = prior.samples(200_000)
    assert samples[:, 2].min() > 0 and samples[:, 3].min() > 0 and samples[:, 3].max() < 1
    np.testing.assert_allclose(samples.mean(axis=0)[2:], [7.2e10, 0.7, 0.0], rtol=3e-3, atol=4e-3)
    np.testing.assert_allclose(samples.std(axis=0)[2:], [1.44e10, 0.15, 0.5], rtol=1e-2)
    for name, column in (("k0", 2), ("share", 3)):
        np.testing.assert_allclose(prior[name].interval(), np.quantile(samples[:, column], [0.025, 0.975]), rtol=0.01)
    lower, upper = prior["k0"].interval()
    assert upper - 7.2e10 > 1.2 * (7.2e10 - lower), "a band of a positive number is longer above"
    assert repr(prior["k0"]) == "<k0 = 7.2e+10 +- 1.4e+10>"


def test_a_belief_by_its_names_is_that_of_z_in_other_units(reactor: Problem) -> None:
    covariance = np.diag([0.0, 0.0, 0.09, 4.0, 0.0])
    belief = Belief(np.array([0.8, 330.0, 25.0, -3.0, 0.1]), covariance, None, *reactor.prior[3:])
    started = symdual.controller(reactor, "ce").init(belief).belief
    assert started["k0"].mean == pytest.approx(np.exp(25.0 + 0.045), rel=1e-12)
    assert started["k0"].interval(0.5)[0] < np.exp(25.0) < started["k0"].interval(0.5)[1]
    assert 0 < started["share"].interval(0.999)[0] < started["share"].interval(0.999)[1] < 1


def test_numbers_are_changed_in_the_users_units(reactor: Problem) -> None:
    changed = reactor.changed(prior_mean={"k0": 6e10}, truth={"k0": 9e10, "share": 0.9, "bias": 0.3})
    assert changed.prior["k0"].mean == pytest.approx(6e10, rel=1e-12)
    assert changed.prior["k0"].deviation == pytest.approx(1.44e10, rel=1e-10), "what is not named stays"
    assert changed.prior["share"].mean == pytest.approx(0.7, rel=1e-12)
    np.testing.assert_allclose(changed.truth, [np.log(9e10), np.log(9.0), 0.3], rtol=1e-12)
    correlated = reactor.changed(
        prior_covariance=[[1e20, 0.5e10 * 0.1, 0], [0.5e10 * 0.1, 0.01, 0], [0, 0, 0.25]]
    ).prior.covariance[2:, 2:]
    assert correlated[0, 1] / np.sqrt(correlated[0, 0] * correlated[1, 1]) == pytest.approx(0.5, rel=1e-12)
    oracle = symdual.controller(reactor, "oracle", truth={"k0": 8e10, "share": 0.6, "bias": 0.0})
    assert oracle.belief["k0"].mean == pytest.approx(8e10, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"truth": {"k0": -1.0, "share": 0.5, "bias": 0.0}}, 'truth has -1 for "k0", which has the bounds above 0'),
        ({"prior_mean": {"share": 1.2}}, 'the mean 1.2 of "share" .* does not lie between its bounds, 0 to 1'),
        ({"prior_covariance": {"share": 0.3}}, 'the variance 0.3 of "share" .* is impossible: .* below 0.21'),
    ],
)
def test_what_lies_outside_is_refused(reactor: Problem, given: dict[str, object], said: str) -> None:
    with pytest.raises(SymdualError, match=said):
        reactor.changed(**given)  # type: ignore[arg-type]


def test_episodes_and_tables_are_in_the_users_units(reactor: Problem) -> None:
    wide = reactor.changed(prior_covariance={"k0": 3.6e10**2, "share": 0.08})
    found = symdual.simulate(wide, ["ce", "thompson"], runs=20)
    episodes = found["ce"]
    assert episodes.means["k0"].min() > 0 and 0 < episodes.means["share"].min() < episodes.means["share"].max() < 1
    assert 0 < episodes.truths["share"].min() < episodes.truths["share"].max() < 1
    last = episodes.last_belief(4)
    assert last["k0"].mean == pytest.approx(episodes.means["k0"][4, -1], rel=1e-12)
    np.testing.assert_allclose(np.sqrt(episodes.variances["share"][4, -1]), last["share"].deviation, rtol=1e-12)
    table = found.to_pandas()
    assert table.loc["ce", 4]["mean", "k0"].iloc[-1] == pytest.approx(last["k0"].mean)
    assert (found.to_pandas("runs")["true share"] < 1).all()
    lower, upper = found.band("ce", 4, 1.959963984540054)
    np.testing.assert_allclose([lower[-1, 2], upper[-1, 2]], last["k0"].interval(), rtol=1e-9)
    assert lower[:, 3].min() > 0 and upper[:, 3].max() < 1
    figure = symdual.plot.episode(found, "ce", run=4)
    (band,) = figure.axes[3].collections
    assert band.get_datalim(figure.axes[3].transData).ymin > 0 and band.get_datalim(figure.axes[3].transData).ymax < 1


def test_decisions_are_explained_in_the_users_units(reactor: Problem) -> None:
    told = symdual.explain(reactor.changed(truth={"k0": 9e10, "share": 0.9, "bias": 0.3}), "ce")["ce"]
    np.testing.assert_allclose(told.truths[0], [9e10, 0.9, 0.3], rtol=1e-12)
    figure = symdual.plot.plan(told.decisions[2])
    assert figure.axes[2].get_lines()[0].get_ydata()[0] == pytest.approx(told.decisions[2].belief["k0"].mean)


def test_names_are_in_the_users_units_and_vectors_are_theta(reactor: Problem) -> None:
    package, x, u = reactor.package, [0.8, 330.0], [300.0]
    named = evaluate.dynamics(package, x, u, {"k0": 7e10, "share": 0.5, "bias": 0.1})
    np.testing.assert_array_equal(named, evaluate.dynamics(package, x, u, [np.log(7e10), 0.0, 0.1]))


def test_a_package_says_which_unknowns_have_bounds(reactor: Problem) -> None:
    assert reactor.package.BOUNDED == {"k0": (0.0, None), "share": (0.0, 1.0)}
    assert reactor.package.transforms == (Transform(), Transform(), RATE, SHARE, Transform())
