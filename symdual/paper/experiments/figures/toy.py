"""Fig. 1: the cost of the first input of the toy, sampled (left) and as the controllers see it (right)."""

from __future__ import annotations

from typing import Any

import numpy as np

from symdual.paper.experiments.curves import Samples, cost_curve, exact_curve, sampled_costs
from symdual.paper.experiments.figures.style import INK, LOOKS, SOFT, Picture, figure, picture
from symdual.runtime.problem import Array, Problem

HIGHLIGHT = "#e8850c"
SHOWN = 40  # samples that are drawn


def toy_figure(problem: Problem, seed: int, samples: int) -> Picture:
    """Fig. 1 for the toy's own prior."""
    inputs = np.linspace(-1.5, 1.5, 601)
    sampled = sampled_costs(problem, inputs, samples, seed)
    curves = {name: cost_curve(problem, name, inputs) for name in ("ce", "cautious", "beb", "dual")}
    expected = exact_curve(problem, inputs[::6])
    drawn = figure(3.5)
    left, right = drawn.subplots(1, 2)
    _samples(left, sampled, inputs[::6], expected)
    _curves(right, inputs, curves, sampled.costs.mean(axis=0))
    best = inputs[::6][int(np.argmin(expected))]
    return picture(
        drawn,
        "fig1-toy",
        "Fig. 1: the cost of the first input of the toy",
        "Left: every gray line is the cost that one draw of the gain and the noise gives to the first input when the "
        "second is chosen optimally; one is highlighted. Their mean is not lowest at zero but beside it, since doing "
        "nothing teaches nothing, and far narrower than a single draw: caution. Right: every cost is shifted so that "
        "its minimum, marked on the axis, is zero. The certainty-equivalent cost is a parabola; the bonus adds a bump "
        "at zero and leaves the minimum where it was; the cautious cost is narrow but has no bump; the dual cost has "
        "both, and its minimum lies where that of the sampled mean does.",
        f"Two panels of cost against the first input. The expected cost has its lowest point at {best:.2f}.",
    )


def _samples(axes: Any, sampled: Samples, grid: Array, expected: Array) -> None:
    shown = sampled.costs[:: max(1, len(sampled.costs) // SHOWN)][:SHOWN]
    axes.plot(sampled.inputs, shown.T, color="#9aa1ab", linewidth=0.5, alpha=0.7)
    axes.plot([], [], color="#9aa1ab", linewidth=0.8, label="one draw each")
    axes.plot(sampled.inputs, _typical(shown), color=HIGHLIGHT, linewidth=1.6, label="one of them")
    look = LOOKS["dual"]
    axes.plot(sampled.inputs, sampled.costs.mean(axis=0), color=look.colour, linestyle=(0, (4, 2)), linewidth=2.2,
              label=f"mean of {len(sampled.costs)} draws")  # fmt: skip
    axes.plot(grid, expected, color=INK, linewidth=0.9, label="exact, by quadrature")
    axes.set(title="sampled costs", xlabel="first input $u_0$", ylabel="cost $L(u_0)$", ylim=(0, 13), xlim=(-1.5, 1.5))
    axes.legend(
        loc="upper center",
        ncols=2,
        handlelength=2.2,
        columnspacing=1.0,
        facecolor="white",
        framealpha=0.9,
        frameon=True,
        edgecolor="none",
    )


def _typical(costs: Array) -> Array:
    """A sample that stays inside the picture: the one whose mean is the median of the means."""
    means = costs.mean(axis=1)
    return np.asarray(costs[int(np.argsort(means)[len(means) // 2])])


def _curves(axes: Any, inputs: Array, curves: dict[str, Array], mean: Array) -> None:
    axes.plot(inputs, mean - mean.min(), color=INK, linewidth=1.4, linestyle=(0, (1, 1)), label="mean of the draws")
    for name, curve in curves.items():
        look = LOOKS[name]
        axes.plot(inputs, curve - curve.min(), color=look.colour, linestyle=look.line, label=name)
        lowest = int(np.argmin(curve))
        axes.plot(inputs[lowest], 0.0, color=look.colour, marker=look.marker, clip_on=False, zorder=5, markersize=6)
    axes.plot(inputs[int(np.argmin(mean))], 0.0, color=INK, marker="*", markersize=10, clip_on=False, zorder=6)
    axes.axvline(0.0, color=SOFT, linewidth=0.5)
    axes.set(title="what the controllers minimise", xlabel="first input $u_0$", ylabel="cost above its minimum",
             ylim=(0, 3.4), xlim=(-1.4, 1.0))  # fmt: skip
    axes.legend(
        loc="upper center",
        ncols=2,
        handlelength=2.6,
        columnspacing=1.0,
        facecolor="white",
        framealpha=0.9,
        frameon=True,
        edgecolor="none",
    )
