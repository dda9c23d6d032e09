"""Section 3.1: the toy's laws and belief update with SymPy, its two-step cost by quadrature and brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from symdual.paper.case import Case, Computed, Convention, Correction, Derivation, Meant, Printed, Undecidable
from symdual.paper.derivations import draws
from symdual.paper.derivations.gaussians import beside, moments, normal_nodes, scalar_expectation
from symdual.paper.derivations.model import SIZES, lowest
from symdual.paper.matrices import Matrix, stack, zeros

A, B, X, U, UNIT, W, MU, XI = sp.symbols("a b x u U W mu xi", real=True)
S2, Q = sp.symbols("s2 Q", positive=True)

_UNIT_WEIGHT = "the state weight is W = 1, as in the cost of one step printed in the text"


def gaussian_moment(order: int, mean: Any, variance: Any) -> Any:
    """E[b^order] for b ~ N(mean, variance): the derivative of the moment generating function at zero."""
    t = sp.Dummy("t")
    return sp.expand(sp.diff(sp.exp(mean * t + variance * t**2 / 2), t, order).subs(t, 0))


def average(expression: Any, variable: Any, mean: Any, variance: Any) -> Any:
    """E over one Gaussian variable of an expression that is polynomial in it."""
    terms = sp.Poly(sp.expand(expression), variable).terms()
    return sum(value * gaussian_moment(power, mean, variance) for (power,), value in terms)


def best_input(expected_cost: Any) -> Any:
    """The stationary point of a cost that is quadratic in the input."""
    (solution,) = sp.solve(sp.diff(expected_cost, U), U)
    return sp.simplify(solution)


def next_state() -> Any:
    """a x + b u + xi."""
    return A * X + B * U + XI


def one_step_cost(weight: Any, mean: Any, variance: Any) -> Any:
    """E[W x_{k+1}^2 + U u^2] over b ~ N(mean, variance) and xi ~ N(0, Q)."""
    cost = weight * next_state() ** 2 + UNIT * U**2
    return average(average(cost, XI, sp.Integer(0), Q), B, mean, variance)


def _law(variance: Any, mean: Any, weight: Any) -> Iterator[Case]:
    law = best_input(one_step_cost(weight, mean, variance))
    symbols = {"a": A, "b": B, "x": X, "U": UNIT, "mu": MU, "s2": S2, "W": W}
    yield Case("SymPy, all symbols free", symbols, law)


def _law_derivation(method: str, variance: Any, mean: Any) -> Derivation:
    return Derivation(
        method,
        partial(_law, variance, mean, W),
        conventions=(Convention(_UNIT_WEIGHT, partial(_law, variance, mean, sp.Integer(1))),),
    )


def posterior(weight_of_b: Any, seen: Any) -> tuple[Any, Any]:
    """Mean and variance of b given seen = b u + xi: complete the square in log prior + log likelihood."""
    log_density = -((B - MU) ** 2) / (2 * S2) - (seen - B * weight_of_b) ** 2 / (2 * Q)
    variance = -1 / sp.diff(log_density, B, 2)
    (mean,) = sp.solve(sp.diff(log_density, B), B)
    return sp.simplify(mean), sp.simplify(variance)


def _density(value: float, mean: float, variance: float) -> float:
    return float(np.exp(-((value - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance))


def _belief_numbers(true_value_inside: bool) -> Iterator[Case]:
    """The density of b by Bayes' rule on a grid, at one point."""
    for mu, s2, q, u, truth, xi in ((1.0, 2.0, 0.3, 0.7, 1.4, 0.2), (-0.5, 1.0, 0.5, -1.2, 0.3, -0.4)):
        at = 0.9
        grid = np.linspace(mu - 12 * np.sqrt(s2), mu + 12 * np.sqrt(s2), 6001)
        weights = np.exp(-((grid - mu) ** 2) / (2 * s2) - (truth * u + xi - grid * u) ** 2 / (2 * q))
        unscaled = np.exp(-((at - mu) ** 2) / (2 * s2) - (truth * u + xi - at * u) ** 2 / (2 * q))
        expected = float(unscaled / (weights.sum() * (grid[1] - grid[0])))

        def normal(parameters: Callable[[float], tuple[float, float]], at: float = at, truth: float = truth) -> float:
            mean, variance = parameters(truth if true_value_inside else at)
            return _density(at, mean, variance)

        symbols = {"mu": mu, "s2": s2, "Q": q, "u": u, "xi": xi, "normal": normal}
        yield Case(f"density at b = {at}, true b = {truth}", symbols, expected)


def _belief() -> Iterator[Case]:
    yield from _belief_numbers(True)
    truth = sp.Symbol("b_true", real=True)
    mean, variance = posterior(U, truth * U + XI)
    symbols = {
        "mu": MU,
        "s2": S2,
        "Q": Q,
        "u": U,
        "xi": XI,
        "normal": lambda parameters: sp.Matrix(parameters(truth)),
    }
    yield Case("SymPy, mean and variance", symbols, sp.Matrix([mean, variance]))


def _turn_off(ratio: bool) -> Iterator[Case]:
    numbers = {A: sp.Rational(9, 10), MU: sp.Rational(1, 2), X: 2, UNIT: sp.Rational(3, 2), Q: sp.Rational(1, 5)}
    for sign in (1, -1):
        point = {**numbers, X: sign * numbers[X]}
        law = best_input(one_step_cost(1, MU, S2)).subs(point)
        _, variance = posterior(U, sp.Symbol("y"))
        left_over = sp.limit((variance.subs(point) / S2).subs(U, law), S2, sp.oo)
        yield Case(f"x = {point[X]}", {}, left_over if ratio else sp.limit(law, S2, sp.oo))


_S0, _MU0, _U0, _XI0, _X1 = sp.symbols("s0 mu0 u0 xi0 x1", real=True)


def _second_input(weight: Any) -> Iterator[Case]:
    # posterior() solves for b, so what was seen enters as a separate symbol and is put in afterwards.
    seen = sp.Symbol("seen", real=True)
    mean, variance = posterior(_U0, seen)
    update = {MU: _MU0, S2: _S0}
    law = best_input(one_step_cost(weight, MU, S2))
    inserted = law.subs({MU: mean.subs(update), S2: variance.subs(update), X: _X1}, simultaneous=True)
    symbols = {"a": A, "b": B, "U": UNIT, "Q": Q, "s0": _S0, "mu0": _MU0, "u0": _U0, "xi0": _XI0, "x1": _X1}
    yield Case("SymPy, all symbols free", symbols, inserted.subs(seen, B * _U0 + _XI0))


_FREE = {"a": A, "b": B, "U": UNIT, "Q": Q, "s0": _S0, "mu0": _MU0, "u0": _U0, "xi0": _XI0}
_START = sp.Symbol("x0", real=True)
_PRINTED_INPUT = Printed("3.1.second-input", symbols={**_FREE, "x1": A * _START + B * _U0 + _XI0})
"""u_1* as printed, with x_1 = a x_0 + b u_0 + xi_0."""


def _order() -> Iterator[Case]:
    def degree(law: Any) -> tuple[str, int]:
        numerator, denominator = sp.fraction(sp.cancel(law))
        return "b", int(max(sp.degree(numerator, B), sp.degree(denominator, B)))

    yield Case("SymPy, degrees of numerator and denominator", {}, Computed(degree, {"law": _PRINTED_INPUT}))


class TwoSteps:
    """The toy with two inputs: the cost of u_0 when u_1 is optimal, by Bayes' rule on a grid and a parabola fit."""

    def __init__(
        self,
        a: float,
        x0: float,
        u0: float,
        w: float = 1.3,
        unit: float = 0.8,
        mu: float = 0.7,
        s2: float = 0.3,
        q: float = 0.4,
    ) -> None:
        self.a, self.x0, self.u0, self.w, self.unit = a, x0, u0, w, unit
        self.mu, self.s2, self.q = mu, s2, q
        self.grid = np.linspace(self.mu - 9 * np.sqrt(self.s2), self.mu + 9 * np.sqrt(self.s2), 1201)

    def tail(self, seen: float) -> float:
        """min over u_1 of E[W x_1^2 + U u_1^2 + W x_2^2 given seen], the belief on b held on a grid."""
        logs = -((self.grid - self.mu) ** 2) / (2 * self.s2) - (seen - self.grid * self.u0) ** 2 / (2 * self.q)
        belief = np.exp(logs - logs.max())
        belief /= belief.sum()
        x1 = self.a * self.x0 + seen

        def cost(u1: float) -> float:
            x2 = self.a * x1 + self.grid * u1
            return float(self.w * x1**2 + self.unit * u1**2 + self.w * (belief @ x2**2 + self.q))

        return lowest(cost)

    def exact(self) -> float:
        """The expected cost of u_0."""
        spread = self.s2 * self.u0**2 + self.q
        ahead = scalar_expectation(self.tail, self.mu * self.u0, spread, 80)
        return self.w * self.x0**2 + self.unit * self.u0**2 + ahead

    def updated(self, seen: float) -> tuple[float, float]:
        """Conjugate update in information form."""
        precision = 1 / self.s2 + self.u0**2 / self.q
        return (self.mu / self.s2 + self.u0 * seen / self.q) / precision, 1 / precision

    def symbols(self) -> dict[str, object]:
        """What the two printed lines refer to."""
        nodes, weights = normal_nodes(24)

        def law(x1: float, mean: float, variance: float) -> float:
            return -self.w * self.a * mean * x1 / (self.unit + self.w * (variance + mean**2))

        def over_state(function: Callable[[float, float, float], float]) -> float:
            spread = self.s2 * self.u0**2 + self.q
            return scalar_expectation(
                lambda seen: function(self.a * self.x0 + seen, *self.updated(seen)), self.mu * self.u0, spread, 80
            )

        def over_next(function: Callable[[float], float], x1: float, u1: float, mean: float, variance: float) -> float:
            return scalar_expectation(function, self.a * x1 + mean * u1, variance * u1**2 + self.q, 4)

        def over_noise_and_b(function: Callable[[float, float, float, float], float]) -> float:
            total = 0.0
            for first, weight in zip(*normal_nodes(60), strict=True):
                for second, other in zip(nodes, weights, strict=True):
                    seen = (self.mu + np.sqrt(self.s2) * second) * self.u0 + np.sqrt(self.q) * first
                    x1, belief = self.a * self.x0 + seen, self.updated(seen)
                    total += weight * other * function(x1, *belief, law(x1, *belief))
            return float(total)

        def over_next_noise_and_b(function: Callable[[float, float], float], mean: float, variance: float) -> float:
            inner = [(n, w) for n, w in zip(*normal_nodes(3), strict=True)]
            return float(
                sum(
                    w * v * function(np.sqrt(self.q) * n, mean + np.sqrt(variance) * m)
                    for n, w in inner
                    for m, v in inner
                )
            )

        return {
            "W": self.w,
            "U": self.unit,
            "a": self.a,
            "x0": self.x0,
            "u0": self.u0,
            "minimum": lowest,
            "E_x1": over_state,
            "E_x2": over_next,
            "E_xi0_b": over_noise_and_b,
            "E_xi1_b": over_next_noise_and_b,
        }


def _two_steps() -> Iterator[Case]:
    for a, x0, u0 in ((0.8, 1.0, 0.5), (1.2, -0.7, -0.9)):
        toy = TwoSteps(a, x0, u0)
        yield Case(f"a = {a}, x_0 = {x0}, u_0 = {u0}, W = {toy.w}, U = {toy.unit}", toy.symbols(), toy.exact())


def _state_length() -> Iterator[Case]:
    for n, m, _ in SIZES:
        rng = draws.source(31, n, m)
        parts = [[draws.matrix(rng, n)], *[[draws.matrix(rng, n)] for _ in range(m)], [draws.matrix(rng, n)]]
        yield Case(f"n = {n}, m = {m}", {"n": n, "m": m}, stack(parts).shape[0])


def _observation_map() -> Iterator[Case]:
    for n, m, d in SIZES:
        c = draws.matrix(draws.source(32, n, m, d), d, n)
        size = (m + 2) * n
        columns = [c.array @ np.eye(size)[:n, i : i + 1] for i in range(size)]
        symbols = {"C": c, "n": n, "m": m, "d": d, "stack": stack, "zeros": zeros}
        yield Case(f"n = {n}, m = {m}, d = {d}", symbols, Matrix(np.hstack(columns)))


def _observation_density() -> Iterator[Case]:
    """Mean and covariance of C x + gamma, by quadrature over gamma."""
    for n, m, d in SIZES:
        rng = draws.source(33, n, m, d)
        c, z, noise = draws.matrix(rng, d, n), draws.matrix(rng, (m + 2) * n), draws.covariance(rng, d)
        centre = (c.array @ z.array[:n])[:, 0]
        mean, spread = moments(partial(np.add, centre), np.zeros(d), noise.array)
        symbols = {"C": c, "n": n, "m": m, "d": d, "z": z, "R": noise, "N": beside, "stack": stack, "zeros": zeros}
        symbols["Ctilde"] = Printed("3.observation-map")
        yield Case(f"n = {n}, m = {m}, d = {d}", symbols, beside(Matrix(mean), Matrix(spread)))


def _even_order() -> Iterator[Case]:
    """Degree of numerator minus degree of denominator of L as a function of u_0, for rational numbers elsewhere."""
    later = sp.Symbol("xi1", real=True)
    x1 = A * _START + B * _U0 + _XI0

    (case,) = _second_input(sp.Integer(1))
    law = case.expected.subs(_X1, x1)

    for shift in range(3):
        cost = _START**2 + UNIT * _U0**2 + x1**2 + UNIT * law**2 + (A * x1 + B * law + later) ** 2
        free = sorted(cost.free_symbols - {_U0}, key=str)
        point = {symbol: sp.Rational(3 + 2 * i + shift, 7) for i, symbol in enumerate(free)}
        numerator, denominator = sp.fraction(sp.cancel(cost.subs(point)))
        order = sp.degree(numerator, _U0) - sp.degree(denominator, _U0)
        yield Case(f"sample {shift + 1}, order {order}", {}, "even" if order % 2 == 0 else "odd")


def _toy_definition() -> Iterator[Case]:
    symbols = {"a": A, "b": B, "x": X, "u": U, "xi": XI, "U": UNIT}
    yield Case("scalars", symbols, Meant(next_state()))


def _one_step_definition() -> Iterator[Case]:
    def expected(function: Callable[[Any], Any]) -> Any:
        return average(average(function(B), XI, sp.Integer(0), Q), B, MU, S2)

    symbols = {"a": A, "x": X, "u": U, "xi": XI, "U": UNIT, "E": expected}
    yield Case("scalars", symbols, Meant(one_step_cost(sp.Integer(1), MU, S2)))


DERIVATIONS: dict[str, Derivation | Undecidable] = {
    "3.augmented-state": Derivation("x and the columns of A and B stacked and counted.", _state_length),
    "3.observation-density": Derivation(
        "Mean and covariance of C x + gamma by Gauss-Hermite quadrature.", _observation_density
    ),
    "3.observation-map": Derivation("The map from z to C x, column by column.", _observation_map),
    "3.1.toy": Derivation("As the laws below take it.", _toy_definition),
    "3.1.expected-cost": Derivation(
        "As the cautious law takes it, with W = 1; the noise is averaged as well as b.", _one_step_definition
    ),
    "3.1.oracle": _law_derivation(
        "Stationary point of the expected cost of one step for a known b, with SymPy.", sp.Integer(0), B
    ),
    "3.1.certainty-equivalent": _law_derivation(
        "Stationary point of the expected cost of one step with b at its mean, with SymPy.", sp.Integer(0), MU
    ),
    "3.1.cautious": _law_derivation(
        "Stationary point of E[W x_{k+1}^2 + U u^2] with Gaussian moments, with SymPy.", S2, MU
    ),
    "3.1.belief-update": Derivation(
        "Bayes' rule: the density on a grid, and mean and variance by completing the square with SymPy.",
        partial(_belief_numbers, False),
        conventions=(
            Convention("the b inside the mean is the true parameter, not the argument of the density", _belief),
        ),
    ),
    "3.1.turn-off": Derivation(
        "Limit of the cautious input for growing variance, with SymPy.", partial(_turn_off, False)
    ),
    "3.1.turn-off-variance": Derivation(
        "Limit of the ratio of posterior and prior variance under the cautious input, with SymPy.",
        partial(_turn_off, True),
        remark="The ratio tends to 1.",
    ),
    "3.1.second-input": Derivation(
        "The cautious law with the updated belief put in, with SymPy.",
        partial(_second_input, W),
        conventions=(Convention(_UNIT_WEIGHT, partial(_second_input, sp.Integer(1))),),
    ),
    "3.1.two-steps": Derivation(
        "Bayes' rule on a grid of b, the best second input from a parabola, the first expectation by quadrature.",
        _two_steps,
    ),
    "3.1.two-steps-inserted": Derivation(
        "Bayes' rule on a grid of b, the best second input from a parabola, the first expectation by quadrature.",
        _two_steps,
        correction=Correction(
            r"""\min_{u_0} \left[ W x_0^2 + U u_0^2 + \Exp_{\xi_0,b} \left[ Wx_1^2 + U (u_1 ^*) ^2
            +\Exp_{\xi_1,b}\left[W(a x_1+b u_1 ^* + \xi_1)^2\g \mu_1, \sigma_1 \right]
            \g \mu_0, \sigma_0\right]\right]""",
            "W*x0**2 + U*u0**2 + E_xi0_b(lambda x1, mu1, s1, u1: W*x1**2 + U*u1**2"
            " + E_xi1_b(lambda xi1, b: W*(a*x1 + b*u1 + xi1)**2, mu1, s1))",
            "The factor a of x_1 is missing; the printed line holds only for a = 1.",
        ),
        remark="u_1* is taken with the state weight W.",
    ),
    "3.1.order": Derivation(
        "Degrees of numerator and denominator of the printed u_1* in b, with x_1 = a x_0 + b u_0 + xi_0, with SymPy.",
        _order,
        correction=Correction(
            r"\text{rational function of second order in $b$ (the denominator is of fourth order in $u_0$)}",
            "('b', 2)",
            "There is no b_0; in b numerator and denominator have degree 2, in u_0 the denominator has degree 4.",
        ),
    ),
    "3.1.even-order": Derivation(
        "Degrees of numerator and denominator of L(u_0) for three samples, with SymPy: L grows as u_0^2.",
        _even_order,
    ),
    "3.1.no-closed-form": Undecidable(
        "That no closed form exists is a statement about all formulas; quadrature does not decide it."
    ),
}
