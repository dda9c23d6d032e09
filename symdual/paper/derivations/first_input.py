"""The toy's first input, Figure 1 and experiment 1: the shape of every controller's cost, and where it is lowest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from symdual.paper.case import Case, Computed, Convention, Correction, Derivation, Printed, Undecidable, Within
from symdual.paper.derivations import draws
from symdual.paper.derivations.expansion import Toy
from symdual.paper.derivations.feedback import feedback_cost
from symdual.paper.derivations.model import lowest
from symdual.paper.derivations.toy import TwoSteps


def lowest_input(name: str, setting: Mapping[str, Any], start: float) -> float:
    """The first input with the lowest cost: certainty equivalent, with bonus, dual (corrected), or exact."""
    cost = _COSTS[name]
    grid = np.linspace(-1.3, 0.1, 29)
    for width in (0.05, 0.005):
        best = float(grid[int(np.argmin([cost(setting, start, float(u)) for u in grid]))])
        grid = best + np.linspace(-width, width, 11)
    return best


def _apart(start: float, setting: Mapping[str, Any], first: str, second: str) -> float:
    """How far apart two controllers' inputs of lowest cost are."""
    return abs(lowest_input(first, setting, start) - lowest_input(second, setting, start))


def _certain(setting: Mapping[str, Any], start: float, u0: float) -> float:
    a, b, w, price = setting["a"], setting["prior_mean"], setting["W"], setting["U"]
    x1 = a * start + b * u0
    return float(w * start**2 + price * u0**2 + w * x1**2 + lowest(lambda u: price * u**2 + w * (a * x1 + b * u) ** 2))


def _bonus(setting: Mapping[str, Any], start: float, u0: float) -> float:
    left = 1.0 / (1.0 / setting["prior_variance"] + u0**2 / setting["Q"])
    return _certain(setting, start, u0) + float(setting["tau"] * left)


def _dual(setting: Mapping[str, Any], start: float, u0: float) -> float:
    s = setting
    toy = Toy(s["a"], start, u0, s["prior_mean"], s["prior_variance"], s["Q"], s["W"], s["U"])
    return _certain(setting, start, u0) + feedback_cost(*toy.linearised())


def _exact(setting: Mapping[str, Any], start: float, u0: float) -> float:
    return _exact_cost(
        start, u0, *(float(setting[key]) for key in ("a", "W", "U", "prior_mean", "prior_variance", "Q"))
    )


@cache
def _exact_cost(start: float, u0: float, a: float, *others: float) -> float:
    """The same numbers are asked for by several statements."""
    return TwoSteps(a, start, u0, *others).exact()


_COSTS = {"ce": _certain, "beb": _bonus, "dual": _dual, "exact": _exact}


def _toy_costs(starts: Sequence[float], expected: Within) -> Iterator[Case]:
    for start in starts:
        symbols = {
            "tau": Printed("6.1.bonus-weight"),
            "setting": Printed("6.1.setting"),
            "apart": partial(_apart, start),
        }
        yield Case(f"x_0 = {start:g}", symbols, expected)


def _width(start: float, rise: float, setting: Mapping[str, Any], name: str) -> float:
    """How far the inputs reach whose cost is at most so much above the lowest one."""
    best = lowest_input(name, setting, start)
    level = _COSTS[name](setting, start, best) + rise

    def excess(u: float) -> float:
        return _COSTS[name](setting, start, u) - level

    far = 1.0
    while min(excess(best - far), excess(best + far)) <= 0.0:  # every cost grows at least as U u^2 does
        far *= 2.0
    return float(brentq(excess, best, best + far, xtol=1e-3) - brentq(excess, best - far, best, xtol=1e-3))


def _widths(starts: Sequence[float], expected: Within) -> Iterator[Case]:
    for start in starts:
        for rise in (1.0, 10.0):
            symbols = {"setting": _PRINTED_SETTING, "width": partial(_width, start, rise)}
            yield Case(f"x_0 = {start:g}, {rise:g} above the lowest cost", symbols, expected)


def _sizes(starts: Sequence[float], expected: Within) -> Iterator[Case]:
    for start in starts:

        def size(setting: Mapping[str, Any], name: str, start: float = start) -> float:
            return abs(lowest_input(name, setting, start))

        yield Case(f"x_0 = {start:g}", {"setting": _PRINTED_SETTING, "size": size}, expected)


def _minima(start: float, setting: Mapping[str, Any]) -> tuple[str, ...]:
    """On which sides of zero the minima of the exact cost lie, from the lowest input to the highest."""
    inputs = np.linspace(-0.6, 0.6, 49) + 1e-3  # none of them is zero
    costs = np.array([_exact(setting, start, float(u)) for u in inputs])
    valleys = inputs[1:-1][(costs[1:-1] < costs[:-2]) & (costs[1:-1] < costs[2:])]
    return tuple("at zero" if abs(u) < 0.02 else "below zero" if u < 0 else "above zero" for u in valleys)


def _sides(starts: Sequence[float]) -> Iterator[Case]:
    for start in starts:
        yield Case(f"x_0 = {start:g}", {}, Computed(partial(_minima, start), {"setting": _PRINTED_SETTING}))


def _parabola() -> Iterator[Case]:
    """What is left of the certainty equivalent cost beside its best parabola, for several constants."""
    u = np.linspace(-2.0, 2.0, 9)
    for seed in range(3):
        a, mean, w, price, start = (float(draws.covariance(draws.source(92, seed, i), 1).array[0, 0]) for i in range(5))
        setting = {"a": a, "prior_mean": mean, "W": w, "U": price}
        costs = np.array([_certain(setting, start, float(value)) for value in u])
        left = np.max(np.abs(costs - np.polyval(np.polyfit(u, costs, 2), u)))
        yield Case(f"draw {seed + 1}", {}, "quadratic" if left < 1e-9 * np.max(costs) else "not quadratic")


_PRINTED_SETTING = Printed("6.1.setting", symbols={"tau": 0.0})
"""The constants but for the weight of the bonus, which stands elsewhere."""


def _noise_free() -> Iterator[Case]:
    levels = Computed(lambda setting: {"Q": setting["Q"], "R": setting["R"]}, {"setting": _PRINTED_SETTING})
    yield Case("the constants of experiment 1", {"setting": _PRINTED_SETTING}, levels)


def _bend(costs: Callable[[float], float], at: float, width: float = 1e-2) -> float:
    """The curvature of a cost of the first input."""
    return (costs(at + width) - 2 * costs(at) + costs(at - width)) / width**2


def _slope_at_zero(setting: Mapping[str, Any]) -> str:
    """Whether zero is as good as what lies beside it."""
    left, right = (_certain(setting, 1.0, u) for u in (-0.1, 0.1))
    return "indifferent" if abs(right - left) < 1e-9 else "not indifferent"


def _bend_at_zero(setting: Mapping[str, Any]) -> str:
    """Whether the cost has a structure of its own at zero."""
    bends = [_bend(partial(_certain, setting, 1.0), at, 0.1) for at in (0.0, 1.0, -2.0)]
    return "indifferent" if np.ptp(bends) < 1e-9 * max(bends) else "not indifferent"


def _encouragement(setting: Mapping[str, Any]) -> str:
    """Whether the bonus turns the valley at zero into a hill, from which both ways lead to more knowledge."""
    plain, bonus = (_bend(partial(cost, setting, 0.0), 0.0) for cost in (_certain, _bonus))
    return "encourages" if plain > 0 > bonus else "does not encourage"


_SAME_PLACE = Within({"apart": (0.0, 0.05)})
_AWAY = "the first state is away from its target (x_0 = 1; the paper does not say where it is)"

DERIVATIONS: dict[str, Derivation | Undecidable] = {
    "3.1.narrower": Derivation(
        "The widths of both costs, certainty equivalent and exact (Bayes' rule on a grid of b), as far above their"
        " lowest values, with the constants of experiment 1; much narrower: at most half as wide.",
        partial(_widths, (1.0, 0.0), Within({"share": (0.0, 0.5)})),
        remark="Far away the dual cost grows as if b were known: as E[b^2 (...)] u_0^2, and b^2 has the mean 11.",
    ),
    "3.1.more-cautious": Derivation(
        "The sizes of the first inputs with the lowest certainty equivalent and the lowest exact cost, with the"
        " constants of experiment 1.",
        partial(_sizes, (0.5, 1.0, 2.0), Within({"share": (0.0, 0.9)})),
    ),
    "3.1.either-side": Derivation(
        "The minima of the exact cost on a grid of first inputs, with the constants of experiment 1.",
        partial(_sides, (1.0, 0.0)),
        conventions=(Convention(_AWAY, partial(_sides, (1.0,))),),
    ),
    "6.1.noise-free": Derivation(
        "The constants of the experiment.",
        _noise_free,
        correction=Correction(
            r"\text{For the linear system with noise-free observations}",
            "dict(Q=setting['Q'], R=0)",
            "Only the observations are free of noise (R = 0, as Section 3.1 says); the disturbance is Q = 0.1.",
        ),
    ),
    "6.1.quadratic": Derivation("The certainty equivalent cost of nine inputs, against its best parabola.", _parabola),
    "6.1.indifferent": Derivation(
        "The certainty equivalent cost on both sides of zero, x_0 = 1.",
        lambda: iter([Case("x_0 = 1", {}, Computed(_slope_at_zero, {"setting": _PRINTED_SETTING}))]),
        conventions=(
            Convention(
                "it has no structure of its own at zero, the curvature is the same everywhere; zero is not as good as"
                " the inputs beside it unless x_0 = 0",
                lambda: iter([Case("x_0 = 1", {}, Computed(_bend_at_zero, {"setting": _PRINTED_SETTING}))]),
            ),
        ),
    ),
    "6.1.bonus-structure": Derivation(
        "The curvature at zero of the cost with and without the bonus, x_0 = 0.",
        lambda: iter(
            [
                Case(
                    "x_0 = 0",
                    {"tau": Printed("6.1.bonus-weight")},
                    Computed(_encouragement, {"setting": Printed("6.1.setting")}),
                )
            ]
        ),
    ),
    "6.1.bonus-minimum": Derivation(
        "The lowest of the costs with and without the bonus on a grid of first inputs.",
        partial(_toy_costs, (1.0, 0.0), _SAME_PLACE),
        conventions=(Convention(_AWAY, partial(_toy_costs, (1.0,), _SAME_PLACE)),),
    ),
    "6.1.dual-minimum": Derivation(
        "The lowest of the dual cost (corrected) and of the exact expected cost (Bayes' rule on a grid of b) on a grid"
        " of first inputs: dual's is at most half as far from the exact one as that of the bonus.",
        partial(_toy_costs, (1.0, 0.0), Within({"share": (0.0, 0.5)})),
    ),
}
