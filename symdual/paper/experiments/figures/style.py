"""What the figures of the experiments have beyond the style of all figures, and how they are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError
from symdual.report import drawing, palette
from symdual.report.palette import EDGE, INK, SOFT

WIDTH = 7.6  # inches
#: the controllers of the paper, and the cautious one
LOOKS = {name: palette.LOOKS[name] for name in ("oracle", "ce", "cautious", "beb", "dual")}

_SETTINGS: Any = {
    **drawing.STYLE,
    "font.family": "DejaVu Sans",
    "axes.grid": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": EDGE,
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
    svg: bytes


@contextmanager
def styled() -> Iterator[None]:
    """Draw with our settings, whatever the user's own are."""
    with rc_context(_SETTINGS):
        yield


def figure(height: float) -> Figure:
    """An empty figure, `WIDTH` by `height` inches."""
    return Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")


def picture(drawn: Figure, name: str, title: str, explanation: str, alternative: str) -> Picture:
    """Render a figure as SVG without dates or versions, so that the same numbers give the same bytes."""
    FigureCanvasAgg(drawn)
    svg = BytesIO()
    drawn.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return Picture(name, title, explanation, alternative, svg.getvalue())


def save(pictures: list[Picture], folder: Path) -> None:
    """Write every picture as SVG."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for item in pictures:
            write_atomically(folder / f"{item.name}.svg", item.svg)
    except OSError as failure:
        raise SymdualError(f"cannot write to the folder {folder}: {failure.strerror}") from failure
