"""Noise that depends in the closed loop: a light that is worth a detour, plants, and noise that is no covariance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import symdual
from symdual import SymdualError, SymdualWarning
from symdual.backends.c import compilers
from symdual.runtime.closed_loop import Settings, draw, run, simulate
from symdual.runtime.problem import Problem
from symdual.runtime.replay import read_recording, replay

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def lit(shared_models: Callable[[Path], Path]) -> Problem:
    """The light at 4, a goal at 0, a start around 1."""
    return symdual.problem(symdual.load(shared_models(ROOT / "examples" / "light_dark.py") / "light_dark"))


def changed(problem: Problem, **constants: float) -> Problem:
    """The same problem with other numbers in the noise."""
    data = problem.package.numbers["data"].copy()
    for name, value in constants.items():
        data[problem.package.DATA_ENTRIES[name][0]] = value
    package = replace(problem.package, numbers={**problem.package.numbers, "data": data})
    return replace(problem, package=package, plant=package)


@pytest.mark.soak
def test_dual_goes_to_the_light_and_certainty_equivalence_does_not(lit: Problem) -> None:
    found = simulate(lit, ["ce", "dual"], 60, settings=Settings(truth="prior"))
    nearest = {name: np.abs(e.states[:, :, 0] - 4.0).min(axis=1).mean() for name, e in found.items()}
    assert nearest["ce"] > 2.5
    assert nearest["dual"] < 0.5
    gain = found["ce"].costs - found["dual"].costs
    assert gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
    known = {name: e.variances[:, -1, 0].mean() for name, e in found.items()}
    assert known["dual"] < known["ce"] / 4
    for e in found.values():  # what the filter believes of its errors is what they are
        errors = (e.states[:, -1, 0] - e.means[:, -1, 0]) ** 2 / e.variances[:, -1, 0]
        assert 0.5 < errors.mean() < 2.0


def test_without_a_light_there_is_nothing_to_go_for(lit: Problem) -> None:
    found = simulate(changed(lit, dark=0.0), ["ce", "dual"], 4, settings=Settings(truth="prior"))
    assert found["dual"].states == pytest.approx(found["ce"].states, abs=1e-5)


def test_the_true_system_draws_from_the_noise_at_its_true_state(lit: Problem) -> None:
    """y - x of the episodes is what was drawn, times the deviation at the true state; the controller sees only y."""
    settings = Settings(truth="prior")
    noise_draws = draw(lit, settings, np.random.SeedSequence(0).spawn(6))
    e = run(lit, "ce", noise_draws, settings)
    x = e.states[:, :, 0]
    moved = x[:, 1:] - x[:, :-1] - e.inputs[:, :, 0]
    assert moved == pytest.approx(1e-2 * noise_draws.process[:, :, 0], rel=1e-9)
    # one update from the belief of the prior, by hand
    P, R = 0.5 + 1e-4, 0.05 + 0.1 * (e.means[:, 0, 0] + e.inputs[:, 0, 0] - 4.0) ** 2
    y = x[:, 1] + np.sqrt(0.05 + 0.1 * (x[:, 1] - 4.0) ** 2) * noise_draws.measurement[:, 0, 0]
    predicted = e.means[:, 0, 0] + e.inputs[:, 0, 0]
    assert e.means[:, 1, 0] == pytest.approx(predicted + P / (P + R) * (y - predicted), rel=1e-9)


def test_noise_that_is_negative_at_the_start_is_named(lit: Problem) -> None:
    bad = changed(lit, dark=-0.1)
    sentence = (
        r"measurement_noise\[0, 0\] = dark\*\(-light \+ position\)\*\*2 \+ 0.05 becomes negative: "
        r"it is -0.85 at step 1, x = \(1\)"
    )
    with pytest.raises(SymdualError, match=sentence):
        symdual.controller(bad, "ce")
    with pytest.raises(SymdualError, match=sentence):
        simulate(bad, ["dual"], 2, settings=Settings(truth="prior"))


def test_noise_that_is_no_number_is_named(lit: Problem) -> None:
    with pytest.raises(SymdualError, match=r"measurement_noise\[0, 0\] = .* is nan, not a finite number, at step 1"):
        symdual.controller(changed(lit, dark=np.nan), "ce")


def test_a_plan_that_leads_to_negative_noise_is_named_with_its_step(lit: Problem) -> None:
    bad = changed(lit, dark=-0.004, light=1.0)  # negative beyond 3.5 from 1; the plan goes to -3
    away = replace(bad, reference=bad.reference - 3.0)
    with pytest.raises(SymdualError, match=r"the plan at step 0 has no cost: measurement_noise\[0, 0\] .* at step 11"):
        symdual.controller(away, "dual").act()


def test_a_belief_that_is_led_to_negative_noise_is_named(lit: Problem) -> None:
    bad = changed(lit, dark=-0.004, light=1.0)
    one = symdual.controller(replace(bad, reference=bad.reference - 3.0), "ce")
    one.act()
    with pytest.raises(SymdualError, match=r"the belief is not finite any more at step \d+: measurement_noise\[0, 0\]"):
        for _ in range(12):
            one.act([-9.0])


def test_an_episode_that_is_led_to_negative_noise_says_where(lit: Problem) -> None:
    bad = changed(lit, dark=-0.004, light=1.0)
    with pytest.warns(
        SymdualWarning, match=r"ce: run 0: measurement_noise\[0, 0\] .* becomes negative: it is -.* step"
    ):
        found = simulate(replace(bad, reference=bad.reference - 9.0), ["ce"], 2, settings=Settings(truth="prior"))
    assert (found["ce"].outcomes != 0).all()


def test_an_episode_without_a_plan_says_where_its_noise_is_negative(lit: Problem) -> None:
    bad = changed(lit, dark=-0.004, light=1.0)
    with pytest.warns(SymdualWarning, match=r"dual: run 0: the plan at step 0 has no cost: measurement_noise\[0, 0\] "):
        found = simulate(replace(bad, reference=bad.reference - 3.0), ["dual"], 2, settings=Settings(truth="prior"))
    assert found["dual"].outcomes.tolist() == [3, 3]


def test_a_recording_is_replayed_with_the_noise_at_the_estimate(lit: Problem, tmp_path: Path) -> None:
    table = tmp_path / "run.csv"
    table.write_text("time,step,position\n0,1.0,\n1,0.5,2.4\n2,0,2.0\n")
    result = replay(lit, read_recording(table, lit.package))
    mean, P = 1.0, 0.5
    for u, y in ((1.0, 2.4), (0.5, 2.0)):
        mean, P = mean + u, P + 1e-4
        R = 0.05 + 0.1 * (mean - 4.0) ** 2
        mean, P = mean + P / (P + R) * (y - mean), P * R / (P + R)
    assert result.means[-1, 0] == pytest.approx(mean, rel=1e-9)
    assert result.deviations[-1, 0] == pytest.approx(np.sqrt(P), rel=1e-9)


CALM = """
import sympy as sp
from symdual import Model, Scenario
x, u = sp.symbols("x u")
calm = Model([x], [u], [x + u], process_noise=0.04, measurement_noise=0.01)
rough = Model([x], [u], [x + u], process_noise=(1 + u) ** 2, measurement_noise=0.01)
scenario = Scenario(calm, 4, start=1.0, plant=rough)
"""


def test_constant_noise_in_a_world_whose_noise_depends(tmp_path: Path) -> None:
    """Through C, which compiles sooner."""
    try:
        compilers.compiler()
    except compilers.NoCompiler as missing:
        pytest.skip(str(missing))
    file = tmp_path / "calm.py"
    file.write_text(CALM)
    symdual.generate(file, tmp_path)
    problem, settings = symdual.problem(symdual.load(tmp_path / "calm", backend="c")), Settings()
    noise_draws = draw(problem, settings, np.random.SeedSequence(1).spawn(3))
    e = run(problem, "ce", noise_draws, settings)
    x, u = e.states[:, :, 0], e.inputs[:, :, 0]
    assert x[:, 1:] == pytest.approx(x[:, :-1] + u + np.abs(1 + u) * noise_draws.process[:, :, 0], rel=1e-9)
    own = replace(problem, plant=problem.package)  # the model itself as the plant: its noise is drawn as it is
    noise_draws = draw(own, settings, np.random.SeedSequence(1).spawn(3))
    e = run(own, "ce", noise_draws, settings)
    x, u = e.states[:, :, 0], e.inputs[:, :, 0]
    assert x[:, 1:] == pytest.approx(x[:, :-1] + u + noise_draws.process[:, :, 0], rel=1e-9)
    assert noise_draws.process[:, :, 0].std() < 0.5
