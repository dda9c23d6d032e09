"""Exp 2 and 3: where the cart is, as a density over all runs, and what every step costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, PowerNorm

from symdual.common.arrays import Array
from symdual.paper.experiments.figures.style import LOOKS, Picture, figure, picture
from symdual.paper.experiments.run import Recorded
from symdual.report.palette import HIGHLIGHT, INK, SOFT
from symdual.runtime.problem import Problem

FREE = ("loose", "free")  # names of phases in which the state costs nothing
FINE = 16  # columns of the density in a step
CELLS = 260  # rows of the density
NARROWEST, BROADEST = 0.008, 0.03  # bandwidth as a share of the height of a panel
LOWEST = 1e-3  # cost of a step that is still shown
FARTHEST = 19.0  # positions beyond this are not shown


def density_figure(
    name: str,
    title: str,
    explanation: str,
    problem: Problem,
    episodes: Mapping[str, Recorded],
    bands: Sequence[tuple[float, float, str]] = (),
) -> Picture:
    """A panel with the density of the first state for every controller, and the mean cost of every step below.

    Args:
        bands: first step, last step and name of the phases; those without a cost of the state are shaded.
    """
    shown = [key for key in LOOKS if key in episodes]
    limits = _limits([episodes[key].states[:, :, 0] for key in shown], problem.reference[:, 0])
    drawn = figure(1.12 * len(shown) + 2.4)
    panels = drawn.subplots(len(shown) + 1, 1, sharex=True, height_ratios=[1.0] * len(shown) + [1.9])
    densities = {key: density(episodes[key].states[:, :, 0], limits) for key in shown}
    brightest = float(np.quantile(np.concatenate([d.max(axis=0) for d in densities.values()]), 0.9))
    for axes, key in zip(panels, shown, strict=False):
        _panel(axes, key, densities[key], brightest, problem.reference[:, 0], limits)
        _shade(axes, bands)
        _beyond(axes, episodes[key].states[:, :, 0], limits)
    for first, last, word in bands:
        panels[0].text(
            (first + last) / 2,
            limits[1] + 0.03 * (limits[1] - limits[0]),
            word,
            ha="center",
            va="bottom",
            fontsize=7.5,
            color=SOFT,
        )
    _step_costs(panels[-1], episodes, shown, bands)
    _labels(panels)
    runs = len(next(iter(episodes.values())).states)
    means = ", ".join(f"{key} {np.nanmean(episodes[key].costs) / problem.horizon:.2f}" for key in shown)
    return picture(
        drawn, name, title, explanation, f"Densities of {runs} runs per controller; mean cost a step: {means}."
    )


def _limits(paths: Sequence[Array], reference: Array) -> tuple[float, float]:
    """Room for the reference and for nearly all of the runs."""
    low = min(float(np.nanquantile(path, 0.01)) for path in paths)
    high = max(float(np.nanquantile(path, 0.99)) for path in paths)
    low, high = max(min(low, reference.min()), -FARTHEST), min(max(high, reference.max()), FARTHEST)
    return low - 3.0, high + 3.0


def _shade(axes: Any, bands: Sequence[tuple[float, float, str]]) -> None:
    for first, last, word in bands:
        if word in FREE:
            axes.axvspan(first, last, color=SOFT, alpha=0.10, linewidth=0)


def density(paths: Array, limits: tuple[float, float]) -> Array:
    """Density of the runs over position, (CELLS, columns): a Gaussian kernel at each of many times between the steps.

    The bandwidth follows Silverman's rule, within bounds that keep a bundle of equal runs visible and different ones
    apart; half the way that a run makes between two columns is added, so that steep lines have no gaps.
    """
    steps = paths.shape[1] - 1
    times = np.linspace(0, steps, FINE * steps + 1)
    places = np.linspace(*limits, CELLS)
    finished = paths[np.all(np.isfinite(paths), axis=1)]
    values = np.array([np.interp(times, np.arange(steps + 1), path) for path in finished])
    ways = np.abs(np.gradient(values, axis=1)) if len(finished) else values
    height = limits[1] - limits[0]
    result = np.zeros((CELLS, len(times)))
    for column in range(len(times) if len(finished) else 0):
        here = values[:, column]
        silverman = 0.9 * float(np.std(here)) * len(here) ** -0.2
        width = np.hypot(np.clip(silverman, NARROWEST * height, BROADEST * height), 0.5 * ways[:, column])
        weights = np.exp(-0.5 * ((places[:, None] - here) / width) ** 2) / (width * np.sqrt(2.0 * np.pi))
        result[:, column] = np.mean(weights, axis=1)
    return result


def _panel(axes: Any, key: str, values: Array, brightest: float, reference: Array, limits: tuple[float, float]) -> None:
    look = LOOKS[key]
    shades = LinearSegmentedColormap.from_list(key, ["white", look.colour, _darker(look.colour)])
    steps = len(reference) - 1
    axes.imshow(
        values, cmap=shades, norm=PowerNorm(0.5, 0.0, brightest), aspect="auto", origin="lower",
        extent=(0, steps, *limits), interpolation="bilinear",
    )  # fmt: skip
    axes.plot(range(steps + 1), reference, color=HIGHLIGHT, linestyle=(0, (4, 2)), linewidth=1.2)
    axes.set(xlim=(0, steps), ylim=limits, yticks=range(10 * int(limits[0] / 10), int(limits[1]) + 1, 10))
    axes.text(
        0.006,
        0.94,
        look.name,
        transform=axes.transAxes,
        va="top",
        fontsize=8.5,
        color=_darker(look.colour),
        weight="bold",
    )


def _beyond(axes: Any, paths: Array, limits: tuple[float, float]) -> None:
    """Say how far the middle run goes where it leaves the panel."""
    middle = np.nanmedian(paths, axis=0)
    for pick, edge, place in ((np.nanargmin, 0, "bottom"), (np.nanargmax, 1, "top")):
        step = int(pick(middle))
        outside = middle[step] < limits[0] if edge == 0 else middle[step] > limits[1]
        if outside:
            axes.text(
                step,
                limits[edge],
                f"to {middle[step]:.0f}".replace("-", "\N{MINUS SIGN}"),
                ha="center",
                va=place,
                fontsize=7.5,
                color=INK,
            )


def _darker(colour: str) -> str:
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{int(0.55 * part):02x}" for part in parts)


def _step_costs(
    axes: Any, episodes: Mapping[str, Recorded], shown: Sequence[str], bands: Sequence[tuple[float, float, str]]
) -> None:
    _shade(axes, bands)
    for key in shown:
        look = LOOKS[key]
        cost = np.nanmean(episodes[key].step_costs, axis=0)
        axes.plot(
            range(len(cost)), np.maximum(cost, 1e-3 * LOWEST), color=look.colour, linestyle=look.line,
            marker=look.marker, markersize=3.4, linewidth=1.3, label=key,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set(xlabel="step $k$", ylabel="mean cost of a step")
    axes.set_ylim(LOWEST, axes.get_ylim()[1])
    axes.legend(ncols=len(shown), loc="upper left", bbox_to_anchor=(0.0, 1.18), borderaxespad=0.0, handlelength=3.2)


def _labels(panels: Any) -> None:
    panels[-1].set_xticks(range(0, int(panels[-1].get_xlim()[1]) + 1, 2))
    panels[(len(panels) - 1) // 2].set_ylabel("position", color=INK)
