"""Exp 4: what one run believes of its two parameters, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.experiments.captions import of_beliefs
from symdual.paper.experiments.figures.style import LOOKS, Picture, figure, picture
from symdual.paper.experiments.run import Recorded
from symdual.report.palette import HIGHLIGHT, INK
from symdual.runtime.problem import Problem

SHOWN = ("ce", "beb", "dual")
NX = 2


def beliefs_figure(problem: Problem, episodes: Mapping[str, Recorded], truth: Array, run: int = 0) -> Picture:
    """Rows ce, beb, dual; columns the beliefs on theta2 (passed first) and theta1 (needed to the end), the position."""
    drawn = figure(4.6)
    panels = drawn.subplots(len(SHOWN), 3, sharex=True)
    times = np.arange(problem.horizon + 1.0)
    limits = _limits([episodes[key] for key in SHOWN], run)
    for row, key in zip(panels, SHOWN, strict=True):
        own = episodes[key]
        for axes, parameter in zip(row, (1, 0), strict=False):
            _belief(axes, key, times, own.means[run, :, NX + parameter], own.variances[run, :, NX + parameter])
            axes.axhline(truth[parameter], color=INK, linewidth=1.0)
            axes.set(ylim=limits, yticks=[-2, 0, 2])
        _path(row[2], key, times, problem.reference[:, 0], own.states[run, :, 0])
        row[0].set_ylabel(key, color=LOOKS[key].colour, weight="bold")
    for axes, title in zip(
        panels[0],
        ("height of the bump at \N{MINUS SIGN}2 (θ²)", "height of the bump at +2 (θ¹)", "position"),
        strict=True,
    ):
        axes.set_title(title)
    for axes in panels[-1]:
        axes.set_xlabel("step $k$")
        axes.set_xticks(range(0, problem.horizon + 1, 5))
    return picture(
        drawn,
        "exp4-beliefs",
        "Exp 4: parameter beliefs and position of one run",
        of_beliefs(episodes, run),
        "Nine panels: beliefs on two parameters and the position over time for ce, beb and dual.",
    )


def _limits(shown: Sequence[Recorded], run: int) -> tuple[float, float]:
    """Room for every band."""
    spread = [2.0 * np.sqrt(own.variances[run, :, NX:]) for own in shown]
    means = [own.means[run, :, NX:] for own in shown]
    low = min(float(np.min(m - s)) for m, s in zip(means, spread, strict=True))
    high = max(float(np.max(m + s)) for m, s in zip(means, spread, strict=True))
    return low - 0.2, high + 0.2


def _belief(axes: Any, key: str, times: Array, mean: Array, variance: Array) -> None:
    look = LOOKS[key]
    spread = 2.0 * np.sqrt(variance)
    axes.fill_between(times, mean - spread, mean + spread, color=look.colour, alpha=0.22, linewidth=0)
    axes.plot(times, mean, color=look.colour, linestyle=look.line)


def _path(axes: Any, key: str, times: Array, reference: Array, path: Array) -> None:
    look = LOOKS[key]
    axes.plot(times, reference, color=HIGHLIGHT, linestyle=(0, (4, 2)), linewidth=1.3)
    axes.plot(times, path, color=look.colour, linewidth=1.0, marker=look.marker, markersize=3.0)
    axes.set(ylim=(-9, 7), yticks=[-5, -2, 2, 5])
