"""What every controller saves against ce, in each experiment: the picture with which the page opens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symdual.paper.experiments.figures.style import LOOKS, Picture, figure, picture, styled
from symdual.paper.experiments.table import Table
from symdual.report.palette import EDGE, SOFT

SHOWN = ("oracle", "dual", "cautious", "beb")
MOST = 100.0  # percent of the mean cost of ce; who loses more is shown at the edge, with a number


def gains_figure(tables: Sequence[Table]) -> Picture:
    """A panel for each experiment: a dot for each controller, with two standard errors to both sides."""
    with styled():
        drawn = figure(2.1)
        panels = drawn.subplots(1, len(tables), sharey=True, squeeze=False)[0]
        said = [_panel(axes, table) for axes, table in zip(panels, tables, strict=True)]
        panels[0].set_yticks(range(len(SHOWN)), reversed(SHOWN))
        panels[0].set_ylim(-0.6, len(SHOWN) - 0.4)
        drawn.supxlabel("cost saved against ce, in percent of the mean cost of ce", fontsize=8, color=SOFT)
        return picture(
            drawn,
            "gains",
            "What every controller saves against ce",
            "Differences run by run, all controllers meeting the same noise and the same truth; the lines are two "
            "standard errors long to either side. The oracle is told the truth.",
            "; ".join(said),
        )


def _panel(axes: Any, table: Table) -> str:
    """Draw an experiment, and say what dual saves there."""
    base = table.line("ce").cost.mean
    saved = 0.0
    for row, name in enumerate(reversed(SHOWN)):
        difference, look = table.line(name).difference, LOOKS[name]
        assert difference is not None
        percent, error = -100.0 * difference.mean / base, 100.0 * difference.error / base
        inside = max(percent, -MOST)
        axes.errorbar(
            inside, row, xerr=2.0 * error if inside == percent else None, color=look.colour, marker=look.marker or "o",
            markersize=5, linewidth=2.0,
        )  # fmt: skip
        if inside != percent:
            axes.text(inside + 9.0, row, f"{percent:.0f} %".replace("-", "\N{MINUS SIGN}"), va="center", fontsize=7.5)
        saved = percent if name == "dual" else saved
    axes.axvline(0.0, color=EDGE, linewidth=1.0)
    axes.set(xlim=(-MOST - 12.0, MOST), xticks=[-MOST, -50.0, 0.0, 50.0, MOST], title=f"Exp {table.experiment.number}")
    axes.tick_params(axis="y", length=0)
    return f"Exp {table.experiment.number}: dual saves {saved:.0f} %"
