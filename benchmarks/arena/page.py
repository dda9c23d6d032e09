"""The arena as one page that needs nothing but itself: ranks, differences, regret, and time against cost."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from symdual.report.drawing import new_figure
from symdual.report.html import element, opening, section, table, write_page
from symdual.report.html import page as whole_page
from symdual.report.palette import INK, LOOKS, SOFT

from .roster import BASELINE, CONTROLLERS
from .scores import LEVEL, Played, Ranks, cliques, holm, ranks


def write(played: list[Played], runs: int, seed: int, file: Path) -> Path:
    """Write the page."""
    found = ranks(played)
    lead = (
        f"{len(CONTROLLERS)} controllers on {len(played)} systems, {runs} runs each with the truth drawn from the "
        f"prior, seed {seed}. All meet the same draws."
    )
    test = f"Friedman's test: p = {found.p:.2g}; ranks differ where they are further apart than {found.critical:.2f}."
    body = element(
        "main",
        opening(
            "The arena",
            lead,
            [("ranks", "ranks"), ("time", "time"), ("differences", "differences"), ("regret", "regret")],
        ),
        section(
            "ranks", "Mean ranks over all systems", picture(lambda: draw_ranks(found), "mean ranks"), element("p", test)
        ),
        section("time", "Time of a decision against cost", picture(lambda: draw_times(played, found), "time and rank")),
        section("differences", "Difference from ce, in percent of its cost", differences(played)),
        section("regret", "Regret, in percent", regret(played)),
    )
    write_page(file, whole_page("The arena", body))
    return file


def picture(draw: Callable[[], Any], title: str) -> Markup:
    """A figure within the page."""
    content = io.BytesIO()
    draw().savefig(content, format="png", dpi=130)
    data = base64.b64encode(content.getvalue()).decode()
    return element("img", src=f"data:image/png;base64,{data}", alt=title, style="max-width: 100%; background: white")


def draw_ranks(found: Ranks) -> Any:
    """Critical-difference diagram: a line joins those that do not differ."""
    order = sorted(found.mean, key=lambda name: found.mean[name])
    groups = cliques(found)
    with new_figure((8.0, 1.0 + 0.24 * len(order) + 0.1 * len(groups))) as figure:
        axes = figure.subplots()
        for place, name in enumerate(order):
            rank, colour = found.mean[name], LOOKS[name].colour
            axes.plot([rank, rank], [0, -1 - place], color=colour, lw=1.0)
            axes.plot(rank, 0, marker=LOOKS[name].marker or "o", color=colour, clip_on=False)
            axes.annotate(
                f"{name}  {rank:.2f}",
                (rank, -1 - place),
                xytext=(4, -3),
                textcoords="offset points",
                color=colour,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},  # over the lines of those behind
            )
        for place, group in enumerate(groups):
            ends = [found.mean[group[0]] - 0.03, found.mean[group[-1]] + 0.03]
            axes.plot(ends, [0.5 + 0.5 * place] * 2, color=INK, lw=2.5)
        axes.plot([1, 1 + found.critical], [1.5 + 0.5 * len(groups)] * 2, color=SOFT, lw=1.5)
        axes.annotate(
            "critical difference", (1, 1.5 + 0.5 * len(groups)), xytext=(0, 3), textcoords="offset points", color=SOFT
        )
        axes.set(xlim=(0.8, len(order) + 0.8), yticks=[], xlabel="mean rank (1 is the best)")
        axes.spines["left"].set_visible(False)
    return figure


def draw_times(played: list[Played], found: Ranks) -> Any:
    """The median time of a decision over the systems, and the mean rank."""
    with new_figure((7.0, 4.0)) as figure:
        axes = figure.subplots()
        for name, rank in found.mean.items():
            ms = float(np.median([one.scores[name].ms for one in played if name in one.scores]))
            axes.semilogx(ms, rank, marker=LOOKS[name].marker or "o", color=LOOKS[name].colour, ls="")
            axes.annotate(name, (ms, rank), xytext=(6, -3), textcoords="offset points", color=LOOKS[name].colour)
        axes.set(xlabel="milliseconds of a decision, median over systems", ylabel="mean rank (1 is the best)")
        axes.invert_yaxis()
        axes.margins(x=0.15)
    return figure


def differences(played: list[Played]) -> Markup:
    """A row for each system, bold where a difference is no chance."""
    sure, rows = holm(played), []
    for one in played:
        base = one.scores[BASELINE].cost
        row: list[str | Markup] = [one.name.replace("_", " "), f"{base:.3g}"]
        for name in CONTROLLERS[1:]:
            if name not in one.scores:
                row.append("-")
                continue
            score = one.scores[name]
            text = f"{100 * score.gap / abs(base):+.1f} ± {100 * score.gap_error / abs(base):.1f}"
            text += f", {score.failed} failed" if score.failed else ""
            row.append(element("b", text) if sure.get((one.name, name), 1.0) < LEVEL else text)
        rows.append(row)
    return table(["", "cost of ce", *CONTROLLERS[1:]], rows, numeric=range(1, len(CONTROLLERS) + 1))


def regret(played: list[Played]) -> Markup:
    """A row for each system."""

    def cell(one: Played, name: str) -> str:
        if name not in one.scores or one.scores[name].regret is None:
            return "-"
        return f"{one.scores[name].regret:.1f} ± {one.scores[name].regret_error:.1f}"

    rows = [[one.name.replace("_", " "), one.reference, *(cell(one, name) for name in CONTROLLERS)] for one in played]
    return table(["", "beyond", *CONTROLLERS], rows, numeric=range(2, len(CONTROLLERS) + 2))
