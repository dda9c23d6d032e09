"""What a generated package offers, module by module, as far as it is called from Python.

Generated code has no types of its own; these protocols are what the type checker knows of it. Records are numpy arrays
of the types that the module `records` of a package declares. Kernels and likelihoods have interfaces of their own.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError

Records = NDArray[Any]


class BackendFailure(SymdualError):
    """Something that a backend could not translate, compile or load."""


class Backend(Protocol):
    """Modules of a package that are not made by numba."""

    @property
    def make(self) -> MakeBackend:
        """What makes such a backend of another package; it can be pickled."""

    def offers(self, module: str) -> bool:
        """Whether it has a module of this name."""

    def module(self, name: str) -> types.ModuleType:
        """A module with compiled functions; to look one up, or to call it, may raise `BackendFailure`."""

    @property
    def given_up(self) -> bool:
        """Whether it offers nothing any more, because of a failure."""

    def give_up(self, failure: BackendFailure) -> bool:
        """Leave everything to numba from now on, and say why; False if it was asked for, and may not."""


#: Makes a backend of the name, the digest and the files of a package.
MakeBackend = Callable[[str, str, Mapping[str, bytes]], Backend]


class Noise(NamedTuple):
    """Q (NX, NX), R (NY, NY), and how the parameters move: D and Xi as the model gives them."""

    process: Array
    measurement: Array
    transition: Array
    drift: Array


class Pointer(Protocol):
    """A compiled function that other compiled code calls by its address."""

    @property
    def address(self) -> int:
        """The address."""


class FilterWorkspace(Protocol):
    """`filter.FilterWorkspace`: what the filter of one thread works with."""

    settings: Records


class Workspace(Protocol):
    """`records.Workspace`: everything that a decision works on besides the belief."""

    plan: Records
    stages: Records
    stage_costs: Records
    settings: Records
    scratch: Records
    forms: Records
    gradients: Records
    stored_plans: Records
    decision_log: Records


class Table(Protocol):
    """`candidates.Table`: what a search has tried."""

    candidates: Array
    out: Array
    report: Array
    limits: Array


class RecordsModule(Protocol):
    """What the recursions work on."""

    NX: int
    NTHETA: int
    NZ: int
    GAUSSIAN: np.dtype[Any]
    STORED: np.dtype[Any]
    POINT: np.dtype[Any]

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
    """The filter."""

    def make_filter_workspace(self, settings: Records) -> FilterWorkspace:
        """What the filter of one thread works with."""

    def predict(self, k: int, belief: Records, u: Array, filter_workspace: FilterWorkspace) -> None:
        """One prediction in place."""

    def update(self, k: int, belief: Records, y: Array, filter_workspace: FilterWorkspace, stats: Array) -> int:
        """One measurement in place."""

    def update_consider(
        self, k: int, belief: Records, y: Array, filter_workspace: FilterWorkspace, stats: Array
    ) -> int:
        """One measurement that corrects the states only."""

    def step(self, k: int, belief: Records, u: Array, y: Array, filter_workspace: FilterWorkspace) -> int:
        """A prediction and a measurement."""


class FilterMeanModule(Protocol):
    """What an update of the filter returns."""

    MEASURED: int
    NOTHING_MEASURED: int
    NOT_FINITE: int
    NOT_CONVERGED: int


class FilterCovarianceModule(Protocol):
    """How the filter keeps a covariance; in the square-root form, where a model asks for it, with these two."""

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
    OUT_BUFFER: int
    LOWRANK: bool

    def choose_form(self, steps: int, W: Array | None = ...) -> str:
        """The faster of the forms."""


class CallsModule(Protocol):
    """Entries for callers in Python."""

    def dual_gradient(self, k: int, end: int, buffer: int, belief: Records, workspace: Workspace) -> None:
        """The slopes of the dual cost along a plan, to the stage data."""

    def dual_gradient_lowrank(self, k: int, end: int, buffer: int, belief: Records, workspace: Workspace) -> None:
        """The same with the values of the plan in the place of the parameters, where there is such a form."""

    def expand_stage(self, k: int, point: Records, workspace: Workspace) -> float:
        """The cost of a step, where it is given by expressions; slope and curvature go to the step."""

    def expand_end(self, k: int, point: Records, workspace: Workspace) -> float:
        """The same for the end of a plan."""

    def closed_loop_covariance(self, k: int, end: int, buffer: int, belief: Records, workspace: Workspace) -> None:
        """The closed-loop deviation of constraints along the plan in a buffer, into the stage data."""

    def begin(self, k: int, end: int, belief: Records, workspace: Workspace) -> int:
        """Prepare the plans of one decision."""

    def certainty_equivalent(
        self, k: int, end: int, belief: Records, workspace: Workspace, u: Array
    ) -> tuple[float, int, int]:
        """The certainty-equivalent input: cost, status, buffer."""

    def plan_through(self, k: int, end: int, first_input: Array, workspace: Workspace) -> tuple[float, int, int, int]:
        """The plan through a first input: cost, status, buffer, iterations."""

    def plan_with_backoff(
        self, k: int, end: int, first_input: Array, belief: Records, workspace: Workspace
    ) -> tuple[float, int, int, int]:
        """The same with its back-offs from constraints, where there are any."""

    def follow(self, k: int, end: int, belief: Records, inputs: Array, workspace: Workspace) -> float:
        """The cost of given inputs; their trajectory is in buffer 0."""

    def jd_structured(
        self, k: int, end: int, buffer: int, order: int, belief: Records, workspace: Workspace
    ) -> tuple[float, bool]:
        """Jd of a plan, and whether it fell back."""

    def jd_lowrank(self, k: int, end: int, buffer: int, belief: Records, workspace: Workspace) -> float:
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
    DISCRETE_ROWS: int  # only where inputs have a finite set of values

    def table(self) -> Table:
        """A fresh table."""


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


class DecideAt(Protocol):
    """`decision.decide_at`, with what numba adds to a compiled function."""

    def __call__(
        self,
        address: int,
        searching: bool,
        floor: Array,
        k: int,
        end: int,
        belief: Records,
        workspace: Workspace,
        table: Table,
        u: Array,
    ) -> int:
        """Choose the input by the cost at an address; returns a status."""

    def compile(self, signature: tuple[object, ...]) -> object:
        """Compile it for the types of its arguments."""


class PriceAt(Protocol):
    """`decision.price_at`, likewise."""

    def __call__(
        self, address: int, k: int, end: int, belief: Records, workspace: Workspace, candidates: Array, out: Array
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
        belief: Records,
        workspace: Workspace,
        u: Array,
        states: Array,
        inputs: Array,
    ) -> float:
        """The plan that a decision has seen."""


class PlantModule(Protocol):
    """The model as a plant.

    `process_noise_at` and `measurement_noise_at` are there where noise may depend on anything.
    """

    move: Pointer
    measure: Pointer
    process_noise_at: Pointer
    measurement_noise_at: Pointer


class EpisodePlant(NamedTuple):
    """`episode.Plant`: the true system; signals, and noise that depends, only where the package has them."""

    move: Pointer
    measure: Pointer
    data: Array
    signals: Array
    place: int
    state_dependent_noise: bool
    process_noise_at: Pointer
    measurement_noise_at: Pointer
    Q: Array
    R: Array


class EpisodeControls(NamedTuple):
    """`episode.Controls`: how a controller decides."""

    cost: int
    searching: bool
    floors: Array
    window: int
    informed: bool


class EpisodeNoiseDraws(NamedTuple):
    """`episode.NoiseDraws`: what is drawn at random."""

    truths: Array
    process: Array
    measurement: Array
    wander: Array
    seeds: Array


class EpisodeLogArrays(NamedTuple):
    """`episode.EpisodeLog`: what episodes write down; `constraints` only where there are constraints."""

    states: Array
    inputs: Array
    means: Array
    variances: Array
    steps: Array
    finals: Records
    outcomes: NDArray[np.int64]
    memories: Array
    constraints: Array


class ThreadWorkspace(Protocol):
    """`episode.ThreadWorkspace`: what the episodes of one thread work with."""

    workspace: Workspace


class EpisodeModule(Protocol):
    """Closed loop."""

    STATS: int
    Plant: type[EpisodePlant]
    Controls: type[EpisodeControls]
    NoiseDraws: type[EpisodeNoiseDraws]
    EpisodeLog: type[EpisodeLogArrays]

    def make_thread_workspace(self, workspace: Workspace, plant_states: int, plant_work: int) -> ThreadWorkspace:
        """What one thread works with."""

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


class Constants:
    """The names, sizes and index maps of a package (its `__init__`); those from `COST` on only some packages have."""

    DIGEST: str
    NX: int
    NU: int
    NY: int
    NS: int
    NTHETA: int
    NZ: int
    NR: int
    NHR: int
    NPAIRS: int
    DATA: int
    WORK: int
    STATES: Mapping[str, int]
    INPUTS: Mapping[str, int]
    MEASUREMENTS: Mapping[str, int]
    UNKNOWNS: Mapping[str, tuple[int, int]]
    DATA_ENTRIES: Mapping[str, tuple[int, int]]
    THETA_ROWS: tuple[int, ...]
    H_THETA_ROWS: tuple[int, ...]
    H_SELECTS: tuple[int, ...]
    HESSIAN_DIAGONALS: tuple[tuple[int, int, int, int], ...]
    OBSERVATION_DIAGONALS: tuple[tuple[int, int, int, int], ...]
    OBSERVATION_PAIRS: int
    INPUT_DELAY: int
    TRANSITION: str
    DIFFUSION: str
    AFFINE: bool
    LINEAR: bool
    SQUARE_ROOT: bool
    TIME_VARYING: bool
    METHOD: str
    SUBSTEPS: int
    PROCESSES: Mapping[str, tuple[str, ...]]
    COST: Mapping[str, list[str]]
    TERMS: int
    ENDS: int
    CONSTRAINTS: tuple[str, ...]
    WITH_INPUTS: tuple[int, ...]
    SIGNALS: tuple[str, ...]
    NOISE: Mapping[str, str]
    COMBINATIONS: int
