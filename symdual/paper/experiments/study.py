"""What a study beyond the paper tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symdual.paper.experiments.figures.style import Picture


@dataclass(frozen=True)
class Study:
    """A study: what it asks, a table, what it found in words, its numbers for JSON, and figures."""

    key: str
    short: str
    title: str
    explanation: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    findings: tuple[str, ...]
    data: dict[str, Any]
    pictures: tuple[Picture, ...] = ()
