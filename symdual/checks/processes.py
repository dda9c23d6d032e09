"""Checks what a package does with Gaussian processes against the Gram matrix form, on random problems.

A recording is made up, the generated filter runs over it, and the Gram form gets the linearisations that the filter
used and nothing else from it. Then a plan is evaluated: the unknowns of the reference are the values of the functions
at the plan's own points, with mean and covariance from the Gram form, and the dense recursions do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from symdual.checks import dense, gram
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.posterior import posterior
from symdual.runtime.problem import Belief
from symdual.spec.covariances import numeric
from symdual.spec.model import Model
from symdual.spec.numbers import Array
from symdual.spec.symbols import DataArray, Family, FeatureSum

PAST = 4
HORIZON = 3

Comparison = tuple[str, Array, Array]


class Linearised(NamedTuple):
    """A step as compiled kernels see it: f, f_x, f_u, f_theta of other unknowns, points and gains of the functions."""

    f: Array
    f_x: Array
    f_u: Array
    points: Array
    gains: Array


class ProcessTask:
    """One random problem with both ways to compute."""

    def __init__(self, model: Model, package: LoadedPackage, random: np.random.Generator) -> None:
        self._model, self._package, self._random = model, package, random
        self._families = [family for family in model.families if family.process is not None]
        self._functions = [(family, o) for family in self._families for o in range(len(family.weights))]
        self._kernels = [_kernel(family) for family, _ in self._functions]
        numbers = package.numbers
        self._Q = numbers["process_noise"] + 1e-2 * np.eye(package.NX)
        self._R = numbers["measurement_noise"] + 1e-2 * np.eye(package.NY)
        self._D, self._Xi = numbers["transition"], numbers["drift"]
        first = self._families[0]
        start, _ = package.UNKNOWNS[first.weights[0].symbol.name]
        persistence = 1.0 if model.transition is None else float(model.transition[start])
        growth = 0.0 if model.drift is None else float(model.drift[start])
        self._persistence, self._growth = persistence, growth
        self._covariance = gram.drifting(self._kernels, persistence, growth)
        self._inputs = np.clip(
            0.7 * random.normal(size=(PAST + HORIZON, package.NU)), numbers["lower"], numbers["upper"]
        )

    def comparisons(self) -> Iterator[Comparison]:
        """Pairs of computed and expected numbers, each with the name of what they are."""
        belief, start, transitions, measurements = self._filtered()
        nx = self._package.NX
        for number, (family, output) in enumerate(self._functions):
            points = self._random.normal(size=(5, len(family.arguments)))
            asked = [gram.Value(number, point, PAST) for point in points]
            mean, covariance = gram.posterior(start, transitions, measurements, self._Q, self._covariance, asked)
            got = posterior(self._package, belief, points, family.name, output)
            if number == 0:
                yield "state after measurements", belief.mean[:nx], mean[:nx]
                yield "its covariance", belief.covariance[:nx, :nx], covariance[:nx, :nx]
            yield "function after measurements", got.mean, mean[nx:]
            yield "its covariance", got.covariance, covariance[nx:, nx:]
            yield "covariance of state and function", got.with_states, covariance[:nx, nx:]
        yield from self._costs(belief, start, transitions, measurements)

    # ------------------------------------------------------------ past

    def _filtered(
        self,
    ) -> tuple[Belief, tuple[Array, Array], list[gram.Transition], list[gram.Measurement]]:
        """Run the generated filter over a made-up recording, and write down its linearisations."""
        package, random = self._package, self._random
        nx = package.NX
        module, records = package.filter, package.records
        limits = np.array([package.numbers["lower"], package.numbers["upper"]])
        task = records.make_task(self._Q, self._R, self._D, self._Xi, limits, package.numbers["data"])
        data, tray = task["numbers"][0], module.tray(task)
        mean, covariance = np.zeros(package.NZ), np.zeros((package.NZ, package.NZ))
        mean[nx:] = package.numbers["prior_mean"]  # of other unknowns, which are taken as known here
        mean[:nx] = 0.3 * random.normal(size=nx)
        root = random.normal(size=(nx, nx))
        covariance[:nx, :nx] = 0.05 * (root @ root.T + np.eye(nx))
        covariance[:nx, :nx] = 0.5 * (covariance[:nx, :nx] + covariance[:nx, :nx].T)
        start = mean[:nx].copy(), covariance[:nx, :nx].copy()
        transitions, measurements = [], []
        belief = records.make_belief(mean, covariance)
        mean = belief["z"][0]
        for k in range(PAST):
            u = self._inputs[k]
            transitions.append(self._transition(k, self._linearised(k, mean, u, data), mean[:nx], mean, data))
            module.predict(k, belief, u, tray)
            seen = evaluate.observation_jacobian(package, mean[:nx], mean[nx:], k + 1)
            y = seen.h + 0.2 * random.normal(size=package.NY)
            if k == 1 and package.NY > 1:
                y[0] = np.nan
            # y - h(x^) = C (x - x^) + r, so C x + r is measured as y - h + C x^
            measurements.append(gram.Measurement(seen.h_x, y - seen.h + seen.h_x @ mean[:nx], self._R))
            module.update(k + 1, belief, y, tray, np.zeros(3))
        found = Belief(mean.copy(), records.read_covariance(belief), data.copy())
        return found, start, transitions, measurements

    def _linearised(self, k: int, z: Array, u: Array, data: Array) -> Linearised:
        p = self._package
        f, f_x, f_u = np.zeros(p.NX), np.zeros((p.NX, p.NX)), np.zeros((p.NX, p.NU))
        points = np.zeros((p.process.POINTS, p.process.SCRATCH_WIDTH))
        gains = np.zeros((p.NX, p.process.VALUES))
        work = np.zeros(p.WORK)
        p.kernels.linearise(k, z, u, data, work, f, f_x, f_u)
        p.kernels.process_points(k, z, u, data, work, points, gains)
        return Linearised(f, f_x, f_u, points, gains)

    def _values(self, k: int, points: Array) -> list[gram.Value]:
        """The values of a step in the order of the gains."""
        found: dict[int, gram.Value] = {}
        for row, name, values in self._package.process.STEP_VALUES_OF_POINTS:
            for column, start in values:
                number = self._number(name, start)
                size = len(self._functions[number][0].arguments)
                found[column] = gram.Value(number, points[row, :size].copy(), k)
        return [found[column] for column in sorted(found)]

    def _number(self, name: str, start: int) -> int:
        starts = [self._package.UNKNOWNS[family.weights[o].symbol.name][0] for family, o in self._functions]
        return starts.index(start)

    def _means(self, values: Sequence[gram.Value], z: Array, data: Array) -> Array:
        belief = Belief(z, np.zeros((self._package.NZ,) * 2), data)
        found = []
        for value in values:
            family, output = self._functions[value.function]
            found.append(posterior(self._package, belief, value.point[None], family.name, output).mean[0])
        return np.array(found)

    def _transition(self, k: int, step: Linearised, x: Array, z: Array, data: Array) -> gram.Transition:
        """f(x^) + A (x - x^) + gains (g - g^) in the form A x + gains g + c."""
        values = self._values(k, step.points)
        c = step.f - step.f_x @ x - step.gains @ self._means(values, z, data)
        return gram.Transition(step.f_x, step.gains, values, c)

    # ------------------------------------------------------------ plan

    def _costs(
        self,
        belief: Belief,
        start: tuple[Array, Array],
        transitions: list[gram.Transition],
        measurements: list[gram.Measurement],
    ) -> Iterator[Comparison]:
        package, random = self._package, self._random
        n, m = package.NX, package.NU
        cost = dense.Cost(
            np.stack([_spread(random, n) for _ in range(PAST + HORIZON + 1)]),
            np.stack([_spread(random, m) for _ in range(PAST + HORIZON)]),
            0.5 * random.normal(size=(PAST + HORIZON + 1, n)),
            np.array([package.numbers["lower"], package.numbers["upper"]]),
        )
        assert belief.memory is not None
        reference, known, values = self._plan_model(belief, start, transitions, measurements)
        moved = [[gram.drifting(self._kernels, 0.0, 1.0)(a, b) for b in values] for a in values]
        noise = dense.Noise(self._Q, self._R, self._persistence * np.eye(len(values)), self._growth * np.array(moved))
        module, records, calls = package.dual_cost, package.records, package.calls
        task = records.make_task(self._Q, self._R, self._D, self._Xi, cost.bounds, belief.memory)
        desk = records.desk(HORIZON, records.make_weights(*cost[:3]), task)
        held, end = records.make_belief(*belief[:2]), PAST + HORIZON
        forms = ["structured"] + (["lowrank"] if module.LOWRANK and HORIZON * package.NR <= package.NTHETA else [])
        for form in forms:
            for learning in (True, False):
                task["learning"] = float(learning)
                nominal = calls.follow(PAST, end, held, self._inputs[PAST:], desk)
                if form == "lowrank":
                    uncertain = calls.jd_lowrank(PAST, end, 0, held, desk)
                else:
                    uncertain, _ = calls.jd_structured(PAST, end, 0, 1, held, desk)
                exact = dense.dual_cost(
                    reference, noise, cost, PAST, known, self._inputs[PAST:], order=1, learning=learning
                )
                label = f"{form}{'' if learning else ', learning off'}"
                yield f"nominal cost, {label}", np.array([nominal]), np.array([exact.nominal])
                yield f"dual cost, {label}", np.array([uncertain]), np.array([exact.uncertain])

    def _plan_model(
        self,
        belief: Belief,
        start: tuple[Array, Array],
        transitions: list[gram.Transition],
        measurements: list[gram.Measurement],
    ) -> tuple[dense.DenseModel, dense.Belief, list[gram.Value]]:
        """The linearised plan with theta = the values at its own points, the belief on (x, theta), and these values."""
        package = self._package
        nx, data = package.NX, belief.memory
        assert data is not None
        z = belief.mean.copy()
        steps: list[Linearised] = []
        states = [z[:nx].copy()]
        for j in range(HORIZON):
            step = self._linearised(PAST + j, z, self._inputs[PAST + j], data)
            steps.append(step)
            z = np.concatenate([step.f, self._D * z[nx:] if self._D.ndim == 1 else self._D @ z[nx:]])
            states.append(step.f)
        values = [self._values(PAST + j, step.points) for j, step in enumerate(steps)]
        # the dense recursion moves them on from the time of the belief
        asked = [value._replace(time=PAST) for row in values for value in row]
        mean, covariance = gram.posterior(start, transitions, measurements, self._Q, self._covariance, asked)
        width = len(values[0])

        def jacobian(time: int, _: Array, __: Array) -> Array:
            j = time - PAST
            f_theta = np.zeros((nx, len(asked)))
            f_theta[:, j * width : (j + 1) * width] = steps[j].gains
            return np.hstack([steps[j].f_x, f_theta, steps[j].f_u])

        def observation_jacobian(time: int, _: Array) -> Array:
            found = evaluate.observation_jacobian(package, states[time - PAST], belief.mean[nx:], time)
            return np.hstack([found.h_x, np.zeros((package.NY, len(asked)))])

        model = dense.DenseModel(
            nx=nx,
            nu=package.NU,
            ny=package.NY,
            ntheta=len(asked),
            dynamics=lambda time, _, __: steps[time - PAST].f,
            jacobian=jacobian,
            hessian=lambda time, _, __, ___: np.zeros((nx + len(asked) + package.NU,) * 2),
            observation=lambda time, z: evaluate.observation(package, z[:nx], belief.mean[nx:], time),
            observation_jacobian=observation_jacobian,
        )
        return model, dense.Belief(mean, 0.5 * (covariance + covariance.T)), asked


def awake(model: Model, package: LoadedPackage, random: np.random.Generator) -> tuple[Model, LoadedPackage]:
    """The model and its package with random points remembered of every Gaussian process, so that kernels have work."""
    twins = {family: _awake(family, random) for family in model.families if family.process is not None}
    if not twins:
        return model, package
    features = {
        part: FeatureSum.of(twins[part.family], part.output, part.points)
        for e in model.dynamics
        for part in e.atoms(FeatureSum)
        if part.family in twins
    }
    twin = model.changed(
        dynamics=tuple(e.xreplace(features) for e in model.dynamics),
        families=tuple(twins.get(family, family) for family in model.families),
    )
    data = package.numbers["data"].copy()
    for family in twins.values():
        for array in family.data:
            start, count = package.DATA_ENTRIES[array.symbol.name]
            data[start : start + count] = array.values
    return twin, replace(package, numbers=package.numbers | {"data": data})


def _awake(family: Family, random: np.random.Generator) -> Family:
    assert family.process is not None
    arrays = []
    for array in family.data:
        used = array.symbol == family.process.known
        values = np.ones(family.count) if used else 1.5 * random.normal(size=family.count)
        arrays.append(DataArray(array.symbol, values))
    return replace(family, data=tuple(arrays))


def _kernel(family: Family) -> Callable[[Array, Array], float]:
    assert family.process is not None
    function = numeric(family.process.kernel, family.arguments, family.process.places)
    return lambda a, b: float(function(a[None], b[None])[0])


def _spread(random: np.random.Generator, size: int) -> Array:
    root = random.normal(size=(size, size))
    return np.asarray(0.3 * root @ root.T / size + np.eye(size))
