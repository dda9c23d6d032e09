"""What a page of the gallery does besides what it shows: it keeps what it has found, and draws a small picture of it.

It is hidden in the documentation, so that the code that is shown needs symdual alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from symdual import generation
from symdual.report.gallery import COLOURS, spread, violated

GALLERY = Path(__file__).resolve().parent  # programs that are run to make pages have no __file__
PACKAGES = GALLERY.parents[1] / "out/gallery"  # a folder for each page: they may be made at the same time


def begin(page: str) -> None:
    """Work in the folder of the gallery, and let the packages of a page be generated in its own folder."""
    os.chdir(GALLERY)
    usual = generation.packages_folder
    generation.packages_folder = lambda folder: usual(PACKAGES / page if folder is None else folder)


def runs(usual: int) -> int:
    """How many runs: the first argument of the program, or as many as usual."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else usual


def remember(page: str, found: Mapping[str, Any], baseline: str = "ce", case: str = "", since: int = 0) -> None:
    """Keep what a page has found for the table of all systems in the documentation.

    A page with several comparisons has a name for each; with `since` the constraint counts from that step on.
    """
    if len(sys.argv) > 1:
        return  # a number of runs that is not the usual one
    gap, error = spread(found["dual"].costs - found[baseline].costs)
    row = {
        "case": case,
        "runs": len(found["dual"].costs),
        "baseline": baseline,
        "costs": {name: spread(episodes.costs)[0] for name, episodes in found.items()},
        "gap": gap,
        "error": error,
        "violated": {name: violated(episodes, since) for name, episodes in found.items()} if since else {},
    }
    (PACKAGES / page).mkdir(parents=True, exist_ok=True)
    thumbnail({name: spread(episodes.costs) for name, episodes in found.items()}, PACKAGES / page / "thumbnail.png")
    (PACKAGES / page / f"evidence{case and '-'}{case}.json").write_text(json.dumps(row, indent=1))


def thumbnail(costs: Mapping[str, tuple[float, float]], file: Path) -> None:
    """Costs with their standard errors as bars that can still be read when they are small."""
    figure = Figure(figsize=(4.8, 3.2), dpi=100, facecolor="white")
    axes = figure.add_axes((0.24, 0.05, 0.72, 0.78))
    for place, (name, (mean, error)) in enumerate(costs.items()):
        axes.barh(place, mean, xerr=2 * error, color=COLOURS[name], height=0.62, error_kw={"lw": 2.0})
    axes.set_yticks(range(len(costs)), list(costs), fontsize=17)
    axes.set_xticks([])
    axes.invert_yaxis()
    axes.axvline(0.0, color="black", lw=1.0)
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.tick_params(length=0)
    figure.text(0.05, 0.9, "cost of an episode", fontsize=15)
    figure.savefig(file)
