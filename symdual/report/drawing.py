"""What all figures share: their style, and how they are written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdual.common.atomic_files import atomic_file
from symdual.common.errors import SymdualError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
}


@contextmanager
def new_figure(size: tuple[float, float]) -> Iterator[Figure]:
    """A figure of this size in inches, in the common style."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SymdualError("the figure needs matplotlib: pip install matplotlib") from missing
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]  # notebooks show it without pyplot
        yield figure


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return content.getvalue()


def save(figure: Figure, path: Path) -> Path:
    """Write a figure; equal figures are equal bytes."""
    kind = path.suffix.removeprefix(".")
    try:
        with atomic_file(path) as stream:
            figure.savefig(stream, format=kind, dpi=150, metadata={"Software": None} if kind == "png" else None)
    except OSError as failure:
        raise SymdualError(f"cannot write {path}: {failure.strerror}") from failure
    return path
