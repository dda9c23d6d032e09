"""What several templates need to know of a derivation, and the contexts that take more than a line to fill."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from functools import cached_property

from symdual.common.arrays import Array
from symdual.common.parts import PARTS
from symdual.derive.derivation import Derivation
from symdual.derive.structure import Structure, hessian_diagonals, structure
from symdual.emit.contexts import (
    AdjointMomentsContext,
    Has,
    InitContext,
    KernelsContext,
    LikelihoodMomentsContext,
    Lines,
    ObjectiveContext,
    SecondOrderText,
    ShapedTable,
)
from symdual.emit.kernels import DataLayout, data_layout, kernel_functions, sizes_of_kernels, stages
from symdual.emit.layout import functions_text, helpers_in, hessian_text, kernel_imports
from symdual.emit.processes import process_codes, process_pairs
from symdual.emit.record import Needs, Record
from symdual.emit.records import records
from symdual.emit.second_order import (
    NO_MOMENTS,
    adjoint_moments_context,
    likelihood_moments_context,
    second_order_text,
)
from symdual.emit.sizes import arguments_of, shapes_text
from symdual.spec.objective import as_text
from symdual.spec.specification import Specification
from symdual.spec.symbols import Unknown

MANY = 8  # parameters from which on there is a low-rank form, and rows are rounded up to whole vectors

_IN_TEMPLATES = ("dynamics", "linearise", "dynamics_jacobian", "dynamics_hessian", "dynamics_hessians")
_MEANINGS = {
    "NX": "states",
    "NU": "inputs",
    "NY": "measurements",
    "NTHETA": "unknown parameters",
    "NZ": "augmented state (x, theta)",
    "NR": "rows of f_theta that are not identically zero",
    "NHR": "rows of h_theta that are not identically zero",
    "NS": "scalar unknowns",
    "NPAIRS": "pairs of vectors in the parameter block of the Hessian",
    "NDIAG": "length of the diagonals of the Hessian",
    "OBSERVATION_NDIAG": "of the Hessian of h",
}


class Facts:
    """What several contexts need of a derivation."""

    def __init__(self, derivation: Derivation, parts: Collection[str] = PARTS) -> None:
        model = derivation.model
        self.derivation, self.parts = derivation, parts
        self.structure: Structure = structure(derivation)
        self._layout: DataLayout = data_layout(derivation)
        self._functions = kernel_functions(derivation, self.structure)
        self.processes = process_codes(derivation)
        self.transition, self.diffusion = _form(model.transition, "identity"), _form(model.drift, "none")
        self.square_root, self.outliers = model.square_root, model.outliers
        self.selecting = -1 not in self.structure.h_selects  # every measurement is a state
        used = self.structure.filter_in_use(model.filter)
        self.second_order, self.refinement = used.endswith("second_order"), _refinement(used)
        # a Gaussian process remembers the points where it was: a step cannot be taken back
        self.smooths = self.refinement == "iterated" and bool(self.structure.curved_in_z) and not self.processes
        self.nr = len(self.structure.theta_rows)
        still = self.transition == "identity" and self.diffusion == "none" and self.nr > 0
        self.state_dependent_noise = model.noise is not None
        self.plant_state_dependent_noise = self.state_dependent_noise or model.plants_have_state_dependent_noise
        self.objective = _objective_context(derivation)
        constraints = () if model.objective is None else model.objective.constraints
        self.constrained = bool(constraints)
        bounded = any(math.isfinite(bound) for bound in (*model.lower, *model.upper))
        self.saturation = bounded and not self.constrained and not self.processes
        self.discrete = model.combinations > 0
        unseen = not any(
            g.has(Unknown) for g in constraints
        )  # the low-rank form knows unknowns only as the plan meets them
        self.lowrank = still and self.structure.ntheta >= MANY and unseen and not self.state_dependent_noise
        self.lowrank = self.lowrank and not self.second_order  # which asks for all of S at every step
        self.linear = self.structure.linear and (model.objective is None or model.objective.affine(model))
        # what is uncertain about states costs the same whatever is done
        self.affine = self.linear and not self.structure.observation_curved_rows
        self.steady = self.transition == "identity" and model.time is None and not model.signals
        self._sizes = sizes_of_kernels(derivation, self.structure, self._functions)

    @property
    def has(self) -> Has:
        """What all templates are told of the model and its scenarios."""
        return Has(
            signals=bool(self.derivation.model.signals),
            processes=bool(self.processes),
            noise=self.state_dependent_noise,
            plant_noise=self.plant_state_dependent_noise,
            state_bounds=bool(self.derivation.model.state_bounds),
            plant_bounds=bool(self.derivation.model.state_bounds) or self.derivation.model.plants_have_state_bounds,
            expression_cost=self.objective is not None,
            constraints=self.constrained,
            saturation=self.saturation,
            discrete_inputs=self.discrete,
            square_root=self.square_root,
            second_order=self.second_order,
            curved_innovation=self.second_order and bool(self.structure.observation_curved_rows),
            outliers=self.outliers is not None,
            refinement=self.refinement,
            smooths=self.smooths,
            lowrank=self.lowrank,
            exact_slopes="planned" in self.parts and not self.constrained and (self.lowrank or not self.processes),
            planned="planned" in self.parts,
            rivals="rivals" in self.parts,
            likelihood="likelihood" in self.parts and not self.processes,
        )

    def records(self) -> tuple[Record, ...]:
        """The records of the package."""
        needs = Needs(
            square_root=self.square_root,
            second_order=self.second_order,
            outliers=self.outliers is not None,
            refinement=self.refinement,
            smooths=self.smooths,
            wide=self.moments.wide,
            pairs=self.moments.pairs,
            processes=bool(self.processes),
            lowrank=self.lowrank,
            transition=self.transition,
            diffusion=self.diffusion,
            has_expression_cost=self.objective is not None,
            signals=bool(self.derivation.model.signals),
            constrained=self.constrained,
            saturation=self.saturation,
            state_dependent_noise=self.state_dependent_noise,
            discrete=self.discrete,
            likelihood=self.has.likelihood,
            rivals=self.has.rivals,
            observation_curved=bool(self.structure.observation_curved_rows),
        )
        return records(needs)

    def size_lines(self) -> tuple[str, ...]:
        """The constants that every recursion needs; they make the bounds of all inner loops known to the compiler."""
        s = self.structure
        return (
            *(f"{name} = {self._sizes[name]}  # {meaning}" for name, meaning in _MEANINGS.items()),
            f"OBSERVATION_NPAIRS = {self._sizes['OBSERVATION_NPAIRS']}",
            "STORED_PLANS = 11  # plans: the certainty-equivalent one, the two best, and those on trial",
            f"PERTURBATIONS = {6 if s.nu == 1 else 3}  # first inputs tried on either side of that of the ce plan",
            "STARTS = 3 + 2 * NU * PERTURBATIONS  # plans that a decision may start from",
            "LOOKS = STARTS + 60 * NU  # first inputs that are looked at one step ahead",
            "ENTRIES = 13  # contestants of simulated rollouts",
            *(["SAMPLES = 8  # at most, of a tree of scenarios"] if self.has.rivals else []),
            f"DATA = {self._sizes['DATA']}  # known numbers",
            *self._signal_lines(),
            *self._term_lines(),
            *self._moment_lines(),
            *self._discrete_lines(),
            f"WORK = {self._sizes['WORK']}  # scratch of the kernels",
            f"WIDTH = {_padded(s.ntheta)}  # parameters rounded up to whole vectors",
        )

    @property
    def signal_place(self) -> tuple[int, ...]:
        """Where the signals stand among the numbers, and how many there are; empty without any."""
        signals = self.derivation.model.signals
        places = {name: start for name, start, _ in self._layout.entries}
        return (places[signals[0].name], len(signals)) if signals else ()

    @cached_property
    def moments(self) -> SecondOrderText:
        """Where f and h have second derivatives, as far as the filter asks for them."""
        if not self.second_order:
            return NO_MOMENTS
        return second_order_text(self.derivation, self.structure)

    def adjoint_moments(self) -> AdjointMomentsContext:
        """The same for the slopes of covariances along plans."""
        return adjoint_moments_context(self.derivation, self.moments)

    def likelihood_moments(self) -> LikelihoodMomentsContext:
        """The same for the gradient of the likelihood of a recording."""
        return likelihood_moments_context(self.derivation, self.moments)

    def _moment_lines(self) -> tuple[str, ...]:
        if not self.second_order:
            return ()
        text = self.moments
        return (
            f"CURVED_ROWS = {text.dynamics.rows + text.observation.rows}  # rows of f and h with second derivatives",
            f"CURVED_VALUES = {text.values}  # entries of these",
            *([f"CURVED_WIDE = {text.wide}  # rows of these by all weights"] if text.wide else []),
            *([f"PAIRS = {text.pairs}  # of vectors of parameters in them"] if text.pairs else []),
        )

    def _signal_lines(self) -> tuple[str, ...]:
        if not self.signal_place:
            return ()
        start, count = self.signal_place
        return (
            f"NSIGNALS = {count}  # known quantities that change with time",
            f"SIGNALS = {start}  # their place among the known numbers",
        )

    def _term_lines(self) -> tuple[str, ...]:
        if self.objective is None:
            return ()
        return (
            f"NT = {self._sizes['NT']}  # terms of the cost of a step",
            f"NE = {self._sizes['NE']}  # terms of the cost of the end",
            *([f"NC = {self._sizes['NC']}  # constraints"] if self.constrained else []),
        )

    def _discrete_lines(self) -> tuple[str, ...]:
        count = self.derivation.model.combinations
        return (f"COMBINATIONS = {count}  # of inputs with a finite set of values",) if count else ()

    def init(self, digest_placeholder: str) -> InitContext:
        """Names, sizes and index maps."""
        derivation, s = self.derivation, self.structure
        model = derivation.model
        observation_diagonals = hessian_diagonals(derivation, derivation.observation_hessian)
        known: dict[str, object] = {
            "THETA_ROWS": s.theta_rows,
            "H_THETA_ROWS": s.h_theta_rows,
            "H_SELECTS": s.h_selects,
            "LINEAR": self.linear,
            "AFFINE": self.affine,
            "TIME_VARYING": model.time is not None,
            "METHOD": "none" if model.step is None else model.method,
            "SUBSTEPS": model.substeps,
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
        if model.outliers is not None:
            known["OUTLIERS"] = model.outliers
        if model.signals:
            known["SIGNALS"] = tuple(s.name for s in model.signals)
        if model.objective is not None:
            known["TERMS"] = len(model.objective.stage.expressions)
            known["ENDS"] = len(model.objective.final.expressions)
            known["COST"] = model.objective.cost_as_text
            if model.objective.constraints:
                known["WITH_INPUTS"] = with_inputs(model)
                known["CONSTRAINTS"] = model.objective.constraints_as_text
        if self.structure.filter_in_use(model.filter) != model.filter:
            known["SAME_AS_EXTENDED"] = model.filter  # on this model: nothing is curved
        if model.state_bounds:
            known["STATE_BOUNDS"] = {model.states[i].name: sides for i, sides in model.bounded_states.items()}
        if model.noise is not None:
            known["NOISE"] = {what: as_text(e) for what, e in model.noise.named if e != 0}
        if model.combinations:
            known["COMBINATIONS"] = model.combinations
        unknowns = [(symbol.name, i, 1) for i, symbol in enumerate(model.unknowns)]
        unknowns += [(block.symbol.name, block.start, block.count) for block in derivation.weights]
        return InitContext(
            digest_placeholder=digest_placeholder,
            sizes=self._size_names(),
            states=_positions(symbol.name for symbol in derivation.states),
            inputs=_positions(symbol.name for symbol in derivation.inputs),
            measurements=_positions(measurement_names(derivation)),
            unknowns=_spans(unknowns),
            data_entries=_spans(self._layout.entries),
            constants=(*(f"{key} = {value!r}" for key, value in known.items()), *_bounded_line(model)),
        )

    def kernels(self) -> KernelsContext:
        """The leaves."""
        s, functions, staged = self.structure, self._functions, stages(self.derivation)
        text = functions_text(functions)
        sincos = tuple(sorted({c for f in functions for c in f.kernel.sincos_counts}))
        exp = tuple(sorted({c for f in functions for c in f.kernel.exp_counts}))
        helpers = helpers_in(text, bool(sincos or exp))
        return KernelsContext(
            sizes=self._size_names(),
            imports=kernel_imports(
                text, helpers, bool(sincos), bool(exp), staged is not None, bool(staged and staged.implicit)
            ),
            functions=text,
            helpers=helpers,
            sincos_counts=sincos,
            exp_counts=exp,
            nx=s.nx,
            npairs=s.npairs,
            shapes={f: shapes_text(f, arguments_of(f), self._sizes) for f in _IN_TEMPLATES},
            hessian_blocks=hessian_text(s),
            theta_rows=s.theta_rows,
            stages=staged,
        )

    def curvature_tables(self) -> tuple[ShapedTable, ...]:
        """Where f and h have second derivatives, row by row."""
        s, shape, meaning = self.structure, ".reshape(-1, 4)", "row and column in z, count, start"
        observed = hessian_diagonals(self.derivation, self.derivation.observation_hessian)
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
        pairs = process_pairs(self.derivation)
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

    def _size_names(self) -> Lines:
        names = ("NX", "NU", "NY", "NS", "NTHETA", "NZ", "NR", "NHR", "NPAIRS", "DATA", "WORK")
        return tuple(f"{name} = {self._sizes[name]}" for name in names)


def _bounded_line(model: Specification) -> Lines:
    """The unknowns with bounds, for those who turn theta into a user's units."""
    bounded = {s.name: s.transform.sides for s in model.unknowns if s.transform}
    meaning = "of unknowns k: theta has log(k - lower), log(upper - k) or, with both, the log of their ratio"
    return (f"BOUNDED = {bounded!r}  # {meaning}",) if bounded else ()


def _refinement(filter: str) -> str:
    """How an update of a filter goes on after its first correction; empty where it is done."""
    return next((kind for kind in ("iterated", "recalibrated") if filter.startswith(kind)), "")


def _objective_context(derivation: Derivation) -> ObjectiveContext | None:
    objective = derivation.model.objective
    if objective is None:
        return None
    stage, final = (
        ("squares" if terms.squares else "values") if terms else "" for terms in (objective.stage, objective.final)
    )
    return ObjectiveContext(stage, final)


def with_inputs(model: Specification) -> tuple[int, ...]:
    """1 for each constraint that contains an input: at the end there is none."""
    constraints = () if model.objective is None else model.objective.constraints
    return tuple(int(not g.free_symbols.isdisjoint(model.inputs)) for g in constraints)


def _positions(names: Iterable[str]) -> str:
    """Names with their places, as a dictionary in one line."""
    return "{" + ", ".join(f'"{name}": {place}' for place, name in enumerate(names)) + "}"


def _spans(entries: Iterable[tuple[str, int, int]]) -> str:
    """Names with their starts and counts, as a dictionary with a line for each."""
    return "{\n" + "".join(f'    "{name}": ({start}, {count}),\n' for name, start, count in entries) + "}"


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
