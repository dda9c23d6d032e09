"""Sections 4 and 4.1: the augmented system, and the recursions of the nominal control against least squares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.paper.case import Case, Computed, Convention, Correction, Derivation, Printed
from symdual.paper.derivations import draws
from symdual.paper.derivations.least_squares import Problem, best_inputs, random_problem, tail, trajectory
from symdual.paper.machine import Indexed, counted
from symdual.paper.matrices import Matrix, identity, inverse, stack, zeros

SHAPES = ((1, 1), (2, 1), (3, 1), (2, 2))
"""Pairs (states, inputs)."""

HORIZON = 4


def _augmented(with_noise: bool, silent: bool) -> Iterator[Case]:
    for n in (1, 2, 3):
        rng = draws.source(40, n)
        p = n * n + n
        x, theta, u, xi = (draws.matrix(rng, size) for size in (n, p, 1, n))
        noise = zeros(n, 1) if silent else xi
        a, b = theta.array[: n * n].reshape(n, n, order="F"), theta.array[n * n :].reshape(n, 1)
        rows = [sum(a[i, j] * x.array[j, 0] for j in range(n)) + b[i, 0] * u.array[0, 0] for i in range(n)]
        after = Matrix([*(np.array(rows) + noise.array[:, 0]), *theta.array[:, 0]])
        symbols = _unpacked(n) | {"theta": theta, "z": stack([[x], [theta]]), "u": u}
        if with_noise:
            symbols["xi"] = noise
        yield Case(f"n = {n}", symbols, after)


def _unpacked(n: int) -> dict[str, object]:
    """A and B as functions of theta, which holds all their entries."""
    return {
        "n": n,
        "p": n * n + n,
        "A": lambda t: Matrix(t.array[: n * n, 0].reshape(n, n, order="F")),
        "B": lambda t: Matrix(t.array[n * n :, 0].reshape(n, 1)),
        "stack": stack,
        "zeros": zeros,
        "identity": identity,
    }


def _of_the_system(function: Callable[..., str]) -> Iterator[Case]:
    """A word on the printed system: `function` of a map from theta in A and B, x and theta in z to the next z."""
    for n in (1, 2, 3):
        rng = draws.source(44, n)
        p = n * n + n
        x, dx, theta, dtheta, u, xi = (draws.matrix(rng, size) for size in (n, n, p, p, 1, n))
        lines = {"after": Printed("4.augmented-system", ("theta", "z"))}
        judged = partial(function, n, x, dx, theta, dtheta)
        yield Case(f"n = {n}", _unpacked(n) | {"u": u, "xi": xi}, Computed(judged, lines))


def _interaction(n: int, x: Matrix, dx: Matrix, theta: Matrix, dtheta: Matrix, after: Callable[..., Matrix]) -> str:
    """Second differences of x': by x and theta they must not vanish, by either alone they must."""

    def reached(i: int, j: int) -> Array:
        state, t = x + i * dx, theta + j * dtheta
        return after(t, stack([[state], [t]])).array[:n]

    mixed = reached(1, 1) - reached(1, 0) - reached(0, 1) + reached(0, 0)
    alone = [reached(2, 0) - 2 * reached(1, 0) + reached(0, 0), reached(0, 2) - 2 * reached(0, 1) + reached(0, 0)]
    product = np.max(np.abs(mixed)) > 1e-6 and np.max(np.abs(alone)) < 1e-9
    return "multiplicatively" if product else "otherwise"


def _coupling(n: int, x: Matrix, dx: Matrix, theta: Matrix, dtheta: Matrix, after: Callable[..., Matrix]) -> str:
    """With A and B at the mean of theta: what theta in z does to x', and x to theta'."""
    base = after(theta, stack([[x], [theta]])).array
    moved = after(theta, stack([[x], [theta + dtheta]])).array
    pushed = after(theta, stack([[x + dx], [theta]])).array
    apart = np.max(np.abs((moved - base)[:n])) < 1e-9 and np.max(np.abs((pushed - base)[n:])) < 1e-9
    return "decoupled" if apart else "coupled"


def _constant_problem(states: int, inputs: int) -> Problem:
    return random_problem((41,), states, inputs, HORIZON)


def _symbols(problem: Problem) -> dict[str, object]:
    tails = [tail(problem, j) for j in range(problem.horizon + 1)]
    return {
        "T": problem.horizon,
        "A": Matrix(problem.a[0]),
        "B": Matrix(problem.b[0]),
        "K": counted([Matrix(k) for k, _, _ in tails], 0),
        "p": counted([Matrix(p) for _, p, _ in tails], 0),
        "W": counted([Matrix(w) for w in problem.w], 0),
        "U": counted([Matrix(u) for u in problem.u], 0),
        "r": counted([Matrix(r) for r in problem.r], 0),
        "identity": identity,
        "inv": inverse,
    }


def _recursion(wanted: Callable[[dict[str, object]], Indexed], steps: tuple[int, ...]) -> Iterator[Case]:
    for states, inputs in SHAPES:
        symbols = _symbols(_constant_problem(states, inputs))
        for j in steps:
            yield Case(f"n = {states}, {inputs} input(s), j = {j}", {**symbols, "j": j}, wanted(symbols)[j])


def _values(name: str) -> Callable[[dict[str, object]], Indexed]:
    def pick(symbols: dict[str, object]) -> Indexed:
        family = symbols[name]
        assert isinstance(family, Indexed)
        return family

    return pick


def _inner(name: str) -> Callable[[], Iterator[Case]]:
    return lambda: _recursion(_values(name), tuple(range(HORIZON)))


def _last(name: str) -> Callable[[], Iterator[Case]]:
    return lambda: _recursion(_values(name), (HORIZON,))


def _control() -> Iterator[Case]:
    for states, inputs in SHAPES:
        problem = _constant_problem(states, inputs)
        start = draws.matrix(draws.source(42, states), states).array[:, 0]
        optimal, _ = best_inputs(problem, start)
        path = trajectory(problem, start, optimal)
        symbols = {**_symbols(problem), "x": counted([Matrix(x) for x in path], 0)}
        for j in range(HORIZON):
            yield Case(f"n = {states}, {inputs} input(s), j = {j}", {**symbols, "j": j}, Matrix(optimal[j]))


def _of_the_law(function: Callable[..., str], referenced: bool) -> Iterator[Case]:
    """A word on the printed law: `function` of it as a map of the state, and of two states."""
    for states, inputs in SHAPES:
        problem = _constant_problem(states, inputs)
        if not referenced:
            problem = replace(problem, r=tuple(0.0 * r for r in problem.r))
        rng = draws.source(43, states)
        x, other = (draws.matrix(rng, states) for _ in range(2))

        def judged(law: Callable[[Indexed], Matrix], x: Matrix = x, other: Matrix = other) -> str:
            return function(lambda state: law(counted([state], 1)).array, x, other)

        symbols = {**_symbols(problem), "j": 1}
        yield Case(
            f"n = {states}, {inputs} input(s)", symbols, Computed(judged, {"law": Printed("4.1.control", ("x",))})
        )


def _linearity(law: Callable[[Matrix], Array], x: Matrix, other: Matrix) -> str:
    """Linear functions add up and are zero at zero; affine ones add up but for a constant."""
    still = law(0.0 * x)
    if np.max(np.abs(law(x + other) - law(x) - law(other) + still)) > 1e-9:
        return "otherwise"
    return "linear" if np.max(np.abs(still)) < 1e-9 else "affine"


def _dependence(law: Callable[[Matrix], Array], x: Matrix, other: Matrix) -> str:
    return "changes" if np.max(np.abs(law(x + other) - law(x))) > 1e-9 else "does not change"


def _needed_steps() -> Iterator[Case]:
    """The steps whose weight and reference move the inputs u_k..u_{T-1}."""
    problem = _constant_problem(2, 1)
    start = np.array([0.4, -0.9])
    for k in (0, 1, 2):
        rest = problem.from_step(k)
        base, _ = best_inputs(rest, start)
        moved = set()
        for j in range(rest.horizon + 1):
            references = tuple(r + (1.0 if i == j else 0.0) for i, r in enumerate(rest.r))
            changed, _ = best_inputs(Problem(rest.a, rest.b, rest.w, rest.u, references), start)
            if not np.allclose(changed, base, atol=1e-9):
                moved.add(k + j)
        yield Case(f"k = {k}, T = {HORIZON}", {"k": k, "T": HORIZON}, frozenset(moved))


def _moving_inputs() -> Iterator[Case]:
    """The inputs that move any of the states x_{k+1}..x_T, by differentiation of the unrolled dynamics."""
    for k, horizon in ((0, 2), (1, 4), (3, 5)):
        inputs = sp.symbols(f"u0:{horizon + 1}")
        a, b, state = sp.symbols("a b x")
        moved = set()
        for j in range(k, horizon):
            state = sp.expand(a * state + b * inputs[j])
            moved |= {i for i, value in enumerate(inputs) if state.diff(value) != 0}
        yield Case(f"k = {k}, T = {horizon}", {"k": k, "T": horizon}, frozenset(moved))


DERIVATIONS = {
    "4.augmented-system": Derivation(
        "Element by element: x' = A x + B u + xi with A and B unpacked from theta, theta' = theta.",
        lambda: _augmented(True, False),
    ),
    "4.nonlinear": Derivation(
        "Second differences of the printed system by x and theta, and by either alone.",
        partial(_of_the_system, _interaction),
    ),
    "4.1.decoupled": Derivation(
        "The printed system with A and B at the mean of theta: how either part of z moves the other one.",
        partial(_of_the_system, _coupling),
    ),
    "4.augmented-map": Derivation(
        "Element by element, as a function of z and u alone.",
        lambda: _augmented(False, True),
        conventions=(Convention("the disturbance is not part of the map (xi_k = 0)", lambda: _augmented(True, True)),),
    ),
    "4.1.linear": Derivation(
        "The printed law as a function of the state: sums of states, and the state zero.",
        partial(_of_the_law, _linearity, True),
        conventions=(
            Convention(
                "the reference is zero; with one, the offset p makes it affine", partial(_of_the_law, _linearity, False)
            ),
        ),
    ),
    "4.2.control-changes": Derivation("The printed law for two states.", partial(_of_the_law, _dependence, True)),
    "4.1.control": Derivation("All inputs at once by least squares.", _control),
    "4.1.range": Derivation("The steps whose reference moves the least-squares inputs u_k to u_{T-1}.", _needed_steps),
    "4.1.riccati": Derivation(
        "The least-squares cost as a function of the first state, read off on a stencil.", _inner("K")
    ),
    "4.1.riccati-end": Derivation("The cost of the last state as a function of it, read off on a stencil.", _last("K")),
    "4.1.offset": Derivation(
        "The least-squares cost as a function of the first state, read off on a stencil.",
        _inner("p"),
        correction=Correction(
            r"\pn_j = \An\T\left(\Id-\Kn_{j+1}\Bn\left(\Bn\T \Kn_{j+1} \Bn + U_j\right)\inv \Bn\T \right)"
            r" \pn_{j+1} - W_j r_j",
            "A.T @ (identity(A.shape[0]) - K[j + 1] @ B @ inv(B.T @ K[j + 1] @ B + U[j]) @ B.T) @ p[j + 1]"
            " - W[j] @ r[j]",
            "Printed, a matrix is subtracted from the vector p, and one factor K stands too many.",
        ),
    ),
    "4.1.offset-end": Derivation("The cost of the last state as a function of it, read off on a stencil.", _last("p")),
    "4.1.nominal-cost": Derivation(
        "The inputs that move the states x_{k+1} to x_T, by differentiation of the unrolled dynamics.",
        _moving_inputs,
        correction=Correction(
            r"\bar{J}^*_k = \cL(\bar{\vec{x}}_{k:T},\bar{\vec{u}}^* _{k:T-1})",
            "span(k, T - 1)",
            "There is no input at the horizon.",
        ),
    ),
}
