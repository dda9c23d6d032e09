"""What filters make of the same data: systems that are drawn from a model's own prior, steered by `ce`.

    theta ~ prior,   x_0 ~ start,   y_k measured while `ce` with the model's own filter chooses u_k

An exact filter has NEES 1 on such data, whoever chose the inputs from what was measured. Inputs of a controller that
knows the truth would not do: they tell of it what no filter looks for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from symdual.backends.numba.ahead import get_ready
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.runtime import evaluate
from symdual.runtime.closed_loop import Episodes, NoiseDraws, Settings, run_part
from symdual.runtime.noise import noise_of_measurement
from symdual.runtime.problem import Problem
from symdual.runtime.readiness import make_ready
from symdual.runtime.replay import Recording, replay
from symdual.runtime.result_fields import ROUNDING, normalised_errors, usual_variances
from symdual.runtime.results import Chunk
from symdual.runtime.signals import place_of, with_signals
from symdual.runtime.sweep import sweep

TIMED = 0.5  # seconds that a filter is timed for, in rounds of which the best counts


class Drawn(NamedTuple):
    """What was recorded of one system, and its true state at the end, with parameters where they are the model's."""

    recording: Recording
    state: Array
    theta: Array | None


class FilterRuns(NamedTuple):
    """What one filter made of all runs; NaN where it was lost.

    `nees` and `errors`, in prior deviations, are of the belief at the end; `scores` are minus the logarithm of the
    density that it gives to the truth, up to a constant; `nis` sums over a run, over `measured` numbers.
    """

    nees: Array
    errors: Array
    scores: Array
    nis: Array
    measured: Array
    seconds: float

    @property
    def lost(self) -> int:
        """In how many runs the belief was not finite any more."""
        return int(np.sum(np.isnan(self.measured)))


def drawn(problem: Problem, runs: int, seed: int) -> list[Drawn]:
    """Systems with their recordings; one that `ce` could not steer to the end is recorded as far as it went.

    Unknown functions cannot be drawn: the system is then the plant of the scenario.
    """
    settings = Settings("scenario" if problem.package.PROCESSES else "drift")
    plan = sweep(problem, ["ce"], runs, seed, settings)
    get_ready(plan.problem, plan.controllers, episodes=True)
    make_ready(plan.problem, plan.controllers)
    noise_draws = plan.noise_draws([Chunk("ce", 0, runs)])
    episodes = run_part(plan.problem, "ce", noise_draws, settings)
    return [_recorded(plan.problem, noise_draws, episodes, n) for n in range(runs)]


def _recorded(problem: Problem, noise_draws: NoiseDraws, episodes: Episodes, n: int) -> Drawn:
    """Run n as a recording, with its measurements once more from the states that were."""
    package, plant = problem.package, problem.plant
    states, inputs = episodes.states[n], episodes.inputs[n]
    whole = np.isfinite(inputs).all(axis=1) & np.isfinite(states[1:]).all(axis=1)
    steps = int(np.argmin(np.append(whole, False)))
    thetas = np.vstack([noise_draws.truths[n], noise_draws.wander[n]])
    measurements = np.full((steps + 1, package.NY), np.nan)
    signals = None if problem.signals is None else problem.signals.of(plant)[1]
    for k in range(1, steps + 1):
        here = with_signals(plant, None if signals is None else signals[min(k, len(signals) - 1)])
        seen = evaluate.observation(here, states[k], thetas[min(k, len(thetas) - 1)], k)
        measurements[k] = seen + noise_of_measurement(here, k, states[k], noise_draws.measurement[n, k - 1])
    recording = Recording(
        times=_step_length(problem) * np.arange(float(steps + 1)),
        inputs=np.vstack([inputs[:steps], np.zeros((1, package.NU))]),
        measurements=measurements,
        lines=np.arange(steps + 1),
        ignored=(),
        name=f"run {n}",
    )
    theta = thetas[min(steps, len(thetas) - 1)] if problem.plant_is_model else None
    return Drawn(recording, states[steps], theta)


def _step_length(problem: Problem) -> float:
    entries = problem.package.DATA_ENTRIES
    return float(problem.package.numbers["data"][entries["step_length"][0]]) if "step_length" in entries else 1.0


def subject(problem: Problem) -> slice:
    """The entries of z that filters are judged by: the unknowns, or the states of a model where these have no truth."""
    package = problem.package
    return slice(package.NX, package.NZ) if package.NTHETA and not package.PROCESSES else slice(0, package.NX)


def filtered(
    problems: Mapping[str, Problem], systems: Sequence[Drawn], report: Callable[[str, float], None]
) -> dict[str, FilterRuns]:
    """Each filter over all recordings."""
    seconds, found = _seconds(problems, systems), {}
    for number, (name, problem) in enumerate(problems.items()):
        rows, usual = np.zeros((len(systems), 5)), usual_variances(problem)
        for n, system in enumerate(systems):
            report(name, (number + n / len(systems)) / len(problems))
            rows[n] = _judged(problem, system, usual)
        nees, errors, scores, nis, measured = rows.T
        found[name] = FilterRuns(nees, errors, scores, nis, measured, seconds[name])
    return found


def _judged(problem: Problem, system: Drawn, usual: Array) -> tuple[float, ...]:
    """NEES, error, score, NIS and number of measurements of one run; `usual` are the variances of z before it."""
    try:
        result = replay(problem, system.recording)
    except SymdualError:  # the belief is not finite any more, or no measurement is likely under it
        return (np.nan,) * 5
    whose = subject(problem)
    truth = system.state if whose.start == 0 else system.theta
    assert truth is not None
    error = (result.belief.mean[whose] - truth)[None]
    covariance = result.belief.covariance[whose, whose][None]
    nees = normalised_errors(error, covariance, usual[whose])[0]
    judged = result.consistency
    return (nees, *_error_and_score(error[0], covariance[0], usual[whose]), judged.total, judged.measured)


def _error_and_score(error: Array, covariance: Array, usual: Array) -> tuple[float, float]:
    """Root mean square of e / s, and 1/2 sum ((v_j' e)^2 / l_j + log l_j), with S in units of the deviations s.

    l_j and v_j are the eigenvalues and vectors of S; below ROUNDING it is the filter's floor. The mean of the second
    over truths is least for the belief that is right, so that too narrow and too wide ones lose alike.
    """
    known = usual > 0.0
    if not known.any():
        return np.nan, np.nan
    scale = np.sqrt(usual[known])
    values, vectors = np.linalg.eigh(covariance[np.ix_(known, known)] / np.outer(scale, scale))
    values, away = np.maximum(values, ROUNDING), error[known] / scale
    score = 0.5 * float(np.sum((vectors.T @ away) ** 2 / values + np.log(values)))
    return float(np.sqrt(np.mean(away**2))), score


def _seconds(problems: Mapping[str, Problem], systems: Sequence[Drawn]) -> dict[str, float]:
    """Seconds of a step of each filter, over all recordings in one call: the best of many rounds, all in turn."""
    rows = min(len(one.recording.times) for one in systems) - 1
    if not rows:
        return dict.fromkeys(problems, np.nan)
    inputs = np.array([one.recording.inputs[:rows] for one in systems])
    measurements = np.array([one.recording.measurements[1 : rows + 1] for one in systems])
    calls = {name: _filter_call(problem, inputs, measurements) for name, problem in problems.items()}
    best = dict.fromkeys(problems, np.inf)
    end = time.perf_counter() + TIMED * len(calls)
    while time.perf_counter() < end:
        for name, call in calls.items():
            best[name] = min(best[name], call())
    return {name: seconds / (rows * len(systems)) for name, seconds in best.items()}


def _filter_call(problem: Problem, inputs: Array, measurements: Array) -> Callable[[], float]:
    """How many seconds a filter takes over recordings."""
    package = problem.package
    data = (package.numbers["data"] if problem.prior.memory is None else problem.prior.memory).copy()
    if problem.signals is not None:
        data[place_of(package)] = problem.signals.of(package)[0][0]
    settings = package.records.make_settings(*package.noise, problem.bounds, data)
    filter_workspace = package.filter.make_filter_workspace(settings)
    prior = package.records.make_belief(*problem.prior[:2])
    if package.SQUARE_ROOT:
        package.filter.factorise(prior)
    beliefs = np.repeat(prior, len(inputs))

    def call() -> float:
        beliefs[:] = prior
        settings["numbers"][0] = data
        begun = time.thread_time()  # which others on the machine do not lengthen
        package.filter.steps(0, beliefs, inputs, measurements, filter_workspace)
        return time.thread_time() - begun

    return call
