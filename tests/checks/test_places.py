"""Where models are checked: within what a scenario lets inputs be, and only where noise is noise."""

from __future__ import annotations

import numpy as np
import sympy as sp

from symdual import Model, Scenario, previous, unknown
from symdual.checks import dense
from symdual.checks.places import input_bounds, places

warm, power, valve = sp.symbols("warm power valve")

# noise that makes sense only at positions that the valve can take
store = Model(
    states=[warm],
    inputs=[power, valve],
    dynamics=[0.9 * warm + unknown("gain", 2.0, 0.3) * power - 2.5 * valve],
    measurement_noise=[0.05 + 0.2 * previous(valve)],
    process_noise=0.01,
    bounds={power: (0.0, 4.0)},
    name="store",
)


def test_inputs_with_choices_stay_between_them() -> None:
    storing = Scenario(store, horizon=4, state_cost=1.0, input_cost=0.1, choices={valve: [3.0, 4.0, 7.0]})
    assert input_bounds(store, [storing]).tolist() == [[0.0, 3.0], [4.0, 7.0]]
    (found,) = places(storing.model, [storing], np.random.default_rng(0))
    assert all(place.u.tolist() == [2.0, 5.0] and place.u_spread.tolist() == [1.0, 1.0] for place in found)


def test_without_choices_the_bounds_are_those_of_the_model() -> None:
    storing = Scenario(store, horizon=4, state_cost=1.0, input_cost=0.1)
    assert input_bounds(store, [storing]).tolist() == [[0.0, -np.inf], [4.0, np.inf]]


def test_noise_that_is_none_makes_no_reference() -> None:
    """A package refuses a negative variance; the dense recursions must not make a number of it."""
    noise = dense.Noise(
        np.eye(2),
        np.eye(2),
        np.zeros((0, 0)),
        np.zeros((0, 0)),
        process_at=lambda time, z, u: np.diag([1.0, u[0]]),
        measurement_at=lambda time, z: np.array([[1.0, z[0]], [z[0], 1.0]]),
    )
    here = np.zeros(2)
    assert np.array_equal(noise.of_step(0, here, np.array([0.0])), np.diag([1.0, 0.0]))
    assert np.all(np.isnan(noise.of_step(0, here, np.array([-0.1]))))
    assert np.array_equal(noise.of_measurement(0, here), np.eye(2))
    assert np.all(np.isnan(noise.of_measurement(0, np.array([1.1, 0.0]))))
