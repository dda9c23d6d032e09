"""Controllers behind one interface: states, measurements, information, and what must be equal to what."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import sympy as sp

import symdual
from symdual.common.errors import SymdualError
from symdual.controllers import NAMES
from symdual.runtime.belief import Belief
from symdual.runtime.controller import Controller, State, controller
from symdual.runtime.costs import cost_kind
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem

COMPILED = ("oracle", "ce", "cautious", "beb", "dual")


def kalman_update(belief: Belief, y: float, noise: float) -> Belief:
    """One measurement of the state of the toy, with full matrices."""
    P, c = belief.covariance, np.array([1.0, 0.0])
    gain = P @ c / (c @ P @ c + noise)
    return Belief(belief.mean + gain * (y - belief.mean[0]), P - np.outer(gain, c @ P))


# ------------------------------------------------------------------------------------------------ interface


@pytest.mark.parametrize("name", COMPILED)
def test_step_leaves_its_state_alone(toy: Problem, name: str) -> None:
    chosen = controller(toy, name)
    state = chosen.init()
    mean, covariance = state.belief.mean.copy(), state.belief.covariance.copy()
    following, u, _ = chosen.step(state)
    again, same, _ = chosen.step(state)
    assert np.array_equal(u, same) and again.k == following.k == 1
    assert np.array_equal(state.belief.mean, mean) and np.array_equal(state.belief.covariance, covariance)
    u[:] = 7.0  # the caller's array is not the controller's
    assert following.u is not None and following.u[0] != 7.0


def test_act_is_step_with_a_memory(toy: Problem) -> None:
    chosen = controller(toy, "dual")
    state, first, _ = chosen.step(chosen.init())
    _, second, _ = chosen.step(state, [0.4])
    assert np.array_equal(chosen.act(), first)
    assert np.array_equal(chosen.act([0.4]), second)
    chosen.reset()
    assert np.array_equal(chosen.act(), first)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))], ids=["copy", "deepcopy", "pickle"]
)
@pytest.mark.parametrize("name", ["dual", "oracle", pytest.param("exact", marks=pytest.mark.soak)])
def test_a_copy_continues_where_the_original_was(toy: Problem, name: str, copied: Callable[[Controller], Any]) -> None:
    original = controller(toy, name)
    original.act()
    twin = copied(original)
    second = original.act([0.4])
    assert np.array_equal(twin.act([0.4]), second)
    twin.reset()
    assert original.belief.mean[0] == pytest.approx(0.4)  # each has its own memory


def test_a_copy_has_the_same_choices(toy: Problem) -> None:
    twin = pickle.loads(pickle.dumps(controller(toy, "dual", order=2, window=3)))
    assert (twin.name, twin.order, twin.window, twin.problem.horizon) == ("dual", 2, 3, 2)
    assert twin.belief.mean.tolist() == toy.prior.mean.tolist()


def test_a_controller_goes_to_another_process(
    toy: Problem, tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    original = controller(toy, "dual")
    original.act()
    (tmp_path / "dual.pickle").write_bytes(pickle.dumps(original))
    code = """
        import pickle
        with open("dual.pickle", "rb") as file:
            dual = pickle.load(file)
        print(dual.act([0.4]).tolist())
    """
    answer = fresh_python(code, tmp_path)
    assert json.loads(answer.stdout) == pytest.approx(original.act([0.4]).tolist(), rel=1e-12)


def test_whatever_a_step_needs_is_there_when_the_controller_is(
    numba_toy: Problem, tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """In a process of its own, where no other test has compiled anything: neither `act` nor `step` compiles."""
    chosen = [controller(numba_toy, name) for name in ("ce", "dual")]
    (tmp_path / "chosen.pickle").write_bytes(pickle.dumps(chosen))
    code = """
        import pickle
        from numba.core import event
        with open("chosen.pickle", "rb") as file:
            chosen = pickle.load(file)
        with event.install_recorder("numba:compile") as compiled:
            for one in chosen:
                one.act()
                state, _, _ = one.step(one.init())
                state, _, info = one.step(state, [0.4])
        print(len(compiled.buffer), info.planned_inputs.shape)
    """
    assert fresh_python(code, tmp_path).stdout.split() == ["0", "(1,", "1)"]


def test_no_step_imports_anything_when_the_controller_is_there(
    quick_offset_package: LoadedPackage, tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """An import is a stall of its own: numpy's masked arrays alone take 10 ms."""
    (tmp_path / "package.pickle").write_bytes(pickle.dumps(quick_offset_package))
    code = """
        import pickle, sys
        import symdual
        with open("package.pickle", "rb") as file:
            chosen = symdual.controller(symdual.problem(pickle.load(file)), "dual")
        before = set(sys.modules)
        chosen.act()
        chosen.act([0.4])
        print(sorted(set(sys.modules) - before))
    """
    assert fresh_python(code, tmp_path).stdout == "[]\n"


def test_the_first_measurement_updates_without_predicting(toy: Problem) -> None:
    wide = Belief(np.array([1.0, 1.0]), np.array([[2.0, 0.5], [0.5, 10.0]]))
    chosen = controller(toy, "ce")
    expected = kalman_update(wide, 3.0, 0.0)
    _, _, info = chosen.step(chosen.init(wide), [3.0])
    np.testing.assert_allclose(info.after.mean, expected.mean, rtol=1e-10)
    np.testing.assert_allclose(info.after.covariance, expected.covariance, atol=1e-10)
    assert info.before.mean.tolist() == [1.0, 1.0]
    assert info.measured == 1


def test_later_measurements_predict_with_the_input_that_was_applied(toy: Problem) -> None:
    chosen = controller(toy, "ce")
    state, u, _ = chosen.step(chosen.init())
    _, _, info = chosen.step(state, [0.2])
    s = 10.0 * u[0] ** 2 + 0.1  # variance of y: v u^2 + Q
    innovation = 0.2 - (1.0 + u[0])
    np.testing.assert_allclose(info.after.mean, [0.2, 1.0 + 10.0 * u[0] / s * innovation], rtol=1e-9)
    np.testing.assert_allclose(info.after.covariance[1, 1], 10.0 - (10.0 * u[0]) ** 2 / s, rtol=1e-9)
    np.testing.assert_allclose(info.nis, innovation**2 / s, rtol=1e-9)
    np.testing.assert_allclose(info.log_likelihood, -0.5 * (np.log(2 * np.pi * s) + innovation**2 / s), rtol=1e-9)


@pytest.mark.parametrize("missing", [None, [np.nan], np.ma.masked_array([3], mask=[True])])
def test_a_missing_measurement_only_predicts(toy: Problem, missing: Any) -> None:
    chosen = controller(toy, "ce")
    state, u, _ = chosen.step(chosen.init())
    _, _, info = chosen.step(state, missing)
    np.testing.assert_allclose(info.after.mean, [1.0 + u[0], 1.0], rtol=1e-12)
    np.testing.assert_allclose(
        info.after.covariance, [[0.1 + 10 * u[0] ** 2, 10 * u[0]], [10 * u[0], 10.0]], rtol=1e-12
    )
    assert (info.measured, info.nis) == (0, 0.0)


def test_a_measurement_may_be_missing_in_part(pair_package: LoadedPackage) -> None:
    chosen = controller(symdual.problem(pair_package), "ce")
    wide = Belief(chosen.problem.prior.mean, np.diag([1.0, 1.0, 2.0, 1.0, 2.0]))
    state, statistics = chosen.update(chosen.init(wide), [np.nan, 0.5])
    assert statistics.measured == 1
    np.testing.assert_allclose(np.diag(state.belief.covariance)[:2], [1.0, 0.01 / 1.01], rtol=1e-9)


@pytest.mark.parametrize(
    ("y", "same"),
    [
        ({"p": 0.4, "q": -0.2}, [0.4, -0.2]),
        ({"q": -0.2, "p": 0.4}, [0.4, -0.2]),
        ({sp.Symbol("q"): -0.2}, [np.nan, -0.2]),
        ({"q": -0.2, "p": None}, [np.nan, -0.2]),
        ({}, None),
        (pandas.Series([-0.2, 0.4], index=["q", "p"]), [0.4, -0.2]),
    ],
)
def test_a_measurement_may_be_given_by_names(pair_package: LoadedPackage, y: Any, same: Any) -> None:
    problem = symdual.problem(pair_package)
    u, other = controller(problem, "ce").act(y), controller(problem, "ce").act(same)
    assert np.array_equal(u, other) and (u["u"], u["v"]) == tuple(u)


def test_a_name_that_nothing_measured_has_is_refused(pair_package: LoadedPackage) -> None:
    with pytest.raises(SymdualError, match='nothing that is measured is called "r", only p, q'):
        controller(symdual.problem(pair_package), "ce").act({"p": 0.1, "r": 0.2})
    with pytest.raises(SymdualError, match='the measurement "p" must be an array of numbers'):
        controller(symdual.problem(pair_package), "ce").act({"p": "high"})
    with pytest.raises(SymdualError, match="the measurement is infinite at step 0"):
        controller(symdual.problem(pair_package), "ce").act({"p": np.inf})


def test_observe_then_act_is_act(toy: Problem) -> None:
    together, apart = controller(toy, "dual"), controller(toy, "dual")
    together.act()
    apart.act()
    second = together.act([0.4])
    belief = apart.observe([0.4])
    assert np.array_equal(belief.mean, together.belief.mean)
    assert np.array_equal(apart.act(), second)
    # the last measurement of the episode, when there is nothing left to decide
    assert apart.observe([0.1]).mean[0] == pytest.approx(0.1)
    with pytest.raises(SymdualError, match="the episode ended at step 2; use window="):
        apart.act()


def test_choose_needs_a_belief_that_knows_the_last_input(toy: Problem) -> None:
    chosen = controller(toy, "ce")
    state, u = chosen.choose(chosen.init())
    assert u.tolist() == pytest.approx([-0.6])
    with pytest.raises(SymdualError, match="the input before step 1 is not in the belief yet"):
        chosen.choose(state)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.1, 0.2], r"the measurement y must have shape \(1,\), but has \(2,\)"),
        (["high"], "the measurement y must be an array of numbers"),
        ([np.inf], "the measurement is infinite at step 0"),
    ],
)
def test_bad_measurements_are_named(toy: Problem, y: list[float], message: str) -> None:
    with pytest.raises(SymdualError, match=message):
        controller(toy, "ce").act(y)


def test_one_number_is_a_measurement_of_one_entry(toy: Problem) -> None:
    assert np.array_equal(controller(toy, "ce").act(0.7), controller(toy, "ce").act([0.7]))


def test_a_belief_that_overflows_is_reported(toy: Problem) -> None:
    chosen = controller(toy, "ce")
    chosen.act()
    with pytest.raises(SymdualError, match=r"not finite.* at step|at step 1 is not finite"):
        chosen.act([1e300])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "dua"}, 'there is no controller "dua"; did you mean "dual"'),
        (
            {"name": "random"},
            "known: oracle, ce, cautious, beb, dual, planned, thompson, rollout, scenario, information, dither, exact",
        ),
        ({"name": "dual", "order": 3}, "order must be 1 or 2, not 3"),
        ({"name": "dual", "window": 0}, "window must be at least 1, not 0"),
    ],
)
def test_bad_choices_are_named(toy: Problem, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SymdualError, match=message):
        controller(toy, **arguments)  # type: ignore[arg-type]


def test_every_name_makes_a_controller(toy: Problem) -> None:
    assert [controller(toy, name).name for name in NAMES] == list(NAMES)


@pytest.mark.parametrize("name", ["cautious", "beb", "dual"])
def test_a_search_without_limit_is_refused(toy: Problem, name: str) -> None:
    free = replace(toy, input_cost=np.array([[[1.0]], [[0.0]]]))
    with pytest.raises(SymdualError, match=r'search over the input "u" has no limit.*singular at step 1'):
        controller(free, name)
    assert controller(free, "ce").act().shape == (1,)
    held = replace(free, input_bounds=np.array([[-1.5], [1.5]]))
    assert abs(controller(held, name).act()[0]) <= 1.5


# ------------------------------------------------------------------------------------------------ oracle


def test_the_oracle_steers_with_the_plants_model(toy: Problem, quick_offset_package: LoadedPackage) -> None:
    other = replace(toy, plant=quick_offset_package, truth=np.array([0.3]))
    # one step from the end: min over u of u^2 + (0.9 x + u + c)^2
    _, u, _ = controller(other, "oracle").step(State(1, Belief(np.array([2.0, 0.3]), np.zeros((2, 2))), None))
    assert u[0] == pytest.approx(-(0.9 * 2.0 + 0.3) / 2)
    drawn = controller(other, "oracle", truth=np.array([-0.8]))
    _, u, _ = drawn.step(drawn.init())
    assert drawn.problem.prior.mean.tolist() == [1.0, -0.8]


def test_the_oracle_needs_a_truth(toy: Problem) -> None:
    with pytest.raises(SymdualError, match="the oracle needs the true parameters"):
        controller(replace(toy, truth=None), "oracle")
    with pytest.raises(SymdualError, match="the oracle needs a problem without uncertain parameters"):
        Controller(toy, "oracle")


# ------------------------------------------------------------------------------------------------ equalities


def test_at_the_last_decision_dual_and_cautious_are_the_open_feedback_law(toy: Problem) -> None:
    random = np.random.default_rng(3)
    for x, m, v in zip(*random.normal(size=(2, 20)) * 3.0, random.uniform(0.01, 20.0, 20), strict=True):
        last = State(1, Belief(np.array([x, m]), np.diag([0.0, v])), None)
        law = -m * x / (1.0 + v + m * m)
        for name in ("dual", "cautious"):
            _, u, info = controller(toy, name).step(last)
            assert u[0] == pytest.approx(law, abs=2e-6 * (1.0 + abs(x)))
            # E[x^2 + u^2 + (x + b u + xi)^2] at the law
            least = 2 * x * x + 0.1 - (m * x) ** 2 / (1.0 + v + m * m)
            assert sum(info.parts) == pytest.approx(least, rel=1e-9)


def test_with_known_parameters_dual_is_cautious_and_ce(toy: Problem) -> None:
    longer = toy.extended(3)
    known = State(0, Belief(np.array([1.3, 0.7]), np.diag([0.4, 0.0])), None)
    inputs = {name: controller(longer, name).step(known)[1][0] for name in ("ce", "cautious", "dual", "beb")}
    for name in ("cautious", "dual", "beb"):
        assert inputs[name] == pytest.approx(inputs["ce"], abs=1e-5), name


def test_probing_makes_dual_bolder_than_cautious(toy: Problem) -> None:
    state = controller(toy, "dual").init()
    dual, cautious = (controller(toy, name).step(state)[1][0] for name in ("dual", "cautious"))
    assert dual < cautious < 0.0


def test_beb_is_ce_when_the_input_never_shows(quick_offset_package: LoadedPackage) -> None:
    problem = symdual.problem(quick_offset_package)
    assert quick_offset_package.INPUT_DELAY == 0
    assert cost_kind(problem, "beb", 1, 4) == "ce"
    assert np.array_equal(controller(problem, "beb").act(), controller(problem, "ce").act())


def test_beb_buys_knowledge_with_its_bonus(toy: Problem) -> None:
    plain, eager = (abs(controller(replace(toy, bonus=tau), "beb").act()[0]) for tau in (0.0, 100.0))
    assert plain == pytest.approx(0.6, abs=1e-6)
    assert eager > 1.5 * plain


# ------------------------------------------------------------------------------------------------ information


def test_the_parts_add_up_to_the_lowest_cost_of_the_curve(toy: Problem) -> None:
    for name in ("ce", "cautious", "beb", "dual", "exact"):
        chosen = controller(toy, name)
        _, u, info = chosen.step(chosen.init())
        lowest = int(np.argmin(info.costs[:, 0]))
        assert info.candidates[lowest, 0] == u[0]
        assert sum(info.parts) == pytest.approx(info.costs[lowest, 0], rel=1e-12), name
        assert info.parts.certainty_equivalent == pytest.approx(info.costs[lowest, 1], rel=1e-12)
        assert np.all(np.diff(info.candidates[:, 0]) >= 0.0)
        assert info.evaluations >= len(info.candidates)


def test_caution_is_the_cost_without_learning_and_probing_what_learning_saves(toy: Problem) -> None:
    chosen = controller(toy, "dual")
    _, u, info = chosen.step(chosen.init())
    # the toy from x = 1, m = 1, v = 10, Q = 0.1 with W = U = 1, by hand: after u the plan has x1 = 1 + u, then
    # u1 = -x1/2; K = (1 - 1/(2 ...)) as below
    x1 = 1.0 + u[0]
    u1 = -x1 / 2.0
    nominal = 1.0 + u[0] ** 2 + x1**2 + u1**2 + (x1 + u1) ** 2
    assert info.parts.certainty_equivalent == pytest.approx(nominal, rel=1e-12)
    # K_2 = diag(1, 0), A~_1 = [1 u1; 0 1], B~ = (1, 0): K_1 = W~ + a a' (1 - 1/2) with a = (1, u1)
    K1 = np.diag([1.0, 0.0]) + 0.5 * np.outer([1.0, u1], [1.0, u1])

    def uncertain(learning: bool) -> float:
        P = np.diag([0.0, 10.0])
        A0, A1, Q = np.array([[1.0, u[0]], [0.0, 1.0]]), np.array([[1.0, u1], [0.0, 1.0]]), np.diag([0.1, 0.0])
        total = 0.0  # tr W P at k = 0
        predicted = A0 @ P @ A0.T + Q
        c = predicted[0] / np.sqrt(predicted[0, 0])
        after = predicted - np.outer(c, c)
        if not learning:
            after[1, 1] = predicted[1, 1]
        # what the measurement takes off, the consider filter keeping the variance of theta
        total += np.trace(K1 @ (predicted - after)) + after[0, 0]
        predicted = A1 @ after @ A1.T + Q
        return total + predicted[0, 0]  # K_2 (S - S+) + W S+ = S_xx before the last measurement

    assert info.parts.caution == pytest.approx(uncertain(False), rel=1e-9)
    assert info.parts.caution + info.parts.probing == pytest.approx(uncertain(True), rel=1e-9)
    assert info.parts.probing < 0.0


def test_the_plan_goes_through_the_chosen_input(toy: Problem) -> None:
    longer = toy.extended(2)
    chosen = controller(longer, "dual")
    _, u, info = chosen.step(chosen.init())
    assert info.planned_inputs.shape == (4, 1) and info.planned_states.shape == (5, 1)
    assert info.planned_inputs[0, 0] == u[0]
    x = 1.0
    for k in range(4):
        assert info.planned_states[k, 0] == pytest.approx(x)
        x += 1.0 * info.planned_inputs[k, 0]  # b is planned with at its mean
    cost = np.sum(info.planned_states**2) + np.sum(info.planned_inputs**2)
    assert cost == pytest.approx(info.parts.certainty_equivalent, rel=1e-12)
    assert info.status == "converged"


@pytest.mark.parametrize("name", ["ce", "dual", "cautious"])
def test_what_is_reported_is_what_was_chosen_where_plans_have_many_minima(
    waves_package: LoadedPackage, name: str
) -> None:
    """The plan costs what the table of candidates says, and the parts belong to it."""
    problem = symdual.problem(waves_package)
    chosen = controller(problem, name)
    for k, x in [(k, x) for k in (0, 3) for x in np.linspace(-2.5, 1.0, 36)]:
        belief = Belief(np.array([x, 1.0]), problem.prior.covariance)
        _, u, info = chosen.step(State(k, belief, None))
        states, inputs = info.planned_states[:, 0], info.planned_inputs[:, 0]
        assert states[0] == x and inputs[0] == pytest.approx(u[0], rel=1e-9)
        moved = states[:-1] + inputs + 0.8 * np.sin(3 * states[:-1])
        np.testing.assert_allclose(states[1:], moved, rtol=1e-12, atol=1e-13)
        nominal = np.sum((states - 4.0) ** 2) + 0.1 * np.sum(inputs**2)
        assert nominal == pytest.approx(info.parts.certainty_equivalent, rel=1e-7), (k, x)
        row = info.costs[np.all(info.candidates == u, axis=1)][0]
        assert sum(info.parts) == pytest.approx(row[0], rel=1e-9) and row[0] == info.costs[:, 0].min()
        assert row[1] == info.parts.certainty_equivalent
        assert info.parts.probing <= 1e-9 * info.parts.caution, (k, x)


# ------------------------------------------------------------------------------------------------ horizons


def test_the_episode_ends(toy: Problem) -> None:
    chosen = controller(toy, "ce")
    chosen.act()
    chosen.act([0.3])
    with pytest.raises(SymdualError, match="the episode ended at step 2; use window= for endless operation"):
        chosen.act([0.1])


def test_a_moving_horizon_looks_the_same_distance_ahead_for_ever(toy: Problem) -> None:
    schedule = replace(toy, reference=np.array([[0.0], [0.0], [2.0]]))
    chosen = controller(schedule, "dual", window=3)
    belief = Belief(np.array([1.0, 0.8]), np.diag([0.0, 1.0]))
    inputs = [chosen.step(State(k, belief, None))[1][0] for k in (0, 1, 2, 3, 50, 1000)]
    assert inputs[3] == inputs[4] == inputs[5]  # from the end of the schedule on, nothing changes
    assert inputs[0] != inputs[3]
    fixed = controller(schedule.extended(1), "dual")
    assert fixed.step(State(0, belief, None))[1][0] == inputs[0]


def test_endless_operation_takes_no_memory(toy: Problem) -> None:
    chosen = controller(toy, "ce", window=3)
    random = np.random.default_rng(0)

    def work(steps: int) -> None:
        for y in random.standard_normal((steps, 1)):
            chosen.act(y)

    work(50)
    tracemalloc.start()
    try:
        work(50)
        sizes = []
        for _ in range(4):
            sizes.append(tracemalloc.get_traced_memory()[0])
            work(1000)
    finally:
        tracemalloc.stop()
    # what leaks grows every time; what another thread of the test runner keeps does not
    assert np.diff(sizes).min() < 4096
    assert np.linalg.eigvalsh(chosen.belief.covariance)[0] >= -1e-12
