"""What searches and episodes of a generated package offer, and what they are handed: costs, plants, tables, logs."""

from __future__ import annotations

from typing import Annotated, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.entries.recursions import Workspace
from symdual.entries.types import (
    LEFT_TO_PYTHON,
    RUN_TIME,
    AnyLength,
    Belief,
    Candidates,
    Input,
    Measurement,
    Pointer,
    PointerTo,
    Records,
    Results,
    State,
    StateByState,
    Statistics,
    shaped,
)


class Table(Protocol):
    """`search.Table`: what a search has tried."""

    candidates: Annotated[Array, shaped("search.CANDIDATES", "NU")]
    out: Annotated[Array, shaped("search.CANDIDATES", "dual_cost.OUT")]
    report: Annotated[Array, shaped("search.REPORT")]
    limits: Annotated[Array, shaped("2", "NU")]


class SearchModule(Protocol):
    """The table of a search and its report."""

    REPORT_EVALUATIONS: int
    REPORT_FALLBACKS: int
    REPORT_COST: int
    REPORT_NOMINAL: int
    REPORT_UNCERTAIN: int
    REPORT_ITERATIONS: int
    REPORT_ORDER: int
    DISCRETE_ROWS: int  # only where inputs have a finite set of values

    def table(self) -> Table:
        """A fresh table."""


class Cost(Protocol):
    """A cost of many first inputs, between which a decision is made."""

    def __call__(
        self, k: int, end: int, belief: Belief, workspace: Workspace, candidates: Candidates, out: Results
    ) -> int:
        """The costs of candidates; returns the worst status."""


CostAddress = Annotated[int, PointerTo(Cost)]


class DecideAt(Protocol):
    """`decision.decide_at`, with what numba adds to a compiled function."""

    def __call__(
        self,
        address: CostAddress,
        searching: bool,
        floor: Input,
        k: int,
        end: int,
        belief: Belief,
        workspace: Workspace,
        table: Table,
        u: Input,
    ) -> int:
        """Choose the input by the cost at an address; returns a status."""

    def compile(self, signature: tuple[object, ...]) -> object:
        """Compile it for the types of its arguments."""


class PriceAt(Protocol):
    """`decision.price_at`, likewise."""

    def __call__(
        self,
        address: CostAddress,
        k: int,
        end: int,
        belief: Belief,
        workspace: Workspace,
        candidates: Candidates,
        out: Results,
    ) -> int:
        """The costs of candidates; returns the worst status."""

    def compile(self, signature: tuple[object, ...]) -> object:
        """Compile it for the types of its arguments."""


class DecisionModule(Protocol):
    """The search over the input; `COST` is the type by which numba knows a cost."""

    COST: object
    decide_at: DecideAt
    price_at: PriceAt

    def cost_pointer(self, kind: str) -> Pointer:
        """A cost as a function pointer."""

    def plan_of(
        self,
        k: int,
        end: int,
        belief: Belief,
        workspace: Workspace,
        u: Input,
        states: Annotated[Array, shaped(RUN_TIME, "NX")],
        inputs: Candidates,
    ) -> float:
        """The plan that a decision has seen."""


# ------------------------------------------------------------ closed loop


class PlantMove(Protocol):
    """`plant.move`: vectors are those of the plant, which may be a package with other unknowns."""

    def __call__(
        self, time_index: int, z: AnyLength, u: AnyLength, data: AnyLength, work: AnyLength, f: AnyLength
    ) -> None:
        """f = f(x, u, theta)."""


class PlantMeasure(Protocol):
    """`plant.measure`."""

    def __call__(self, time_index: int, z: AnyLength, data: AnyLength, work: AnyLength, h: AnyLength) -> None:
        """h = h(x, theta)."""


class PlantProcessNoiseAt(Protocol):
    """`plant.process_noise_at`."""

    def __call__(
        self, time_index: int, z: AnyLength, u: AnyLength, data: AnyLength, work: AnyLength, Q: StateByState
    ) -> None:
        """Q = Q(x, u)."""


class PlantMeasurementNoiseAt(Protocol):
    """`plant.measurement_noise_at`."""

    def __call__(
        self,
        time_index: int,
        z: AnyLength,
        data: AnyLength,
        work: AnyLength,
        R: Annotated[Array, shaped("NY", "NY")],
    ) -> None:
        """R = R(x)."""


Move = Annotated[Pointer, PointerTo(PlantMove)]
Measure = Annotated[Pointer, PointerTo(PlantMeasure)]
ProcessNoiseAt = Annotated[Pointer, PointerTo(PlantProcessNoiseAt)]
MeasurementNoiseAt = Annotated[Pointer, PointerTo(PlantMeasurementNoiseAt)]


class PlantModule(Protocol):
    """The model as a plant.

    `process_noise_at` and `measurement_noise_at` are there where noise may depend on anything.
    """

    move: Move
    measure: Measure
    process_noise_at: ProcessNoiseAt
    measurement_noise_at: MeasurementNoiseAt


class EpisodePlant(NamedTuple):
    """`episode.Plant`: the true system; signals, noise that depends and bounds only where the package has them."""

    move: Move
    measure: Measure
    data: AnyLength
    signals: Annotated[Array, shaped(RUN_TIME, RUN_TIME)]
    place: int
    state_dependent_noise: bool
    process_noise_at: ProcessNoiseAt
    measurement_noise_at: MeasurementNoiseAt
    Q: Annotated[Array, shaped("2", "NX", "NX")]
    R: Annotated[Array, shaped("2", "NY", "NY")]
    lower: State
    upper: State


class EpisodeControls(NamedTuple):
    """`episode.Controls`: how a controller decides."""

    cost: CostAddress
    searching: bool
    floors: Candidates
    window: int
    informed: bool


class EpisodeNoiseDraws(NamedTuple):
    """`episode.NoiseDraws`: what is drawn at random."""

    truths: Annotated[Array, shaped(RUN_TIME, RUN_TIME)]
    process: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NX")]
    measurement: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NY")]
    wander: Annotated[Array, shaped(RUN_TIME, RUN_TIME, RUN_TIME)]
    seeds: Annotated[Array, shaped(RUN_TIME)]


class EpisodeLogArrays(NamedTuple):
    """`episode.EpisodeLog`: what episodes write down; `constraints` only where there are constraints."""

    states: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NX")]
    inputs: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NU")]
    means: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NZ")]
    variances: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NZ")]
    steps: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "episode.STATS")]
    finals: Annotated[Records, shaped(RUN_TIME, of="GAUSSIAN")]
    outcomes: Annotated[NDArray[np.int64], LEFT_TO_PYTHON]
    memories: Annotated[Array, LEFT_TO_PYTHON]
    constraints: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NC")]


class ThreadWorkspace(Protocol):
    """`episode.ThreadWorkspace`: what the episodes of one thread work with."""

    belief: Belief
    workspace: Workspace
    table: Table
    truth: AnyLength
    plant_work: AnyLength
    x: State
    y: Measurement
    u: Input
    stats: Statistics


class EpisodeModule(Protocol):
    """Closed loop."""

    STATS: int
    Plant: type[EpisodePlant]
    Controls: type[EpisodeControls]
    NoiseDraws: type[EpisodeNoiseDraws]
    EpisodeLog: type[EpisodeLogArrays]

    def make_thread_workspace(self, workspace: Workspace, plant_states: int, plant_work: int) -> ThreadWorkspace:
        """What one thread works with."""

    def episode(
        self,
        n: int,
        horizon: int,
        plant: EpisodePlant,
        controls: EpisodeControls,
        noise_draws: EpisodeNoiseDraws,
        thread_workspace: ThreadWorkspace,
        episode_log: EpisodeLogArrays,
    ) -> int:
        """Run an episode from the belief of the thread workspace; returns how it ended. Called by compiled code."""

    def episodes(
        self,
        counter: NDArray[np.int64],
        horizon: int,
        plant: EpisodePlant,
        controls: EpisodeControls,
        noise_draws: EpisodeNoiseDraws,
        priors: Records,
        settings: Records,
        thread_workspace: ThreadWorkspace,
        episode_log: EpisodeLogArrays,
    ) -> None:
        """Run one episode for each prior."""
