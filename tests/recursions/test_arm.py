"""One precise measurement of an arm that has gripped an unknown mass tells more than the prior: against a grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, unknown

START, TORQUE, TRUTH = np.array([0.2, 0.4, 0.0, 0.0]), np.array([4.0, 2.0]), 0.199
NOISE = 1e-4  # of a step and of a measurement, in each speed


def arm(filter: str) -> Model:
    """Two links in a horizontal plane; the payload is known to half a kilogram."""
    shoulder, elbow, w1, w2, t1, t2 = sp.symbols("shoulder elbow w1 w2 t1 t2")
    payload = unknown("payload", 1.0, 0.5**2)
    both, reach = 0.04575 + 0.09 * payload, 0.4 * (0.225 + 0.3 * payload)
    m11, m12 = 0.11 + (1.5 + payload) * 0.16 + both + 2 * reach * sp.cos(elbow), both + reach * sp.cos(elbow)
    pull = reach * sp.sin(elbow)
    b1, b2 = t1 + pull * (2 * w1 * w2 + w2**2) - 0.2 * w1, t2 - pull * w1**2 - 0.2 * w2
    det = m11 * both - m12**2
    return Model(
        [shoulder, elbow, w1, w2],
        [t1, t2],
        derivatives=[w1, w2, (both * b1 - m12 * b2) / det, (m11 * b2 - m12 * b1) / det],
        step=0.05,
        method="rk4",
        observation=[w1, w2],
        process_noise=[1e-8, 1e-8, NOISE, NOISE],
        measurement_noise=NOISE,
        filter=filter,
        name=f"arm_{filter}",
    )


def speeds(package: Any, payload: float) -> np.ndarray:
    """The speeds after a step."""
    found = np.zeros(4)
    package.kernels.dynamics(
        0, np.append(START, payload), TORQUE, package.numbers["data"], np.zeros(package.WORK), found
    )
    return found[2:]


@pytest.fixture(scope="module")
def on_a_grid(interpret: Callable[[Model], Any]) -> tuple[np.ndarray, float, float]:
    """Speeds that were measured, and mean and deviation of the payload, whatever the filter."""
    package = interpret(arm("extended"))
    y = speeds(package, TRUTH) + np.array([4e-3, -4e-3])
    grid = np.linspace(-0.5, 2.5, 1501)
    away = np.array([y - speeds(package, mass) for mass in grid])
    weights = np.exp(-0.5 * (away**2).sum(axis=1) / (2 * NOISE) - 0.5 * (grid - 1.0) ** 2 / 0.5**2)
    mean = np.sum(weights * grid) / np.sum(weights)
    return y, mean, np.sqrt(np.sum(weights * (grid - mean) ** 2) / np.sum(weights))


@pytest.mark.parametrize("name", ["extended", "iterated", "iterated_second_order"])
def test_the_iterated_filters_find_what_a_grid_finds(
    interpret: Callable[[Model], Any], on_a_grid: tuple[np.ndarray, float, float], name: str
) -> None:
    package, (y, mean, deviation) = interpret(arm(name)), on_a_grid
    assert abs(mean - TRUTH) < 2 * deviation < 0.02
    records, noise = package.records, [package.numbers[f"{what}_noise"] for what in ("process", "measurement")]
    numbers = package.numbers["transition"], package.numbers["drift"], np.array([[-9.0] * 2, [9.0] * 2])
    workspace = package.filter.make_filter_workspace(records.make_settings(*noise, *numbers, package.numbers["data"]))
    belief = records.make_belief(np.append(START, 1.0), np.diag([0.0] * 4 + [0.5**2]))
    assert package.filter.step(0, belief, TORQUE, y, workspace) == package.filter.MEASURED
    found, spread = belief["z"][0, 4], np.sqrt(belief["tt"][0, 0, 0])
    if name == "extended":  # which is far off, and sure of it
        assert abs(found - TRUTH) > 10 * spread
    else:
        assert found == pytest.approx(mean, abs=0.05 * deviation)
        assert spread == pytest.approx(deviation, rel=0.02)
