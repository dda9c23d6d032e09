"""Checks the generated recursions of a package against the dense ones, on random problems.

The dense recursions get f, h and their derivatives from the package's own kernels, which `symdual.checks.kernels`
compares with the model as written; what is compared here is everything that is built on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from symdual.checks import dense
from symdual.checks.kernels import TOLERANCE, BlockResult
from symdual.checks.processes import ProcessTask
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage
from symdual.spec.model import Model
from symdual.spec.numbers import Array

HORIZON = 5
PROBLEMS = 3
#: A plan counts as optimal when a general optimiser cannot take more than this share off its cost.
OPTIMALITY = 1e-6

Comparison = tuple[str, Array, Array]


def check_recursions(
    model: Model,
    package: LoadedPackage,
    seed: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> list[BlockResult]:
    """Compare filter, dual cost and plans with dense numpy; one result per quantity."""
    if package.PROCESSES:
        return _judged(lambda random: ProcessTask(model, package, random), "Gram matrix", seed, progress)
    reference = dense_model(package)
    results = _judged(lambda random: _Task(model, package, reference, random), "dense", seed, progress)
    random = np.random.default_rng(seed + 1)
    gain = max(_Task(model, package, reference, random).left_to_gain() for _ in range(PROBLEMS))
    return [*results, BlockResult("nominal plan", "optimiser", PROBLEMS, gain, gain <= OPTIMALITY)]


def _judged(
    make: Callable[[np.random.Generator], _Task | ProcessTask],
    oracle: str,
    seed: int,
    progress: Callable[[float], None],
) -> list[BlockResult]:
    """The worst relative deviation of each quantity over a few random problems."""
    worst: dict[str, float] = {}
    counts: dict[str, int] = {}
    random = np.random.default_rng(seed)
    for number in range(PROBLEMS):
        task = make(random)
        for name, got, exact in task.comparisons():
            size = max(float(np.max(np.abs(exact), initial=0.0)), 1e-300)
            error = float(np.max(np.abs(got - exact), initial=0.0)) / size if np.all(np.isfinite(got)) else np.inf
            worst[name] = max(worst.get(name, 0.0), error)
            counts[name] = counts.get(name, 0) + got.size
            progress((number + len(worst) / 12) / PROBLEMS)
    progress(1.0)
    return [BlockResult(name, oracle, counts[name], error, error <= TOLERANCE) for name, error in worst.items()]


def dense_model(package: LoadedPackage) -> dense.DenseModel:
    """A package's f and h with their derivatives as plain functions of z and u."""
    nx, nz = package.NX, package.NZ

    def jacobian(time: int, z: Array, u: Array) -> Array:
        found = evaluate.jacobian(package, z[:nx], u, z[nx:], time)
        return np.hstack([found.f_x, found.f_theta, found.f_u])

    def hessian(time: int, z: Array, u: Array, lam: Array) -> Array:
        found = evaluate.hessian(package, z[:nx], u, z[nx:], lam, time)
        return np.block([[found.zz, found.uz.T], [found.uz, found.uu]])

    def observation_jacobian(time: int, z: Array) -> Array:
        found = evaluate.observation_jacobian(package, z[:nx], z[nx:], time)
        return np.hstack([found.h_x, found.h_theta])

    return dense.DenseModel(
        nx=nx,
        nu=package.NU,
        ny=package.NY,
        ntheta=nz - nx,
        dynamics=lambda time, z, u: evaluate.dynamics(package, z[:nx], u, z[nx:], time),
        jacobian=jacobian,
        hessian=hessian,
        observation=lambda time, z: evaluate.observation(package, z[:nx], z[nx:], time),
        observation_jacobian=observation_jacobian,
    )


class _Task:
    """One random problem: a belief, a cost, inputs, and both ways to compute with them."""

    def __init__(
        self, model: Model, package: LoadedPackage, reference: dense.DenseModel, random: np.random.Generator
    ) -> None:
        self._package, self._reference, self._random = package, reference, random
        n, m, p = reference.nx, reference.nu, reference.ntheta
        prior = model.prior_covariance
        spread = np.sqrt(np.clip(prior if prior.ndim == 1 else np.diag(prior), 1e-4, 4.0))
        scale = np.concatenate([np.full(n, 0.3), spread])
        theta = model.prior_mean + 0.3 * spread * random.normal(size=p)
        mean = np.concatenate([0.5 * random.normal(size=n), theta])
        self._belief = dense.Belief(mean, self._covariance(reference.nz) * np.outer(scale, scale))
        drift = package.numbers["drift"]
        transition = package.numbers["transition"]
        self._noise = dense.Noise(
            package.numbers["process_noise"] + 1e-3 * np.eye(n),
            package.numbers["measurement_noise"] + 1e-3 * np.eye(reference.ny),
            transition if transition.ndim == 2 else np.diag(transition),
            drift if drift.ndim == 2 else np.diag(drift),
        )
        self._cost = dense.Cost(
            np.stack([self._covariance(n) for _ in range(HORIZON + 1)]),
            np.stack([self._covariance(m) + np.eye(m) for _ in range(HORIZON)]),
            0.5 * random.normal(size=(HORIZON + 1, n)),
            np.array([package.numbers["lower"], package.numbers["upper"]]),
        )
        self._inputs = np.clip(0.5 * random.normal(size=(HORIZON, m)), *self._cost.bounds)
        records, motion = package.records, (package.numbers["transition"], package.numbers["drift"])
        self._task = records.make_task(*self._noise[:2], *motion, self._cost.bounds, package.numbers["data"])
        self._desk = records.desk(HORIZON, records.make_weights(*self._cost[:3]), self._task, order=2)
        self._held = records.make_belief(*self._belief)

    def _covariance(self, size: int) -> Array:
        root = self._random.normal(size=(size, size))
        product = 0.3 * root @ root.T / size + 0.7 * np.eye(size)
        return np.asarray((product + product.T) / 2)

    def comparisons(self) -> Iterator[Comparison]:
        """Pairs of computed and expected numbers, each with the name of what they are."""
        yield from self._filter()
        yield from self._costs()

    # ------------------------------------------------------------ filter

    def _filter(self) -> Iterator[Comparison]:
        u = self._inputs[0]
        expected = dense.predict(self._reference, self._noise, 0, self._belief, u)
        predicted = self._filtered(self._belief, u, None, "update")
        yield "predicted mean", predicted.mean, expected.mean
        yield "predicted covariance", predicted.covariance, expected.covariance
        seen = self._reference.observation(1, expected.mean)
        y = seen + 0.1 * self._random.normal(size=len(seen))
        for name, learning in (("update", True), ("update_consider", False)):
            exact = dense.update(self._reference, self._noise, 1, expected, y, learning=learning)
            got = self._filtered(self._belief, u, y, name)
            label = "updated" if learning else "considered"
            yield f"{label} mean", got.mean, exact.mean
            yield f"{label} covariance", got.covariance, exact.covariance
        y[0] = np.nan
        if len(y) > 1:
            exact = dense.update(self._reference, self._noise, 1, expected, y)
            got = self._filtered(self._belief, u, y, "update")
            yield "updated covariance, one entry missing", got.covariance, exact.covariance

    def _filtered(self, belief: dense.Belief, u: Array, y: Array | None, name: str) -> dense.Belief:
        """Predict with u and update with y by the generated filter."""
        package, held = self._package, self._package.records.make_belief(*belief)
        tray = package.filter.tray(self._task)
        if package.SQUARE_ROOT:
            package.square_root.factorise(held)
        package.filter.predict(0, held, u, tray)
        if y is not None:
            getattr(package.filter, name)(1, held, y, tray, np.zeros(3))
        if package.SQUARE_ROOT:
            package.square_root.complete(held)
        return dense.Belief(held["z"][0].copy(), package.records.read_covariance(held))

    # ------------------------------------------------------------ costs

    def _costs(self) -> Iterator[Comparison]:
        package = self._package
        forms = [("structured", 1), ("second_order", 2)]
        if package.dual_cost.LOWRANK and HORIZON * (package.NR + package.NHR) <= package.NTHETA:
            forms.append(("lowrank", 1))
        for form, order in forms:
            for learning in (True, False) if order == 1 else (True,):
                nominal, uncertain = self._cost_of(form, learning)
                exact = dense.dual_cost(
                    self._reference,
                    self._noise,
                    self._cost,
                    0,
                    self._belief,
                    self._inputs,
                    order=order,
                    learning=learning,
                )
                label = f"{form.replace('_', ' ')}{'' if learning else ', learning off'}"
                yield f"nominal cost, {label}", np.array([nominal]), np.array([exact.nominal])
                yield f"dual cost, {label}", np.array([uncertain]), np.array([exact.uncertain])

    def _cost_of(self, form: str, learning: bool) -> tuple[float, float]:
        """Jbar and Jd of the given inputs."""
        calls, place = self._package.calls, (self._held, self._desk)
        self._task["learning"] = float(learning)
        nominal = calls.follow(0, HORIZON, self._held, self._inputs, self._desk)
        if form == "lowrank":
            return nominal, calls.jd_lowrank(0, HORIZON, 0, *place)
        return nominal, calls.jd_structured(0, HORIZON, 0, 2 if form == "second_order" else 1, *place)[0]

    def left_to_gain(self) -> float:
        """The share of its cost that a general optimiser can still take off a plan with a given first input."""
        calls, nominal = self._package.calls, self._package.nominal
        calls.begin(0, HORIZON, self._held, self._desk)
        cost, status, slot, _ = calls.plan_through(0, HORIZON, self._inputs[0], self._desk)
        if status not in (nominal.CONVERGED, nominal.STALLED):
            return np.inf
        inputs = self._desk.plan["u"][slot, :HORIZON].copy()
        start = self._belief.mean
        best, _ = dense.best_plan(self._reference, self._noise, self._cost, 0, start, self._inputs[0], inputs)
        return float(max(cost - best, 0.0) / max(cost, 1e-300))
