"""The code of a package: which files it has, and what each template is given."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, get_type_hints

from symdual.common.numba_versions import TESTED
from symdual.common.parts import PARTS
from symdual.controllers import CONTROLLERS, COSTS, EXPORTED, OPTIONS, cost_changes_of
from symdual.derive.derivation import Derivation
from symdual.emit.blocks import block_text, motion_text
from symdual.emit.contexts import (
    AdjointBlocksContext,
    AdjointContext,
    AdjointHessiansContext,
    BlocksContext,
    CallsContext,
    ClosedLoopCovarianceContext,
    ConstraintsContext,
    ControllerContext,
    CostBlocksContext,
    CurvatureContext,
    DecisionContext,
    FilterContext,
    NarrowingContext,
    NominalContext,
    ObjectiveContext,
    OptionsContext,
    PlannerContext,
    PlantContext,
    ProcessContext,
    RecordsContext,
    RiccatiContext,
    SearchContext,
    SecondOrderContext,
    SettingsContext,
    SimulationContext,
    StartsContext,
    StateBound,
    StateBoundsContext,
)
from symdual.emit.facts import Facts, with_inputs
from symdual.emit.processes import calls_matern, parameter_spans, points_of_a_step
from symdual.emit.render import render
from symdual.emit.signatures import signature, workspace_fields
from symdual.entries.decisions import Cost, PlantModule
from symdual.entries.types import target_of
from symdual.spec.specification import Specification


class File(NamedTuple):
    """A file of a package: its place, what its template is given with `name` and `has`, and where that template is."""

    place: str
    context: NamedTuple | None = None
    template: str = ""  # at the same place, if nothing is said

    @property
    def source(self) -> str:
        """The file of its template."""
        return f"{self.template or self.place}.py.jinja"


def code(derivation: Derivation, digest_placeholder: str, parts: Collection[str] = PARTS) -> dict[str, str]:
    """The text of every code file of a package with these parts, by name."""
    facts = Facts(derivation, parts)
    return {f"{file.place}.py": render(file.source, given(file, facts)) for file in files(facts, digest_placeholder)}


def given(file: File, facts: Facts) -> dict[str, object]:
    """What the template of a file is given."""
    own = {} if file.context is None else file.context._asdict()
    return {"name": facts.derivation.model.name, "has": facts.has, **own}


def files(facts: Facts, digest_placeholder: str = "") -> tuple[File, ...]:
    """The code files of a package with their contexts, in the order in which they build on one another."""
    s, has = facts.structure, facts.has
    width, rows = ("width", "min(width, NTHETA)") if has.lowrank else ("WIDTH", "NTHETA")
    text = block_text(s, facts.transition, width)
    search = "search_one" if s.nu == 1 else "search_several"
    slopes = "adjoint_lowrank" if has.lowrank and not has.constraints else "adjoint"
    costs = ("structured", *(["lowrank"] if has.lowrank else []), "second_order", "bonus")
    records = facts.records()
    able = [kind for kind in EXPORTED if not (has.processes and "processes" in dict(kind.refuses))]
    alone = tuple(kind.name for kind in able if kind.part in ("", *facts.parts))
    changes = {name: cost_changes_of(name) for name in CONTROLLERS}
    addable = {kind.name: kind.part for kind in able if kind.name not in alone}
    asked = {kind.cost for kind in EXPORTED if kind.name in alone}
    own = tuple(name for name, cost in COSTS.items() if cost.own_module and (name in asked or cost.part in facts.parts))
    found = (
        File("__init__", facts.init(digest_placeholder)),
        File("options", OptionsContext(TESTED)),
        File("pipeline"),
        File("kernels/kernels", facts.kernels()),
        File("records", RecordsContext(facts.size_lines(), records, workspace_fields(records), OPTIONS)),
        File("blocks/blocks", BlocksContext(text, motion_text(facts.transition, facts.diffusion), width)),
        *([File("blocks/moments", SecondOrderContext(facts.moments))] if has.second_order else []),
        File("blocks/cost_blocks", CostBlocksContext(text, width, facts.hessian_tables())),
        *_optional(facts),
        File(
            "filters/filter",
            FilterContext(facts.selecting, facts.outliers, facts.moments, facts.transition, facts.diffusion),
        ),
        File("planning/trajectory"),
        File("planning/backward"),
        File("planning/nominal", NominalContext(facts.linear, facts.steady)),
        File("planning/shooting"),
        File("planning/ce_solver"),
        File("planning/riccati", RiccatiContext(s.input_delay, parameter_spans(facts.derivation))),
        *([File("planning/saturation")] if has.saturation else []),
        File("planning/dual_cost"),
        *([File("constraints/uncertain_cost")] if has.constraints else []),
        *(_planned(facts, slopes, AdjointBlocksContext(facts.selecting, width, rows)) if has.planned else []),
        *([File("blocks/random_numbers")] if own or has.planned else []),
        File("calls", CallsContext(slopes)),
        File("search/search", SearchContext(_search_limits(search, has.discrete_inputs)), f"search/{search}"),
        *([File("search/combinations"), File("search/discrete_inputs")] if has.discrete_inputs else []),
        *(File(f"controllers/{name}") for name in own),
        File("search/decision", DecisionContext(costs, own, signature(Cost, "types."))),
        File("settings", SettingsContext(CONTROLLERS, COSTS, alone, changes)),
        File("controller", ControllerContext(alone, addable)),
        File("plant", _plant()),
        File("episode"),
    )
    folders = sorted({file.place.partition("/")[0] for file in found if "/" in file.place})
    return (*found, *(File(f"{folder}/__init__") for folder in folders))


def _plant() -> PlantContext:
    """The types of the functions of a plant."""
    pointers = get_type_hints(PlantModule, include_extras=True)
    targets = {name: target for name, kind in pointers.items() if (target := target_of(kind))}
    return PlantContext({name: signature(target) for name, target in targets.items()})


def _optional(facts: Facts) -> list[File]:
    """What only some models have."""
    has = facts.has
    found = [*(_process(facts) if has.processes else []), *(_likelihood(facts) if has.likelihood else [])]
    for name, folder, wanted in (
        ("lowrank", "planning", has.lowrank),
        ("signals", "kernels", has.signals),
        ("true_noise", "kernels", has.plant_noise),
        ("noise", "kernels", has.noise),
    ):
        if wanted:
            found.append(File(f"{folder}/{name}"))
    if has.state_bounds:
        found.append(File("kernels/state_bounds", StateBoundsContext(_state_bounds(facts.derivation.model))))
    if facts.objective is not None:
        found.append(File("kernels/objective", facts.objective))
        found.append(File("planning/cost_hessians", facts.objective))
        found += _constraints(facts, facts.objective) if has.constraints else []
        if "values" in facts.objective:
            found.append(File("planning/convex"))
    return found


def _state_bounds(model: Specification) -> tuple[StateBound, ...]:
    """Each bound of a state by itself."""
    found = []
    for i, sides in model.bounded_states.items():
        for beyond, bound in zip("<>", sides, strict=True):
            found += [] if bound is None else [StateBound(i, model.states[i].name, beyond, repr(float(bound)))]
    return tuple(found)


def _process(facts: Facts) -> list[File]:
    """What is remembered of Gaussian processes."""
    s, steps = facts.structure, points_of_a_step(facts.derivation)
    matern = calls_matern(facts.processes)
    context = ProcessContext(s.nx, facts.nr, s.ntheta, s.theta_rows, facts.processes, steps, facts.signal_place, matern)
    return [File("kernels/process", context)]


def _likelihood(facts: Facts) -> list[File]:
    """The likelihood of recordings, for models without a process: its belief is relative to a prior unknown here."""
    return [
        *([File("likelihood/likelihood_noise")] if facts.has.noise else []),
        File("likelihood/curvature", CurvatureContext(facts.curvature_tables())),
        *([File("likelihood/likelihood_moments", facts.likelihood_moments())] if facts.has.second_order else []),
        File("likelihood/innovation"),
        File("likelihood/likelihood"),
        File("likelihood/likelihood_gradient"),
        File("likelihood/information"),
    ]


def _constraints(facts: Facts, objective: ObjectiveContext) -> list[File]:
    return [
        File(
            "constraints/constraints",
            ConstraintsContext(with_inputs(facts.derivation.model), *objective),
        ),
        File(
            "constraints/closed_loop_covariance",
            ClosedLoopCovarianceContext(facts.transition != "identity"),
        ),
        File("constraints/backoff_search", NarrowingContext(facts.structure.nu == 1)),
        File("constraints/backoff"),
        *([File("constraints/closed_loop_covariance_lowrank")] if facts.lowrank else []),
    ]


def _planned(facts: Facts, slopes: str, blocks: AdjointBlocksContext) -> list[File]:
    """The controller that plans to learn."""
    return [
        *([File("constraints/total_cost")] if facts.has.constraints else []),
        *_adjoint(facts, blocks),
        File("dual_planner/planner", PlannerContext(slopes)),
        File("dual_planner/look_ahead"),
        File("dual_planner/budget"),
        File("dual_planner/starts", StartsContext(facts.affine, facts.diffusion)),
        *_selection(facts),
        File("dual_planner/planned"),
    ]


def _adjoint(facts: Facts, blocks: AdjointBlocksContext) -> list[File]:
    """Slopes of what uncertainty costs: by the adjoint recursion, or by differences where there is none."""
    has, s = facts.has, facts.structure
    if has.constraints:
        return [File("slopes/adjoint", template="slopes/adjoint_constrained")]
    seen = s.observation_curved_rows
    products = [
        File("blocks/adjoint_blocks", blocks),
        *([] if facts.objective is None else [File("slopes/adjoint_cost", facts.objective)]),
        *([File("slopes/adjoint_noise")] if has.noise else []),
        *([File("slopes/adjoint_moments", facts.adjoint_moments())] if has.second_order else []),
        File("slopes/adjoint_hessians", AdjointHessiansContext(s.curved_rows, seen)),
    ]
    if has.processes:
        differences = File("slopes/adjoint", template="slopes/adjoint_differences")
        found = [differences, *(products if has.lowrank else [])]
    else:
        found = [*products, File("slopes/adjoint", AdjointContext(seen))]
    if has.lowrank:
        found += [
            File("blocks/value_blocks"),
            File("slopes/adjoint_lowrank", AdjointContext(seen)),
        ]
    return found


def _selection(facts: Facts) -> list[File]:
    """Simulated rollouts that select among plans."""
    if facts.has.processes:
        simulation = File("dual_planner/simulation", template="dual_planner/simulation_of_belief")
    else:
        simulation = File("dual_planner/simulation", SimulationContext(facts.diffusion))
    return [
        File("dual_planner/caution"),
        simulation,
        File("dual_planner/rollouts"),
        File("dual_planner/selection"),
    ]


_SEARCH_LIMITS = {
    "search_one": (
        "SIDE = 20  # grid points on either side of u_ce, twice as many where there is one side only",
        "FINE = 18  # three in each of the four intervals around the deepest point, and of the two around the next",
        "GOLDEN = 23  # evaluations in a valley",
        "POINTS = 2 * SIDE + 1 + FINE",
        "CANDIDATES = POINTS + 2 * GOLDEN",
    ),
    "search_several": (
        "GLOBAL = 16 + 16 * NU  # points of the first search",
        "STARTS = 6  # of these, from how many a descent starts, besides u_ce",
        "FIRST_ROUNDS = 2  # steps of each descent, before the best go on",
        "KEPT = 4  # descents that go on",
        "ROUNDS = 12  # their further steps, at most",
        "SIMPLEX = 40 * NU  # evaluations of a refinement by the simplex method",
        "AROUND = 5  # points on either side of the best one along each axis",
        "LOOKS = 3  # how often these are looked at, at most",
        "DESCENTS = STARTS + 1 + 2 * (NU + 1) + LOOKS",
        "SEARCH_ROWS = 1 + 2 * NU + GLOBAL + 400 * NU",
        "CANDIDATES = SEARCH_ROWS",
    ),
}


def _search_limits(search: str, discrete: bool) -> tuple[str, ...]:
    """The sizes of a table of candidates; those of inputs with a finite set of values stand behind the others."""
    lines = _SEARCH_LIMITS[search]
    if not discrete:
        return lines
    return (
        *lines[:-1],
        lines[-1].replace("CANDIDATES", "DISCRETE_ROWS") + "  # the row of the first combination of discrete inputs",
        "CANDIDATES = DISCRETE_ROWS + COMBINATIONS",
    )
