"""The code of a package: which files it has, and what each template is given.

Every template has a context of its own, a frozen tuple whose fields are the keys of the template, so that a key that
nobody supplies or nobody uses is found by the type checker and by a test.
"""

from __future__ import annotations

from typing import NamedTuple

import sympy as sp

from symdual.derive.derivation import Derivation
from symdual.derive.structure import Structure, hessian_diagonals, structure
from symdual.emit.blocks import BlockText, MotionText, block_text, motion_text
from symdual.emit.kernels import DataLayout, KernelFunction, data_layout, kernel_functions, stages
from symdual.emit.processes import (
    ProcessCode,
    ProcessPoint,
    parameter_spans,
    points_of_a_step,
    process_codes,
    process_pairs,
)
from symdual.emit.records import Record, records
from symdual.emit.render import render
from symdual.emit.stages import StageLayout
from symdual.numbers import Array
from symdual.spec.model import Model
from symdual.spec.objective import Objective

MANY = 8  # parameters from which on there is a low-rank form, and rows are rounded up to whole vectors

Pairs = tuple[tuple[str, object], ...]
Diagonals = tuple[tuple[int, int, int, int], ...]


class InitContext(NamedTuple):
    """Names, sizes and index maps."""

    name: str
    digest_placeholder: str
    sizes: Pairs
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    measurements: tuple[str, ...]
    unknowns: tuple[tuple[str, int, int], ...]
    data_entries: tuple[tuple[str, int, int], ...]
    constants: Pairs


class KernelsContext(NamedTuple):
    """The leaves: f, h and their derivatives."""

    name: str
    sizes: Pairs
    functions: tuple[KernelFunction, ...]
    sincos_counts: tuple[int, ...]
    exp_counts: tuple[int, ...]
    helpers: frozenset[str]
    diagonals: Diagonals
    nx: int
    nu: int
    nz: int
    ntheta: int
    npairs: int
    hessian_core_rows: tuple[int, ...]
    hessian_input_rows: tuple[int, ...]
    huu_nonzero: bool
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
    signals: bool
    limited: bool


class RiccatiContext(NamedTuple):
    """The cost-to-go."""

    name: str
    expressed: bool
    limited: bool


class LimitsContext(NamedTuple):
    """Constraints."""

    name: str
    signals: bool
    moving: bool
    with_inputs: tuple[int, ...]


class RecordsContext(NamedTuple):
    """What the recursions work on."""

    name: str
    size_lines: tuple[str, ...]
    records: tuple[Record, ...]
    processes: tuple[ProcessCode, ...]
    expressed: bool
    signals: bool


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
    signals: bool


class NominalContext(NamedTuple):
    """The certainty-equivalent plan."""

    name: str
    linear: bool
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
    signals: bool


class AdjointContext(NamedTuple):
    """Slopes of the dual cost along a plan."""

    name: str
    curved_rows: tuple[int, ...]
    observation_curved_rows: tuple[int, ...]


class AdjointBlocksContext(NamedTuple):
    """Products of the adjoint."""

    name: str
    selecting: bool


class LookAheadContext(NamedTuple):
    """One step ahead."""

    name: str
    processes: tuple[ProcessCode, ...]
    expressed: bool
    signals: bool


class PlannedContext(NamedTuple):
    """The controller that plans to learn."""

    name: str
    diffusion: str


class LowRankContext(NamedTuple):
    """The low-rank form of the dual cost."""

    name: str
    processes: tuple[ProcessCode, ...]
    expressed: bool
    signals: bool


class DualCostContext(NamedTuple):
    """The dual cost."""

    name: str
    lowrank: bool
    input_delay: int
    processes: tuple[ProcessCode, ...]
    parameter_spans: tuple[tuple[int, int], ...]
    expressed: bool
    signals: bool
    limited: bool


class CandidatesContext(NamedTuple):
    """The table of a search."""

    name: str
    search_limits: tuple[str, ...]


class DecisionContext(NamedTuple):
    """The search over the input."""

    name: str
    costs: tuple[str, ...]
    expressed: bool
    limited: bool


class CallsContext(NamedTuple):
    """Entries for callers in Python."""

    name: str
    lowrank: bool
    expressed: bool
    limited: bool


class GradientContext(NamedTuple):
    """The gradient of the likelihood of a recording."""

    name: str
    tables: tuple[ShapedTable, ...]


class EpisodeContext(NamedTuple):
    """The closed loop."""

    name: str
    square_root: bool
    processes: tuple[ProcessCode, ...]
    expressed: bool
    signals: bool
    limited: bool


class File(NamedTuple):
    """A file of a package: its name, its template, and what the template is given."""

    name: str
    template: str
    context: NamedTuple


def code(derivation: Derivation, digest_placeholder: str) -> dict[str, str]:
    """The text of every code file of a package, by name."""
    return {
        f"{file.name}.py": render(f"{file.template}.py.jinja", file.context._asdict())
        for file in files(derivation, digest_placeholder)
    }


def files(derivation: Derivation, digest_placeholder: str = "") -> tuple[File, ...]:
    """The code files of a package with their contexts."""
    facts = _Facts(derivation)
    model, s, name = derivation.model, facts.structure, derivation.model.name
    expressed, signals = facts.objective is not None, bool(model.signals)
    limited = facts.limited
    search = "search_one" if s.nu == 1 else "search_several"
    optional = []
    if facts.processes:
        steps = points_of_a_step(derivation)
        context = ProcessContext(
            name, s.nx, facts.nr, s.ntheta, s.theta_rows, facts.processes, steps, facts.signal_place
        )
        optional.append(File("process", "process", context))
    elif not signals:
        # the belief on a process is relative to a prior that the plain recursions of the likelihood do not know, and
        # they do not know of numbers that change with time either
        gradient = GradientContext(name, facts.curvature_tables())
        optional += [
            File("likelihood", "likelihood", NameContext(name)),
            File("likelihood_gradient", "likelihood_gradient", gradient),
            File("information", "information", NameContext(name)),
        ]
    if facts.square_root:
        optional.append(File("square_root", "square_root", SquareRootContext(name, facts.transition, facts.diffusion)))
    if facts.iterated:
        optional.append(File("iterated", "iterated", NameContext(name)))
    if facts.lowrank:
        optional.append(File("lowrank", "lowrank", LowRankContext(name, facts.processes, expressed, signals)))
    if signals:
        optional.append(File("signals", "signals", NameContext(name)))
    if facts.objective is not None:
        optional.append(File("objective", "objective", facts.objective))
        optional.append(File("cost_bends", "cost_bends", facts.objective))
        if limited:
            moving = facts.transition != "identity"
            optional.append(File("limits", "limits", LimitsContext(name, signals, moving, _with_inputs(model))))
        if "values" in facts.objective:
            optional.append(File("convex", "convex", NameContext(name)))
    selecting = -1 not in s.h_selects
    if facts.processes or expressed or signals:
        adjoint = [File("adjoint", "adjoint_differences", NameContext(name))]
    else:
        adjoint = [
            File("adjoint_blocks", "adjoint_blocks", AdjointBlocksContext(name, selecting)),
            File("adjoint", "adjoint", AdjointContext(name, s.curved_rows, s.observation_curved_rows)),
        ]
    costs = ("structured", *(["lowrank"] if facts.lowrank else []), "second_order", "bonus")
    width = "width" if facts.lowrank else "WIDTH"
    text = block_text(s, facts.transition, width)
    blocks = BlocksContext(name, text, motion_text(facts.transition, facts.diffusion), width)
    spans = parameter_spans(derivation)
    dual_cost = DualCostContext(name, facts.lowrank, s.input_delay, facts.processes, spans, expressed, signals, limited)
    episode = EpisodeContext(name, facts.square_root, facts.processes, expressed, signals, limited)
    return (
        File("__init__", "__init__", facts.init(digest_placeholder)),
        File("options", "options", NameContext(name)),
        File("kernels", "kernels", facts.kernels()),
        File(
            "records",
            "records",
            RecordsContext(name, facts.size_lines(), facts.records(), facts.processes, expressed, signals),
        ),
        File("blocks", "blocks", blocks),
        File("cost_blocks", "cost_blocks", CostBlocksContext(name, text, width)),
        *optional,
        File("filter", "filter", FilterContext(name, selecting, facts.square_root, facts.iterated, facts.processes)),
        File("trajectory", "trajectory", TrajectoryContext(name, facts.processes, expressed, signals)),
        File("backward", "backward", ExpressedContext(name, expressed)),
        File("shelf", "shelf", ExpressedContext(name, expressed)),
        File("nominal", "nominal", NominalContext(name, facts.linear, expressed)),
        File(
            "curvature",
            "curvature",
            CurvatureContext(name, facts.hessian_tables(), facts.processes, expressed, signals),
        ),
        File("riccati", "riccati", RiccatiContext(name, expressed, limited)),
        File("dual_cost", "dual_cost", dual_cost),
        *adjoint,
        File("planner", "planner", NameContext(name)),
        File("look_ahead", "look_ahead", LookAheadContext(name, facts.processes, expressed, signals)),
        File("starts", "starts", NameContext(name)),
        File("planned", "planned", PlannedContext(name, facts.diffusion)),
        File("calls", "calls", CallsContext(name, facts.lowrank, expressed, limited)),
        File("candidates", "candidates", CandidatesContext(name, _SEARCH_LIMITS[search])),
        File("search", search, NameContext(name)),
        File("decision", "decision", DecisionContext(name, costs, expressed, limited)),
        File("plant", "plant", NameContext(model.name)),
        File("episode", "episode", episode),
    )


_SEARCH_LIMITS = {
    "search_one": (
        "SIDE = 20  # grid points on either side of u_ce, twice as many where there is one side only",
        "FINE = 18  # three in each of the four intervals around the deepest point, and of the two around the next",
        "GOLDEN = 23  # evaluations in a valley",
        "POINTS = 2 * SIDE + 1 + FINE",
        "CANDIDATES = POINTS + 2 * GOLDEN",
    ),
    "search_several": (
        "GLOBAL = 144 * NU  # points of the first search",
        "STARTS = 8  # of these, how many are refined",
        "SIMPLEX = 60 * NU  # evaluations of a refinement",
        "AROUND = 10  # points on either side of the best one along each axis",
        "CANDIDATES = 1 + 2 * NU + GLOBAL + (STARTS + 1) * SIMPLEX + 2 * NU * AROUND",
    ),
}


class _Facts:
    """What several contexts need of a derivation."""

    def __init__(self, derivation: Derivation) -> None:
        model = derivation.model
        self._derivation = derivation
        self.structure: Structure = structure(derivation)
        self._layout: DataLayout = data_layout(derivation)
        self._functions = kernel_functions(derivation, self.structure)
        self.processes = process_codes(derivation)
        self.transition, self.diffusion = _form(model.transition, "identity"), _form(model.drift, "none")
        self.square_root = model.filter == "square_root"
        self.iterated = model.filter == "iterated" and -1 in self.structure.h_selects
        self.nr, self.nhr = len(self.structure.theta_rows), len(self.structure.h_theta_rows)
        still = self.transition == "identity" and self.diffusion == "none" and self.nr > 0
        limited = model.objective is not None and bool(model.objective.limits)
        self.lowrank = still and self.structure.ntheta >= MANY and not limited
        self.objective = _objective_context(derivation)
        self.limited = model.objective is not None and bool(model.objective.limits)
        self.linear = self.structure.linear and (model.objective is None or model.objective.affine(model))
        self._work = max(function.kernel.work for function in self._functions)

    def records(self) -> tuple[Record, ...]:
        """The records of the package."""
        return records(
            square_root=self.square_root,
            iterated=self.iterated,
            processes=bool(self.processes),
            lowrank=self.lowrank,
            transition=self.transition,
            diffusion=self.diffusion,
            expressed=self.objective is not None,
            signals=bool(self._derivation.model.signals),
            limited=self.limited,
            observation_curved=bool(self.structure.observation_curved_rows),
        )

    def size_lines(self) -> tuple[str, ...]:
        """The constants that every recursion needs; they make the bounds of all inner loops known to the compiler."""
        s = self.structure
        diagonals = sum(count for _, _, count, _ in s.hessian_diagonals)
        seen = hessian_diagonals(self._derivation, self._derivation.observation_hessian)
        seen_pairs = len(self._derivation.observation_hessian.pairs)
        return (
            f"NX = {s.nx}  # states",
            f"NU = {s.nu}  # inputs",
            f"NY = {s.ny}  # measurements",
            f"NTHETA = {s.ntheta}  # unknown parameters",
            f"NZ = {s.nz}  # augmented state (x, theta)",
            f"NR = {self.nr}  # rows of f_theta that are not identically zero",
            f"NHR = {self.nhr}  # rows of h_theta that are not identically zero",
            f"NS = {s.ns}  # scalar unknowns",
            f"NPAIRS = {s.npairs}  # pairs of vectors in the parameter block of the Hessian",
            f"NDIAG = {diagonals}  # length of the diagonals of the Hessian",
            f"OBSERVATION_NDIAG = {sum(count for _, _, count, _ in seen)}  # of the Hessian of h",
            f"OBSERVATION_NPAIRS = {seen_pairs}",
            "SHELF = 11  # plans: the certainty-equivalent one, the two best, and those on trial",
            f"KICKS = {6 if s.nu == 1 else 3}  # first inputs tried on either side of the certainty-equivalent one",
            "STARTS = 3 + 2 * NU * KICKS  # plans that a decision may start from",
            "LOOKS = STARTS + 60 * NU  # first inputs that are looked at one step ahead",
            f"DATA = {self._layout.size}  # known numbers",
            *self._signal_lines(),
            *self._term_lines(),
            f"WORK = {self._work}  # scratch of the kernels",
            "# parameters rounded up to whole vectors; for a plain number as argument a function is compiled anew",
            f"WIDTH = np.int64({_padded(s.ntheta)})",
        )

    @property
    def signal_place(self) -> tuple[int, ...]:
        """Where the signals stand among the numbers, and how many there are; empty without any."""
        signals = self._derivation.model.signals
        places = {name: start for name, start, _ in self._layout.entries}
        return (places[signals[0].name], len(signals)) if signals else ()

    def _signal_lines(self) -> tuple[str, ...]:
        if not self.signal_place:
            return ()
        start, count = self.signal_place
        return (
            f"NSIGNALS = {count}  # known quantities that change with time",
            f"SIGNALS = {start}  # their place among the known numbers",
        )

    def _term_lines(self) -> tuple[str, ...]:
        objective = self._derivation.model.objective
        if objective is None:
            return ()
        return (
            f"NT = {len(objective.stage.expressions)}  # terms of the cost of a step",
            f"NE = {len(objective.final.expressions)}  # terms of the cost of the end",
            *([f"NC = {len(objective.limits)}  # constraints"] if objective.limits else []),
        )

    def init(self, digest_placeholder: str) -> InitContext:
        """Names, sizes and index maps."""
        derivation, s = self._derivation, self.structure
        model = derivation.model
        observation_diagonals = hessian_diagonals(derivation, derivation.observation_hessian)
        known: dict[str, object] = {
            "THETA_ROWS": s.theta_rows,
            "H_THETA_ROWS": s.h_theta_rows,
            "H_SELECTS": s.h_selects,
            "LINEAR": self.linear,
            "TIME_VARYING": model.time is not None,
            "INPUT_DELAY": s.input_delay,
            "HESSIAN_DIAGONALS": s.hessian_diagonals,
            "OBSERVATION_DIAGONALS": observation_diagonals,
            "OBSERVATION_PAIRS": len(derivation.observation_hessian.pairs),
            "TRANSITION": self.transition,
            "DIFFUSION": self.diffusion,
            "SQUARE_ROOT": self.square_root,
            "PROCESSES": {
                family.name: tuple(w.symbol.name for w in family.weights)
                for family in model.families
                if family.process is not None
            },
        }
        if model.signals:
            known["SIGNALS"] = tuple(s.name for s in model.signals)
        if model.objective is not None:
            known["TERMS"] = len(model.objective.stage.expressions)
            known["ENDS"] = len(model.objective.final.expressions)
            known["COST"] = _cost_text(model.objective)
            if model.objective.limits:
                known["WITH_INPUTS"] = _with_inputs(model)
                known["LIMITS"] = tuple(f"{_plain(g)} <= 0" for g in model.objective.limits)
        unknowns = [(symbol.name, i, 1) for i, symbol in enumerate(derivation.scalars)]
        unknowns += [(block.symbol.name, block.start, block.count) for block in derivation.weights]
        return InitContext(
            name=model.name,
            digest_placeholder=digest_placeholder,
            sizes=self._sizes(),
            states=tuple(symbol.name for symbol in derivation.states),
            inputs=tuple(symbol.name for symbol in derivation.inputs),
            measurements=measurement_names(derivation),
            unknowns=tuple(unknowns),
            data_entries=self._layout.entries,
            constants=tuple((key, repr(value)) for key, value in known.items()),
        )

    def kernels(self) -> KernelsContext:
        """The leaves."""
        s, functions = self.structure, self._functions
        return KernelsContext(
            name=self._derivation.model.name,
            sizes=self._sizes(),
            functions=functions,
            sincos_counts=tuple(sorted({c for f in functions for c in f.kernel.sincos_counts})),
            exp_counts=tuple(sorted({c for f in functions for c in f.kernel.exp_counts})),
            helpers=frozenset().union(*(f.kernel.helpers for f in functions)),
            diagonals=s.hessian_diagonals,
            nx=s.nx,
            nu=s.nu,
            nz=s.nz,
            ntheta=s.ntheta,
            npairs=s.npairs,
            hessian_core_rows=s.hessian_core_rows,
            hessian_input_rows=s.hessian_input_rows,
            huu_nonzero=s.huu_nonzero,
            theta_rows=s.theta_rows,
            stages=stages(self._derivation),
        )

    def curvature_tables(self) -> tuple[ShapedTable, ...]:
        """Where f and h have second derivatives, row by row."""
        s, shape, meaning = self.structure, ".reshape(-1, 4)", "row and column in z, count, start"
        observed = hessian_diagonals(self._derivation, self._derivation.observation_hessian)
        return (
            ShapedTable("CURVED_ROWS", s.curved_rows, "", "rows of f that have second derivatives"),
            ShapedTable("DIAGONALS", s.hessian_diagonals, shape, f"of theirs between weights: {meaning}"),
            ShapedTable("H_CURVED_ROWS", s.observation_curved_rows, "", "rows of h that have second derivatives"),
            ShapedTable("H_DIAGONALS", observed, shape, meaning),
        )

    def hessian_tables(self) -> tuple[ShapedTable, ...]:
        """Where the parameter block of the Hessian is not zero."""
        s = self.structure
        rows = tuple(row for row in s.hessian_core_rows if row >= s.nx)
        pairs = process_pairs(self._derivation)
        tables = [
            ShapedTable("HESSIAN_ROWS", rows, "", "scalar unknowns whose row is not identically zero, in z"),
            ShapedTable(
                "HESSIAN_DIAGONALS", s.hessian_diagonals, ".reshape(-1, 4)", "row and column in z, count, start"
            ),
        ]
        if self.processes:
            tables.append(
                ShapedTable("PROCESS_PAIRS", pairs, ".reshape(-1, 2)", "pair, and value whose features it has")
            )
        return tuple(tables)

    def _sizes(self) -> Pairs:
        s = self.structure
        return (
            ("NX", s.nx),
            ("NU", s.nu),
            ("NY", s.ny),
            ("NS", s.ns),
            ("NTHETA", s.ntheta),
            ("NZ", s.nz),
            ("NR", self.nr),
            ("NHR", self.nhr),
            ("NPAIRS", s.npairs),
            ("DATA", self._layout.size),
            ("WORK", self._work),
        )


def _objective_context(derivation: Derivation) -> ObjectiveContext | None:
    objective = derivation.model.objective
    if objective is None:
        return None
    stage, final = (
        ("squares" if terms.squares else "values") if terms else "" for terms in (objective.stage, objective.final)
    )
    return ObjectiveContext(derivation.model.name, stage, final, bool(derivation.model.signals), bool(objective.limits))


def _with_inputs(model: Model) -> tuple[int, ...]:
    """1 for each constraint that contains an input: at the end there is none."""
    limits = () if model.objective is None else model.objective.limits
    return tuple(int(not g.free_symbols.isdisjoint(model.inputs)) for g in limits)


def _plain(expression: sp.Expr) -> str:
    """An expression as text, in the order in which plain symbols would stand."""
    return str(sp.sstr(expression.xreplace({s: sp.Symbol(s.name) for s in expression.free_symbols})))


def _cost_text(objective: Objective) -> dict[str, list[str]]:
    """The terms of a cost as text, for people."""
    return {
        f"{role}, {'squared' if terms.squares else 'added'}": [_plain(e) for e in terms.expressions]
        for role, terms in (("step", objective.stage), ("end", objective.final))
        if terms
    }


def _padded(ntheta: int) -> int:
    """Few parameters fit exactly; many are rounded up to whole vectors of eight."""
    return ntheta if ntheta < MANY else 8 * -(-ntheta // 8)


def _form(value: Array | None, absent: str) -> str:
    return absent if value is None else ("diagonal" if value.ndim == 1 else "dense")


def measurement_names(derivation: Derivation) -> tuple[str, ...]:
    """A measurement of a single state has its name; others are numbered."""
    outputs = derivation.observation.program.outputs
    names = [e.name if e in derivation.states else f"y{i}" for i, e in enumerate(outputs)]
    return tuple(name if names.count(name) == 1 else f"y{i}" for i, name in enumerate(names))
