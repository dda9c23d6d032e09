"""What each template is given: a frozen tuple whose fields are the keys of the template.

A key that nobody supplies is found by the type checker, one that nobody uses by a test.
"""

from __future__ import annotations

from typing import NamedTuple

from symdual.emit.blocks import BlockText, MotionText
from symdual.emit.processes import ProcessCode, ProcessPoint
from symdual.emit.record import Record
from symdual.emit.stages import StageLayout

Lines = tuple[str, ...]  # of a module, such as `NX = 2`


class InitContext(NamedTuple):
    """Names, sizes and index maps."""

    name: str
    digest_placeholder: str
    sizes: Lines
    states: str
    inputs: str
    measurements: str
    unknowns: str
    data_entries: str
    constants: Lines


class KernelsContext(NamedTuple):
    """The leaves: f, h and their derivatives."""

    name: str
    sizes: Lines
    functions: str
    sincos_counts: tuple[int, ...]
    exp_counts: tuple[int, ...]
    nx: int
    nu: int
    nz: int
    npairs: int
    hessian_blocks: str
    theta_rows: tuple[int, ...]
    stages: StageLayout | None


class ProcessContext(NamedTuple):
    """What is remembered of Gaussian processes."""

    name: str
    nx: int
    nr: int
    ntheta: int
    theta_rows: tuple[int, ...]
    processes: tuple[ProcessCode, ...]
    process_steps: tuple[ProcessPoint, ...]
    signals: tuple[int, ...]


class NameContext(NamedTuple):
    """For templates that are the same for all models."""

    name: str


class ExpressedContext(NamedTuple):
    """For templates that differ only by the kind of cost."""

    name: str
    expressed: bool


class ObjectiveContext(NamedTuple):
    """A cost by expressions: how the terms of a step and of the end count, "squares", "values" or ""."""

    name: str
    stage: str
    final: str


class LimitsContext(NamedTuple):
    """Constraints."""

    name: str
    with_inputs: tuple[int, ...]


class SpreadContext(NamedTuple):
    """The spread in closed loop."""

    name: str
    moving: bool


class DistancesContext(NamedTuple):
    """Plans at a distance from constraints."""

    name: str
    lowrank: bool


class RecordsContext(NamedTuple):
    """What the recursions work on."""

    name: str
    size_lines: tuple[str, ...]
    records: tuple[Record, ...]
    expressed: bool
    signals: bool
    arbitrating: bool


class BlocksContext(NamedTuple):
    """Products by blocks; `width` is how many parameters take part, a constant where there is no low-rank form."""

    name: str
    t: BlockText
    m: MotionText
    width: str


class SquareRootContext(NamedTuple):
    """The square-root form of the filter."""

    name: str
    transition: str
    diffusion: str


class FilterContext(NamedTuple):
    """The filter."""

    name: str
    selecting: bool
    square_root: bool
    iterated: bool
    processes: tuple[ProcessCode, ...]
    noisy: bool


class CostBlocksContext(NamedTuple):
    """Products of the Riccati recursion."""

    name: str
    t: BlockText
    width: str


class TrajectoryContext(NamedTuple):
    """Rollouts and their costs."""

    name: str
    processes: tuple[ProcessCode, ...]
    expressed: bool


class NominalContext(NamedTuple):
    """The certainty-equivalent plan."""

    name: str
    linear: bool
    steady: bool
    expressed: bool


class ShapedTable(NamedTuple):
    """A constant table with the text that gives it its shape."""

    name: str
    values: tuple[object, ...]
    shape: str
    meaning: str


class CurvatureContext(NamedTuple):
    """Second derivatives along a plan."""

    name: str
    hessian_tables: tuple[ShapedTable, ...]
    processes: tuple[ProcessCode, ...]
    expressed: bool


class AdjointContext(NamedTuple):
    """Slopes of the dual cost along a plan."""

    name: str
    observation_curved_rows: tuple[int, ...]
    expressed: bool


class AdjointBendsContext(NamedTuple):
    """What slopes by Jacobians make of points and inputs."""

    name: str
    curved_rows: tuple[int, ...]
    observation_curved_rows: tuple[int, ...]


class AdjointBlocksContext(NamedTuple):
    """Products of the adjoint."""

    name: str
    selecting: bool
    width: str
    rows: str


class AdjointLowRankContext(NamedTuple):
    """Slopes of the dual cost along a plan, with its values in the place of the parameters."""

    name: str
    observation_curved_rows: tuple[int, ...]
    expressed: bool
    processes: bool


class LookAheadContext(NamedTuple):
    """One step ahead."""

    name: str
    processes: tuple[ProcessCode, ...]
    expressed: bool
    limited: bool


class ProcessesContext(NamedTuple):
    """For templates that differ only by Gaussian processes."""

    name: str
    processes: tuple[ProcessCode, ...]


class PlannedContext(NamedTuple):
    """The controller that plans to learn."""

    name: str
    affine: bool
    diffusion: str
    noisy: bool
    limited: bool
    processes: bool
    arbitrating: bool


class FuturesContext(NamedTuple):
    """Simulated futures."""

    name: str
    diffusion: str
    expressed: bool


class LowRankContext(NamedTuple):
    """The low-rank form of the dual cost."""

    name: str
    processes: tuple[ProcessCode, ...]
    expressed: bool
    signals: bool


class CovariancesContext(NamedTuple):
    """Covariances along a plan."""

    name: str
    input_delay: int
    processes: tuple[ProcessCode, ...]
    parameter_spans: tuple[tuple[int, int], ...]
    expressed: bool
    signals: bool
    noisy: bool


class DualCostContext(NamedTuple):
    """The dual cost."""

    name: str
    lowrank: bool
    limited: bool


class PlannerContext(NamedTuple):
    """The planner, with the module that has the slopes of the dual cost."""

    name: str
    lowrank: bool
    limited: bool
    slopes: str


class CandidatesContext(NamedTuple):
    """The table of a search."""

    name: str
    search_limits: tuple[str, ...]


class LimitedContext(NamedTuple):
    """What is said in another way where there are constraints."""

    name: str
    limited: bool


class DecisionContext(NamedTuple):
    """The search over the input."""

    name: str
    costs: tuple[str, ...]
    expressed: bool
    limited: bool
    switched: bool


class ControllerContext(NamedTuple):
    """A controller for programs without symdual."""

    name: str
    square_root: bool
    expressed: bool
    limited: bool
    signals: bool
    switched: bool


class CallsContext(NamedTuple):
    """Entries for callers in Python."""

    name: str
    lowrank: bool
    expressed: bool
    limited: bool
    slopes: str


class GradientContext(NamedTuple):
    """The gradient of the likelihood of a recording."""

    name: str
    tables: tuple[ShapedTable, ...]
    noisy: bool


class InnovationContext(NamedTuple):
    """What a row of a recording tells."""

    name: str
    noisy: bool


class LikelihoodContext(NamedTuple):
    """The likelihood of a recording."""

    name: str
    signals: bool
    noisy: bool


class PlantContext(NamedTuple):
    """The model as a plant; `shaken`: its noise, or that of a plant of its scenarios, depends."""

    name: str
    noisy: bool
    shaken: bool


class EpisodeContext(NamedTuple):
    """The closed loop."""

    name: str
    processes: tuple[ProcessCode, ...]
    expressed: bool
    signals: bool
    limited: bool
    shaken: bool
