"""What the figures show, said with the numbers of the runs that they show."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.experiments.run import Recorded
from symdual.paper.experiments.table import Estimate, estimate
from symdual.paper.experiments.words import SETS_IN, went_beyond

READING = (
    "Darker means that more runs are there; the reference is dashed orange; shaded: the state costs nothing. Bottom: "
    "the mean cost of every step (logarithmic). "
)
_LOOSE = slice(5, 11)  # steps of Exp 2 whose state costs nothing
_MOVING = slice(12, 21)  # steps of Exp 2 from the first move of the reference on
_ARRIVAL = slice(13, 16)  # steps of Exp 3 after the reference has jumped


def of_schedule(runs: Mapping[str, Recorded]) -> str:
    """Exp 2: sizes of inputs, ways in the loose phase, and costs while the reference moves."""
    size = {key: np.nanmean(np.abs(runs[key].inputs[:, :, 0]), axis=0) for key in ("dual", "ce")}
    early = " and ".join(f"{np.mean(size[key][:3]):.2g} ({key})" for key in size)
    late = " and ".join(f"{np.mean(size[key][3:5]):.3g} ({key})" for key in size)
    ways = {key: float(np.nanmedian(np.nanmax(np.abs(runs[key].states[:, _LOOSE, 0]), axis=1))) for key in _LEARNERS}
    far = ", ".join(f"{key} {way:.0f}" for key, way in ways.items())
    return READING + (
        f"Mean size of the inputs at k = 0 to 2, which act while the state is expensive: {early}; at k = 3 and 4, the "
        f"first that act in the loose phase: {late}. The middle run goes this far in the loose phase: {far}. "
        + _beside(runs, _MOVING, "From step 12 on, when the reference moves, a step")
    )


def of_relevance(runs: Mapping[str, Recorded]) -> str:
    """Exp 3: which side is visited before the reference moves, and costs after its jump."""
    shares = ", ".join(f"{key} {100 * np.mean(went_beyond(runs[key])):.0f} %" for key in _LEARNERS)
    return READING + (
        f"The reference will go to +10 only. Runs that have been beyond +{SETS_IN:g}, where the slope of that side "
        f"sets in, before it moves: {shares}. "
        + _beside(runs, _ARRIVAL, "At steps 13 to 15, after the jump, a step")
        + " (The paper's caption speaks of the second state; like its reference, we show the position.)"
    )


_LEARNERS = ("ce", "beb", "dual")


def _beside(runs: Mapping[str, Recorded], part: slice, words: str) -> str:
    """Mean costs of some steps, and whether dual differs from the others."""
    costs = {key: np.nanmean(runs[key].step_costs[:, part], axis=1) for key in _LEARNERS}
    means = ", ".join(f"{key} {np.nanmean(values):.3g}" for key, values in costs.items())
    signs = {key: estimate(costs["dual"] - costs[key]) for key in ("ce", "beb")}
    verdicts = "; ".join(f"dual {_word(gap)} {key} ({gap.mean:+.2g} ± {gap.error:.1g})" for key, gap in signs.items())
    return f"{words} costs on average: {means}; over all {len(costs['dual'])} runs {verdicts}."


def _word(gap: Estimate) -> str:
    return {1: "above", -1: "below", 0: "not told from"}[gap.sign]


def of_beliefs(runs: Mapping[str, Recorded], run: int) -> str:
    """Exp 4: deviations of both parameters in one run, when the reference arrives and at the end."""

    def deviations(key: str) -> str:
        second, first = (np.sqrt(runs[key].variances[run, :, 2 + which]) for which in (1, 0))
        return f"{key} {_from_to(second)} and {_from_to(first)}"

    listed = "; ".join(deviations(key) for key in _LEARNERS)
    return (
        "Belief (mean and two standard deviations, shaded) and truth (black line); the cart (marks) and its reference "
        "(dashed). The reference passes the bump at \N{MINUS SIGN}2 at step 8 and stays at the bump at +2 from step 10 "
        "on. Before step 6 the position costs nothing. Standard deviation of the heights of the bump at "
        "\N{MINUS SIGN}2 and of that at +2 in this run, at step 10 and at the end: " + listed + "."
    )


def _from_to(deviation: Array) -> str:
    return f"{deviation[10]:.2f} to {deviation[-1]:.2f}"
