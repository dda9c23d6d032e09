"""The only list of controllers: what each minimises, searches and is told, its options, its looks, and a line of help.

Everything that asks which controllers there are reads `CONTROLLERS`: episodes, sweeps and explanations, `--controller`
of the commands, the controller of a generated package, its export to C, the palette, and the test of the documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """A whole number that controllers are told: a field of the settings of a package, and a setter in C.

    Args:
        name: of the argument of `Options`, and of the setter in C; field: of the settings.
        default: its usual value; least, most: its range; meaning: a comment behind it.
        cost: that a controller of the dual cost minimises where it is told more than 0; then it is fixed in C.
    """

    name: str
    field: str
    default: int
    least: int
    most: int
    meaning: str
    cost: str = ""


@dataclass(frozen=True)
class Cost:
    """A compiled cost of a package (`decision.cost_pointer`).

    Args:
        searched: whether the first input is searched; else the cost itself gives it.
        stored_plans: how many places of stored plans the next decision goes on with.
        plans_to_learn: whether it works on gradients and covariances along the plan.
        compiled_alone: whether it takes as long to compile as all others together.
        own_module: whether it is a module of its own, from the template `controllers/NAME.py.jinja`, whose function
            `choose` has the arguments of a cost; the others are in `dual_cost` and `decision`.
        part: of a package, in which what it needs is, where no controller has this part for itself.
    """

    searched: bool = False
    stored_plans: int = 0
    plans_to_learn: bool = False
    compiled_alone: bool = False
    own_module: bool = False
    part: str = ""


@dataclass(frozen=True)
class Look:
    """How a controller is drawn: in figures, as text on a light and on a dark page, and what its line is called."""

    colour: str
    light: str
    dark: str
    line: Any
    marker: str
    name: str


@dataclass(frozen=True)
class Kind:
    """A controller.

    Args:
        name: as users write it; help: what it does, in a line.
        cost: the compiled cost that it minimises. "dual" is one of `structured`, `lowrank` and, at order 2,
            `second_order`: the package knows which suits the sizes.
        look: how it is drawn.
        options: the names of what it is told besides the problem.
        orders: the orders of the dual cost between which it lets users choose.
        weight: of the dual cost, where the problem does not say it; learning: whether what will be learned counts.
        keeps_backoff: whether its plans keep a distance from constraints.
        without_effect: the cost that it minimises instead where no input ever shows in the belief.
        knows_truth: whether a simulation tells it the truth.
        exported: whether it stands by itself: in a generated package, and in C.
        part: of a package, in which what it needs is; nothing where all packages have it.
        refuses: what it cannot do, as (the fact, the end of a sentence): "choices" are inputs with a finite set of
            values, "processes" are Gaussian processes, "single" is single precision.
    """

    name: str
    help: str
    cost: str
    look: Look
    options: tuple[str, ...] = ()
    orders: tuple[int, ...] = (1,)
    weight: float | None = None
    learning: bool = True
    keeps_backoff: bool = False
    without_effect: str = ""
    knows_truth: bool = False
    exported: bool = True
    part: str = ""
    refuses: tuple[tuple[str, str], ...] = ()


OPTIONS = {
    option.name: option
    for option in (
        Option("starts", "starts", 4, 1, 8, "plans that a planning controller improves"),
        Option("look_ahead", "looking", 1, 0, 1, "1: it looks one step ahead"),
        Option("samples", "samples", 64, 0, 4096, "rollouts that it simulates to choose between plans; 0 for none"),
        Option(
            "confidence",
            "confidence",
            5,
            1,
            99,
            "percent by which rollouts must confirm what differs from `ce` and `cautious`",
        ),
        Option("work", "work", 0, 0, 2**31 - 1, "steps of plans that a decision may go through; 0 for no limit"),
        Option("hold", "hold", 5, 1, 1_000_000, "decisions for which `thompson` keeps what it has drawn"),
        Option("candidates", "candidates", 9, 1, 64, "first inputs that `rollout` compares"),
        Option("branches", "branches", 3, 1, 8, "samples of the tree of `scenario`; 1 is the mean"),
        Option("depth", "depth", 1, 1, 8, "steps after which the tree of `scenario` has measured"),
        Option("reward", "reward", 5, 0, 1_000_000, "percent of its plan's cost that a nat is worth to `information`"),
        Option("dither", "dither", 10, 0, 1_000, "percent by which `dither` lets the cost of its plan grow"),
        Option(
            "decay", "decay", 0, 0, 1_000, "percent: the dither of decision n is that of the first / n^(decay / 100)"
        ),
        Option("guard", "guard", 0, 0, 1, "1: rollouts may reject the input of `dual`", cost="guarded"),
        Option("seed", "seed", 0, 0, 2**31 - 1, "of what a controller draws"),
    )
}

COSTS = {
    "ce": Cost(stored_plans=1),
    "structured": Cost(searched=True),
    "lowrank": Cost(searched=True),
    "second_order": Cost(searched=True),
    "bonus": Cost(searched=True),
    "planned": Cost(stored_plans=3, plans_to_learn=True, compiled_alone=True),
    "thompson": Cost(stored_plans=2, own_module=True),
    "rollout": Cost(stored_plans=1, own_module=True),
    "scenario": Cost(searched=True, stored_plans=1, own_module=True),
    "information_bonus": Cost(searched=True, stored_plans=1, own_module=True),
    "dither": Cost(stored_plans=2, own_module=True),
    "guarded": Cost(searched=True, stored_plans=1, compiled_alone=True, own_module=True, part="planned"),
    "exact": Cost(searched=True),
}

_CHOICES = ("choices", "does not know inputs with a finite set of values")

_KINDS = (
    Kind(
        "oracle",
        "knows the truth",
        "ce",
        Look("#7a7a7a", "#6a6a6a", "#a5a5a5", (0, (1, 1.2)), "", "oracle"),
        knows_truth=True,
        exported=False,
    ),
    Kind(
        "ce",
        "plans as if its best guess were the truth",
        "ce",
        Look("#c8381e", "#c8381e", "#ff8168", (0, (5, 2)), "s", "certainty equivalent (ce)"),
    ),
    Kind(
        "cautious",
        "counts what uncertainty costs, plans no learning",
        "dual",
        Look("#d69a00", "#a87900", "#e9b93a", (0, (2, 1.5)), "^", "cautious"),
        weight=1.0,
        learning=False,
        keeps_backoff=True,
    ),
    Kind(
        "beb",
        "a bonus for less uncertainty, useful or not",
        "bonus",
        Look("#3b6fc4", "#3b6fc4", "#82a9ee", (0, (5, 1.5, 1, 1.5)), "D", "exploration bonus (beb)"),
        without_effect="ce",
    ),
    Kind(
        "dual",
        "counts what uncertainty costs and what the first input will teach",
        "dual",
        Look("#00866b", "#00866b", "#3cc9a5", "-", "o", "dual"),
        options=("guard", "samples", "confidence", "seed"),
        orders=(1, 2),
        keeps_backoff=True,
    ),
    Kind(
        "planned",
        "the same over all inputs of the plan, and looks one step ahead",
        "planned",
        Look("#8a4fb0", "#8a4fb0", "#c79ae6", (0, (7, 2)), "v", "planned"),
        options=("starts", "look_ahead", "samples", "confidence", "work", "seed"),
        part="planned",
        keeps_backoff=True,
    ),
    Kind(
        "thompson",
        "draws parameters from what it believes, and plans as if they were the truth",
        "thompson",
        Look("#9a5b2f", "#8a4f26", "#d9a07a", (0, (4, 1, 1, 1, 1, 1)), "P", "posterior sampling (thompson)"),
        options=("hold", "seed"),
        part="thompson",
        refuses=(
            ("processes", "draws parameters, and a Gaussian process is a function"),
            ("single", "draws its random numbers in double precision"),
        ),
    ),
    Kind(
        "rollout",
        "the best of a few first inputs, by simulated futures in which `ce` goes on",
        "rollout",
        Look("#1f7f95", "#1a7186", "#62c0d6", (0, (6, 1, 2, 1)), "X", "rollout of ce"),
        options=("candidates", "samples", "seed"),
        part="rivals",
        refuses=(_CHOICES, ("single", "draws its random numbers in double precision")),
    ),
    Kind(
        "scenario",
        "a tree over a few samples, in which measurements tell them apart",
        "scenario",
        Look("#b0447f", "#a03a72", "#e590bd", (0, (3, 1, 3, 2)), "d", "scenario tree (scenario)"),
        options=("branches", "depth", "seed"),
        part="rivals",
        refuses=(
            _CHOICES,
            ("processes", "draws parameters, and a Gaussian process is a function"),
            ("single", "draws its random numbers in double precision"),
        ),
    ),
    Kind(
        "information",
        "a bonus for the information that the first input is expected to give",
        "information_bonus",
        Look("#5b7a1f", "#547019", "#a9c95f", (0, (8, 2, 2, 2)), "p", "information bonus (information)"),
        options=("reward",),
        without_effect="ce",
        part="rivals",
        refuses=(
            _CHOICES,
            ("processes", "knows the information about parameters, and a Gaussian process is a function"),
        ),
    ),
    Kind(
        "dither",
        "`ce`, and a coin that moves each input up or down",
        "dither",
        Look("#7d6b5d", "#6f5e51", "#bba999", (0, (1, 1, 4, 1)), "h", "certainty equivalent with dither (dither)"),
        options=("dither", "decay", "seed"),
        part="rivals",
        refuses=(_CHOICES, ("single", "draws its random numbers in double precision")),
    ),
    Kind(
        "exact",
        "the expected cost itself",
        "exact",
        Look("#1a1a1a", "#444444", "#cccccc", (0, (1, 1)), "x", "exact"),
        exported=False,
        refuses=(_CHOICES,),
    ),
)

CONTROLLERS = {kind.name: kind for kind in _KINDS}
NAMES = tuple(CONTROLLERS)
EXPORTED = tuple(kind for kind in _KINDS if kind.exported)


def knows_truth(name: str) -> bool:
    """Whether a simulation tells a controller the truth."""
    return name in CONTROLLERS and CONTROLLERS[name].knows_truth


def cost_changes_of(name: str) -> dict[str, str]:
    """The options by which a controller minimises another cost, with that cost."""
    return {option: OPTIONS[option].cost for option in CONTROLLERS[name].options if OPTIONS[option].cost}


def parts_for(controllers: str | Iterable[str], told: Mapping[str, float] | None = None) -> frozenset[str]:
    """The parts of a package that controllers need if they are told these options, by name."""
    names = [controllers] if isinstance(controllers, str) else controllers
    known = [name for name in names if name in CONTROLLERS]
    changed = (cost for name in known for option, cost in cost_changes_of(name).items() if (told or {}).get(option))
    return frozenset([*(CONTROLLERS[name].part for name in known), *(COSTS[cost].part for cost in changed)]) - {""}


def listed() -> str:
    """The names in a sentence, for help of commands."""
    return f"{', '.join(NAMES[:-1])} or {NAMES[-1]}"
