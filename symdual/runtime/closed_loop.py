"""Closed-loop episodes: plant, noise, filter and decision in one compiled call, many episodes in parallel.

Every episode has a child of one `SeedSequence`, and draws its start, its truth and its noise from it. So all
controllers meet the same random draws, and results depend neither on the number of threads nor on their order.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.display import first_few, shown
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.common.named import held
from symdual.common.named_arrays import named
from symdual.common.numbers import natural_order, root
from symdual.common.transforms import Transform, moments_of, values_of
from symdual.controllers import COSTS, NAMES, knows_truth
from symdual.entries.decisions import EpisodeLogArrays
from symdual.entries.types import Records
from symdual.runtime.belief import Belief, processes_of
from symdual.runtime.constraints import warn_of_start
from symdual.runtime.controller import controller
from symdual.runtime.costs import (
    cost_kind,
    cost_pointer,
    kind_that_decides,
    require_search_width,
    searches,
    settings_of,
    stage_costs_of,
)
from symdual.runtime.endings import reason
from symdual.runtime.evaluate import whole_number
from symdual.runtime.faults import require_finite
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.noise import has_state_dependent_noise, require_noise
from symdual.runtime.objective import constraints_of
from symdual.runtime.options import USUAL, Options
from symdual.runtime.parallel import in_threads
from symdual.runtime.posterior import MemoryWarning, losses
from symdual.runtime.problem import Problem, require_parameters
from symdual.runtime.problem import problem as of_package
from symdual.runtime.signals import place_of, require_set
from symdual.runtime.standby import with_standby

TRUTHS = ("scenario", "prior", "drift")
LONGEST_WINDOW = 100_000  # the plan of every thread is held in memory
OUTCOMES = (
    "finished",
    "the plant's state or measurement is not finite",
    "the belief is not finite",
    "the plan is not finite",
)


class NoiseDraws(NamedTuple):
    """What is decided before a batch of episodes: starts (N, NX), truths (N, p), and noise by run and time.

    Those of unknowns with bounds are their logarithms or logits.

    The true parameters follow the plant, theta_{k+1} = D theta_k (+ eta_k with drift): `truths` are theta_0, and
    `wander` (N, T, p) theta_1 .. theta_T if they move at all, else (N, 0, p). `seeds` (N,) are for controllers that
    draw random numbers themselves.
    """

    starts: Array
    truths: Array
    process: Array
    measurement: Array
    wander: Array
    seeds: Array

    @property
    def last_truths(self) -> Array:
        """The true parameters at the end, (N, p)."""
        return self.wander[:, -1] if self.wander.shape[1] else self.truths


class Episodes(NamedTuple):
    """A batch of episodes, first axis run, second axis time.

    states (N, T+1, NX), inputs (N, T, NU), means and variances of the belief (N, T+1, NZ), the last covariances
    (N, NZ, NZ), statistics of each step (N, T+1, STATS), an outcome (an index into `OUTCOMES`) per run, and what is
    remembered at the end of Gaussian processes, (N, DATA) or (N, 0), and the constraints g <= 0 at the true states,
    (N, T+1, NC). Numbers that belong to one are relative to its
    prior, and have no variance (NaN); `symdual.runtime.posterior` turns the last belief into the function.
    The last axis of states, inputs, means, variances and truths has names: `means["strength"]` is (N, T+1). These are
    in your units; `z_means`, `z_variances` and the last covariances are those of z, where an unknown with bounds stands
    by its logarithm or logit.
    `belief_names` and `truth_names` are those along the last axes of means and variances, and of truths.

    >>> episodes = symdual.simulate(problem, "ce", runs=2)["ce"]
    >>> episodes.states.shape, episodes.means["b"].shape
    ((2, 3, 1), (2, 3))
    """

    states: Array
    inputs: Array
    means: Array
    variances: Array
    covariances: Array
    steps: Array
    outcomes: NDArray[np.int64]
    truths: Array
    memories: Array
    constraints: Array
    z_means: Array
    z_variances: Array
    belief_names: tuple[str, ...] = ()
    truth_names: tuple[str, ...] = ()
    transforms: tuple[Transform, ...] = ()

    def __repr__(self) -> str:
        runs, steps = self.inputs.shape[:2]
        names = f"belief on {first_few(self.belief_names)}; truths of {first_few(self.truth_names) or 'nothing'}"
        return f"<Episodes: {runs} runs of {steps} steps; {names}>"

    def __str__(self) -> str:
        """What was run and how it ended, as a table."""
        return str(shown("episodes in a terminal", self))

    def _repr_html_(self) -> str:
        """What was run and how it ended, for notebooks."""
        return str(shown("episodes in a notebook", self))

    def last_belief(self, run: int) -> Belief:
        """The belief at the end of a run."""
        memory = self.memories[run] if self.memories.shape[1] else None
        return Belief(self.z_means[run, -1], self.covariances[run], memory, self.belief_names, self.transforms)

    @property
    def costs(self) -> Array:
        """L of each run, (N,); NaN for an episode that did not finish."""
        return np.asarray(np.where(self.outcomes == 0, self.steps[:, :, 0].sum(axis=1), np.nan))


@dataclass(frozen=True)
class Settings:
    """How episodes are run.

    Args:
        truth: `"scenario"` for the parameters that the scenario gives, `"prior"` to draw them from the model's own
            prior (the model is then the plant), `"drift"` for the same with the model's own drift on top. In each of
            them the parameters follow the plant's transition D. With `"scenario"` they also drift if the plant is a
            model of its own that says so.
        order: of the dual cost, 1 or 2.
        window: None for the fixed end of the problem, or the length of a moving horizon.
        length: the number of steps; the problem's horizon by default, and free with a moving horizon.
        options: how much `planned` does for a decision.

    >>> settings = symdual.Settings(truth="prior", window=2, length=5)
    >>> symdual.simulate(problem, "ce", runs=2, settings=settings)["ce"].inputs.shape
    (2, 5, 1)
    """

    truth: str = "scenario"
    order: int = 1
    window: int | None = None
    length: int | None = None
    options: Options = USUAL


def checked_settings(settings: Settings) -> Settings:
    """The settings with plain numbers that make sense."""
    if settings.order not in (1, 2):
        raise SymdualError(f"order must be 1 or 2, not {settings.order!r}")
    window, length = settings.window, settings.length
    return replace(
        settings,
        order=int(settings.order),
        window=None if window is None else whole_number(window, "window", most=LONGEST_WINDOW),
        length=None if length is None else whole_number(length, "length"),
    )


def plant_problem(problem: Problem, settings: Settings) -> Problem:
    """The problem whose plant is the one that the settings ask for."""
    if settings.truth not in TRUTHS:
        raise SymdualError(f'there is no truth "{settings.truth}"; known: {", ".join(TRUTHS)}')
    if settings.truth == "scenario":
        require_parameters(problem.plant)
        if problem.truth is None:
            raise SymdualError(f'the scenario "{problem.name}" gives no true parameters; use the truth "prior"')
        return problem
    require_parameters(problem.package)
    return replace(problem, plant=problem.package, truth=None, truth_path=None)


def draw(problem: Problem, settings: Settings, seeds: list[np.random.SeedSequence]) -> NoiseDraws:
    """Draw what is drawn at random for one episode per seed."""
    plant, nx = problem.plant, problem.package.NX
    steps = problem.horizon if settings.length is None else settings.length
    numbers = plant.numbers
    start_root, prior_root = root(problem.prior.covariance[:nx, :nx]), root(problem.prior.covariance[nx:, nx:])
    process_root, measurement_root = root(numbers["process_noise"]), root(numbers["measurement_noise"])
    drift_root, places = _drift_root(problem, settings), _places_in_draws(plant)
    drawn = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        start = plant.within_bounds(problem.start + start_root @ random.standard_normal(nx))
        process = random.standard_normal((steps, nx)) @ process_root.T
        measurement = random.standard_normal((steps, problem.package.NY)) @ measurement_root.T
        if problem.truth is not None:
            truth = problem.truth
        else:
            truth = problem.prior.mean[nx:] + prior_root @ random.standard_normal(plant.NTHETA)[places]
        drift = np.zeros((0, plant.NTHETA))
        if drift_root is not None:
            drift = random.standard_normal((steps, plant.NTHETA))[:, places] @ drift_root.T
        drawn.append((start, truth, process, measurement, drift))
    starts, truths, processes, measurements, drifts = (
        np.ascontiguousarray(np.stack(column)) for column in zip(*drawn, strict=True)
    )
    wander = _wander(plant, truths, drifts, steps)
    if problem.truth_path is not None:
        wander = np.repeat(held(problem.truth_path, steps)[None], len(seeds), axis=0)
    return NoiseDraws(starts, truths, processes, measurements, wander, _own_seeds(seeds))


def _places_in_draws(plant: LoadedPackage) -> list[int]:
    """Which of the numbers that are drawn for theta each entry takes: scalars in the order of their names.

    So moving a declaration in a model file, which moves an entry of theta, changes no episode.
    """
    scalars = list(takewhile(lambda name: plant.UNKNOWNS[name][1] == 1, plant.UNKNOWNS))
    by_name = natural_order(scalars)
    return [*(by_name.index(name) for name in scalars), *range(len(scalars), plant.NTHETA)]


def _own_seeds(seeds: list[np.random.SeedSequence]) -> Array:
    """A whole number for each episode, from a child of its own seed."""
    children = [np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 0)) for seed in seeds]
    return np.array([float(child.generate_state(1)[0] >> 1) for child in children])


def _drift_root(problem: Problem, settings: Settings) -> Array | None:
    """A root of Xi if the truth is to drift; a model that is its own plant drifts only when it is asked to."""
    own_drift = not problem.plant_is_model and problem.plant.DIFFUSION != "none"
    if settings.truth != "drift" and not own_drift:
        return None
    drift = problem.plant.numbers["drift"]
    return root(np.diag(drift) if drift.ndim == 1 else drift)


def _wander(plant: LoadedPackage, truths: Array, drifts: Array, steps: int) -> Array:
    """theta_{k+1} = D theta_k + eta_k for k = 0 .. T-1, (N, T, p); (N, 0, p) when they keep their values.

    D theta is summed column by column: every run then has the same bits in whatever company it is computed.
    """
    if plant.TRANSITION == "identity" and not drifts.shape[1]:
        return drifts
    D = plant.numbers["transition"]
    path = np.empty((len(truths), steps, plant.NTHETA))
    theta = truths
    with np.errstate(over="ignore", invalid="ignore"):  # parameters that are not finite fail with their plant
        for k in range(steps):
            if plant.TRANSITION == "diagonal":
                theta = D * theta
            elif plant.TRANSITION == "dense":
                theta = sum((theta[:, j, None] * D[:, j] for j in range(plant.NTHETA)), np.zeros_like(theta))
            if drifts.shape[1]:
                theta = theta + drifts[:, k]
            path[:, k] = theta
    return path


def run(problem: Problem, name: str, noise_draws: NoiseDraws, settings: Settings) -> Episodes:
    """Run one episode per entry of `noise_draws` with the controller `name`, in as many threads as numba may use."""
    episodes = run_part(problem, name, noise_draws, settings)
    warn_of_losses(problem, name, episodes)
    found = reason(problem, name, noise_draws, episodes, settings)
    if found is not None:
        warnings.warn(f"{name}: run {found[0]}: {found[1]}", SymdualWarning, stacklevel=2)
    return episodes


def warn_of_losses(problem: Problem, name: str, episodes: Episodes) -> None:
    """Say what the controller `name` could not remember exactly in some episodes."""
    package = problem.plant if knows_truth(name) else problem.package
    for sentence in losses(package, episodes.memories):
        warnings.warn(f"{name}: {sentence}", MemoryWarning, stacklevel=3)


def run_part(problem: Problem, name: str, noise_draws: NoiseDraws, settings: Settings) -> Episodes:
    """Run episodes as `run` does, without a warning: when all parts are done, it is given once."""
    return with_standby((problem.package, problem.plant), lambda: _run_part(problem, name, noise_draws, settings))


def _run_part(problem: Problem, name: str, noise_draws: NoiseDraws, settings: Settings) -> Episodes:
    if name not in NAMES:
        controller(problem, name)  # says what is wrong
    if settings.window is None and settings.length not in (None, problem.horizon):
        raise SymdualError("an episode of another length than the scenario's needs a moving horizon (window)")
    if name == "exact" or any(one.c is not None and one.c.given_up for one in (problem.package, problem.plant)):
        problem = problem.by_numba()
    own = problem.for_oracle(noise_draws.truths[0]) if knows_truth(name) else problem
    package, plant = own.package, own.plant
    if package.backend != plant.backend:
        how, other = ("numba" if one.backend == "numba" else "C" for one in (package, plant))
        raise SymdualError(
            f"the model {package.name} is compiled by {how} and its plant {plant.name} by {other}: "
            "load both with the same backend"
        )
    count, steps = len(noise_draws.starts), noise_draws.process.shape[1]
    longer = own if settings.window is None else own.extended(max(0, steps + settings.window - own.horizon))
    planned = own.horizon if settings.window is None else settings.window
    kind = cost_kind(own, name, settings.order, planned, settings.options)
    if COSTS[kind].searched:
        require_search_width(own)
    require_finite(own)
    require_noise(own)
    episode_log = _episode_log(package, count, steps)
    module = package.episode
    given = settings_of(own, name, settings.order, settings.options)
    counter = np.zeros(1, dtype=np.int64)
    deciding = kind_that_decides(own, kind, own.prior.covariance)
    shared = (
        module.Controls(
            cost_pointer(own, deciding, planned).address if count else 0,
            searches(own, deciding),
            longer.floors,
            settings.window or 0,
            knows_truth(name),
        ),
        module.NoiseDraws(
            np.ascontiguousarray(np.hstack([noise_draws.starts, noise_draws.truths])),
            noise_draws.process,
            noise_draws.measurement,
            noise_draws.wander,
            noise_draws.seeds,
        ),
        _priors(own, noise_draws.truths if knows_truth(name) else None, count),
        given,
    )
    from numba import get_num_threads  # here, for controllers through C that run without numba

    weights, order, heard = stage_costs_of(longer), int(given["order"][0]), _true_signals(longer, steps)
    works = []
    for _ in range(max(1, min(get_num_threads(), count))):
        workspace = package.records.make_workspace(planned, weights, given, order, COSTS[kind].plans_to_learn)
        thread_workspace = module.make_thread_workspace(workspace, plant.NZ, plant.WORK)
        # signals are written among the plant's numbers: every thread has its own
        pointers = (plant.plant.move, plant.plant.measure, plant.numbers["data"].copy())
        true = module.Plant(*pointers, *heard, *_plant_noise(package, plant), *_plant_bounds(package, plant))
        works.append(partial(module.episodes, counter, steps, true, *shared, thread_workspace, episode_log))
    in_threads(works)
    episode_log.variances[:, :, processes_of(package)] = np.nan
    finals = np.zeros((count, package.NZ, package.NZ))
    for n in range(count):
        finals[n] = package.records.read_covariance(episode_log.finals[n : n + 1])
    finals[episode_log.outcomes != 0] = np.nan
    believed, known = package.belief_names, own.plant.belief_names[own.plant.NX :]
    means, variances = moments_of(package.transforms, episode_log.means, episode_log.variances)
    return Episodes(
        named(episode_log.states, tuple(package.STATES)),
        named(episode_log.inputs, tuple(package.INPUTS)),
        named(means, believed),
        named(variances, believed),
        finals,
        episode_log.steps,
        episode_log.outcomes,
        named(values_of(own.plant.transforms[own.plant.NX :], noise_draws.truths), known),
        episode_log.memories,
        episode_log.constraints if constraints_of(package) else np.zeros((count, steps + 1, 0)),
        episode_log.means,
        episode_log.variances,
        believed,
        known,
        package.transforms,
    )


def touch_episode(package: LoadedPackage) -> None:
    """Compile or load the loop of episodes of a package by running none of them."""
    for name in list(package.plants)[:1]:
        problem = of_package(package, name)
        sizes = problem.package.NX, problem.plant.NTHETA, problem.package.NX, problem.package.NY, problem.plant.NTHETA
        nothing = [np.zeros((0, *(1,) * (n > 1), size)) for n, size in enumerate(sizes)]
        with suppress(SymdualError):  # of a problem that cannot be run yet, such as one whose signals are not set
            run_part(problem, "ce", NoiseDraws._make([*nothing, np.zeros(0)]), Settings())


def _true_signals(problem: Problem, steps: int) -> tuple[Any, ...]:
    """The true signals of the plant and their place among its numbers, where the code of the model asks for them."""
    if problem.signals is None:
        return ()
    require_set(problem, 0, steps)
    true = problem.signals.of(problem.plant)[1]
    if np.any(np.isnan(true[: steps + 1])):
        raise SymdualError(
            f"a signal of the plant {problem.plant.name} has no value: give it in the scenario (signals=...)"
        )
    return np.ascontiguousarray(true), place_of(problem.plant).start


def _plant_noise(package: LoadedPackage, plant: LoadedPackage) -> tuple[Any, ...]:
    """The noise of the plant where it may depend on anything: whether it does, pointers to it, and room for it."""
    if "process_noise_at" not in package.episode.Plant._fields:
        return ()
    own = plant.plant if has_state_dependent_noise(plant) else package.plant
    return (
        has_state_dependent_noise(plant),
        own.process_noise_at,
        own.measurement_noise_at,
        np.zeros((2, package.NX, package.NX)),
        np.zeros((2, package.NY, package.NY)),
    )


def _plant_bounds(package: LoadedPackage, plant: LoadedPackage) -> tuple[Array, ...]:
    """The bounds of the states of the plant, where a plant of the package has some."""
    if "lower" not in package.episode.Plant._fields:
        return ()
    return plant.state_bounds or (np.full(package.NX, -np.inf), np.full(package.NX, np.inf))


def _episode_log(package: LoadedPackage, count: int, steps: int) -> EpisodeLogArrays:
    """What the episodes write down: NaN until they do."""

    def unknown(*shape: int) -> Array:
        return np.full((count, *shape), np.nan)

    return package.episode.EpisodeLog(
        states=unknown(steps + 1, package.NX),
        inputs=unknown(steps, package.NU),
        means=unknown(steps + 1, package.NZ),
        variances=unknown(steps + 1, package.NZ),
        steps=unknown(steps + 1, package.episode.STATS),
        finals=np.zeros(count, package.records.GAUSSIAN),
        outcomes=np.zeros(count, dtype=np.int64),
        memories=np.zeros((count, package.DATA if package.PROCESSES else 0)),
        **({"constraints": unknown(steps + 1, constraints_of(package))} if constraints_of(package) else {}),
    )


def _priors(problem: Problem, truths: Array | None, count: int) -> Records:
    """The belief of every episode before its first step; an oracle knows the true parameters."""
    package = problem.package
    prior = package.records.make_belief(*problem.prior[:2])
    if package.SQUARE_ROOT:
        package.filter.factorise(prior)
    priors = np.repeat(prior, count)
    if truths is not None:
        priors["z"][:, package.NX :] = truths
    return priors


def simulate(
    problem: Problem,
    names: list[str],
    runs: int,
    seed: int = 0,
    settings: Settings = Settings(),
) -> dict[str, Episodes]:
    """Run `runs` episodes with each controller, all with the same random draws."""
    runs, seed = whole_number(runs, "the number of runs"), whole_number(seed, "the seed", least=0)
    settings = checked_settings(settings)
    own = plant_problem(problem, settings)
    warn_of_start(own, stacklevel=2)
    noise_draws = draw(own, settings, np.random.SeedSequence(seed).spawn(runs))
    return {name: run(own, name, noise_draws, settings) for name in names}
