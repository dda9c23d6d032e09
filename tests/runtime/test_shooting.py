"""Plans of systems that no open loop can follow to the end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from symdual.runtime.belief import Belief
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import problem

SPIN = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, y, z, u, v = sp.symbols("x y z u v")
g = unknown("g", mean=2.0, variance=0.01)
motion = [g * x + y * z, -z + g * y * x**2 + u, z**3 + x + v]
spin = Model([x, y, z], [u, v], derivatives=motion, step=0.05, method="rk4", bounds={u: (-20, 20), v: (-20, 20)})
scenario = Scenario(spin, horizon=100, input_cost=1e-2)
"""


def test_a_plan_is_found_where_no_other_start_is_finite(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    """Cubes explode within a few steps; IPOPT finds a plan of the same cost from a trajectory that stays."""
    task = problem(make_quickly("spin", SPIN))
    mean = np.array([-2.5, -1.0, -2.0, 2.0])
    one = controller(task, "ce")
    info = one.step(one.init(Belief(mean, np.zeros((4, 4)), None)))[2]
    assert np.isfinite(info.planned_states).all() and (np.abs(info.planned_inputs) <= 20.0).all()
    cost = np.sum(info.planned_states**2) + 0.01 * np.sum(info.planned_inputs**2)
    assert cost == pytest.approx(261.449334, rel=1e-6)
