"""What is fitted, its coordinates, and the gradient of the likelihood by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, unknown
from symdual.common.errors import SymdualError
from symdual.identification.parameters.evidence import Evidence
from symdual.identification.parameters.quantities import Quantities, choose
from symdual.runtime.belief import Belief
from symdual.runtime.replay import Recording

x, v, u = sp.symbols("x v u")


def plant(drift: Any = None) -> Model:
    a, b, c = unknown("a", 0.8, 0.3), unknown("b", 0.5, 0.2), unknown("c", 0.1, 0.1)
    return Model(
        [x, v],
        [u],
        [a * x + 0.1 * v, sp.sin(v) * b + c + u],
        observation=[x, x * v],
        process_noise=[[0.2, 0.05], [0.05, 0.1]],
        measurement_noise=[0.3, 0.0],
        drift=drift,
        name="plant",
    )


def chosen(package: Any, flat: bool = False, **options: Any) -> Quantities:
    covariance = np.diag([0.5, 0.0, 0.3, 0.2, 0.1])
    covariance[2, 3] = covariance[3, 2] = 0.1  # a and b are correlated
    covariance[0, 1] = covariance[1, 0] = 0.0
    mean = np.array([0.4, -0.3, 0.8, 0.5, 0.1])
    return choose(
        package, Belief(mean, covariance), flat, ["one", "two"], np.array([[0.1, 0.2], [0.3, 0.4]]), **options
    )


def recording(seed: int) -> Recording:
    random = np.random.default_rng(seed)
    rows = 3 + seed
    y = random.normal(size=(rows, 2))
    y[1, 0] = np.nan
    return Recording(np.arange(float(rows)), random.normal(size=(rows, 1)), y, np.arange(rows), (), name=f"s{seed}")


@pytest.mark.parametrize(
    ("options", "drift", "names"),
    [
        (
            {},
            None,
            [
                *("a", "b", "c", "one: start[x]", "two: start[x]"),
                *("process_noise[x]", "process_noise[v,x]", "process_noise[v]", "measurement_noise[x]"),
            ],
        ),
        ({"only": ["a", "measurement_noise"]}, None, ["a", "measurement_noise[x]"]),
        ({"only": ["start"], "flat": True}, None, ["one: start[x]", "one: start[v]", "two: start[x]", "two: start[v]"]),
        ({"hold": ["start", "b"], "only": ["a", "b", "c"]}, None, ["a", "c"]),
        ({"only": ["drift", "c", "process_noise[v]"]}, [0.0, 0.01, 0.0], ["c", "process_noise[v]", "drift[b]"]),
        ({"only": ["drift[b]"], "full": ["drift"]}, [0.02, 0.01, 0.0], ["drift[a]", "drift[b,a]", "drift[b]"]),
    ],
)
def test_the_gradient_by_every_coordinate(
    options: dict[str, Any], drift: Any, names: list[str], interpreted_likelihood: Callable[[Model], Any]
) -> None:
    quantities = chosen(interpreted_likelihood(plant(drift)), **options)
    assert quantities.names == names
    evidence = Evidence(quantities, [recording(0), recording(1)])
    random = np.random.default_rng(2)
    psi = quantities.first + 0.1 * random.normal(size=quantities.size)
    found = evidence.at(psi).gradient
    size = float(np.max(np.abs(found)))
    for i in range(quantities.size):
        step = np.zeros(quantities.size)
        step[i] = 1e-5
        change = evidence.at(psi + step).log_likelihood - evidence.at(psi - step).log_likelihood
        assert found[i] == pytest.approx(change / 2e-5, rel=1e-6, abs=1e-7 * size), names[i]


def test_settings_are_what_the_coordinates_say(interpreted_likelihood: Callable[[Model], Any]) -> None:
    quantities = chosen(interpreted_likelihood(plant()))
    begun = quantities.setting(quantities.first)
    np.testing.assert_allclose(begun.noises.process_noise, [[0.2, 0.05], [0.05, 0.1]], rtol=1e-12)
    np.testing.assert_allclose(begun.noises.measurement_noise, np.diag([0.3, 0.0]), rtol=1e-12)
    np.testing.assert_allclose(begun.theta, [0.8, 0.5, 0.1])
    # the first state begins where the recording does; what is not fitted is as expected before
    np.testing.assert_allclose(begun.starts, [[0.1, -0.3], [0.3, -0.3]])
    moved = quantities.setting(quantities.first + 0.5)
    assert np.linalg.eigvalsh(moved.noises.process_noise)[0] > 0


def test_entries_that_stay_in_the_filter_follow_the_fitted_ones(
    interpreted_likelihood: Callable[[Model], Any],
) -> None:
    # b given a: mean 0.5 + 0.1 / 0.3 (a - 0.8), variance 0.2 - 0.1^2 / 0.3
    evidence = Evidence(chosen(interpreted_likelihood(plant()), only=["a"]), [recording(0), recording(1)])
    own = evidence.filter(evidence.quantities.setting(np.array([1.1])), 0)
    assert own.active.tolist() == [0, 1, 3, 4]
    assert own.mean[2:4].tolist() == pytest.approx([1.1, 0.6])
    assert own.covariance[2, 2] == pytest.approx(0.2 - 0.01 / 0.3)
    assert own.covariance[0, 0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "drift", "said"),
    [
        ({"only": ["aa"]}, None, 'nothing called "aa" to fit'),
        ({"only": ["process_nois"]}, None, 'did you mean "process_noise"'),
        ({"only": ["drift"]}, None, "drift is zero in the model and stays so"),
        ({"only": ["measurement_noise[y1]"]}, None, r"measurement_noise\[y1\] is zero in the model"),
        ({"only": ["b"]}, [0.0, 0.01, 0.0], r'"b" drifts or decays.*drift\[b\] can be fitted'),
        ({"full": ["a"]}, None, '"a" is no matrix of noise'),
        ({"only": ["a"], "hold": ["a"]}, None, "there is nothing to fit"),
    ],
)
def test_what_cannot_be_fitted_is_said(
    options: dict[str, Any], drift: Any, said: str, interpreted_likelihood: Callable[[Model], Any]
) -> None:
    with pytest.raises(SymdualError, match=said):
        chosen(interpreted_likelihood(plant(drift)), **options)


def test_a_known_unknown_is_not_fitted(interpreted_likelihood: Callable[[Model], Any]) -> None:
    package = interpreted_likelihood(plant())
    prior = Belief(np.zeros(5), np.diag([0.0, 0.0, 1.0, 0.0, 1.0]))
    found = choose(package, prior, False, ["one"], np.zeros((1, 2)), hold=["process_noise", "measurement_noise"])
    assert found.names == ["a", "c"]
    with pytest.raises(SymdualError, match='prior variance of "b" is zero'):
        choose(package, prior, False, ["one"], np.zeros((1, 2)), only=["b"])
