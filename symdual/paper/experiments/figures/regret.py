"""Where probing is worth it: the regret of the first input of the toy over a grid of priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LogNorm

from symdual.paper.experiments.figures.style import Picture, figure, picture, styled

LEAST, MOST = 1e-4, 3.0


def _word(value: float) -> str:
    if value < 5e-4:
        return "·"
    return f"{value:.3f}".lstrip("0") if value < 1.0 else f"{value:.2g}"


def regret_figure(
    regrets: Mapping[tuple[int, float, float], Mapping[str, float]],
    names: Sequence[str],
    horizons: Sequence[int],
    means: Sequence[float],
    variances: Sequence[float],
) -> Picture:
    """A panel for every controller and horizon; every cell says its number, so that it can be read without colour."""
    with styled():
        drawn = figure(2.5 * len(horizons) + 0.3)
        panels = drawn.subplots(len(horizons), len(names), sharex=True, sharey=True, squeeze=False)
        for row, horizon in zip(panels, horizons, strict=True):
            for axes, name in zip(row, names, strict=True):
                values = np.array([[regrets[horizon, m, v][name] for m in means] for v in variances])
                shown = axes.imshow(
                    np.clip(values, LEAST, MOST), cmap="Greys", norm=LogNorm(LEAST, MOST), origin="lower", aspect="auto"
                )
                for (j, i), value in np.ndenumerate(values):
                    word = _word(value)
                    colour = "white" if value > 0.06 else "black"
                    axes.text(i, j, word, ha="center", va="center", fontsize=6.5, color=colour)
                axes.set_title(f"{name}, T = {horizon}")
                axes.set_xticks(range(len(means)), [f"{m:g}" for m in means])
                axes.set_yticks(range(len(variances)), [f"{v:g}" for v in variances])
        for axes in panels[-1]:
            axes.set_xlabel("prior mean of b")
        for axes in panels[:, 0]:
            axes.set_ylabel("prior variance of b")
        drawn.colorbar(shown, ax=panels, label="regret of the first input", shrink=0.6)
        return picture(
            drawn,
            "extra-regret",
            "Regret of the first input of the toy",
            "Each cell is a prior: light cells lose nothing against the exact dual controller, dark ones much; the "
            "number is the regret (a dot: below 0.0005). Certainty equivalence loses where the gain is uncertain. "
            "Compare cautious with dual: where the dual cell is lighter, probing is worth it.",
            "Grids of numbers: regret of ce, cautious, dual and planned over prior mean and variance.",
        )
