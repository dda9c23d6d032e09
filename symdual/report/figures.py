"""The figure of a sweep: what each controller costs, does and knows."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symdual.common.arrays import Array
from symdual.report.drawing import new_figure, save
from symdual.report.palette import HIGHLIGHT, INK, LOOKS
from symdual.runtime.labelled import Labelled
from symdual.runtime.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHOWN = 4  # states and inputs that are drawn; more make a figure that nobody reads
_BAND_RUNS = 2000  # runs that the bands are taken from, so that the memory stays small


def available() -> bool:
    """Whether matplotlib is there to draw with."""
    return importlib.util.find_spec("matplotlib") is not None


def sweep_figure(results: Labelled, summary: Summary, path: Path) -> Path:
    """Draw a sweep and write it to a file (png, svg or pdf)."""
    return save(drawn_sweep(results, summary), path)


def drawn_sweep(results: Labelled, summary: Summary) -> Figure:
    """The figure of a sweep."""
    names = results.about["names"]
    rows: list[tuple[str, int, str]] = [("states", i, name) for i, name in enumerate(names["states"][:_SHOWN])]
    rows += [("inputs", i, name) for i, name in enumerate(names["inputs"][:_SHOWN])]
    with new_figure((9.0, 1.6 + 1.55 * (len(rows) + 1))) as figure:
        panels: Any = figure.subfigures(1, 2, width_ratios=[3, 2])
        _trajectories(panels[0], results, rows)
        _comparison(panels[1], results, summary)
        figure.suptitle(_title(results), fontsize=10, x=0.01, ha="left")
    return figure


def _title(results: Labelled) -> str:
    about = results.about
    truths = {
        "scenario": "the scenario's truth",
        "prior": "truth drawn from the prior",
        "drift": "truth drawn from the prior, drifting",
    }
    truth = truths[about["settings"]["truth"]]
    return f"{about['scenario']}: {about['runs']} runs, seed {about['seed']}, {truth}{_left_out(about['names'])}"


def _left_out(names: Mapping[str, Sequence[str]]) -> str:
    """Which rows the figure has no room for."""
    rest = [f"{_SHOWN} of {len(names[what])} {what}" for what in ("states", "inputs") if len(names[what]) > _SHOWN]
    return f"; shown: {' and '.join(rest)}" if rest else ""


def _trajectories(figure: Any, results: Labelled, rows: Sequence[tuple[str, int, str]]) -> None:
    """Median over runs and the band that holds 80 % of them, for each state and input, and what is still unknown."""
    axes = figure.subplots(len(rows) + 1, 1, sharex=True, squeeze=False)[:, 0]
    length = results.about.get("step", 1.0)
    for ax, (field, index, name) in zip(axes, rows, strict=False):
        for controller in results.description.controllers:
            values = results.array(controller, field)[:_BAND_RUNS, :, index]
            _band(ax, controller, values, length)
        if field == "states":
            _reference(ax, results, index, length)
            for limit in limits(results, index):
                ax.axhline(limit, color=HIGHLIGHT, linewidth=1.0, label="constraint")
        ax.set_title(f"{name} (median, 80 % of the runs)" if index == 0 and field == "states" else name)
    _uncertainty(axes[-1], results)
    axes[-1].set_xlabel(f"time (a step is {length:g})" if "step" in results.about else "step")
    if "step" not in results.about:
        axes[-1].xaxis.get_major_locator().set_params(integer=True)
    named = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), fontsize=8, ncols=7, frameon=False, loc="outside upper left")


def _reference(ax: Axes, results: Labelled, index: int, length: float) -> None:
    """The reference of a state, at the times at which its distance costs something."""
    held, weights = results.problem("reference"), results.problem("state_cost")
    times = np.arange(results.about["horizon"] + 1)
    weighed = weights[np.minimum(times, len(weights) - 1), index, index] != 0.0
    if weighed.any():
        shown = np.where(weighed, held[np.minimum(times, len(held) - 1), index], np.nan)
        ax.plot(length * times, shown, color=INK, linewidth=1.2, linestyle=(0, (1, 2)), label="reference")


def limits(results: Labelled, index: int) -> list[float]:
    """Where the constraints that concern this state alone begin: the zeros of each g that is a straight line in it.

    Which constraints these are is read from the values of the first controller's runs.
    """
    controller = results.description.controllers[0]
    states = results.array(controller, "states")[:_BAND_RUNS].reshape(-1, len(results.about["names"]["states"]))
    values = results.array(controller, "constraints")[:_BAND_RUNS].reshape(len(states), -1)
    x, found = states[:, index], []
    for g in values.T:
        known = np.isfinite(g) & np.isfinite(x)
        low, high = (
            (np.flatnonzero(known)[pick(x[known])] for pick in (np.argmin, np.argmax)) if known.any() else (0, 0)
        )
        if x[high] > x[low] and g[high] != g[low]:
            slope = (g[high] - g[low]) / (x[high] - x[low])
            off = np.abs(g[known] - g[low] - slope * (x[known] - x[low])).max()
            if off < 1e-9 * np.abs(g[known]).max():
                found.append(float(x[low] - g[low] / slope))
    return found


def _band(ax: Axes, controller: str, values: Array, length: float) -> None:
    known = values[np.isfinite(values).all(axis=1)]
    if not len(known):
        return
    low, middle, high = np.quantile(known, [0.1, 0.5, 0.9], axis=0)
    times = length * np.arange(values.shape[1])
    colour = LOOKS[controller].colour
    ax.fill_between(times, low, high, color=colour, alpha=0.13, linewidth=0)
    ax.plot(times, middle, color=colour, linestyle=LOOKS[controller].line, linewidth=1.5, label=controller)


def _uncertainty(ax: Axes, results: Labelled) -> None:
    """What the belief does not know of the parameters, relative to the beginning: tr S_k / tr S_0."""
    states = len(results.about["names"]["states"])
    for controller in results.description.controllers:
        variances = results.array(controller, "variances")[:_BAND_RUNS, :, states:].sum(axis=2)
        begun = variances[:, :1]
        if np.any(begun > 0):
            _band(ax, controller, variances / np.where(begun > 0, begun, np.nan), results.about.get("step", 1.0))
    ax.set_title("variance of the parameters, relative to the prior")
    ax.set_ylim(bottom=0)


def _comparison(figure: Figure | Any, results: Labelled, summary: Summary) -> None:
    """The cost of each run by controller, and the paired differences to the baseline with two standard errors."""
    upper, lower = figure.subplots(2, 1, height_ratios=[3, 2])
    names = [c.name for c in summary.controllers]
    positions = {name: len(names) - 1 - i for i, name in enumerate(names)}
    for c in summary.controllers:
        costs = results.array(c.name, "costs") / results.about["horizon"]
        _spread(upper, positions[c.name], costs[np.isfinite(costs)], LOOKS[c.name].colour)
        if c.difference is not None:
            error = 2 * (c.difference.error or 0.0)
            lower.errorbar(
                c.difference.mean,
                positions[c.name],
                xerr=error,
                fmt="o",
                color=LOOKS[c.name].colour,
                capsize=3,
                markersize=5,
            )
    lower.axvline(0.0, color=LOOKS[summary.baseline].colour, linewidth=1.0, linestyle="--")
    for ax in (upper, lower):
        ax.set_yticks(list(positions.values()), [_label(summary, name) for name in names] if ax is upper else names)
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.grid(False, axis="y")
        if ax.get_xscale() == "linear":
            ax.locator_params(axis="x", nbins=5)  # more would overlap where numbers are long
    upper.set_title("cost per step L / T: runs, quartiles, mean")
    lower.set_title(f"L / T minus that of {summary.baseline}, run by run (± 2 s.e.)")


def _label(summary: Summary, name: str) -> str:
    (found,) = (c for c in summary.controllers if c.name == name)
    failures = sum(found.failed.values())
    return f"{name}\n{failures} failed" if failures else name


def _spread(ax: Axes, position: int, costs: Array, colour: str) -> None:
    if not costs.size:
        return
    shown = costs[:_BAND_RUNS]
    # a fixed, even scatter: the figure of the same sweep is the same
    heights = position + 0.3 * (np.modf(np.arange(shown.size) * 0.6180339887498949)[0] - 0.5)
    ax.scatter(shown, heights, s=4, color=colour, alpha=0.25, linewidths=0)
    low, middle, high = np.quantile(costs, [0.25, 0.5, 0.75])
    ax.plot([low, high], [position + 0.3] * 2, color=colour, linewidth=4, alpha=0.6, solid_capstyle="butt")
    ax.plot(middle, position + 0.3, marker="|", color="white", markersize=7, markeredgewidth=1.5)
    ax.plot(np.mean(costs), position + 0.3, marker="D", color=colour, markersize=5, markeredgecolor="white")
    if costs.min() > 0 and np.quantile(costs, 0.99) > 30 * middle:
        ax.set_xscale("log")
