"""One look for all figures: the paper's colours, told apart also by line style, marker and lightness."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from symdual.errors import SymdualError
from symdual.whole_file import write_whole

WIDTH = 7.6  # inches
INK, SOFT, REFERENCE = "#1c2330", "#6b7280", "#e8850c"


class Look(NamedTuple):
    """How a controller is drawn."""

    colour: str
    line: Any
    marker: str
    name: str


LOOKS = {
    "oracle": Look("#7a7a7a", (0, (1, 1.2)), "", "oracle"),
    "ce": Look("#c4201d", (0, (5, 2)), "s", "certainty equivalent (ce)"),
    "cautious": Look("#9a6fb0", (0, (2, 1.5)), "^", "cautious"),
    "beb": Look("#2158b8", (0, (5, 1.5, 1, 1.5)), "D", "exploration bonus (beb)"),
    "dual": Look("#0f9b62", "-", "o", "dual"),
}
"""The paper's colours: oracle gray, ce red, beb blue, dual green; the cautious controller has one more."""

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9aa1ab",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlepad": 5.0,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "savefig.dpi": 160,
    "figure.dpi": 160,
    "svg.fonttype": "path",
    "svg.hashsalt": "symdual",
    "path.simplify": True,
}


@dataclass(frozen=True)
class Picture:
    """A finished figure: a name for files, what it is, what to see in it, and its bytes.

    Args:
        alternative: what somebody who cannot see it should know.
    """

    name: str
    title: str
    explanation: str
    alternative: str
    png: bytes
    svg: bytes


@contextmanager
def styled() -> Iterator[None]:
    """Draw with our settings, whatever the user's own are."""
    with rc_context(_SETTINGS):
        yield


def figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure, `width` by `height` inches."""
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def picture(drawn: Figure, name: str, title: str, explanation: str, alternative: str) -> Picture:
    """Render a figure as PNG and SVG without dates or versions, so that the same numbers give the same bytes."""
    FigureCanvasAgg(drawn)
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")  # the places are found now, once for both formats
    png, svg = BytesIO(), BytesIO()
    drawn.savefig(png, format="png", metadata={"Software": None})
    drawn.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return Picture(name, title, explanation, alternative, png.getvalue(), svg.getvalue())


def save(pictures: list[Picture], folder: Path) -> None:
    """Write every picture as PNG and SVG."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for item in pictures:
            write_whole(folder / f"{item.name}.png", item.png)
            write_whole(folder / f"{item.name}.svg", item.svg)
    except OSError as failure:
        raise SymdualError(f"cannot write to the folder {folder}: {failure.strerror}") from failure
