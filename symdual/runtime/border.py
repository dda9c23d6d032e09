"""What a generated package offers, module by module, as far as it is called from Python.

Generated code has no types of its own; these protocols are what the type checker knows of it. Records are numpy arrays
of the types that the module `records` of a package declares.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Records = NDArray[Any]


class Backend(Protocol):
    """Modules of a package that are not made by numba."""

    @property
    def make(self) -> MakeBackend:
        """What makes such a backend of another package; it can be pickled."""

    def offers(self, module: str) -> bool:
        """Whether it has a module of this name."""

    def module(self, name: str) -> types.ModuleType:
        """A module with compiled functions."""


#: Makes a backend of the name, the digest and the files of a package.
MakeBackend = Callable[[str, str, Mapping[str, bytes]], Backend]


class Noise(NamedTuple):
    """Q (NX, NX), R (NY, NY), and how the parameters move: D and Xi as the model gives them."""

    process: Array
    measurement: Array
    transition: Array
    drift: Array


class Desk(Protocol):
    """`records.Desk`: everything that a decision works on besides the belief."""

    @property
    def plan(self) -> Records: ...  # noqa: D102
    @property
    def notes(self) -> Records: ...  # noqa: D102
    @property
    def weights(self) -> Records: ...  # noqa: D102
    @property
    def task(self) -> Records: ...  # noqa: D102
    @property
    def space(self) -> Records: ...  # noqa: D102
    @property
    def forms(self) -> Records: ...  # noqa: D102
    @property
    def pulls(self) -> Records: ...  # noqa: D102
    @property
    def shelf(self) -> Records: ...  # noqa: D102
    @property
    def story(self) -> Records: ...  # noqa: D102


class Table(Protocol):
    """`candidates.Table`: what a search has tried."""

    @property
    def candidates(self) -> Array: ...  # noqa: D102
    @property
    def out(self) -> Array: ...  # noqa: D102
    @property
    def report(self) -> Array: ...  # noqa: D102
    @property
    def limits(self) -> Array: ...  # noqa: D102


class RecordsModule(Protocol):
    """What the recursions work on."""

    NX: int
    NTHETA: int
    NZ: int
    BLOCKS: np.dtype[Any]
    KEPT: np.dtype[Any]
    STEP: np.dtype[Any]

    def desk(self, steps: int, weights: Records, task: Records, order: int = ..., planning: bool = ...) -> Desk:
        """A desk for plans of at most `steps` steps."""

    def make_task(self, Q: Array, R: Array, D: Array, Xi: Array, bounds: Array, data: Array) -> Records:
        """A task with the default settings."""

    def make_weights(self, W: Array, U: Array, r: Array, *more: Array) -> Records:
        """The cost of each time."""

    def make_belief(self, mean: Array, covariance: Array) -> Records:
        """A belief from mean and covariance."""

    def write_belief(self, belief: Records, mean: Array, covariance: Array) -> None:
        """Put mean and covariance into a belief."""

    def read_covariance(self, belief: Records) -> Array:
        """The covariance of a belief."""


class FilterModule(Protocol):
    """The extended Kalman filter."""

    MEASURED: int
    NOTHING_MEASURED: int
    NOT_FINITE: int
    NOT_CONVERGED: int

    def tray(self, task: Records) -> Any:
        """What the filter of one thread works with."""

    def predict(self, k: int, belief: Records, u: Array, tray: Any) -> None:
        """One prediction in place."""

    def update(self, k: int, belief: Records, y: Array, tray: Any, stats: Array) -> int:
        """One measurement in place."""

    def update_consider(self, k: int, belief: Records, y: Array, tray: Any, stats: Array) -> int:
        """One measurement that corrects the states only."""

    def step(self, k: int, belief: Records, u: Array, y: Array, tray: Any) -> int:
        """A prediction and a measurement."""


class SquareRootModule(Protocol):
    """The square-root form of the filter, where a model asks for it."""

    def factorise(self, belief: Records) -> None:
        """The factor from the blocks."""

    def complete(self, belief: Records) -> None:
        """The blocks from the factor."""


class NominalModule(Protocol):
    """The certainty-equivalent plan: its statuses."""

    CONVERGED: int
    ITERATION_LIMIT: int
    STALLED: int
    NOT_FINITE: int
    BAD_ARGUMENT: int


class DualCostModule(Protocol):
    """The dual cost: its results and its forms."""

    OUT: int
    OUT_COST: int
    OUT_NOMINAL: int
    OUT_UNCERTAIN: int
    OUT_STATUS: int
    OUT_FALLBACK: int
    OUT_ITERATIONS: int
    OUT_SLOT: int
    LOWRANK: bool

    def choose_form(self, steps: int, W: Array | None = ...) -> str:
        """The faster of the forms."""


class CallsModule(Protocol):
    """Entries for callers in Python."""

    def tilt(self, k: int, end: int, slot: int, belief: Records, desk: Desk) -> None:
        """The slopes of the dual cost along a plan, to the notes."""

    def tilt_lowrank(self, k: int, end: int, slot: int, belief: Records, desk: Desk) -> None:
        """The same with the values of the plan in the place of the parameters, where there is such a form."""

    def expand_stage(self, k: int, step: Records, desk: Desk) -> float:
        """The cost of a step, where it is given by expressions; slope and curvature go to the step."""

    def expand_end(self, k: int, step: Records, desk: Desk) -> float:
        """The same for the end of a plan."""

    def spread(self, k: int, end: int, slot: int, belief: Records, desk: Desk) -> None:
        """The spread of constraints along the plan in a slot, into the notes."""

    def begin(self, k: int, end: int, belief: Records, desk: Desk) -> int:
        """Prepare the plans of one decision."""

    def certainty_equivalent(self, k: int, end: int, belief: Records, desk: Desk, u: Array) -> tuple[float, int, int]:
        """The certainty-equivalent input: cost, status, slot."""

    def plan_through(self, k: int, end: int, first_input: Array, desk: Desk) -> tuple[float, int, int, int]:
        """The plan through a first input: cost, status, slot, iterations."""

    def plan_at_distance(
        self, k: int, end: int, first_input: Array, belief: Records, desk: Desk
    ) -> tuple[float, int, int, int]:
        """The same at its distances from constraints, where there are any."""

    def follow(self, k: int, end: int, belief: Records, inputs: Array, desk: Desk) -> float:
        """The cost of given inputs; their trajectory is in slot 0."""

    def jd_structured(self, k: int, end: int, slot: int, order: int, belief: Records, desk: Desk) -> tuple[float, bool]:
        """Jd of a plan, and whether it fell back."""

    def jd_lowrank(self, k: int, end: int, slot: int, belief: Records, desk: Desk) -> float:
        """Jd of a plan in low-rank form, where that exists."""


class CandidatesModule(Protocol):
    """The table of a search and its report."""

    REPORT_EVALUATIONS: int
    REPORT_FALLBACKS: int
    REPORT_COST: int
    REPORT_NOMINAL: int
    REPORT_UNCERTAIN: int
    REPORT_ITERATIONS: int
    REPORT_ORDER: int
    SWITCHES: int  # only where inputs have a finite set of values

    def table(self) -> Table:
        """A fresh table."""


class DecisionModule(Protocol):
    """The search over the input."""

    COST: Any

    def cost_pointer(self, kind: str) -> Any:
        """A cost as a function pointer."""

    #: (address, searching, floor, k, end, belief, desk, table, u) -> status; compiled, with numba's own methods
    decide_at: Any
    #: (address, k, end, belief, desk, candidates, out) -> worst status; the same
    price_at: Any

    def plan_of(
        self,
        k: int,
        end: int,
        belief: Records,
        desk: Desk,
        u: Array,
        states: Array,
        inputs: Array,
    ) -> float:
        """The plan that a decision has seen."""


class PlantModule(Protocol):
    """The model as a plant: function pointers; those of noise where it may depend on anything."""

    move: Any
    measure: Any
    shake: Any
    blur: Any


class EpisodeModule(Protocol):
    """Closed loop."""

    STATS: int
    Plant: Any
    Controls: Any
    Luck: Any
    Diary: Any

    def seat(self, desk: Desk, plant_states: int, plant_work: int) -> Any:
        """What one thread works with."""

    def episodes(
        self,
        counter: Any,
        horizon: int,
        plant: Any,
        controls: Any,
        luck: Any,
        priors: Records,
        task: Records,
        seat: Any,
        diary: Any,
    ) -> None:
        """Run one episode for each prior."""
