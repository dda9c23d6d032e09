"""The code of a package: which files it has, and what each template is given."""

from __future__ import annotations

from typing import NamedTuple

from symdual.derive.derivation import Derivation
from symdual.emit.blocks import block_text, motion_text
from symdual.emit.contexts import (
    AdjointBendsContext,
    AdjointBlocksContext,
    AdjointContext,
    AdjointLowRankContext,
    BlocksContext,
    CallsContext,
    CandidatesContext,
    ControllerContext,
    CostBlocksContext,
    CovariancesContext,
    CurvatureContext,
    DecisionContext,
    DistancesContext,
    DualCostContext,
    EpisodeContext,
    ExpressedContext,
    FilterContext,
    FuturesContext,
    GradientContext,
    InnovationContext,
    LikelihoodContext,
    LimitedContext,
    LimitsContext,
    LookAheadContext,
    LowRankContext,
    NameContext,
    NominalContext,
    PlannedContext,
    PlannerContext,
    PlantContext,
    ProcessContext,
    ProcessesContext,
    RecordsContext,
    SpreadContext,
    SquareRootContext,
    TrajectoryContext,
)
from symdual.emit.facts import Facts, with_inputs
from symdual.emit.processes import parameter_spans, points_of_a_step
from symdual.emit.render import render


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
    facts = Facts(derivation)
    model, s, name = derivation.model, facts.structure, derivation.model.name
    expressed, signals = facts.objective is not None, bool(model.signals)
    limited, noisy = facts.limited, facts.noisy
    search = "search_one" if s.nu == 1 else "search_several"
    optional = []
    if facts.processes:
        steps = points_of_a_step(derivation)
        context = ProcessContext(
            name, s.nx, facts.nr, s.ntheta, s.theta_rows, facts.processes, steps, facts.signal_place
        )
        optional.append(File("process", "process", context))
    else:
        # the belief on a process is relative to a prior that the plain recursions of the likelihood do not know
        gradient = GradientContext(name, facts.curvature_tables(), noisy)
        optional += [
            *([File("likelihood_noise", "likelihood_noise", NameContext(name))] if noisy else []),
            File("innovation", "innovation", InnovationContext(name, noisy)),
            File("likelihood", "likelihood", LikelihoodContext(name, signals, noisy)),
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
    if facts.shaken:
        optional.append(File("true_noise", "true_noise", NameContext(name)))
    if noisy:
        optional.append(File("noise", "noise", NameContext(name)))
    if facts.objective is not None:
        optional.append(File("objective", "objective", facts.objective))
        optional.append(File("cost_bends", "cost_bends", facts.objective))
        if limited:
            moving = facts.transition != "identity"
            optional.append(File("limits", "limits", LimitsContext(name, with_inputs(model))))
            optional.append(File("spread", "spread", SpreadContext(name, moving)))
            optional.append(File("narrowing", "narrowing", NameContext(name)))
            optional.append(File("distances", "distances", DistancesContext(name, facts.lowrank)))
            if facts.lowrank:
                optional.append(File("spread_lowrank", "spread_lowrank", NameContext(name)))
        if "values" in facts.objective:
            optional.append(File("convex", "convex", NameContext(name)))
    selecting = -1 not in s.h_selects
    width, rows = ("width", "min(width, NTHETA)") if facts.lowrank else ("WIDTH", "NTHETA")
    seen = s.observation_curved_rows
    products = [
        File("adjoint_blocks", "adjoint_blocks", AdjointBlocksContext(name, selecting, width, rows)),
        *([] if facts.objective is None else [File("adjoint_cost", "adjoint_cost", facts.objective)]),
        *([File("adjoint_noise", "adjoint_noise", NameContext(name))] if noisy else []),
        File("adjoint_bends", "adjoint_bends", AdjointBendsContext(name, s.curved_rows, seen)),
    ]
    if limited:
        adjoint = [File("adjoint", "adjoint_apart", ProcessesContext(name, facts.processes))]
    elif facts.processes:
        adjoint = [File("adjoint", "adjoint_differences", NameContext(name)), *(products if facts.lowrank else [])]
    else:
        adjoint = [*products, File("adjoint", "adjoint", AdjointContext(name, seen, expressed))]
    slopes = "adjoint"
    if facts.lowrank and not limited:
        slopes = "adjoint_lowrank"
        values = AdjointLowRankContext(name, seen, expressed, bool(facts.processes))
        adjoint += [File("value_blocks", "value_blocks", NameContext(name)), File(slopes, slopes, values)]
    futures = FuturesContext(name, facts.diffusion, expressed)
    arbitration = [
        File("chance", "chance", NameContext(name)),
        File("futures", "futures", futures),
        File("arbitration", "arbitration", NameContext(name)),
    ]
    costs = ("structured", *(["lowrank"] if facts.lowrank else []), "second_order", "bonus")
    text = block_text(s, facts.transition, width)
    blocks = BlocksContext(name, text, motion_text(facts.transition, facts.diffusion), width)
    spans = parameter_spans(derivation)
    covariances = CovariancesContext(name, s.input_delay, facts.processes, spans, expressed, signals, noisy)
    dual_cost = DualCostContext(name, facts.lowrank, limited)
    episode = EpisodeContext(name, facts.processes, expressed, signals, limited, facts.shaken)
    kalman = FilterContext(name, selecting, facts.square_root, facts.iterated, facts.processes, noisy)
    planned = PlannedContext(
        name, facts.affine, facts.diffusion, noisy, limited, bool(facts.processes), facts.arbitrating
    )
    controller = ControllerContext(name, facts.square_root, expressed, limited, signals, facts.switched)
    return (
        File("__init__", "__init__", facts.init(digest_placeholder)),
        File("options", "options", NameContext(name)),
        File("kernels", "kernels", facts.kernels()),
        File(
            "records",
            "records",
            RecordsContext(name, facts.size_lines(), facts.records(), expressed, signals, facts.arbitrating),
        ),
        File("blocks", "blocks", blocks),
        File("cost_blocks", "cost_blocks", CostBlocksContext(name, text, width)),
        *optional,
        File("filter", "filter", kalman),
        File("trajectory", "trajectory", TrajectoryContext(name, facts.processes, expressed)),
        File("backward", "backward", ExpressedContext(name, expressed)),
        File("shelf", "shelf", ExpressedContext(name, expressed)),
        File("nominal", "nominal", NominalContext(name, facts.linear, facts.steady, expressed)),
        File("certain", "certain", ExpressedContext(name, expressed)),
        File("settled", "settled", NameContext(name)),
        File(
            "curvature",
            "curvature",
            CurvatureContext(name, facts.hessian_tables(), facts.processes, expressed),
        ),
        File("riccati", "riccati", ExpressedContext(name, expressed)),
        File("covariances", "covariances", covariances),
        File("dual_cost", "dual_cost", dual_cost),
        *adjoint,
        *([File("whole_cost", "whole_cost", NameContext(name))] if limited else []),
        File("planner", "planner", PlannerContext(name, facts.lowrank, limited, slopes)),
        File("look_ahead", "look_ahead", LookAheadContext(name, facts.processes, expressed, limited)),
        File("starts", "starts", LimitedContext(name, limited)),
        *(arbitration if facts.arbitrating else []),
        File("planned", "planned", planned),
        File("calls", "calls", CallsContext(name, facts.lowrank, expressed, limited, slopes)),
        File("candidates", "candidates", CandidatesContext(name, _search_limits(search, facts.switched))),
        File("search", search, LimitedContext(name, limited)),
        *([File("switches", "switches", LimitedContext(name, limited))] if facts.switched else []),
        File("decision", "decision", DecisionContext(name, costs, expressed, limited, facts.switched)),
        File("controller", "controller", controller),
        File("plant", "plant", PlantContext(name, noisy, facts.shaken)),
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


def _search_limits(search: str, switched: bool) -> tuple[str, ...]:
    """The sizes of a table of candidates; those of inputs with a finite set of values stand behind the others."""
    lines = _SEARCH_LIMITS[search]
    if not switched:
        return lines
    return (
        *lines[:-1],
        lines[-1].replace("CANDIDATES", "SWITCHES") + "  # the row of the first combination of switches",
        "CANDIDATES = SWITCHES + COMBINATIONS",
    )
