"""Section 4.2: the cost of the perturbation against exact expansions and exact feedback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.case import Case, Convention, Correction, Derivation, Form, Printed
from symdual.paper.derivations import draws, expansion
from symdual.paper.derivations.feedback import Noise, expected_cost, feedback_cost
from symdual.paper.derivations.filtering import Belief, covariances, update
from symdual.paper.derivations.gaussians import beside, expectation
from symdual.paper.derivations.least_squares import (
    Problem,
    best_inputs,
    random_problem,
    tail,
    total_cost,
    trajectory,
)
from symdual.paper.derivations.model import lowest_quadratic
from symdual.paper.machine import Indexed, counted
from symdual.paper.matrices import Matrix, block_diagonal, inverse, stack, trace, zeros

HALF = "the cost is one half of L"
PADDED = "W_j stands for blkdiag(W_j, 0) and Sigma^xx_j for Sigma_j under the trace, so that the sum conforms"

SYSTEMS = ((1, 0, 2), (2, 0, 3), (1, 1, 3), (2, 2, 3))
"""Triples (states, parameters, horizon)."""


def _matrices(values: object) -> Indexed:
    return counted([Matrix(value) for value in values], 0)  # type: ignore[attr-defined]


def system(states: int, parameters: int, horizon: int) -> tuple[Problem, Noise, Array]:
    """A linearised augmented system, its noise and a first state."""
    problem = random_problem((43,), states, 1, horizon, constant=False, ignored=parameters)
    rng = draws.source(44, states, parameters, horizon)
    size = states + parameters
    drift = np.zeros((size, size))
    drift[:states, :states] = draws.covariance(rng, states).array
    c = np.hstack([draws.matrix(rng, 1, states).array, np.zeros((1, parameters))])
    noise = Noise(draws.covariance(rng, size).array, drift, draws.covariance(rng, 1).array, c)
    return problem, noise, draws.matrix(rng, size).array[:, 0]


def _scenarios() -> Iterator[tuple[str, dict[str, object], float, float]]:
    """Nominal path, random perturbations of it, and the mean cost before and after, from step k on."""
    for states, k, horizon in ((1, 0, 2), (2, 1, 3), (3, 0, 3)):
        problem = random_problem((45,), states, 2, horizon)
        rng = draws.source(46, states)
        inputs, _ = best_inputs(problem, draws.matrix(rng, states).array[:, 0])
        path = trajectory(problem, draws.matrix(rng, states).array[:, 0], inputs)
        shifts = [
            ([draws.matrix(rng, states).array[:, 0] for _ in path], draws.matrix(rng, horizon, 2).array)
            for _ in range(4)
        ]
        rest = problem.from_step(k)
        base = total_cost(rest, path[k:], inputs[k:])
        moved = [
            total_cost(rest, [x + d for x, d in zip(path[k:], dx[k:], strict=True)], inputs[k:] + du[k:])
            for dx, du in shifts
        ]

        def mean(function: Callable[[Indexed, Indexed], Matrix], shifts: object = shifts) -> Matrix:
            values = [function(_matrices(dx), _matrices(du)) for dx, du in shifts]  # type: ignore[attr-defined]
            return Matrix(np.mean([value.array for value in values], axis=0))

        symbols: dict[str, object] = {
            "k": k,
            "T": horizon,
            "xbar": _matrices(path),
            "ubar": _matrices(inputs),
            "x": _matrices(path),
            "u": _matrices(inputs),
            "r": _matrices(problem.r),
            "W": _matrices(problem.w),
            "U": _matrices(problem.u),
            "E": mean,
        }
        yield f"n = {states}, k = {k}, T = {horizon}", symbols, base, float(np.mean(moved))


def _perturbation_cost(factor: float) -> Iterator[Case]:
    for where, symbols, base, moved in _scenarios():
        yield Case(where, symbols, Matrix(factor * (moved - base)))


NOMINAL_COST = Printed("2.cost")
"""L of the nominal trajectory, as the paper prints L, from step 0 on."""


def _expansion() -> Iterator[Case]:
    for where, symbols, _, moved in _scenarios():
        if symbols["k"] == 0:
            printed = {"Jbar": NOMINAL_COST, "dJ": Printed("4.2.perturbation-cost")}
            yield Case(where, {**symbols, **printed}, Matrix(moved))


def _one_step(nominal: bool) -> Iterator[Case]:
    """min over du of E[l(xbar + dx, ubar + du) - l(xbar, ubar)] + ahead(du), with the half cost l."""
    for states in (1, 2, 3):
        problem = random_problem((47,), states, 2, 1)
        rng = draws.source(48, states)
        xbar, dx = (draws.matrix(rng, states) for _ in range(2))
        ubar, pull = draws.matrix(rng, 2), draws.matrix(rng, 2)
        cov, bowl = draws.covariance(rng, states), draws.covariance(rng, 2)
        r, w, u = Matrix(problem.r[0]), Matrix(problem.w[0]), Matrix(problem.u[0])

        def ahead(du: Matrix, pull: Matrix = pull, bowl: Matrix = bowl) -> Matrix:
            return pull.T @ du + 0.5 * du.T @ bowl @ du

        def half_cost(x: Matrix, v: Matrix, r: Matrix = r, w: Matrix = w, u: Matrix = u) -> Matrix:
            return 0.5 * ((x - r).T @ w @ (x - r) + v.T @ u @ v)

        def value(step: Array, xbar: Matrix = xbar, ubar: Matrix = ubar, dx: Matrix = dx, cov: Matrix = cov) -> float:
            du, base = Matrix(step), half_cost(xbar, ubar)
            mean = expectation(lambda d: half_cost(xbar + d, ubar + du) - base, dx.array[:, 0], cov.array)
            return float((mean + ahead(du)).array[0, 0])

        symbols = {
            "j": 0,
            "x": counted([xbar if nominal else xbar + dx], 0),
            "u": counted([ubar], 0),
            "r": counted([r], 0),
            "W": counted([w], 0),
            "U": u,
            "dx": dx,
            "Sxx": cov,
            "ahead": ahead,
            "trace": trace,
            "minimum": lambda f: Matrix(lowest_quadratic(lambda step: float(f(Matrix(step)).array[0, 0]), 2)),
        }
        yield Case(f"n = {states}", symbols, Matrix(lowest_quadratic(value, 2)))


def _trace_symbols(problem: Problem, noise: Noise, states: int, padded: bool) -> dict[str, object]:
    spread = covariances(problem.a, noise.s0, noise.q, noise.c, noise.r)
    cut = slice(None) if padded else slice(0, states)
    return {
        "T": problem.horizon,
        "k": 0,
        "W": _matrices([w[cut, cut] for w in problem.w]),
        "Sxx": lambda i, j: Matrix(spread[i, j][cut, cut]),
        "S": lambda i, j: Matrix(spread[i, j]),
        "K": _matrices([tail(problem, j)[0] for j in range(problem.horizon + 1)]),
        "trace": trace,
    }


def _dual_cost(padded: bool, factor: float) -> Iterator[Case]:
    for states, parameters, horizon in SYSTEMS:
        problem, noise, _ = system(states, parameters, horizon)
        expected = Matrix(factor * feedback_cost(problem, noise))
        where = f"n = {states}, {parameters} parameter(s), T = {horizon}"
        yield Case(where, _trace_symbols(problem, noise, states, padded), expected)


def _expected_update() -> Iterator[Case]:
    """What the filter's update adds to the mean when it measures what it expects."""
    for n in (1, 2, 3):
        rng = draws.source(54, n)
        belief = Belief(draws.matrix(rng, n).array[:, 0], draws.covariance(rng, n).array)
        c, noise = draws.matrix(rng, 2, n).array, draws.covariance(rng, 2).array
        moved = update(belief, c, noise, c @ belief.mean).mean - belief.mean
        yield Case(f"n = {n}", {"n": n, "zeros": zeros}, Matrix(moved))


def _cost_to_go() -> Iterator[Case]:
    for states, horizon in ((1, 2), (2, 3), (3, 2)):
        problem, noise, start = system(states, 0, horizon)
        inputs, base = best_inputs(problem, start)
        path = trajectory(problem, start, inputs)
        tails = [tail(problem, j) for j in range(horizon + 1)]
        shift = draws.matrix(draws.source(49, states), states).array[:, 0]
        symbols = {
            **_trace_symbols(problem, noise, states, True),
            "g": _matrices([0.0] * (horizon + 1)),
            "p": _matrices([k @ x + p for (k, p, _), x in zip(tails, path, strict=True)]),
            "dz": Matrix(shift),
        }
        exact = 0.5 * (expected_cost(problem, noise, start + shift) - base)
        yield Case(f"n = {states}, T = {horizon}", symbols, Matrix(exact))


def _toy(linearised: bool) -> Iterator[Case]:
    for toy in expansion.EXAMPLES:
        problem, noise = toy.linearised()
        exact = 0.5 * (feedback_cost(problem, noise) if linearised else toy.exact_coefficient())
        symbols = {**_trace_symbols(problem, noise, 1, True), "Jd": Printed("4.2.dual-cost")}
        yield Case(toy.where(), symbols, Matrix(exact))


def _overall() -> Iterator[Case]:
    for states, horizon in ((1, 2), (2, 3), (3, 2)):
        problem, noise, start = system(states, 0, horizon)
        inputs, _ = best_inputs(problem, start)
        symbols = {
            **_trace_symbols(problem, noise, states, True),
            "x": _matrices(trajectory(problem, start, inputs)),
            "u": _matrices(inputs),
            "r": _matrices(problem.r),
            "U": _matrices(problem.u),
            "Jbar": NOMINAL_COST,
            "Jd": Printed("4.2.dual-cost"),
        }
        yield Case(f"n = {states}, T = {horizon}", symbols, Matrix(expected_cost(problem, noise, start)))


def _perturbed_riccati(last: bool) -> Iterator[Case]:
    for states, parameters, horizon in SYSTEMS:
        problem, _, _ = system(states, parameters, horizon)
        tails = [tail(problem, j)[0] for j in range(horizon + 1)]
        for j in (horizon,) if last else range(horizon):
            step = min(j, horizon - 1)
            symbols = {
                "j": j,
                "T": horizon,
                "K": _matrices(tails),
                "Kxx": _matrices([k[:states, :states] for k in tails]),
                "Atilde": Matrix(problem.a[step]),
                "Btilde": Matrix(problem.b[step]),
                "B": Matrix(problem.b[step][:states]),
                "U": _matrices(problem.u),
                "Wtilde": _matrices(problem.w),
                "inv": inverse,
            }
            yield Case(f"n = {states}, {parameters} parameter(s), j = {j}", symbols, Matrix(tails[j]))


def _augmented_weight() -> Iterator[Case]:
    for n, p in ((1, 1), (2, 3)):
        rng = draws.source(50, n, p)
        w, r = draws.covariance(rng, n), draws.matrix(rng, n)

        def cost(z: Array, w: Matrix = w, r: Matrix = r, n: int = n) -> float:
            return float((z[:n] - r.array[:, 0]) @ w.array @ (z[:n] - r.array[:, 0]))

        unit, centre = np.eye(n + p), cost(np.zeros(n + p))
        hessian = [[(cost(e + f) - cost(e) - cost(f) + centre) / 2 for f in unit] for e in unit]
        symbols = {"W": counted([w], 0), "j": 0, "p": p, "blkdiag": block_diagonal, "zeros": zeros}
        yield Case(f"n = {n}, p = {p}", symbols, Matrix(hessian))


def _forms(kind: str) -> Iterator[Case]:
    for n, p in ((1, 2), (2, 6)):
        rng = draws.source(51, n, p)
        size = n + p
        symbols = {
            "j": 0,
            "p": counted([draws.matrix(rng, size)], 0) if kind == "ansatz" else p,
            "J": _matrices([1.0]),
            "Jbar": _matrices([0.5]),
            "z": counted([draws.matrix(rng, size)], 0),
            "zbar": counted([draws.matrix(rng, size)], 0),
            "u": counted([draws.matrix(rng, 1)], 0),
            "ubar": counted([draws.matrix(rng, 1)], 0),
            "g": _matrices([0.3]),
            "K": counted([draws.covariance(rng, size)], 0),
            "dz": draws.matrix(rng, size),
            "dx": draws.matrix(rng, n),
            "Sxx": draws.covariance(rng, n),
            "Sxt": draws.matrix(rng, n, p),
            "Stx": draws.matrix(rng, p, n),
            "Stt": draws.covariance(rng, p),
            "N": beside,
            "stack": stack,
            "zeros": zeros,
        }
        sizes = {"perturbations": (1 + n + p + 1, 1), "belief": (n + p, 1 + n + p), "ansatz": (1, 1)}
        yield Case(f"n = {n}, p = {p}", symbols, Form(*sizes[kind]))


def _slope_forms(inputs: bool) -> Iterator[Case]:
    for n, p in ((1, 2), (2, 6)):
        rng = draws.source(53, n, p)
        a, b = draws.matrix(rng, n + p, n + p), draws.matrix(rng, n + p, 1)
        z, u = draws.matrix(rng, n + p), draws.matrix(rng, 1)

        def slope(function: Callable[[Matrix, Matrix], Matrix], by: Matrix, z: Matrix = z, u: Matrix = u) -> Matrix:
            columns = []
            for i in range(by.shape[0]):
                shift = Matrix(np.eye(by.shape[0])[i])
                ahead = function(z + shift, u) if by is z else function(z, u + shift)
                columns.append((ahead - function(z, u)).array)
            return Matrix(np.hstack(columns))

        symbols = {"f": lambda x, v, a=a, b=b: a @ x + b @ v, "z": z, "u": u, "slope": slope}
        yield Case(f"n = {n}, p = {p}", symbols, Form(n + p, 1 if inputs else n + p))


DERIVATIONS = {
    "4.2.perturbations": Derivation("Sizes.", partial(_forms, "perturbations")),
    "4.2.belief": Derivation("Sizes of mean and covariance of (dx, dtheta).", partial(_forms, "belief")),
    "4.2.ansatz": Derivation("Sizes: one number.", partial(_forms, "ansatz")),
    "4.2.expansion": Derivation(
        "L of perturbed trajectories; Jbar is L as printed in Section 2, dJ is Eq. (5) as printed.",
        _expansion,
        correction=Correction(
            r"J_k(\vec{u}_{k:T-1}, p(x_{k})) = \Jn_k^* + \dJ_k \approx \Jn_k^* + 2\Delta \tilde J_k",
            "Jbar + 2 * dJ",
            "The nominal cost is L without a factor 1/2, the perturbation cost carries one.",
        ),
    ),
    "4.2.perturbation-cost": Derivation(
        "L of perturbed trajectories minus L of the nominal one; the expansion is exact because L is quadratic.",
        partial(_perturbation_cost, 1.0),
        conventions=(Convention(HALF, partial(_perturbation_cost, 0.5)),),
    ),
    "4.2.optimal-perturbation": Derivation(
        "The expected half cost of one step by quadrature, minimised from values on a stencil.",
        partial(_one_step, False),
        conventions=(
            Convention(
                "x_j and u_j are the nominal values, U is U_j, and the cost is one half of L", partial(_one_step, True)
            ),
        ),
    ),
    "4.2.expected-update": Derivation("The recursive filter's update with y = C m.", _expected_update),
    "4.2.cost-to-go": Derivation(
        "The exact cost of the best causal feedback for a shifted start, minus the nominal cost, all on one half of L.",
        _cost_to_go,
        correction=Correction(
            r"""\Delta\tilde{J}^*_k(p(x_k)) = \gp_{k}  + \pp_{k}\T\Delta\hat z_k +
  \frac{1}{2}  \Delta\hat z_k\T \Kp_{k}\Delta\hat z_k
    + \frac{1}{2} \tr\left\{ \Wp_T\Sigma_{T|T} + \sum_{j=k}^{T-1} \left[ \Wp_j
    \Sigma_{j|j} + (\Sigma_{j+1|j} - \Sigma_{j+1|j+1} ) \Kp_{j+1} \right] \right\}""",
            "g[k] + p[k].T @ dz + 0.5 * dz.T @ K[k] @ dz + 0.5 * trace(W[T] @ Sxx(T, T)"
            " + total(k, T - 1, lambda j: W[j] @ Sxx(j, j) + (S(j + 1, j) - S(j + 1, j + 1)) @ K[j + 1]))",
            "The quadratic of step k belongs to the perturbation of step k, not to that of the step after it.",
        ),
    ),
    "4.2.dual-cost": Derivation(
        "The exact cost of the best causal feedback in the linearised augmented system, by one linear solve.",
        partial(_dual_cost, False, 1.0),
        conventions=(Convention(f"{PADDED}; {HALF}", partial(_dual_cost, True, 0.5)),),
    ),
    "4.2.second-order": Derivation(
        "The toy with prior variance and noise proportional to eps: the coefficient of eps in the exact cost (SymPy).",
        partial(_toy, False),
        conventions=(
            Convention("the second derivatives of the dynamics are set to zero, as the text says", partial(_toy, True)),
        ),
        remark="With them, Hzz and Hzu gain the terms lambda f_zz and lambda f_zu.",
    ),
    "4.2.perturbed-riccati": Derivation(
        "The least-squares cost of the linearised augmented system, read off on a stencil.",
        partial(_perturbed_riccati, False),
        remark="The Jacobians are those of step j.",
    ),
    "4.2.perturbed-riccati-end": Derivation(
        "The cost of the last augmented state, read off on a stencil.", partial(_perturbed_riccati, True)
    ),
    "4.2.augmented-weight": Derivation("Half of the second derivative of the state cost by z.", _augmented_weight),
    "4.2.jacobian-state": Derivation("Sizes.", partial(_slope_forms, False)),
    "4.2.jacobian-input": Derivation("Sizes.", partial(_slope_forms, True)),
    "4.2.overall": Derivation(
        "The exact expected L under the best causal feedback, known parameters; L and J^d as printed, padded.",
        _overall,
        correction=Correction(
            r"\Jn^*_k + 2 J^d_k",
            "Jbar + 2 * Jd",
            "The nominal cost is on the scale of L, the dual cost on one half of it.",
        ),
    ),
}
