"""Fig. 1: the cost of the first input of the toy, sampled (left) and as the controllers see it (right)."""

from __future__ import annotations

from typing import Any

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.experiments.curves import Samples, cost_curve, exact_curve, sampled_costs
from symdual.paper.experiments.figures.style import LOOKS, Picture, figure, picture
from symdual.report.palette import EDGE, HIGHLIGHT, INK, SOFT
from symdual.runtime.problem import Problem

SHOWN = 40  # samples that are drawn
MEAN: Any = {"color": INK, "linestyle": (0, (4, 2)), "linewidth": 1.8}
"""The mean of the draws looks the same in both panels."""
_RANGE = 1.4  # first inputs from minus to plus this


def toy_figure(problem: Problem, seed: int, samples: int) -> Picture:
    """Fig. 1 for the toy's own prior."""
    inputs = np.linspace(-_RANGE, _RANGE, 561)
    sampled = sampled_costs(problem, inputs, samples, seed)
    mean = sampled.costs.mean(axis=0)
    curves = {name: cost_curve(problem, name, inputs) for name in ("ce", "cautious", "beb", "dual")}
    expected = exact_curve(problem, inputs[::5])
    lowest = {name: float(inputs[int(np.argmin(curve))]) for name, curve in {"mean": mean, **curves}.items()}
    drawn = figure(4.4)
    left, right = np.asarray(drawn.subfigures(1, 2))
    _samples(left, sampled, mean, inputs[::5], expected)
    _curves(right, inputs, curves, mean, lowest)
    best = float(inputs[::5][int(np.argmin(expected))])
    return picture(
        drawn,
        "fig1-toy",
        "Fig. 1: the cost of the first input of the toy",
        "Left: every gray line is the cost that one draw of the gain and the noise gives to the first input when the "
        f"second is chosen optimally; one is highlighted. Their mean is lowest at {lowest['mean']:.2f}, the exact "
        f"expectation at {best:.2f}. Right: every cost is shifted so that its minimum is zero; below, where each is "
        f"lowest: ce {lowest['ce']:.2f}, cautious {lowest['cautious']:.2f}, beb {lowest['beb']:.2f}, dual "
        f"{lowest['dual']:.2f}. {_bumps(inputs, curves)}",
        f"Two panels of cost against the first input. The expected cost has its lowest point at {best:.2f}.",
    )


def _bumps(inputs: Array, curves: dict[str, Array]) -> str:
    """Which costs have a hill about zero, where nothing is learned: higher there than somewhere on both sides."""
    near = np.abs(inputs) < 0.1
    hilly = [
        name
        for name, cost in curves.items()
        if cost[near].max() > max(cost[(inputs < 0.0) & ~near].min(), cost[(inputs > 0.0) & ~near].min())
    ]
    smooth = [name for name in curves if name not in hilly]
    return (
        f"With a bump at zero, where nothing is learned: {', '.join(hilly) or 'none'}; "
        f"without: {', '.join(smooth) or 'none'}."
    )


def _samples(part: Any, sampled: Samples, mean: Array, grid: Array, expected: Array) -> None:
    axes = part.subplots()
    shown = sampled.costs[:: max(1, len(sampled.costs) // SHOWN)][:SHOWN]
    axes.plot(sampled.inputs, shown.T, color=EDGE, linewidth=0.5, alpha=0.7)
    axes.plot([], [], color=EDGE, linewidth=0.8, label="one draw each")
    axes.plot(sampled.inputs, _typical(shown), color=HIGHLIGHT, linewidth=1.6, label="one of them")
    axes.plot(grid, expected, color=SOFT, linewidth=3.0, alpha=0.45, label="exact, by quadrature")
    axes.plot(sampled.inputs, mean, **MEAN, label=f"mean of {len(sampled.costs)} draws")
    axes.set(title="sampled costs", xlabel="first input $u_0$", ylabel="cost $L(u_0)$")
    axes.set(ylim=(0, 13), xlim=(-_RANGE, _RANGE))
    part.legend(loc="outside lower center", ncols=2, handlelength=2.4, columnspacing=1.2)


def _typical(costs: Array) -> Array:
    """A sample that stays inside the picture: the one whose mean is the median of the means."""
    means = costs.mean(axis=1)
    return np.asarray(costs[int(np.argsort(means)[len(means) // 2])])


def _curves(part: Any, inputs: Array, curves: dict[str, Array], mean: Array, lowest: dict[str, float]) -> None:
    """The curves, and below them a line for each with its minimum, so that no mark hides another."""
    axes, strip = part.subplots(2, 1, sharex=True, height_ratios=[4.2, 1.5])
    axes.plot(inputs, mean - mean.min(), **MEAN, label="mean of the draws")
    for name, curve in curves.items():
        look = LOOKS[name]
        axes.plot(inputs, curve - curve.min(), color=look.colour, linestyle=look.line, label=name)
    axes.axvline(0.0, color=SOFT, linewidth=0.5)
    axes.set(title="what the controllers minimise", ylabel="cost above its minimum", ylim=(0, 3.4))
    rows = ["mean", *curves]
    for row, name in enumerate(reversed(rows)):
        colour, marker = (INK, "*") if name == "mean" else (LOOKS[name].colour, LOOKS[name].marker)
        strip.plot(lowest[name], row, color=colour, marker=marker, markersize=7 if name == "mean" else 5)
        strip.axhline(row, color=colour, linewidth=0.4, zorder=0)
    strip.axvline(0.0, color=SOFT, linewidth=0.5)
    strip.set_yticks(range(len(rows)), reversed(rows))
    strip.set(xlabel="first input $u_0$", ylim=(-0.7, len(rows) - 0.3), xlim=(-_RANGE, 1.0))
    strip.tick_params(axis="y", labelsize=7, length=0)
    strip.set_title("lowest at", fontsize=8, color=SOFT)
    part.legend(loc="outside lower center", ncols=3, handlelength=2.4, columnspacing=1.2)
