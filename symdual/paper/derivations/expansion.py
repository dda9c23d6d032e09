"""The toy's exact cost to first order in the covariances, by SymPy.

Prior variance and noise are eps s0 and eps q.  With u_0 fixed and u_1 optimal, the cost is J(eps) = Jbar + eps c + ...;
c is what a dual cost has to give, and the linearised augmented system gives only a part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy as sp

from symdual.paper.derivations.feedback import Noise
from symdual.paper.derivations.least_squares import Problem


@dataclass(frozen=True)
class Toy:
    """x' = a x + b u + xi with two inputs, the first one fixed."""

    a: float
    x0: float
    u0: float
    mu: float
    s0: float
    q: float
    w: float
    price: float

    def where(self) -> str:
        """The numbers in one line."""
        return (
            f"a = {self.a}, x_0 = {self.x0}, u_0 = {self.u0}, mu = {self.mu}, "
            f"s_0 = {self.s0}, Q = {self.q}, W = {self.w}, U = {self.price}, T = 2"
        )

    def exact_coefficient(self) -> float:
        """c: second derivative by what is seen, first derivative by the left-over variance, and the last noise.

        The optimal last step is V(x_1, m, s) = W x_1^2 + W a^2 x_1^2 (1 - W m^2 / (U + W (s + m^2))) + W eps q.
        """
        shift, left_over = sp.symbols("shift left_over")
        a, mu, u0, w = (sp.nsimplify(value) for value in (self.a, self.mu, self.u0, self.w))
        s0, q, price, x0 = (sp.nsimplify(value) for value in (self.s0, self.q, self.price, self.x0))
        spread = s0 * u0**2 + q
        x1 = a * x0 + mu * u0 + shift
        mean = mu + s0 * u0 / spread * shift
        u1 = sp.Symbol("u1")
        cost = w * x1**2 + price * u1**2 + w * ((a * x1 + mean * u1) ** 2 + left_over * u1**2)
        (best,) = sp.solve(sp.diff(cost, u1), u1)
        value = cost.subs(u1, best)
        at = {shift: 0, left_over: 0}
        curvature = sp.diff(value, shift, 2).subs(at)
        slope = sp.diff(value, left_over).subs(at)
        return float(spread * curvature / 2 + s0 * q / spread * slope + w * q)

    def nominal(self) -> tuple[list[float], list[float]]:
        """States and inputs under the mean model; u_1 from the parabola's stationary point."""
        x1 = self.a * self.x0 + self.mu * self.u0
        u1 = -self.w * self.mu * self.a * x1 / (self.price + self.w * self.mu**2)
        return [self.x0, x1, self.a * x1 + self.mu * u1], [self.u0, u1]

    def linearised(self) -> tuple[Problem, Noise]:
        """The augmented system around the nominal trajectory, with the covariances of eps = 1."""
        _, inputs = self.nominal()
        weight = np.diag([self.w, 0.0])
        problem = Problem(
            tuple(np.array([[self.a, u], [0.0, 1.0]]) for u in inputs),
            (np.array([[self.mu], [0.0]]),) * 2,
            (weight,) * 3,
            (np.array([[self.price]]),) * 2,
            (np.zeros(2),) * 3,
        )
        noise = Noise(np.diag([0.0, self.s0]), np.diag([self.q, 0.0]), np.zeros((1, 1)), np.array([[1.0, 0.0]]))
        return problem, noise


EXAMPLES = (
    Toy(a=1.0, x0=1.0, u0=-0.4, mu=1.0, s0=2.0, q=0.1, w=1.0, price=1.0),
    Toy(a=0.8, x0=1.5, u0=0.6, mu=-0.7, s0=1.0, q=0.5, w=1.2, price=0.6),
)
