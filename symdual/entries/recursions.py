"""What filter, plans and costs of a generated package offer, and the workspaces that they are given."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.entries.types import (
    RUN_TIME,
    Belief,
    Candidates,
    Input,
    Measurement,
    Records,
    Results,
    Statistics,
    shaped,
)

Point = Annotated[Records, shaped("1", of="POINT")]


class FilterWorkspace(Protocol):
    """`filter.FilterWorkspace`: what the filter of one thread works with."""

    point: Point
    stage: Annotated[Records, shaped("1", of="STAGE")]
    settings: Annotated[Records, shaped("1", of="SETTINGS")]
    scratch: Annotated[Records, shaped("1", of="SCRATCH")]


class Workspace(Protocol):
    """`records.Workspace`: everything that a decision works on besides the belief."""

    plan: Annotated[Records, shaped(RUN_TIME, RUN_TIME, of="POINT")]
    stages: Annotated[Records, shaped(RUN_TIME, of="STAGE")]
    hessians: Annotated[Records, shaped(RUN_TIME, of="HESSIAN")]
    stage_costs: Annotated[Records, shaped(RUN_TIME, of="STAGE_COST")]
    settings: Annotated[Records, shaped(RUN_TIME, of="SETTINGS")]
    scratch: Annotated[Records, shaped(RUN_TIME, of="SCRATCH")]
    forms: Annotated[Records, shaped(RUN_TIME, of="GAUSSIAN")]
    gradients: Annotated[Records, shaped(RUN_TIME, of="GRADIENT")]
    covariances: Annotated[Records, shaped(RUN_TIME, of="GAUSSIAN")]
    stored_plans: Annotated[Records, shaped(RUN_TIME, RUN_TIME, of="STORED")]
    nodes: Annotated[Records, shaped(RUN_TIME, of="GAUSSIAN")]
    ahead: Annotated[Records, shaped(RUN_TIME, of="STAGE")]
    decision_log: Annotated[Records, shaped(RUN_TIME, of="DECISION_LOG")]
    rollout: Annotated[Records, shaped(RUN_TIME, of="ROLLOUT")]  # where plans are chosen by rollouts


class RecordsModule(Protocol):
    """What the recursions work on."""

    NX: int
    NTHETA: int
    NZ: int
    GAUSSIAN: np.dtype[Any]
    STORED: np.dtype[Any]
    POINT: np.dtype[Any]
    STAGE: np.dtype[Any]

    def make_workspace(
        self, steps: int, stage_costs: Records, settings: Records, order: int = ..., planning: bool = ...
    ) -> Workspace:
        """A workspace for plans of at most `steps` steps."""

    def make_settings(self, Q: Array, R: Array, D: Array, Xi: Array, bounds: Array, data: Array) -> Records:
        """Controller settings with defaults."""

    def make_stage_costs(self, W: Array, U: Array, r: Array, *more: Array) -> Records:
        """The cost of each time."""

    def make_belief(self, mean: Array, covariance: Array) -> Records:
        """A belief from mean and covariance."""

    def write_belief(self, belief: Records, mean: Array, covariance: Array) -> None:
        """Put mean and covariance into a belief."""

    def read_covariance(self, belief: Records) -> Array:
        """The covariance of a belief."""


class FilterModule(Protocol):
    """The filter, with what an update returns; the last two are those of a square root, where a model asks for it."""

    MEASURED: int
    NOTHING_MEASURED: int
    NOT_FINITE: int
    NOT_CONVERGED: int

    def make_filter_workspace(self, settings: Records) -> FilterWorkspace:
        """What the filter of one thread works with."""

    def predict(self, k: int, belief: Belief, u: Input, filter_workspace: FilterWorkspace) -> None:
        """One prediction in place."""

    def update(
        self, k: int, belief: Belief, y: Measurement, filter_workspace: FilterWorkspace, stats: Statistics
    ) -> int:
        """One measurement in place."""

    def update_consider(
        self, k: int, belief: Belief, y: Measurement, filter_workspace: FilterWorkspace, stats: Statistics
    ) -> int:
        """One measurement that corrects the states only."""

    def step(self, k: int, belief: Belief, u: Input, y: Measurement, filter_workspace: FilterWorkspace) -> int:
        """A prediction and a measurement."""

    def steps(
        self,
        k: int,
        beliefs: Annotated[Records, shaped(RUN_TIME, of="GAUSSIAN")],
        inputs: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NU")],
        measurements: Annotated[Array, shaped(RUN_TIME, RUN_TIME, "NY")],
        filter_workspace: FilterWorkspace,
    ) -> None:
        """A prediction and a measurement for each row of many recordings."""

    def factorise(self, belief: Belief) -> None:
        """The factor from the blocks."""

    def complete(self, belief: Belief) -> None:
        """The blocks from the factor."""


class MomentsModule(Protocol):
    """What curvature adds to means and covariances: the curved rows, those of f first."""

    CURVED: NDArray[np.int64]
    OF_DYNAMICS: int


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
    OUT_BUFFER: int
    LOWRANK: bool

    def choose_form(self, steps: int, W: Array | None = ...) -> str:
        """The faster of the forms."""


class CallsModule(Protocol):
    """Entries for callers in Python."""

    def begin(self, k: int, end: int, belief: Belief, workspace: Workspace) -> int:
        """Prepare the plans of one decision."""

    def certainty_equivalent(
        self, k: int, end: int, belief: Belief, workspace: Workspace, u: Input
    ) -> tuple[float, int, int]:
        """The certainty-equivalent input: cost, status, buffer."""

    def plan_through(self, k: int, end: int, first_input: Input, workspace: Workspace) -> tuple[float, int, int, int]:
        """The plan through a first input: cost, status, buffer, iterations."""

    def plan_with_backoff(
        self, k: int, end: int, first_input: Input, belief: Belief, workspace: Workspace
    ) -> tuple[float, int, int, int]:
        """The same with its back-offs from constraints, where there are any."""

    def follow(self, k: int, end: int, belief: Belief, inputs: Candidates, workspace: Workspace) -> float:
        """The cost of given inputs; their trajectory is in buffer 0."""

    def expand_stage(self, k: int, point: Point, workspace: Workspace) -> float:
        """The cost of a step, where it is given by expressions; slope and curvature go to the step."""

    def expand_end(self, k: int, point: Point, workspace: Workspace) -> float:
        """The same for the end of a plan."""

    def jd_structured(
        self, k: int, end: int, buffer: int, order: int, belief: Belief, workspace: Workspace
    ) -> tuple[float, bool]:
        """Jd of a plan, and whether it fell back."""

    def jd_lowrank(self, k: int, end: int, buffer: int, belief: Belief, workspace: Workspace) -> float:
        """Jd of a plan in low-rank form, where that exists."""

    def dual_gradient(self, k: int, end: int, buffer: int, belief: Belief, workspace: Workspace) -> None:
        """The slopes of the dual cost along a plan, to the stage data."""

    def dual_gradient_lowrank(self, k: int, end: int, buffer: int, belief: Belief, workspace: Workspace) -> None:
        """The same with the values of the plan in the place of the parameters, where there is such a form."""

    def descend_total(
        self,
        k: int,
        end: int,
        buffer: int,
        cost: float,
        limit: int,
        tolerance: float,
        belief: Belief,
        workspace: Workspace,
    ) -> tuple[float, int, int]:
        """Improve the plan in a buffer: cost, buffer, iterations."""

    def total_cost(self, k: int, end: int, buffer: int, cost: float, belief: Belief, workspace: Workspace) -> float:
        """The cost of the plan in a buffer with what uncertainty adds, where there are constraints."""

    def closed_loop_covariance(self, k: int, end: int, buffer: int, belief: Belief, workspace: Workspace) -> None:
        """The closed-loop deviation of constraints along the plan in a buffer, into the stage data."""

    def structured(
        self, k: int, end: int, belief: Belief, workspace: Workspace, candidates: Candidates, out: Results
    ) -> int:
        """The costs of candidates; returns the worst status."""

    def lowrank(
        self, k: int, end: int, belief: Belief, workspace: Workspace, candidates: Candidates, out: Results
    ) -> int:
        """The same in low-rank form, where that exists."""

    def second_order(
        self, k: int, end: int, belief: Belief, workspace: Workspace, candidates: Candidates, out: Results
    ) -> int:
        """The same at order 2."""

    def bonus(
        self, k: int, end: int, belief: Belief, workspace: Workspace, candidates: Candidates, out: Results
    ) -> int:
        """The same with a bonus for what is learned."""


class ProcessModule(Protocol):
    """What is remembered of Gaussian processes; functions that carry the name of a process are found by it."""

    JITTER: float
    NOISE_FLOOR: float
    COUNT: int
    SCALE: int
    COMBINED: int
    LEFT_OPEN: int
    RAISED: int
    POINTS: int
    VALUES: int
    STEP_VALUES_OF_POINTS: tuple[tuple[int, str, tuple[tuple[int, int], ...]], ...]

    def room_for(self, steps: int, data: Array) -> bool:
        """Whether all values of a plan can be remembered."""
