"""Fitted hyperparameters as seen in a terminal."""

from __future__ import annotations

from rich.table import Table

from symdual.fitting.result import Fit, Hyperparameter, Unknown


def fit_table(result: Fit) -> Table:
    """Each number with its value, its uncertainty and where it started, or what its prior was."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    for _ in range(3):
        table.add_column()
    for h in (*result.hyperparameters, *result.noises):
        table.add_row(f"  {h.name}", f"{h.value:.4g}", *_uncertainty(h), f"started at {h.start:.4g}")
    for u in result.unknowns:
        table.add_row(*_row(u.name, u))
    several = len(result.begins) > 1
    for recording, begin in zip((one.name for one in result.task.series), result.begins, strict=False):
        for u in begin:
            table.add_row(*_row(f"{recording}: start[{u.name}]" if several else f"start[{u.name}]", u))
    return table


def _row(name: str, u: Unknown) -> tuple[str, ...]:
    before = f"prior {u.prior_value:.4g} +- {u.prior_deviation:.2g}"
    return (f"  {name}", f"{u.value:.4g}", f"+- {u.deviation:.2g}", "", before)


def _uncertainty(h: Hyperparameter) -> tuple[str, str]:
    if h.certainty.verdict == "held":
        return ("held", "")
    if h.deviation is None:
        return ("not determined", "")
    return (f"+- {h.deviation:.2g}", "" if h.factor is None else f"(a factor of {h.factor:.3g})")


def summary(result: Fit) -> str:
    """What was fitted to what, and how the search ended."""
    ended = "converged" if result.converged else "not converged"
    return (
        f"log-likelihood {result.log_likelihood:.6g}, {result.start_log_likelihood:.6g} with the values of the model; "
        f"{ended} in {result.rounds} {'round' if result.rounds == 1 else 'rounds'}"
    )
