"""The figure of a replayed recording: the belief over time, and whether the innovations were as large as expected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from symdual.common.transforms import band_of
from symdual.report.drawing import new_figure, save
from symdual.report.palette import BELIEVED, OTHER, TRUE
from symdual.runtime.belief import Belief, processes_of
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.posterior import posterior, remembered
from symdual.runtime.replay import Replay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 8  # entries of the belief that are drawn; more make a figure that nobody reads


def replay_figure(result: Replay, package: LoadedPackage, path: Path) -> Path:
    """Draw mean and 95 % band of each entry of the belief with the measurements, and the NIS of each row.

    An unknown function of one argument has a panel of its own, with what is known of it at the end.
    """
    names = package.belief_names
    numbers = np.flatnonzero(~processes_of(package))
    entries = numbers[:_SHOWN]
    functions = [name for name in package.PROCESSES if remembered(package, result.belief, name).shape[1] == 1]
    panels = len(entries) + len(functions)
    rows = (panels + 1) // 2 + 1
    with new_figure((9.0, 1.0 + 1.7 * rows)) as figure:
        grid = figure.add_gridspec(rows, 2)
        for place, i in enumerate(entries):
            _entry(figure.add_subplot(grid[place // 2, place % 2]), result, package, names[i], int(i))
        for place, name in enumerate(functions, start=len(entries)):
            function_panel(figure.add_subplot(grid[place // 2, place % 2]), package, result.belief, name)
        _innovations(figure.add_subplot(grid[rows - 1, :]), result)
        rest = f", {len(entries)} of {len(numbers)} entries" if len(entries) < len(numbers) else ""
        title = f"{package.name}: belief over time{rest}; log-likelihood {result.log_likelihood:.6g}"
        figure.suptitle(f"{title}\n{result.consistency.sentence()}", fontsize=9, x=0.01, ha="left")
        return save(figure, path)


def _entry(axes: Axes, result: Replay, package: LoadedPackage, name: str, i: int) -> None:
    times, own = result.recording.times, slice(i, i + 1)
    mean, variance = np.asarray(result.means)[:, own], np.asarray(result.deviations)[:, own] ** 2
    lower, upper = band_of(package.transforms[own], mean, variance, 1.96)
    axes.fill_between(times, lower[:, 0], upper[:, 0], color=BELIEVED, alpha=0.2, lw=0, label="95 % of the belief")
    axes.plot(times, mean[:, 0], color=BELIEVED, lw=1.3, label="mean")
    if name in package.MEASUREMENTS:
        values = result.recording.measurements[:, package.MEASUREMENTS[name]]
        axes.plot(times, values, ".", color=TRUE, ms=3, label="measured")
    axes.set_title(f"{name} (unknown)" if i >= package.NX else name)
    if i == 0:
        axes.legend(frameon=False, fontsize=7, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 0.98), borderpad=0.0)


def function_panel(axes: Axes, package: LoadedPackage, belief: Belief, process: str) -> None:
    """Draw what a belief says about an unknown function of one argument: mean, 95 % band, and where it was met."""
    met = remembered(package, belief, process)[:, 0]
    low, high = (met.min(), met.max()) if len(met) else (-1.0, 1.0)
    margin = 0.25 * (high - low) + 1e-9 + (0.5 if high == low else 0.0)
    at = np.linspace(low - margin, high + margin, 201)
    for output, array in enumerate(package.PROCESSES[process]):
        found = posterior(package, belief, at, process, output)
        spread = 1.96 * found.deviation
        axes.fill_between(at, found.mean - spread, found.mean + spread, color=BELIEVED, alpha=0.2, lw=0)
        axes.plot(at, found.mean, color=BELIEVED, lw=1.3, ls=("-", "--", ":", "-.")[output % 4], label=array)
    axes.plot(met, np.zeros(len(met)), "|", color=TRUE, ms=6)
    axes.set_title(f"{process} over its argument, at the end; ticks: where it was met")
    if len(package.PROCESSES[process]) > 1:
        axes.legend(frameon=False, fontsize=7)


def _innovations(axes: Axes, result: Replay) -> None:
    from scipy.stats import chi2

    seen = result.measured > 0
    axes.plot(result.recording.times[seen], result.nis[seen], ".", color=OTHER, ms=4)
    if seen.any():
        most = int(np.bincount(result.measured[seen]).argmax())
        limit = float(chi2.ppf(0.95, most))
        axes.axhline(limit, color=OTHER, lw=0.9, ls="--")
        if result.nis.max() > 10.0 * limit:
            axes.set_yscale("symlog", linthresh=limit)
        axes.set_ylim(bottom=0.0)
    axes.set_title("normalised innovation squared (NIS); 95 % of an honest filter's lie below the dashed line")
    axes.set_xlabel("time")
