"""Checks what a package does with Gaussian processes against the Gram matrix form, on random problems.

A recording is made up, the generated filter runs over it, and the Gram form gets the linearisations that the filter
used and nothing else from it. Then a plan is evaluated: the unknowns of the reference are the values of the functions
at the plan's own points, with mean and covariance from the Gram form, and the dense recursions do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import mpmath
import numpy as np

from symdual.checks import dense, gram
from symdual.checks.places import Place
from symdual.checks.slopes import EIGHTH_ORDER, SLOPE, slope_by_inputs
from symdual.common.arrays import Array
from symdual.entries.recursions import Workspace
from symdual.many_digits.arithmetic import EPSILON, Arithmetic
from symdual.runtime import evaluate
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.objective import constraints_of
from symdual.runtime.posterior import posterior
from symdual.spec.covariances import numeric
from symdual.spec.specification import Specification
from symdual.spec.symbols import DataArray, Family, FeatureSum

#: Deviation that is allowed where values are combinations of others: the package adds JITTER to its Gram matrix then.
COMBINED = 1e-5
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


class ProcessSample:
    """One random problem with both ways to compute."""

    def __init__(self, model: Specification, package: LoadedPackage, home: Place, random: np.random.Generator) -> None:
        self._model, self._package, self._home = model, package, home
        self._seed = int(random.integers(2**62))
        self._random = np.random.default_rng(self._seed)
        self._families = [family for family in model.families if family.process is not None]
        self._functions = [(family, o) for family in self._families for o in range(len(family.weights))]
        self._kernels = [_kernel(family) for family, _ in self._functions]
        numbers = package.numbers
        self._Q = numbers["process_noise"] + 1e-2 * np.diag(home.x_spread**2)
        sensitivity = evaluate.observation_jacobian(package, home.x, home.theta).h_x
        seen = np.abs(sensitivity) @ home.x_spread
        self._seen = np.where(np.isfinite(seen) & (seen > 0), seen, 1.0)
        self._R = numbers["measurement_noise"] + 1e-2 * np.diag(self._seen**2)
        self._D, self._Xi = numbers["transition"], numbers["drift"]
        first = self._families[0]
        start, _ = package.UNKNOWNS[first.weights[0].symbol.name]
        persistence = 1.0 if model.transition is None else float(model.transition[start])
        growth = 0.0 if model.drift is None else float(model.drift[start])
        self._persistence, self._growth = persistence, growth
        self._covariance = gram.drifting(self._kernels, persistence, growth)
        inputs = home.u + home.u_spread * self._random.normal(size=(PAST + HORIZON, package.NU)) / 2
        self._inputs = np.clip(inputs, numbers["lower"], numbers["upper"])

        self._bits, self.combined = 0.0, False

    def with_other_last_bits(self) -> ProcessSample:
        """The same problem with a start that differs by rounding."""
        twin = copy(self)
        twin._bits = EPSILON
        return twin

    def comparisons(self) -> Iterator[Comparison]:
        """Pairs of computed and expected numbers, each with the name of what they are."""
        self._random = np.random.default_rng(self._seed + 1)
        belief, start, transitions, measurements = self._filtered()
        nx = self._package.NX
        for number, (family, output) in enumerate(self._functions):
            seen = np.array([v.point for step in transitions for v in step.values if v.function == number])
            middle, width = seen.mean(axis=0), seen.std(axis=0) + 1e-2 * (1.0 + np.abs(seen.mean(axis=0)))
            points = middle + width * self._random.normal(size=(5, len(family.arguments)))
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
        settings = records.make_settings(self._Q, self._R, self._D, self._Xi, limits, package.numbers["data"])
        data, filter_workspace = settings["numbers"][0], module.make_filter_workspace(settings)
        mean, covariance = np.zeros(package.NZ), np.zeros((package.NZ, package.NZ))
        mean[nx:] = package.numbers["prior_mean"]  # of other unknowns, which are taken as known here
        mean[:nx] = self._home.x + 0.2 * self._home.x_spread * random.normal(size=nx)
        mean[:nx] *= 1.0 + self._bits
        root = random.normal(size=(nx, nx))
        unit = np.outer(self._home.x_spread, self._home.x_spread)
        covariance[:nx, :nx] = 0.02 * (root @ root.T + np.eye(nx)) * unit
        covariance[:nx, :nx] = 0.5 * (covariance[:nx, :nx] + covariance[:nx, :nx].T)
        start = mean[:nx].copy(), covariance[:nx, :nx].copy()
        transitions, measurements = [], []
        belief = records.make_belief(mean, covariance)
        mean = belief["z"][0]
        for k in range(PAST):
            u = self._inputs[k]
            before, known = mean.copy(), data.copy()
            step = self._linearised(k, mean, u, data)
            module.predict(k, belief, u, filter_workspace)
            transitions.append(self._transition(k, step, before, known, data))
            seen = evaluate.observation_jacobian(package, mean[:nx], mean[nx:], k + 1)
            y = seen.h + 0.1 * self._seen * random.normal(size=package.NY)
            if k == 1 and package.NY > 1:
                y[0] = np.nan
            # y - h(x^) = C (x - x^) + r, so C x + r is measured as y - h + C x^
            measurements.append(gram.Measurement(seen.h_x, y - seen.h + seen.h_x @ mean[:nx], self._R))
            module.update(k + 1, belief, y, filter_workspace, np.zeros(3))
        found = Belief(mean.copy(), records.read_covariance(belief), data.copy())
        return found, start, transitions, measurements

    def _linearised(self, k: int, z: Array, u: Array, data: Array) -> Linearised:
        p = self._package
        f, f_x, f_u = np.zeros(p.NX), np.zeros((p.NX, p.NX)), np.zeros((p.NX, p.NU))
        longest = max(len(family.arguments) for family in self._families)
        points = np.zeros((p.process.POINTS, longest))
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

    def _transition(self, k: int, step: Linearised, z: Array, data: Array, after: Array) -> gram.Transition:
        """f(x^) + A (x - x^) + gains (g - g^) in the form A x + gains g + c, `after` what is remembered after the step.

        A value that is not remembered is the combination k' K^-1 g(s) of those at the remembered points s, and what
        that leaves open of its variance is noise.
        """
        values: list[gram.Value] = []
        columns: list[Array] = []
        noise = np.zeros((self._package.NX,) * 2)
        for value, gain in zip(self._values(k, step.points), step.gains.T, strict=True):
            kept = self._remembered(value, after)
            if any(np.array_equal(point, value.point) for point in kept):
                values.append(value)
                columns.append(gain)
                continue
            self.combined = True
            others = [value._replace(point=point) for point in self._remembered(value, data)]
            shares, rest = self._combination(value, others)
            values += others
            columns += [share * gain for share in shares]
            noise += rest * np.outer(gain, gain)
        gains = np.stack(columns, axis=1)
        c = step.f - step.f_x @ z[: self._package.NX] - gains @ self._means(values, z, data)
        return gram.Transition(step.f_x, gains, values, c, noise)

    def _remembered(self, value: gram.Value, data: Array) -> Array:
        """The points at which values of the same function are remembered."""
        family, _ = self._functions[value.function]
        assert family.process is not None
        entries = self._package.DATA_ENTRIES
        count = int(data[entries[f"{family.name}_state"][0]])
        starts = [entries[place.name][0] for place in family.process.places]
        return np.stack([data[start : start + count] for start in starts], axis=1)

    def _combination(self, value: gram.Value, others: Sequence[gram.Value]) -> tuple[Array, float]:
        """The shares k' K^-1 of other values in a value, and the variance that they leave open."""
        between = np.array([[self._covariance(a, b) for b in others] for a in others])
        across = np.array([self._covariance(value, b) for b in others])
        shares = np.linalg.solve(between + self._package.process.JITTER * np.diag(np.diag(between)), across)
        return shares, float(self._covariance(value, value) - shares @ across)

    # ------------------------------------------------------------ plan

    def _costs(
        self,
        belief: Belief,
        start: tuple[Array, Array],
        transitions: list[gram.Transition],
        measurements: list[gram.Measurement],
    ) -> Iterator[Comparison]:
        package, random, home = self._package, self._random, self._home
        n, m = package.NX, package.NU
        per_state, per_input = np.outer(home.x_spread, home.x_spread), np.outer(home.u_spread, home.u_spread)
        cost = dense.Cost(
            np.stack([_spread(random, n) / per_state for _ in range(PAST + HORIZON + 1)]),
            np.stack([_spread(random, m) / per_input for _ in range(PAST + HORIZON)]),
            home.x + 0.3 * home.x_spread * random.normal(size=(PAST + HORIZON + 1, n)),
            np.array([package.numbers["lower"], package.numbers["upper"]]),
        )
        assert belief.memory is not None
        if not package.process.room_for(HORIZON, belief.memory):
            return  # values of the plan would be combinations too
        past = belief, start, transitions, measurements
        reference, noise, known = self._reference(*past)
        module, records, calls = package.dual_cost, package.records, package.calls
        settings = records.make_settings(self._Q, self._R, self._D, self._Xi, cost.bounds, belief.memory)
        workspace = records.make_workspace(HORIZON, records.make_stage_costs(*cost[:3]), settings, 1, True)
        held, end = records.make_belief(*belief[:2]), PAST + HORIZON
        forms = ["structured"] + (["lowrank"] if module.LOWRANK and HORIZON * package.NR <= package.NTHETA else [])
        for form in forms:
            for learning in (True, False):
                settings["learning"] = float(learning)
                nominal = calls.follow(PAST, end, held, self._inputs[PAST:], workspace)
                if form == "lowrank":
                    uncertain = calls.jd_lowrank(PAST, end, 0, held, workspace)
                else:
                    uncertain, _ = calls.jd_structured(PAST, end, 0, 1, held, workspace)
                exact = dense.dual_cost(
                    reference, noise, cost, PAST, known, self._inputs[PAST:], order=1, learning=learning
                )
                label = f"{form}{'' if learning else ', learning off'}"
                yield f"nominal cost, {label}", np.array([nominal]), np.array([exact.nominal])
                yield f"dual cost, {label}", np.array([uncertain]), np.array([exact.uncertain])
        if "lowrank" in forms and hasattr(calls, "dual_gradient_lowrank"):
            settings["learning"] = 1.0
            calls.follow(PAST, end, held, self._inputs[PAST:], workspace)
            calls.dual_gradient_lowrank(PAST, end, 0, held, workspace)
            yield SLOPE, *self._slope(slope_by_inputs(workspace, HORIZON), cost, past)
        if constraints_of(package):
            for learning in (True, False):
                settings["learning"] = float(learning)
                calls.follow(PAST, end, held, self._inputs[PAST:], workspace)
                calls.closed_loop_covariance(PAST, end, 0, held, workspace)
                loop = dense.closed_loop(reference, noise, cost, PAST, known, self._inputs[PAST:], learning=learning)
                label = "closed-loop deviation of constraints" + ("" if learning else ", learning off")
                yield label, workspace.stages["sigma"][: HORIZON + 1].copy(), self._deviations(workspace, loop)

    def _reference(self, *past: Any) -> tuple[dense.DenseModel, dense.Noise, dense.Belief]:
        """The linearised plan from the Gram form, with its noise and the belief on (x, values of the functions)."""
        reference, known, values = self._plan_model(*past)
        moved = [[gram.drifting(self._kernels, 0.0, 1.0)(a, b) for b in values] for a in values]
        transition, diffusion = self._persistence * np.eye(len(values)), self._growth * np.array(moved)
        return reference, dense.Noise(self._Q, self._R, transition, diffusion), known

    def _slope(self, slope: Array, cost: dense.Cost, past: tuple[Any, ...]) -> tuple[Array, Array]:
        """A slope by the inputs along a random direction, and the same by differences of eighth order of the Gram form.

        Where last bits are others the width is another one too, so that the two tell how good differences are.
        """
        width = 0.006 if self._bits == 0.0 else 0.005
        way = self._home.u_spread * self._random.normal(size=slope.shape)
        inputs = self._inputs[PAST:]
        inside = (inputs - np.abs(way) > cost.bounds[0]) & (inputs + np.abs(way) < cost.bounds[1])
        way, total = way * inside, 0.0  # an input at its bound stays there
        for number, weight in enumerate(EIGHTH_ORDER, start=1):
            for side in (1, -1):
                twin = copy(self)
                twin._inputs = self._inputs.copy()
                twin._inputs[PAST:] += side * number * width * way
                reference, noise, known = twin._reference(*past)
                found = dense.dual_cost(
                    reference, noise, cost, PAST, known, twin._inputs[PAST:], order=1, learning=True
                )
                total += side * weight * found.uncertain
        size = max(float(np.sum(np.abs(slope * way))), 1e-300)  # a slope along a direction may vanish
        return np.array([np.sum(slope * way) / size, 1.0]), np.array([total / width / size, 1.0])

    def _deviations(self, workspace: Workspace, loop: dense.ClosedLoop) -> Array:
        """sigma^2 = g_x S g_x' + (g_x + g_u L) M (g_x + g_u L)', with slopes at the points of the plan."""
        package, n = self._package, self._package.NX
        found = np.zeros((HORIZON + 1, len(package.CONSTRAINTS)))
        for j, (S, M) in enumerate(zip(loop.filtered, loop.covariances, strict=True)):
            z, last = workspace.plan["z"][0, j], j == HORIZON
            action = np.zeros(package.NU) if last else workspace.plan["u"][0, j]
            _, g_x, g_u, _ = evaluate.constraint_jacobian(package, z[:n], action, z[n:], PAST + j)
            slopes = np.zeros((len(g_x), len(S)))
            slopes[:, :n] = g_x
            answered = slopes if last else slopes + g_u @ loop.gains[j]
            variances = np.einsum("ci,ij,cj->c", slopes, S, slopes)
            found[j] = np.sqrt(variances + np.einsum("ci,ij,cj->c", answered, M, answered))
        return found

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


def awake(
    model: Specification, package: LoadedPackage, homes: Sequence[Place], random: np.random.Generator
) -> tuple[Specification, LoadedPackage]:
    """The model and its package with points remembered of every Gaussian process, where it is evaluated from there."""
    processes = [family for family in model.families if family.process is not None]
    if not processes:
        return model, package
    twins = {family: _awake(family, _visited(model, family, homes, random)) for family in processes}
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


def _visited(model: Specification, family: Family, homes: Sequence[Place], random: np.random.Generator) -> Array:
    """Arguments of a process at states and inputs of these places, a row for each place in its memory."""
    used = {part.points for e in model.dynamics for part in e.atoms(FeatureSum) if part.family is family}
    clock = [model.time] if model.time is not None else []
    symbols = [*model.states, *model.inputs, *model.constants, *clock]
    evaluated = [Arithmetic(symbols, points) for points in sorted(used, key=str)]
    rows = []
    for number in range(family.count):
        x, u, _ = homes[int(random.integers(len(homes)))].draw(random)
        numbers = [mpmath.mpf(v) for v in (*x, *u, *(c.value for c in model.constants), *([0.0] if clock else []))]
        rows.append([float(v) for v in evaluated[number % len(evaluated)].values(numbers)])
    found = np.array(rows)
    return np.where(np.isfinite(found), found, 0.0)


def _awake(family: Family, visited: Array) -> Family:
    assert family.process is not None
    columns = dict(zip(family.process.places, visited.T, strict=True)) | {family.process.known: np.ones(family.count)}
    return replace(family, data=tuple(DataArray(a.symbol, columns[a.symbol].copy()) for a in family.data))


def _kernel(family: Family) -> Callable[[Array, Array], float]:
    assert family.process is not None
    function = numeric(family.process.kernel, family.arguments, family.process.places)
    return lambda a, b: float(function(a[None], b[None])[0])


def _spread(random: np.random.Generator, size: int) -> Array:
    root = random.normal(size=(size, size))
    return np.asarray(0.3 * root @ root.T / size + np.eye(size))
