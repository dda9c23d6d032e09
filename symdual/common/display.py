"""How values show themselves: in notebooks, in terminals, as figures and as pages.

What a user writes and what the runtime returns know nothing of figures and pages; `report` does, which knows all of
them. So a value asks here, by a name, and `report` is imported when something is first shown.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

_FEW = 8

_PLACES = {
    "a belief in a terminal": "facts.belief_text",
    "a controller in a terminal": "facts.controller_text",
    "a decision in a terminal": "facts.decision_text",
    "a problem in a terminal": "facts.problem_text",
    "episodes in a terminal": "facts.episodes_text",
    "an array in a notebook": "notebook.array_html",
    "a belief in a notebook": "notebook.belief_html",
    "a model in a notebook": "notebook.model_html",
    "a scenario in a notebook": "notebook.scenario_html",
    "a controller in a notebook": "notebook.controller_html",
    "a decision in a notebook": "notebook.info_html",
    "a problem in a notebook": "notebook.problem_html",
    "episodes in a notebook": "notebook.episodes_html",
    "a figure in a file": "drawing.save",
    "a summary in a notebook": "sweeps.html",
    "a summary in a terminal": "sweeps.printed",
    "a sweep as a figure": "figures.drawn_sweep",
    "compiling in a terminal": "progress.show_compiling",
    "decisions as a page": "decisions.write_decisions",
}


def shown(how: str, *values: Any) -> Any:
    """Return what a function of `report` makes of some values."""
    module, function = _PLACES[how].split(".")
    return getattr(importlib.import_module(f"symdual.report.{module}"), function)(*values)


def first_few(parts: Sequence[str]) -> str:
    """The first parts of something long, for a line that shows it, and how many more there are."""
    more = f" and {len(parts) - _FEW} more" if len(parts) > _FEW else ""
    return ", ".join(parts[:_FEW]) + more


def with_deviation(name: str, value: float, deviation: float | None) -> str:
    """A number by its name, with its standard deviation where there is one."""
    return f"{name} = {value:.4g}" + ("" if deviation is None else f" +- {deviation:.2g}")
