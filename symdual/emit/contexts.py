"""What each template is given: `name` and `has`, which are the same for all, and a frozen tuple with its own keys.

A key that nobody supplies is found by the type checker, one that nobody uses by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from symdual.controllers import Cost, Kind, Option
from symdual.emit.blocks import BlockText, MotionText
from symdual.emit.processes import ProcessCode, ProcessPoint
from symdual.emit.record import Record
from symdual.emit.signatures import WorkspaceField
from symdual.emit.stages import StageLayout

Lines = tuple[str, ...]  # of a module, such as `NX = 2`


class Has(NamedTuple):
    """What a model and the scenarios around it have: templates leave out, in the open, what they have not."""

    signals: bool  # known quantities that change with time
    processes: bool  # Gaussian processes
    noise: bool  # noise of the model that depends on state and input
    plant_noise: bool  # the same of the model or of a plant
    state_bounds: bool  # states that cannot leave their bounds
    plant_bounds: bool  # the same of the model or of a plant
    expression_cost: bool  # a cost given by expressions
    constraints: bool
    saturation: bool  # inputs that answer as far as their bounds allow
    discrete_inputs: bool  # inputs with a finite set of values
    square_root: bool  # a filter that keeps a factor of the covariance
    second_order: bool  # a filter with terms of second order
    curved_innovation: bool  # the same with curved measurements
    outliers: bool  # a filter that takes measured numbers that are too far off for less
    refinement: str  # how an update of the filter goes on: "iterated", "recalibrated", or "" where it is done
    smooths: bool  # an iterated filter that linearises the step before again
    lowrank: bool  # a low-rank form of the dual cost
    exact_slopes: bool  # slopes of the dual cost by the adjoint recursion, not by differences
    planned: bool  # the part of a package for the controller `planned`, which was asked for
    rivals: bool  # the part for controllers to compare with
    likelihood: bool  # the part for fits to recordings

    @property
    def iterates(self) -> bool:
        """Whether an update of the filter iterates."""
        return self.refinement == "iterated"


class InitContext(NamedTuple):
    """Names, sizes and index maps."""

    digest_placeholder: str
    sizes: Lines
    states: str
    inputs: str
    measurements: str
    unknowns: str
    data_entries: str
    constants: Lines


class OptionsContext(NamedTuple):
    """How numba is asked to compile."""

    tested: tuple[str, ...]  # versions of numba with which the tuned pipeline is used


class KernelsContext(NamedTuple):
    """The leaves: f, h and their derivatives."""

    sizes: Lines
    imports: str
    functions: str
    helpers: tuple[str, ...]
    sincos_counts: tuple[int, ...]
    exp_counts: tuple[int, ...]
    nx: int
    npairs: int
    shapes: Mapping[str, str]  # of the arguments of kernels that are templates
    hessian_blocks: str
    theta_rows: tuple[int, ...]
    stages: StageLayout | None


class StateBound(NamedTuple):
    """A bound: the position and name of its state, on which side one would be beyond it, and the number as text."""

    place: int
    state: str
    beyond: str
    bound: str


class StateBoundsContext(NamedTuple):
    """What stops states at their bounds."""

    bounds: tuple[StateBound, ...]


class ProcessContext(NamedTuple):
    """What is remembered of Gaussian processes."""

    nx: int
    nr: int
    ntheta: int
    theta_rows: tuple[int, ...]
    processes: tuple[ProcessCode, ...]
    process_steps: tuple[ProcessPoint, ...]
    signals: tuple[int, ...]
    matern: bool


class ObjectiveContext(NamedTuple):
    """A cost by expressions: how the terms of a step and of the end count, "squares", "values" or ""."""

    stage: str
    final: str


class ConstraintsContext(NamedTuple):
    """Constraints, beside a cost as in `ObjectiveContext`."""

    with_inputs: tuple[int, ...]
    stage: str
    final: str


class ClosedLoopCovarianceContext(NamedTuple):
    """The closed-loop covariance."""

    moving: bool


class NarrowingContext(NamedTuple):
    """What a search knows of back-offs; with one input also between two points."""

    one_input: bool


class RecordsContext(NamedTuple):
    """What the recursions work on."""

    size_lines: tuple[str, ...]
    records: tuple[Record, ...]
    workspace: tuple[WorkspaceField, ...]
    options: Mapping[str, Option]


class SettingsContext(NamedTuple):
    """The list of controllers, and the costs that they minimise."""

    kinds: Mapping[str, Kind]
    costs: Mapping[str, Cost]
    names: tuple[str, ...]  # of those that stand by themselves
    cost_changes: Mapping[str, Mapping[str, str]]


class ControllerContext(NamedTuple):
    """A controller for programs without symdual."""

    names: tuple[str, ...]
    addable: Mapping[str, str]  # controllers that the package has not, by the part that would add them


class BlocksContext(NamedTuple):
    """Products by blocks; `width` is how many parameters take part, a constant where there is no low-rank form."""

    t: BlockText
    m: MotionText
    width: str


class ShapedTable(NamedTuple):
    """A constant table with the text that gives it its shape."""

    name: str
    values: tuple[object, ...]
    shape: str
    meaning: str


class CurvedMap(NamedTuple):
    """What f or h has of second derivatives: rows, whether there are diagonals between weights, pairs of vectors."""

    rows: int
    diagonals: bool
    pairs: int


class SecondOrderText(NamedTuple):
    """Where f and h have second derivatives, as the second-order filter reads it."""

    tables: tuple[ShapedTable, ...]
    dynamics: CurvedMap
    observation: CurvedMap
    values: int  # entries of second derivatives
    wide: int  # rows of all weights

    @property
    def diagonals(self) -> bool:
        """Whether there are diagonals between weights."""
        return self.dynamics.diagonals or self.observation.diagonals

    @property
    def pairs(self) -> int:
        """Pairs of vectors of parameters that a row may have."""
        return max(self.dynamics.pairs, self.observation.pairs)


class FilterContext(NamedTuple):
    """The filter: whether every measurement is a state, what an outlier is, second derivatives, how parameters move."""

    selecting: bool
    outliers: float | None
    moments: SecondOrderText
    transition: str
    diffusion: str


class SecondOrderContext(NamedTuple):
    """What second derivatives add to means and covariances."""

    moments: SecondOrderText


class AdjointMomentsContext(NamedTuple):
    """Slopes of the terms of second order in covariances."""

    moments: SecondOrderText
    states: tuple[int, ...]
    inputs: tuple[int, ...]
    seen: tuple[int, ...]


class CostBlocksContext(NamedTuple):
    """Products of the Riccati recursion, with those of second derivatives."""

    t: BlockText
    width: str
    hessian_tables: tuple[ShapedTable, ...]


class NominalContext(NamedTuple):
    """The certainty-equivalent plan."""

    linear: bool
    steady: bool


class AdjointContext(NamedTuple):
    """Slopes of the dual cost along a plan, by parameters or by the values of a plan in their place."""

    observation_curved_rows: tuple[int, ...]


class AdjointHessiansContext(NamedTuple):
    """What slopes by Jacobians make of points and inputs."""

    curved_rows: tuple[int, ...]
    observation_curved_rows: tuple[int, ...]


class AdjointBlocksContext(NamedTuple):
    """Products of the adjoint."""

    selecting: bool
    width: str
    rows: str


class StartsContext(NamedTuple):
    """The plans that `planned` starts from, and whether there is anything to learn."""

    affine: bool
    diffusion: str


class SimulationContext(NamedTuple):
    """Simulations of rollouts."""

    diffusion: str


class RiccatiContext(NamedTuple):
    """Covariances and cost-to-go along a plan."""

    input_delay: int
    parameter_spans: tuple[tuple[int, int], ...]


class PlannerContext(NamedTuple):
    """The planner, with the module that has the slopes of the dual cost."""

    slopes: str


class SearchContext(NamedTuple):
    """The search over the input, with its table."""

    search_limits: tuple[str, ...]


class DecisionContext(NamedTuple):
    """The search over the input."""

    costs: tuple[str, ...]
    own: tuple[str, ...]  # costs that are modules of their own
    signature: str  # of a cost


class PlantContext(NamedTuple):
    """The model as a plant."""

    signatures: Mapping[str, str]


class CallsContext(NamedTuple):
    """Entries for callers in Python."""

    slopes: str


class CurvatureContext(NamedTuple):
    """Where f and h have second derivatives, for the likelihood of a recording."""

    tables: tuple[ShapedTable, ...]


class LikelihoodMomentsContext(NamedTuple):
    """Where they may change, and whether weights meet weights in them."""

    tables: tuple[ShapedTable, ...]
    together: bool
