"""The setters of an exported controller: given the same numbers it acts as the one in Python; nonsense is refused."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.checks.exported import build
from symdual.common.arrays import Array
from symdual.export.controller import Exported, Settings, export
from symdual.runtime import evaluate
from symdual.runtime.belief import Belief
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem

from .conftest import close

FINE, ENDED, NOT_READY, REFUSED = 0, -1, -5, -6


class Driven:
    """An exported controller in a memory of its own."""

    def __init__(self, exported: Exported, native: ctypes.CDLL, name: str) -> None:
        self._memory, self._native, self._exported = np.zeros(exported.bytes // 8), native, exported
        package = exported.work.program.module("records")
        self._nu, self._nz = package.NU, package.NZ
        self._name = name

    def init(self) -> Driven:
        self("init")
        number = next(one.number for one in self._exported.choices if one.name == self._name)
        assert self("use", number) == FINE
        return self

    def __call__(self, function: str, *arguments: Any) -> int:
        held = [np.ascontiguousarray(a, dtype=float) if isinstance(a, list | np.ndarray) else a for a in arguments]
        given = [
            ctypes.c_void_p(a.ctypes.data)
            if isinstance(a, np.ndarray)
            else ctypes.c_double(a)
            if isinstance(a, float)
            else a
            for a in held
        ]
        place = ctypes.c_void_p(self._memory.ctypes.data)
        return int(getattr(self._native, f"set_{function}")(place, *given))

    def act(self, y: Array | None) -> tuple[int, Array]:
        u = np.full(self._nu, np.nan)
        return self("act", y, u), u

    def planned(self, steps: int, nx: int) -> tuple[Array, Array]:
        """What `plan` wrote, behind belief, last input and statistics."""
        start = self._exported.memory["belief"] // 8 + self._nu + 3
        states, inputs = (steps + 1) * nx, steps * self._nu
        found = self._memory[start : start + states + inputs]
        return found[:states].reshape(-1, nx), found[states:].reshape(-1, self._nu)

    @property
    def mean(self) -> Array:
        return self._memory[: self._nz].copy()


@pytest.fixture(scope="module")
def made(
    through_c: Callable[[str], LoadedPackage], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[Problem, Exported, ctypes.CDLL]]:
    """Return a function that exports the problem of a model of the project, once."""
    found: dict[str, tuple[Problem, Exported, ctypes.CDLL]] = {}

    def make(name: str) -> tuple[Problem, Exported, ctypes.CDLL]:
        if name not in found:
            problem = symdual.problem(through_c(name))
            exported = export(problem, Settings("set"))
            found[name] = problem, exported, build(exported, tmp_path_factory.mktemp(name), ("-O1",))
        return found[name]

    return make


def set_numbers(driven: Driven, problem: Problem) -> None:
    """Give an exported controller all numbers of a problem by its setters."""
    more = problem.objective
    for k in range(problem.horizon + 1):
        assert driven("set_reference", k, problem.reference[k]) == FINE
        assert driven("set_state_cost", k, problem.state_cost[k]) == FINE
        if k == problem.horizon:
            continue
        assert driven("set_input_cost", k, problem.input_cost[k], problem.floors[k]) == FINE
        if more is not None:
            assert driven("set_cross_cost", k, more.cross_cost[k]) == FINE
            assert driven("set_input_reference", k, more.input_reference[k]) == FINE
            if problem.package.TERMS:
                assert driven("set_cost_weights", k, more.cost_weights[k]) == FINE
    if more is not None and problem.package.ENDS:
        assert driven("set_terminal_weights", more.terminal_weights) == FINE
    if more is not None and more.constraint_weights.size:
        assert driven("set_constraint_weights", more.constraint_weights) == FINE
    assert driven("set_bounds", *problem.bounds) == FINE
    assert driven("set_belief", problem.prior.mean, problem.prior.covariance) == FINE


OTHER: dict[str, dict[str, Any]] = {
    "pendulum": {
        "reference": [2.0, 0.1],
        "state_cost": [[3.0, 0.2], [0.2, 0.1]],
        "input_cost": 0.2,
        "bounds": [[-3], [2]],
    },
    "squeezed": {"cross_cost": 0.3, "input_reference": 0.2, "terminal_weights": 0.5, "bounds": [[-1.0], [1.5]]},
    "heated": {"cost_weights": [3.0, 0.02], "terminal_weights": 5.0, "bounds": [[0.0], [4.0]]},
    "walled": {"cost_weights": [2.0, 0.1], "constraint_weight": [5.0, 40.0, 1.0], "bounds": [[-1.0], [0.9]]},
    "valved": {"reference": -0.5, "input_cost": [0.05, 0.02], "bounds": [[-3.0, -0.4], [3.0, 0.7]]},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in ("squeezed", "walled") else name for name in OTHER]
)
def test_the_same_numbers_make_the_same_inputs(
    name: str, made: Callable[[str], tuple[Problem, Exported, ctypes.CDLL]]
) -> None:
    problem, exported, native = made(name)
    package = problem.package
    random = np.random.default_rng(3)
    spread = random.normal(size=(package.NZ, package.NZ))
    other = problem.changed(**OTHER[name])
    known = np.diagonal(problem.prior.covariance) == 0.0
    spread[known] = 0.0
    covariance = 0.1 * spread @ spread.T
    other = other.changed(
        start=problem.start + 0.1 * ~known[: package.NX],
        start_covariance=covariance[: package.NX, : package.NX],
        prior_covariance=covariance[package.NX :, package.NX :],
    )
    ys = evaluate.observation(package, other.start, other.prior.mean[package.NX :]) + 0.1 * random.normal(
        size=(3, package.NY)
    )
    for one in exported.choices:
        driven = Driven(exported, native, one.name).init()
        before = Driven(exported, native, one.name).init()
        set_numbers(driven, other)
        twin, apart = controller(other, one.name), 0.0
        for k, y in enumerate(ys):
            status, u = driven.act(y)
            expected = twin.act(y)
            alike = 1e-9 if k == 0 else 1e-6  # then the input before is in it, and a search ends when it gains no more
            assert status >= FINE and close(driven.mean, twin.belief.mean, alike), (one.name, k)
            assert np.max(np.abs(u - expected)) <= 1e-6 * max(1.0, float(np.max(np.abs(expected)))), (one.name, k)
            apart = max(apart, float(np.max(np.abs(u - before.act(y)[1]))))
        assert apart > 1e-3, f"{one.name}: the other numbers make no difference"


def test_choices_and_bounds_agree(made: Callable[[str], tuple[Problem, Exported, ctypes.CDLL]]) -> None:
    """The valve may be 0, 1/2 or 2: bounds that leave a choice out are refused, wider ones do not widen a plan."""
    _, exported, native = made("valved")
    driven, usual = (Driven(exported, native, "ce").init() for _ in range(2))
    assert driven("set_bounds", [0.0, -1.0], [1.0, 1.0]) == REFUSED
    assert driven("set_bounds", [-50.0, -1.0], [50.0, 1.0]) == FINE
    y = np.array([0.8])
    assert np.array_equal(driven.act(y)[1], usual.act(y)[1])


def test_nonsense_is_refused_and_changes_nothing(
    made: Callable[[str], tuple[Problem, Exported, ctypes.CDLL]],
) -> None:
    problem, exported, native = made("pendulum")
    driven, usual = (Driven(exported, native, "dual").init() for _ in range(2))
    nz, horizon = problem.package.NZ, problem.horizon
    sound = np.eye(nz)
    skew, wide, negative = sound.copy(), sound.copy(), sound.copy()
    skew[0, 1], wide[0, 1], wide[1, 0], negative[2, 2] = 0.5, 1.5, 1.5, -0.1
    for bad in (skew, wide, negative, np.full((nz, nz), np.nan)):
        assert driven("set_belief", np.zeros(nz), bad) == REFUSED
    for weight in (
        [[1.0, 0.5], [0.0, 1.0]],
        [[-1.0, 0.0], [0.0, 1.0]],
        [[1.0, 2.0], [2.0, 1.0]],
        [[np.inf, 0], [0, 1]],
    ):
        assert driven("set_state_cost", 0, weight) == REFUSED
    assert driven("set_state_cost", horizon + 1, np.eye(2)) == REFUSED
    assert driven("set_input_cost", 0, [[-1.0]], [0.0]) == REFUSED
    assert driven("set_input_cost", horizon, [[1.0]], [1.0]) == REFUSED
    assert driven("set_input_cost", 0, [[1.0]], [np.nan]) == REFUSED
    assert driven("set_bounds", [1.0], [1.0]) == REFUSED
    assert driven("set_reference", 0, [np.nan, 0.0]) == REFUSED
    walled = Driven(*made("walled")[1:], "ce").init()
    assert walled("set_constraint_weights", [1.0, -1.0, 1.0]) == REFUSED
    assert walled("set_cost_weights", 0, [-1.0, 1.0]) == REFUSED
    y = np.array([0.1, 0.2])
    assert np.array_equal(driven.act(y)[1], usual.act(y)[1]) and np.array_equal(driven.mean, usual.mean)


def test_a_setter_before_init_says_so(made: Callable[[str], tuple[Problem, Exported, ctypes.CDLL]]) -> None:
    """`init` would forget what it was given."""
    driven = Driven(*made("pendulum")[1:], "ce")
    assert driven("set_reference", 0, [1.0, 0.0]) == NOT_READY
    assert driven("set_state_cost", 0, np.eye(2)) == NOT_READY
    assert driven("set_bounds", [-1.0], [1.0]) == NOT_READY
    assert driven("set_belief", np.zeros(4), np.eye(4)) == NOT_READY


@pytest.mark.parametrize("name", ["pendulum", "hidden"])
def test_an_act_without_an_input_leaves_no_trace(
    name: str, made: Callable[[str], tuple[Problem, Exported, ctypes.CDLL]]
) -> None:
    """At the end, `act` takes no measurement, however often it is called; `observe` takes the last one."""
    problem, exported, native = made(name)
    driven = Driven(exported, native, "ce").init()
    y = np.full(problem.package.NY, 0.05)
    for _ in range(problem.horizon):
        assert driven.act(y)[0] >= FINE
    before = driven._memory[: exported.memory["belief"] // 8].copy()
    numbers = driven._memory.copy()
    for _ in range(2):
        status, u = driven.act(y)
        assert status == ENDED and np.all(np.isnan(u))
        assert np.array_equal(driven._memory[: len(before)], before)
    assert driven("plan") == REFUSED
    fresh = Driven(exported, native, "ce").init()
    fresh._memory[:] = numbers
    assert driven("observe", y) == FINE and fresh("observe", y) == FINE
    assert np.array_equal(driven.mean, fresh.mean) and not np.array_equal(driven.mean, before[: len(driven.mean)])


def test_what_was_learned_of_a_function_can_be_given_back(
    made: Callable[[str], tuple[Problem, Exported, ctypes.CDLL]],
) -> None:
    """Rows of Gaussian processes hold what was learned with a minus: they are no variances."""
    problem, exported, native = made("hidden")
    twin, driven = controller(problem, "ce"), Driven(exported, native, "ce").init()
    for y in ([0.0, 0.0], [0.1, 0.3], [0.2, 0.2]):
        twin.act(y)
        assert driven.act(np.array(y))[0] >= FINE
    belief: Belief = twin.belief
    assert np.min(np.diagonal(belief.covariance)) < 0.0
    assert driven("set_belief", belief.mean, belief.covariance) == FINE


def test_the_plan_of_a_discrete_input_without_anything_to_learn_goes_through_its_input(
    made: Callable[[str], tuple[Problem, Exported, ctypes.CDLL]],
) -> None:
    """Then the stored plan of `planned` begins with the valve that was chosen."""
    problem, exported, native = made("valved")
    known = problem.changed(start=-0.4, prior_covariance=0.0, start_covariance=0.0)  # the best valve is no choice
    driven = Driven(exported, native, "planned").init()
    assert driven("set_belief", known.prior.mean, known.prior.covariance) == FINE
    status, u = driven.act(None)
    twin = controller(known, "planned")
    _, expected, info = twin.step(twin.init())
    assert status >= FINE and close(u, expected, 1e-6)  # both have searched
    assert driven("plan") == problem.horizon
    states, inputs = driven.planned(problem.horizon, problem.package.NX)
    assert close(inputs, info.planned_inputs, 1e-6) and close(states, info.planned_states, 1e-6)
