"""What an experiment can tell: a table, a figure, and the experiment itself as a table of inputs."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError
from symdual.identification.identify import Identification
from symdual.report.drawing import new_figure, save
from symdual.report.grid import grid
from symdual.report.palette import BEFORE, BELIEVED, OTHER
from symdual.runtime.replay import TIME

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = ("-", "--", "-.")
SHOWN = 30  #: unknowns that are listed and drawn; the JSON has them all


def identification_table(found: Identification) -> Table:
    """The deviation of each unknown before and after."""
    rows: list[tuple[str, ...]] = []
    for name, before, after in list(zip(found.unknowns, found.before, found.after, strict=True))[:SHOWN]:
        share = 100 * after / before if before > 0 else 100.0
        left = f"{share:.0f}" if share >= 10 else f"{share:.2g}"
        rows.append((f"  {name}", f"+- {before:.3g}", f"+- {after:.3g}", f"{left} %"))
    if len(found.unknowns) > SHOWN:
        rows.append((f"  and {len(found.unknowns) - SHOWN} more",))
    return grid(("", "before", "after", "left"), rows)


def identification_figure(found: Identification, path: Path) -> Path:
    """Draw the inputs, the deviations over time, what is left of each unknown, and the information by combination."""
    inputs = min(len(found.input_names), 3)
    shown = min(len(found.unknowns), SHOWN)
    with new_figure((9.0, 1.2 + 1.2 * inputs + max(4.2, 2.4 + 0.16 * shown))) as figure:
        grid = figure.add_gridspec(inputs + 1, 2, height_ratios=[*([1.0] * inputs), 3.0])
        time = found.times[-1] * np.arange(len(found.inputs)) / max(len(found.inputs) - 1, 1)
        for a in range(inputs):
            axes = figure.add_subplot(grid[a, :])
            axes.step(time, found.inputs[:, a], where="post", color=OTHER, lw=1.1)
            axes.set_title(f"{found.input_names[a]} (input)")
        _left_over_time(figure.add_subplot(grid[inputs, 0]), found, shown)
        _information(figure.add_subplot(grid[inputs, 1]), found)
        title = f"{found.model}: {found.gain:.3g} bits about {len(found.unknowns)} unknowns, rank {found.rank}"
        lines = [title, *(one.sentence() for one in found.ambiguities[:2])]
        figure.suptitle("\n".join(lines), fontsize=9, x=0.01, ha="left")
        save(figure, path)
    return path


def _left_over_time(axes: Axes, found: Identification, shown: int) -> None:
    for i in range(shown):
        share = found.history[:, i] / found.before[i] if found.before[i] > 0 else np.ones(len(found.history))
        # those that show only together have the same share: dashes let the one below be seen
        axes.plot(found.times, share, ls=_LINES[i % len(_LINES)], lw=1.1, label=found.unknowns[i])
    axes.axhline(1.0, color=BEFORE, lw=0.8, ls="--")
    axes.set_yscale("log")
    axes.set_title("deviation left of each unknown, as a share of its prior")
    axes.set_xlabel("time")
    if shown <= 8:
        axes.legend(frameon=False, fontsize=7)


def _information(axes: Axes, found: Identification) -> None:
    values = np.maximum(found.eigenvalues, 1e-12)
    labels = [d.words() for d in found.directions]
    places = np.arange(len(values))
    axes.barh(places, values, color=BELIEVED, alpha=0.6)
    axes.axvline(1.0, color=BEFORE, lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.invert_yaxis()
    if len(values) <= 12:
        axes.set_yticks(places, [text if len(text) < 40 else text[:37] + "..." for text in labels], fontsize=6)
    axes.set_title("information by combination (prior: 1)")
    axes.grid(False, axis="y")


def write_plan(found: Identification, path: Path) -> Path:
    """Write the inputs as a table that `symdual identify` and, with measurements, `symdual fit` read."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([TIME, *found.input_names])
    for k, row in enumerate(found.inputs):
        writer.writerow([f"{found.step * k:.12g}", *(f"{float(v):.12g}" for v in row)])
    try:
        write_atomically(path, text.getvalue().encode())
    except OSError as failure:
        raise SymdualError(f"cannot write {path}: {failure.strerror}") from failure
    return path
