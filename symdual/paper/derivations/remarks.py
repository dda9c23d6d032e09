"""What the text of Section 4 says between its formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from operator import matmul

import numpy as np
from scipy.optimize import minimize_scalar

from symdual.common.arrays import Array
from symdual.paper.case import Case, Correction, Derivation, Form, Printed, Single, Undecidable
from symdual.paper.derivations import draws, expansion
from symdual.paper.derivations.feedback import Noise, feedback_cost
from symdual.paper.derivations.filtering import Belief, covariances, predict, run, update
from symdual.paper.derivations.gaussians import expectation, moments
from symdual.paper.derivations.least_squares import Problem, best_inputs, random_problem, responses, trajectory
from symdual.paper.derivations.perturbation import SYSTEMS, system
from symdual.paper.matrices import Matrix, zeros


def _nominal_path() -> Iterator[Case]:
    """The states under the best inputs of the mean model, from the responses; x is a trajectory beside it."""
    for states, horizon in ((1, 2), (2, 3)):
        problem = random_problem((55,), states, 1, horizon)
        start = draws.matrix(draws.source(56, states), states).array[:, 0]
        inputs, _ = best_inputs(problem, start)
        free, forced = responses(problem)
        reached = [
            f @ start + sum(b @ u for b, u in zip(row, inputs, strict=True))
            for f, row in zip(free, forced, strict=True)
        ]
        path = np.concatenate(trajectory(problem, start, inputs))
        beside_it = path + draws.matrix(draws.source(57, states), len(path)).array[:, 0]
        yield Case(
            f"n = {states}, T = {horizon}",
            {"x": Matrix(beside_it), "xbar": Matrix(path)},
            Matrix(np.concatenate(reached)),
        )


def _shifted() -> Iterator[Case]:
    """The covariance of z - zbar by quadrature, beside that of z."""
    for n in (1, 3):
        rng = draws.source(58, n)
        mean, cov, nominal = (
            draws.matrix(rng, n).array[:, 0],
            draws.covariance(rng, n).array,
            draws.matrix(rng, n).array,
        )

        def covariance(function: Callable[[Matrix], Matrix], mean: Array = mean, cov: Array = cov) -> Matrix:
            return Matrix(moments(lambda z: function(Matrix(z)).array[:, 0], mean, cov)[1])

        _, moved = moments(partial(np.add, -nominal[:, 0]), mean, cov)
        yield Case(f"n = {n}", {"covariance": covariance}, Matrix(moved))


def _expected_shift(first: int) -> Iterator[Case]:
    """The mean minus the nominal state, step by step, when every measurement is the expected one."""
    for states, parameters, horizon in SYSTEMS[2:]:
        problem, noise, start = system(states, parameters, horizon)
        belief, nominal = Belief(start, noise.s0), start
        for j, transition in enumerate(problem.a):
            belief = predict(belief, transition, noise.q)
            belief = update(belief, noise.c, noise.r, noise.c @ belief.mean)
            nominal = transition @ nominal
            gap = (belief.mean - nominal)[states if first else 0 :]
            yield Case(f"n = {states}, j = {j + 1}", {"n": states, "p": parameters, "zeros": zeros}, Matrix(gap))


def _more_uncertain() -> Iterator[Case]:
    """E[dx' W dx] after one prediction, before and after more is unknown of theta."""
    for states, parameters, horizon in SYSTEMS[2:]:
        problem, noise, start = system(states, parameters, horizon)
        extra = np.zeros_like(noise.s0)
        extra[states:, states:] = draws.covariance(draws.source(59, states), parameters).array
        costs = []
        for prior in (noise.s0, noise.s0 + extra):
            cov = predict(Belief(start, prior), problem.a[0], noise.q).cov
            costs.append(float(np.trace(problem.w[1] @ cov)))
        word = "increases" if costs[1] > costs[0] * (1 + 1e-9) else "does not increase"
        yield Case(f"n = {states}: {costs[0]:.4g}, then {costs[1]:.4g}", {}, word)


def _along_input(values: Callable[[expansion.Toy], float]) -> tuple[Array, Array]:
    inputs = np.linspace(-1.0, 1.0, 9)
    return inputs, np.array([values(replace(expansion.EXAMPLES[0], u0=float(u))) for u in inputs])


def _shape_in_the_input() -> Iterator[Case]:
    """What is left of the perturbation cost of the toy, as a function of u_0, beside its best parabola."""
    inputs, costs = _along_input(lambda toy: feedback_cost(*toy.linearised()))
    left = float(np.max(np.abs(costs - np.polyval(np.polyfit(inputs, costs, 2), inputs))))
    yield Case(f"the toy: off the best parabola by {left:.2g}", {}, "not quadratic" if left > 1e-6 else "quadratic")


def _variance_in_the_input() -> Iterator[Case]:
    """The variance of b after one step of the toy, for several inputs."""

    def after(toy: expansion.Toy) -> float:
        problem, noise = toy.linearised()
        return float(covariances(problem.a, noise.s0, noise.q, noise.c, noise.r)[1, 1][1, 1])

    _, variances = _along_input(after)
    where = f"the toy: variance of b from {variances.min():.3g} to {variances.max():.3g}"
    yield Case(where, {}, "changes" if np.ptp(variances) > 1e-6 else "does not change")


def _linear_term() -> Iterator[Case]:
    for p in (1, 3):
        rng = draws.source(52, p)
        slope, cov = draws.matrix(rng, p), draws.covariance(rng, p)
        mean = expectation(partial(matmul, slope.T), np.zeros(p), cov.array)
        yield Case(f"p = {p}", {}, mean)


def _unmeasured_spread() -> Iterator[Case]:
    """Covariances and means after two stories of measurements."""
    for states, parameters, horizon in SYSTEMS[2:]:
        problem, noise, start = system(states, parameters, horizon)
        rng = draws.source(96, states)
        ends = [
            run(Belief(start, noise.s0), problem.a, noise.q, noise.c, noise.r, list(draws.matrix(rng, horizon).array))
            for _ in range(2)
        ]
        means, covs = ([getattr(end, name) for end in ends] for name in ("mean", "cov"))
        alike = np.max(np.abs(covs[1] - covs[0])) < 1e-12 and np.max(np.abs(means[1] - means[0])) > 1e-3
        yield Case(f"n = {states}, {horizon} measurements", {}, "deterministic" if alike else "random")


def _probed(first: float) -> tuple[float, float]:
    """What is left of the variance of b after u_0, and the cost of the perturbation, which Eq. (5) has halved.

    x' = b u + xi with b ~ N(1, 1), xi ~ N(0, 0.1), and the target 1 at step 2: the nominal u_1 = 1/2 minimises
    u^2 + (u - 1)^2 whatever u_0 is, so that u_0 changes nothing but what is known of b.
    """
    transitions = tuple(np.array([[0.0, u], [0.0, 1.0]]) for u in (first, 0.5))
    idle, last = np.zeros((2, 2)), np.diag([1.0, 0.0])
    b, price = np.array([[1.0], [0.0]]), np.eye(1)
    problem = Problem(transitions, (b, b), (idle, idle, last), (price, price), (np.zeros(2),) * 3)
    noise = Noise(np.diag([0.0, 1.0]), np.diag([0.1, 0.0]), np.zeros((1, 1)), np.array([[1.0, 0.0]]))
    left = covariances(problem.a, noise.s0, noise.q, noise.c, noise.r)[1, 1][1, 1]
    return float(left), feedback_cost(problem, noise)


def _benefit() -> Iterator[Case]:
    (unknown, cost), (known, less) = _probed(0.0), _probed(1.0)
    where = f"variance of b {unknown:.3g}, then {known:.3g}; cost {cost:.3g}, then {less:.3g}"
    yield Case(where, {}, "lowers" if known < unknown and less < cost else "does not lower")


def _passes() -> Iterator[Case]:
    """Passes over the horizon in one decision on the toy: for every proposal of a search, and outside of it."""
    for toy in expansion.EXAMPLES:
        proposals = 0

        def cost(u0: float, toy: expansion.Toy = toy) -> float:
            nonlocal proposals
            proposals += 1
            problem, noise = replace(toy, u0=float(u0)).linearised()
            states, inputs = replace(toy, u0=float(u0)).nominal()
            spent = toy.w * sum(x**2 for x in states) + toy.price * sum(u**2 for u in inputs)
            return spent + feedback_cost(problem, noise)

        minimize_scalar(cost, bounds=(-3.0, 3.0), method="bounded")
        inside, outside = 3 * proposals, 2  # trajectory, covariances, cost-to-go; certainty equivalent control, filter
        yield Case(
            f"{proposals} proposals: {inside} passes in the search, {outside} outside of it",
            {},
            "dominates" if inside > 2 * outside else "does not dominate",
        )


def _loop_names() -> Iterator[Case]:
    yield Case("the caption of Figure 2, and here", {"caption": Printed("4.inner-loop")}, Single())


DERIVATIONS: dict[str, Derivation | Undecidable] = {
    "4.inner-loop": Derivation("A name.", lambda: iter([Case("a name", {}, Form(1, 1))])),
    "4.2.nominal-symbol": Derivation(
        "The states under the best inputs of the mean model.",
        _nominal_path,
        correction=Correction(
            r"\text{around the nominal trajectory $\bar{\vec{x}}$}",
            "xbar",
            "The bar is missing: x without it is the true trajectory, which is not known.",
        ),
    ),
    "4.2.shift": Derivation("The covariance of z - zbar by quadrature.", _shifted),
    "4.2.parameters-stay": Derivation(
        "The recursive filter along the nominal trajectory, every measurement as expected.", partial(_expected_shift, 1)
    ),
    "4.2.no-shift": Derivation(
        "The recursive filter along the nominal trajectory, every measurement as expected.", partial(_expected_shift, 0)
    ),
    "4.2.higher-uncertainty": Derivation("One prediction with more and with less uncertainty.", _more_uncertain),
    "4.2.not-quadratic": Derivation(
        "The toy: the cost of the best feedback for nine first inputs.", _shape_in_the_input
    ),
    "4.2.no-closed-form": Undecidable(
        "That no closed form exists is a statement about all formulas; no example decides it."
    ),
    "4.2.linear-terms": Derivation("E[p' dtheta] by quadrature for a mean of zero.", _linear_term),
    "4.2.deterministic": Derivation(
        "The recursive filter over two different stories of measurements.", _unmeasured_spread
    ),
    "4.2.benefit": Derivation(
        "An example in which the first input changes the variance of b and nothing else: the cost of the best feedback"
        " with and without it.",
        _benefit,
        remark="That it can; elsewhere probing costs more than it gains.",
    ),
    "4.3.dominates": Derivation(
        "Passes over the horizon in one decision on the toy, with a search that needs no slopes.",
        _passes,
        remark="Figure 2 of `symdual paper run` has measured times.",
    ),
    "4.2.dual-effect": Derivation("The toy: the variance of b after nine different inputs.", _variance_in_the_input),
    "4.3.outer-loop": Derivation(
        "The loop that searches for u_k, as Figure 2 and as Section 4.3 call it.",
        _loop_names,
        remark="It is the inner one of search and run, and the outer one of search and recursion.",
    ),
}
