"""Section 6: what a closed loop needs to be run, ranges of schedules, and which parameter a reference can excite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import sympy as sp
from scipy.optimize import least_squares

from symdual.paper.case import Case, Convention, Correction, Coverage, Derivation, Form, Meant, Single, Supplies
from symdual.paper.derivations import draws
from symdual.paper.derivations.gaussians import Array, beside
from symdual.paper.machine import counted
from symdual.paper.matrices import Matrix, diagonal, root

LAST_STEP = 20

LOOP = frozenset({"x0", "Q", "R", "W", "U", "r", "T", "theta_true", "tau"})
"""What every closed loop of the cart needs: start, noise, cost, reference, horizon, truth, bonus weight."""


def _toy_needs() -> frozenset[str]:
    """The constants on which L of the toy depends: two steps of the cautious law, with its belief, written out."""
    names = "a b prior_mean prior_variance Q W U x0"
    a, b, mean, variance, q, w, u, x = sp.symbols(names)
    cost: sp.Expr = w * x**2
    for noise in sp.symbols("xi0 xi1"):
        applied = -w * a * mean * x / (u + w * (variance + mean**2))
        seen = b * applied + noise
        x = a * x + seen
        mean, variance = (
            (variance * applied * seen + mean * q) / (applied**2 * variance + q),
            variance * q / (applied**2 * variance + q),
        )
        cost += w * x**2 + u * applied**2
    return frozenset(str(s) for s in cost.free_symbols if not str(s).startswith("xi")) | {"T", "R", "tau"}


def _needs(needed: Callable[[], frozenset[str]]) -> Iterator[Case]:
    yield Case("all constants of a run", {}, Supplies(needed()))


def _schedule() -> Iterator[Case]:
    yield Case(f"steps 0 to {LAST_STEP}", {}, Coverage(0, LAST_STEP))


def _bonus() -> Iterator[Case]:
    for p in (1, 3):
        cov = draws.covariance(draws.source(90, p), p)
        symbols = {"tau": 0.7, "Stt": cov, "root": root, "diag": diagonal}
        yield Case(f"{p} parameter(s)", symbols, Meant(Matrix(0.7 * np.linalg.eigvalsh(cov.array).sum())))


def _cart(noisy: bool) -> Iterator[Case]:
    """x' = A phi(x) + B u + xi of Section 2, entry by entry."""
    for seed in (1, 2):
        rng = draws.source(91, seed)
        x, u, xi, theta = (draws.matrix(rng, size) for size in (2, 1, 2, 2))
        values = [math.sin(x.array[0, 0]), math.cos(x.array[0, 0])]
        slope = sum(t * v for t, v in zip(theta.array[:, 0], values, strict=True))
        position = x.array[0, 0] + 0.4 * x.array[1, 0]
        velocity = x.array[1, 0] + slope + u.array[0, 0]
        disturbance = xi.array if noisy else np.zeros((2, 1))
        symbols = {
            "x": x,
            "u": u,
            "theta": counted(list(theta.array[:, 0])),
            "varphi": lambda i, at, values=values: values[i - 1],
            "matrix": Matrix,
        }
        yield Case(f"draw {seed}", symbols, Matrix(np.array([[position], [velocity]]) + disturbance))


def _form(rows: int, columns: int) -> Iterator[Case]:
    yield Case("sizes", {"matrix": Matrix, "N": beside}, Form(rows, columns))


def _feature(pair: Callable[[float], tuple[float, float]], which: int) -> Iterator[Case]:
    for x in (-3.0, 0.5, 4.0):
        yield Case(f"x = {x}", {"x": x, "exp": math.exp}, Meant(pair(x)[which]))


def _given_once() -> Iterator[Case]:
    yield Case("the two places of the text", {}, Single())


def logistic_pair(x: float) -> tuple[float, float]:
    """The two shifted logistic functions of experiments 2 and 3."""
    return -1 / (1 + math.exp(x + 5)), 1 / (1 + math.exp(-(x - 5)))


def bump_pair(x: float) -> tuple[float, float]:
    """The two Gaussian functions of experiment 4."""
    return math.exp(-((x - 2) ** 2) / 2), math.exp(-((x + 2) ** 2) / 2)


def excitation(positions: Sequence[float], pair: Callable[[float], tuple[float, float]]) -> list[tuple[float, float]]:
    """|d velocity / d theta^i| at each position: the only way in which theta^i can show."""
    return [(abs(first), abs(second)) for first, second in map(pair, positions)]


def _strong_feature() -> Iterator[Case]:
    """The reference goes from 0 to 10 and back; the parameter with the larger effect along it."""
    positions = [0.0] * 12 + [10.0] * 6 + [0.0] * 3
    effects = np.max(np.array(excitation(positions, logistic_pair)), axis=0)
    strong = int(np.argmax(effects)) + 1
    where = f"largest |phi^1| = {effects[0]:.3g}, largest |phi^2| = {effects[1]:.3g} on the reference"
    yield Case(where, {}, {"strong": strong, "negligible": 3 - strong})


def _order_of_parameters() -> Iterator[Case]:
    """The reference -5, -4, -2, 0, 2: which parameter dominates first, which one at the end."""
    positions = [-5.0] * 7 + [-4.0, -2.0, 0.0] + [2.0] * 11
    effects = excitation(positions, bump_pair)
    dominant = [1 if first > second else 2 for first, second in effects if max(first, second) > 0.5]
    where = "the reference passes -2 at step 8 and stays at 2 from step 10 on"
    yield Case(where, {}, (dominant[0], dominant[-1]))


def _units(offset: bool, weights: Array, x: Array) -> Array:
    v, w = weights[:4], weights[4:]
    places = np.linspace(-5.0, 5.0, 4)
    argument = np.outer(x, w) + places if offset else (x[:, None] - places) * w
    return np.asarray((v / (1 + np.exp(-argument))).sum(axis=1))


def _best_fit(offset: bool) -> float:
    """The largest error of the best network with four units and b in -5, -5/3, 5/3, 5, over many starts."""
    x = np.linspace(-12.0, 12.0, 61)
    truth = np.array([0.8 * first + 0.4 * second for first, second in map(logistic_pair, x)])
    best = math.inf
    for signs in np.ndindex(2, 2, 2, 2):
        start = np.concatenate([np.full(4, 0.1), 2.0 * np.array(signs) - 1.0])
        found = least_squares(lambda z: _units(offset, z, x) - truth, start, max_nfev=200, xtol=1e-14, ftol=1e-14)
        best = min(best, float(np.max(np.abs(found.fun))))
    return best


def _perfect_model() -> Iterator[Case]:
    for offset, kind in ((True, "s(w x + b) of Eq. (8)"), (False, "s(w (x - b)) of Appendix B")):
        error = _best_fit(offset)
        yield Case(f"units {kind}: largest error of the best fit {error:.1g}", {}, error < 1e-6)


def _missing(method: str, needed: Mapping[str, str]) -> Derivation:
    names = LOOP | frozenset(needed)
    listed = "; ".join(f"{name}: {meaning}" for name, meaning in needed.items())
    return Derivation(f"{method} ({listed}).", partial(_needs, lambda: names))


_FEATURE = "As the statements about the reference take it."
_SCHEDULE = Derivation("Every time step from 0 to 20 has to be given once.", _schedule)

_STRONG = Correction(
    r"\text{where $\varphi^2$ is strong, and $\varphi^1$ is negligible}",
    "dict(strong=2, negligible=1)",
    "The reference goes to +10, where phi^2 = 0.993 and phi^1 = -3e-7: the two parameters are exchanged.",
)

DERIVATIONS = {
    "6.bonus": Derivation("tau times the trace of the covariance, from its eigenvalues.", _bonus),
    "6.1.setting": Derivation(
        "The constants on which L depends when two steps of the cautious law are written out with SymPy.",
        partial(_needs, _toy_needs),
        remark="The control cost is called Lambda here and U elsewhere.",
    ),
    "6.2.system": Derivation(
        "The general model of Section 2, entry by entry.",
        partial(_cart, True),
        conventions=(Convention("the disturbance xi_k of Section 2 is not written out", partial(_cart, False)),),
    ),
    "6.2.prior": Derivation("Sizes.", partial(_form, 2, 3)),
    "6.2.truth": Derivation("Sizes.", partial(_form, 2, 1)),
    "6.2.feature-1": Derivation(_FEATURE, partial(_feature, logistic_pair, 0)),
    "6.2.feature-2": Derivation(_FEATURE, partial(_feature, logistic_pair, 1)),
    "6.2.reference": _SCHEDULE,
    "6.2.weights": _SCHEDULE,
    "6.2.precise-phase": Derivation(
        "The number of precise steps, at the two places at which the text gives it.", _given_once
    ),
    "6.2.setting": _missing(
        "What a closed loop of this experiment needs",
        {"features": "number of features", "amplitude": "of the kernel", "lengthscale": "of the kernel"},
    ),
    "6.3.reference": _SCHEDULE,
    "6.3.weights": _SCHEDULE,
    "6.3.strong-feature": Derivation(
        "The size of both features along the reference.", _strong_feature, correction=_STRONG
    ),
    "6.3.relevant-parameter": Derivation(
        "The size of both features along the reference.",
        _strong_feature,
        correction=Correction(
            r"\text{between the relevant $\theta^2$ and the irrelevant $\theta^1$}", _STRONG.machine, _STRONG.reason
        ),
    ),
    "6.3.perfect-model": Derivation(
        "Nonlinear least squares from sixteen starts with four units and fixed b_i, for the units of Eq. (8) and of"
        " Appendix B: the error vanishes for both.",
        _perfect_model,
    ),
    "6.3.setting": _missing(
        "What a closed loop of this experiment needs",
        {"units": "number of units", "b": "their locations", "prior_v": "prior of v", "prior_w": "prior of w"},
    ),
    "6.4.feature-1": Derivation(_FEATURE, partial(_feature, bump_pair, 0)),
    "6.4.feature-2": Derivation(_FEATURE, partial(_feature, bump_pair, 1)),
    "6.4.truth": Derivation("Sizes.", partial(_form, 2, 1)),
    "6.4.reference": _SCHEDULE,
    "6.4.weights": _SCHEDULE,
    "6.4.order-of-parameters": Derivation(
        "The size of both features along the reference, in the order of time.",
        _order_of_parameters,
        correction=Correction(
            r"\text{ignores the growing uncertainty on $\t^2$ after reaching the area of $\t^1$}",
            "(2, 1)",
            "The reference passes -2, where phi^2 is 1, and then stays at +2, where phi^1 is 1.",
        ),
    ),
    "6.4.setting": _missing(
        "What a closed loop of this experiment needs", {"prior": "prior of theta", "Xi": "drift of the parameters"}
    ),
    "6.5.costs": Derivation(
        "What a number in the table needs to be compared with: mean, deviation, runs and unit (L, or L per time step).",
        partial(_needs, lambda: frozenset({"mean", "deviation", "runs", "unit"})),
    ),
}
