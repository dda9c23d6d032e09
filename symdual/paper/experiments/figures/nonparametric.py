"""Exp 2 with the exact kernel: what both models have learned of the slope, and what the steps cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.experiments.figures.kernel import true_slope
from symdual.paper.experiments.figures.style import LOOKS, Picture, figure, picture, styled
from symdual.report.palette import HIGHLIGHT, INK

GRID = np.linspace(-14.0, 14.0, 141)
FAR = 1.0  # distance from all visited positions that counts as never having been there


class Learned(NamedTuple):
    """The belief on the slope over `GRID` at the end of one run, and the mean cost of each step over all runs."""

    label: str
    mean: Array
    deviation: Array
    visited: Array
    costs: Array


def far_deviation(model: Learned) -> float:
    """The mean deviation of the slope at positions farther than `FAR` from every visited one."""
    distance = np.min(np.abs(GRID[:, None] - model.visited), axis=1)
    return float(np.mean(model.deviation[distance > FAR]))


def nonparametric_figure(models: tuple[Learned, Learned], step_cost_of_ce: Array) -> Picture:
    """The slope as each model believes it after the same run, and the cost of each step of dual and ce."""
    with styled():
        drawn = figure(2.9)
        panels = drawn.subplots(1, 3, width_ratios=[1, 1, 1.1])
        for axes, model, key in zip(panels[:2], models, ("dual", "beb"), strict=True):
            colour = LOOKS[key].colour
            axes.plot(GRID, true_slope(GRID), color=INK, linewidth=1.2, linestyle=(0, (1, 1)), label="truth")
            low, high = model.mean - 2 * model.deviation, model.mean + 2 * model.deviation
            axes.fill_between(GRID, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(GRID, model.mean, color=colour, label="mean, two deviations")
            axes.plot(model.visited, np.full(len(model.visited), -1.45), color=INK, marker="|", linestyle="", ms=5)
            axes.set(title=f"slope, {model.label}", xlabel="position", ylim=(-1.55, 1.25))
        panels[0].legend(loc="upper left")
        steps = np.arange(len(models[0].costs))
        for model, key in zip(models, ("dual", "beb"), strict=True):
            look = LOOKS[key]
            panels[2].plot(steps, model.costs, color=look.colour, ls=look.line, marker=look.marker, label=model.label)
        panels[2].plot(steps, step_cost_of_ce, color=HIGHLIGHT, lw=1.0, ls=(0, (3, 1)), label="ce, exact kernel")
        panels[2].set(title="mean cost of each step", xlabel="step", yscale="symlog")
        panels[2].legend(loc="upper left")
        return picture(
            drawn,
            "extra-exact-kernel",
            "Exp 2 with the exact kernel",
            "Left and middle: what a dual run (the first one) has taught each model about the slope; ticks mark where "
            f"the cart has been. Mean standard deviation where it was not within {FAR:g}: "
            + ", ".join(f"{far_deviation(model):.2f} ({model.label})" for model in models)
            + ". Right: the mean cost of each step.",
            "Two panels with the learned slope and its uncertainty, one with the cost of each step.",
        )
