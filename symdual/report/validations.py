"""Figures of a validation, one for each question: how far ahead, whiteness, consistency, and the model left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symdual.common.errors import SymdualError
from symdual.identification.validate import Prediction, Validation
from symdual.report.drawing import new_figure, save
from symdual.report.palette import BELIEVED, OTHER, TRUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def validation_figures(judged: Sequence[Validation], folder: Path) -> list[Path]:
    """Draw all figures of all recordings into a folder; returns their files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise SymdualError(f"cannot make the folder {folder}: {failure.strerror}") from failure
    drawn = []
    for one in judged:
        for name, title, panel in _QUESTIONS:
            drawn.append(_figure(one, folder / f"{one.recording}_{name}.png", title, panel))
    return drawn


def _figure(one: Validation, path: Path, title: str, panel: Callable[[Any, Validation, int], None]) -> Path:
    count = len(one.labels)
    with new_figure((9.0, 0.9 + 2.4 * count)) as figure:
        for a, label in enumerate(one.labels):
            axes = figure.add_subplot(count, 1, a + 1)
            panel(axes, one, a)
            axes.set_title(label)
            if a == 0 and axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False, fontsize=7, ncols=4, loc="lower right", bbox_to_anchor=(1.0, 0.98))
        figure.suptitle(f"{one.recording}: {title}", fontsize=9, x=0.01, ha="left")
        save(figure, path)
    return path


def _band(axes: Axes, times: Any, made: Prediction, a: int, label: str) -> None:
    low, high = (made.outputs[:, a] + sign * made.band[:, a] for sign in (-1, 1))
    axes.fill_between(times, low, high, color=BELIEVED, alpha=0.2, lw=0, label="95 %")
    axes.plot(times, made.outputs[:, a], color=BELIEVED, lw=1.2, label=label)
    axes.plot(times, made.measured[:, a], ".", color=TRUE, ms=2, label="measured")
    axes.set_xlabel("time")


def _errors(axes: Axes, times: Any, errors: Any, spread: Any, label: str) -> None:
    axes.fill_between(times, -spread, spread, color=BELIEVED, alpha=0.2, lw=0, label="95 %")
    axes.plot(times, errors, ".", color=TRUE, ms=2, label=f"measured minus {label}")
    axes.set_xlabel("time")


def _one_step(axes: Axes, one: Validation, a: int) -> None:
    made = one.ahead[0]
    _errors(axes, one.times[1:], made.errors[:-1, a], made.band[:-1, a], "predicted")


def _horizon(axes: Axes, one: Validation, a: int) -> None:
    from matplotlib.ticker import MaxNLocator

    steps = np.arange(1, len(one.ahead) + 1)
    axes.plot(steps, [made.rms[a] for made in one.ahead], ".-", color=TRUE, label="root mean square error")
    axes.plot(steps, [made.expected[a] for made in one.ahead], "--", color=BELIEVED, label="expected by the model")
    axes.set_xlabel("steps ahead")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0.0)
    other = axes.twinx()
    other.plot(steps, [made.inside[a] for made in one.ahead], ":", color=OTHER)
    other.axhline(0.95, color=OTHER, lw=0.6)
    other.set_ylim(0.0, 1.02)
    other.set_ylabel("share in the 95 % band (dotted)", color=OTHER, fontsize=7)
    other.grid(False)


def _whiteness(axes: Axes, one: Validation, a: int) -> None:
    lags, band = np.arange(1, len(one.whiteness.correlations) + 1), one.whiteness.band[a]
    axes.axhspan(-band, band, color=BELIEVED, alpha=0.2, lw=0, label="95 % under the model")
    axes.vlines(lags, 0.0, one.whiteness.correlations[:, a], color=TRUE, lw=1.5)
    axes.axhline(0.0, color=TRUE, lw=0.6)
    axes.set_xlabel(f"lag in steps; probability of Ljung and Box {one.whiteness.probability[a]:.2g}")


def _consistency(axes: Axes, one: Validation, a: int) -> None:
    """The normalised errors of one measurement against the quantiles that they should have."""
    from scipy.stats import norm

    made = one.ahead[0]
    values = made.errors[:, a] / made.deviations[:, a]
    values = np.sort(values[np.isfinite(values)])
    if not len(values):
        return
    expected = norm.ppf((np.arange(len(values)) + 0.5) / len(values))
    axes.plot(expected, expected, color=BELIEVED, lw=1.0, label="under the model")
    axes.plot(expected, values, ".", color=TRUE, ms=3, label="normalised errors")
    axes.set_xlabel(one.consistency.sentence(), fontsize=7)


def _simulation(axes: Axes, one: Validation, a: int) -> None:
    _band(axes, one.times, one.simulation, a, "simulated")
    axes.set_xlabel(f"time; root mean square error {one.simulation.rms[a]:.3g}")


def _left_alone(axes: Axes, one: Validation, a: int) -> None:
    """The same errors by themselves: beside signals that swing widely their band cannot be seen."""
    made = one.simulation
    _errors(axes, one.times, made.errors[:, a], made.band[:, a], "simulated")


_QUESTIONS: tuple[tuple[str, str, Callable[[Any, Validation, int], None]], ...] = (
    ("prediction", "are the errors one step ahead as large as the model expects?", _one_step),
    ("horizon", "how far ahead can it predict?", _horizon),
    ("whiteness", "is there something left in the innovations? Their autocorrelation", _whiteness),
    ("consistency", "are the innovations distributed as they should be? Their quantiles", _consistency),
    ("simulation", "left alone from an estimated start, where does the model go?", _simulation),
    ("left_alone", "left alone, are its errors as large as the bands say?", _left_alone),
)
