"""A fit as seen in a terminal."""

from __future__ import annotations

import math

from rich.table import Table

from symdual.identification.result import Estimate, Fit
from symdual.report.grid import grid

SHOWN = 40  #: rows of the table; the file has them all


def estimate_table(result: Fit) -> Table:
    """Each quantity with its value, its standard error, where the search began, and what was known before."""
    rows: list[tuple[str, ...]] = [
        (f"  {e.name}", f"{e.value:.4g}", _uncertainty(e), f"{e.first:.4g}", _before(e))
        for e in result.estimates[:SHOWN]
    ]
    if len(result.estimates) > SHOWN:
        rows.append((f"  and {len(result.estimates) - SHOWN} more in the file",))
    return grid(("", "", "", "started", "prior"), rows, left=(0, 2, 4))


def _uncertainty(e: Estimate) -> str:
    if e.deviation is None:
        return e.verdict if e.verdict.startswith("at ") else "not determined"
    factor = f" (a factor of {e.factor:.3g})" if e.kind == "hyperparameter" and e.factor is not None else ""
    return f"+- {e.deviation:.2g}{factor}"


def _before(e: Estimate) -> str:
    if e.verdict == "prior":
        return "kept"
    return "" if e.before is None else f"+- {e.before:.2g}"


def summary(result: Fit) -> str:
    """How the search ended."""
    ended = "converged" if result.converged else "not converged"
    gain = result.log_likelihood - result.start_log_likelihood
    better = f", {gain:.4g} more" if math.isfinite(gain) else ""
    return (
        f"log-likelihood {result.log_likelihood:.6g}, {result.start_log_likelihood:.6g} with the model's own numbers"
        f"{better}; {ended}, {result.agreeing} of {result.searches} starts end here"
    )
