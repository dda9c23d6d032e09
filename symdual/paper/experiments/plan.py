"""What is run: the four experiments, their controllers, and what had to be chosen because the paper does not say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from symdual.errors import SymdualError
from symdual.runtime.problem import Problem

MODELS = Path(__file__).parent.parent / "models"
TRUTHS = {"paper": "scenario", "prior": "prior"}
"""What `--truth` can be, and what the closed loop calls it."""


@dataclass(frozen=True)
class Arm:
    """One line of a table: a controller with its constants; None leaves the constant of the scenario.

    Args:
        key: a short name for files and JSON.
        controller: a name that `symdual.controller` knows.
        label: what people read.
        bonus, dual_weight, order: tau, w, and the order of the dual cost.
    """

    key: str
    controller: str
    label: str
    bonus: float | None = None
    dual_weight: float | None = None
    order: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether it has no constants of its own."""
        return self.bonus is None and self.dual_weight is None and self.order == 1

    def problem(self, problem: Problem) -> Problem:
        """The problem with the constants of this line."""
        if self.bonus is not None:
            problem = replace(problem, bonus=self.bonus)
        if self.dual_weight is not None:
            problem = replace(problem, dual_weight=self.dual_weight)
        return problem


ORACLE = Arm("oracle", "oracle", "oracle")
CE = Arm("ce", "ce", "ce")
CAUTIOUS = Arm("cautious", "cautious", "cautious")
BEB = Arm("beb", "beb", "beb")
DUAL = Arm("dual", "dual", "dual")
EXACT = Arm("exact", "exact", "exact")
FIVE = (ORACLE, CE, CAUTIOUS, BEB, DUAL)
SMALL_BONUS = Arm("beb_tau_1", "beb", "beb, tau = 1", bonus=1.0)


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Args:
        number: as in the paper's table.
        model: the name of the model file.
        title, question: what it shows.
        arms: the lines of its table, `ce` among them.
        parameters: the true parameters in the coordinates of the model, by name of the unknown, where the model can
            represent the truth; None for a parameter that does not matter there.
        assumptions: what the paper leaves open, and our choice.
    """

    number: int
    model: str
    title: str
    question: str
    arms: tuple[Arm, ...]
    parameters: Mapping[str, tuple[float | None, ...]]
    assumptions: tuple[str, ...]

    @property
    def file(self) -> Path:
        """The model file."""
        return MODELS / f"{self.model}.py"


COMMON_ASSUMPTIONS = (
    "The first state is the first reference and known exactly (the toy: x0 = 1); U = 1e-3 where the paper gives none; "
    "the dual weight is 1; costs are L divided by the number of steps T, the only reading under which the paper's "
    "table is possible.",
    "Our oracle knows the true function. The paper's oracle of Exp 2 is a perfectly learned but inexact model.",
)

EXPERIMENTS = (
    Experiment(
        1,
        "toy",
        "A scalar system with an unknown gain",
        "How close does the approximate dual cost come to the exact one?",
        (*FIVE, EXACT),
        {"b": (2.0,)},
        (
            "x0 = 1, because Fig. 1 needs a state that is not at its target.",
            "The true gain is 2, while the prior expects it to be anywhere within 1 ± 3: whoever guards against the "
            "other values pays for it here, and even the exact dual controller may lose to ce. With the truth drawn "
            "from the prior nothing can beat it on average.",
        ),
    ),
    Experiment(
        2,
        "schedule",
        "Exploration that waits for its moment",
        "The state is expensive, then free, then very expensive. Who waits for the free phase to explore?",
        FIVE,
        {},
        (
            "W_5 = 0, since the paper prints index 5 twice.",
            "Length-scale 7, amplitude 1, 15 frequencies at the quantiles of the half-normal spectrum with a sine and "
            "a cosine each, tau = 10. Length-scale 7 and tau = 10 were chosen with the paper's table in view: this "
            "agreement is no evidence. `--extra` shows length-scales from 2 to 10.",
        ),
    ),
    Experiment(
        3,
        "relevance",
        "Exploration of what will matter",
        "The reference visits one side only. Who explores that side, and who the other one too?",
        FIVE,
        {"net_v": (-0.8, 0.0, 0.0, 0.4), "net_w": (-1.0, None, None, 1.0)},
        (
            "r_18 = 0, since the paper prints index 18 twice.",
            "Weights v ~ N(0, 1); slopes w ~ N((-1, -1, 1, 1), 0.1).",
        ),
    ),
    Experiment(
        4,
        "drift",
        "Knowledge that is kept up only while it is useful",
        "The parameters are believed to drift. Who lets knowledge decay that is no longer needed?",
        (*FIVE, SMALL_BONUS),
        {"theta1": (1.0,), "theta2": (0.8,)},
        ("Q = R = 1e-2 I, theta ~ N(0, I), drift Xi = 0.1 I, tau = 100 (and tau = 1 beside it).",),
    ),
)

PUBLISHED = {
    1: {"oracle": (0.67, 0.23), "ce": (0.84, 0.73), "beb": (0.99, 0.92), "dual": (0.77, 0.43)},
    2: {"oracle": (1.75, 0.33), "ce": (2.49, 0.74), "beb": (2.64, 0.37), "dual": (1.96, 0.34)},
    3: {"oracle": (7.15, 3.85), "ce": (15.72, 5.20), "beb": (20.88, 6.74), "dual": (14.33, 5.40)},
    4: {"oracle": (0.66, 0.51), "ce": (1.76, 0.90), "beb": (84.91, 6.77), "dual": (1.62, 0.56)},
}
"""The paper's Table 1, mean and standard deviation of 50 runs; its CE-BEB is our `beb`, its AD our `dual`."""
PUBLISHED_RUNS = 50


def chosen(numbers: tuple[int, ...]) -> tuple[Experiment, ...]:
    """The experiments with these numbers, all of them if none is given."""
    known = {experiment.number: experiment for experiment in EXPERIMENTS}
    for number in numbers:
        if number not in known:
            raise SymdualError(f"there is no experiment {number}; known: {', '.join(map(str, known))}")
    return tuple(experiment for number, experiment in known.items() if not numbers or number in numbers)
