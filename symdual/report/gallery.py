"""What the pages of the gallery print and draw: costs with standard errors, a sentence that follows, bands of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from symdual.report.palette import LOOKS, SOFT
from symdual.runtime.closed_loop import Episodes

COLOURS = {name: look.colour for name, look in LOOKS.items()}


class Judged(Protocol):
    """What a comparison asks of episodes: their costs, and which of them failed (not 0)."""

    @property
    def costs(self) -> NDArray[np.float64]: ...  # noqa: D102
    @property
    def outcomes(self) -> NDArray[np.int64]: ...  # noqa: D102


def spread(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard error over the runs that finished."""
    done = values[np.isfinite(values)]
    return float(done.mean()), float(done.std(ddof=1) / np.sqrt(len(done)))


def table(found: Mapping[str, Judged], baseline: str = "ce") -> str:
    """Cost of an episode by controller, and the difference to the baseline, run by run."""
    lines = [f"{'':10s} {'cost of an episode':>22s}   {'minus ' + baseline + ', run by run':>24s}   better in"]
    for name, episodes in found.items():
        costs, gap = episodes.costs, episodes.costs - found[baseline].costs
        failed = int(np.sum(episodes.outcomes != 0))
        line = f"{name:10s} {'{:11.4g} +- {:.2g}'.format(*spread(costs)):>22s}"
        if name != baseline:
            share = f"{100 * np.nanmean(gap < 0):.0f} %"
            line += f"   {'{:+.4g} +- {:.2g}'.format(*spread(gap)):>24s}   {share:>9s}"
        lines.append(line + (f"   {failed} episodes failed" if failed else ""))
    return "\n".join(lines)


def violated(episodes: Episodes, since: int = 1) -> float:
    """The share of steps, from one on, at which the constraint was violated."""
    return float(np.mean(episodes.constraints[episodes.outcomes == 0, since:, 0] > 0))


def kept(found: Mapping[str, Episodes], since: int = 1) -> str:
    """How often the constraint was violated from some step on, and how far from it the episodes were."""
    lines = [f"{'':10s} {'violated':>12s}   {'mean distance':>14s}   {'largest excess':>14s}"]
    for name, episodes in found.items():
        g = episodes.constraints[episodes.outcomes == 0, since:, 0]
        worst = max(float(g.max()), 0.0)
        lines.append(f"{name:10s} {100 * violated(episodes, since):10.1f} %   {-g.mean():14.3f}   {worst:14.3f}")
    return "\n".join(lines)


def sentence(found: Mapping[str, Judged], name: str, baseline: str = "ce") -> str:
    """Whether one controller is better than another, as far as the runs can tell."""
    count = len(found[name].costs)
    gap, error = spread(found[name].costs - found[baseline].costs)
    if max(abs(gap), error) < 1e-9 * abs(spread(found[baseline].costs)[0]):
        return f"{name} and {baseline} cost the same in each of {count} runs, to nine digits."
    share = abs(gap / spread(found[baseline].costs)[0])
    told = f"{gap:+.3g} +- {error:.2g} over {count} runs"
    if abs(gap) < 2 * error:
        return f"{name} and {baseline} cannot be told apart:\n{told}, less than two standard errors."
    certain = "" if abs(gap) >= 3 * error else " (between two and three standard errors)"
    return f"{name} costs {100 * share:.2g} % {'less' if gap < 0 else 'more'} than {baseline}:\n{told}{certain}."


def bands(panel: Any, values: NDArray[np.float64], name: str, times: NDArray[np.float64] | None = None) -> None:
    """The median of the runs, and where 80 % of them are."""
    low, middle, high = np.nanquantile(values, [0.1, 0.5, 0.9], axis=0)
    at = np.arange(float(len(middle))) if times is None else times[: len(middle)]
    panel.plot(at, middle, color=COLOURS[name], lw=1.6, label=name)
    panel.fill_between(at, low, high, color=COLOURS[name], alpha=0.13, lw=0)


def finish(panels: Any, labels: list[str], below: str, above: str = "medians, and 80 % of the runs") -> None:
    """Labels, grids, one legend, and what lines and bands are."""
    panels[0].set_title(above, loc="right", fontsize=8, color=SOFT)
    for panel, label in zip(panels, labels, strict=True):
        panel.set_ylabel(label)
        panel.grid(alpha=0.25, lw=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8)
    panels[-1].set_xlabel(below)
    panels[0].figure.align_ylabels(panels)
