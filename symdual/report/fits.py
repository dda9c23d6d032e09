"""Fitted hyperparameters as seen in a terminal."""

from __future__ import annotations

from rich.table import Table

from symdual.fitting.result import Fit, Hyperparameter


def fit_table(result: Fit) -> Table:
    """Each hyperparameter with its value, its uncertainty and where it started."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    for _ in range(3):
        table.add_column()
    for h in result.hyperparameters:
        table.add_row(f"  {h.name}", f"{h.value:.4g}", *_uncertainty(h), f"started at {h.start:.4g}")
    return table


def _uncertainty(h: Hyperparameter) -> tuple[str, str]:
    if h.deviation is None or h.factor is None:
        return ("not determined", "")
    return (f"+- {h.deviation:.2g}", f"(a factor of {h.factor:.3g})")


def summary(result: Fit) -> str:
    """What was fitted to what, and how the search ended."""
    ended = "converged" if result.converged else "not converged"
    return (
        f"log-likelihood {result.log_likelihood:.6g}, {result.start_log_likelihood:.6g} with the values of the model; "
        f"{ended} in {result.rounds} {'round' if result.rounds == 1 else 'rounds'}"
    )
