"""The controller that a person calls: a struct with all memory, its numbers as constant data, init, act, setters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from symdual.backends.c import source
from symdual.backends.c.kinds import INT, REAL, Array, Kind, Record, Scalar, entries
from symdual.backends.c.names import checked_prefix, remark
from symdual.backends.c.program import Program
from symdual.backends.c.translator import Translator
from symdual.common.errors import SymdualError, did_you_mean
from symdual.controllers import COSTS, EXPORTED
from symdual.emit.render import render
from symdual.entries.controllers import STEP_ARGUMENTS
from symdual.export.contexts import Choice, ControllerContext, DoubtNumbers, Lines
from symdual.export.precision import losses
from symdual.export.setters import option_setters, setters
from symdual.runtime.belief import processes_of
from symdual.runtime.costs import cost_kind, require_search_width, searches, settings_of, stage_costs_of
from symdual.runtime.doubts import APART, FAR, RARE, SAME, stays
from symdual.runtime.options import USUAL, Options
from symdual.runtime.problem import Problem
from symdual.runtime.signals import signals_of

_VARIED_SETTINGS = ("weight", "learning", "order", "quantiles")  # in which settings of controllers differ
SLACK = 1e-12  # share of a matrix by which it may miss being symmetric and semidefinite, as in Python
_STATUSES = ("FINE", "ENDED", "INFINITE_MEASUREMENT", "LOST_BELIEF", "LOST_PLAN", "NO_SIGNAL")
_SET = ("stage_costs", "settings")  # parts of a workspace that are set from outside


@dataclass(frozen=True)
class Settings:
    """How a controller is exported: its plan reaches to the end of the scenario, or as far as a moving window."""

    prefix: str
    real: str = "double"
    window: int | None = None
    order: int = 1
    controllers: tuple[str, ...] = ()
    options: Options = USUAL


@dataclass(frozen=True, eq=False)
class Exported:
    """The text of an exported controller, with what a person wants to know about it."""

    files: dict[str, str]
    work: Translator
    settings: Settings
    bytes: int
    steps: int
    choices: tuple[Choice, ...]
    warnings: tuple[str, ...] = ()
    memory: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def export(problem: Problem, settings: Settings) -> Exported:
    """Translate the package of a problem and put a controller for it around the functions."""
    prefix = checked_prefix(settings.prefix)
    package = problem.package
    steps = problem.horizon if settings.window is None else settings.window
    if steps < 1:
        raise SymdualError(f"window must be at least 1, not {steps}")
    longer = problem if settings.window is None else problem.extended(settings.window)
    work = source.translated(
        Program(package.files), str(package.folder), prefix, settings.real, further={"controller": STEP_ARGUMENTS}
    )
    choices, left_out = _choices(problem, settings, steps, work)
    workspace = work.program.module("records").make_workspace(
        steps,
        stage_costs_of(longer),
        settings_of(problem, "dual", settings.order, settings.options),
        settings.order,
        any(choice.planning for choice in choices),
    )
    parts = _parts(work, steps, workspace, len(longer.input_cost))
    size = _size(work, parts)
    context = _context(problem, longer, settings, work, choices, steps, size, workspace)._asdict()
    return Exported(
        {f"{prefix}.{ending}": render(f"c/controller.{ending}.jinja", context) for ending in "hc"},
        work,
        settings,
        size,
        steps,
        tuple(choices),
        tuple(losses(problem)) if settings.real == "float" else (),
        {name: _bytes(work, kind) for name, kind in parts.items()},
        left_out,
    )


def _choices(
    problem: Problem, settings: Settings, steps: int, work: Translator
) -> tuple[list[Choice], tuple[str, ...]]:
    """The controllers of the package, with the costs that they minimise, and why some that nobody named are missing."""
    known, found, left_out = source.costs(work.program), list[Choice](), list[str]()
    require_search_width(problem)
    for name in _wanted(settings.controllers):
        try:
            single = settings.real == "float"
            kind = cost_kind(problem, name, settings.order, steps, settings.options, single=single)
        except SymdualError as reason:
            if settings.controllers:
                raise
            left_out.append(str(reason))
            continue
        if kind not in known:
            raise SymdualError(f'the controller "{name}" cannot be exported: its cost "{kind}" is not in the package')
        own = settings_of(problem, name, settings.order, settings.options)[0]
        found.append(
            Choice(
                name,
                len(found),
                source.spelled_cost(work, kind),
                searches(problem, kind),
                COSTS[kind].plans_to_learn,
                COSTS[kind].stored_plans,
                {
                    place: work.numbers.real(value).code
                    for place, value in _varied_settings(own, settings.options.guard).items()
                },
            )
        )
    return found, tuple(left_out)


def _varied_settings(own: Any, guarded: bool) -> dict[str, float]:
    """The numbers that a controller sets for itself, by their places in C."""
    found = dict[str, float]()
    for key in (*_VARIED_SETTINGS, *(["guard"] if guarded else [])):
        if key in own.dtype.names:
            values = np.atleast_1d(own[key])
            places = [key] if own.dtype[key].shape == () else [f"{key}[{i}]" for i in range(len(values))]
            found |= dict(zip(places, map(float, values), strict=True))
    return found


def _wanted(names: tuple[str, ...]) -> list[str]:
    """The controllers that are exported, in the order in which they are known."""
    possible = [kind.name for kind in EXPORTED]
    for name in names:
        if name not in possible:
            hint = did_you_mean(name, possible)
            raise SymdualError(f'the controller "{name}" cannot be exported{hint}; possible: {", ".join(possible)}')
    return [name for name in possible if not names or name in names]


# ------------------------------------------------------------ memory


def _name_of(work: Translator, array: Any) -> str:
    name = work.record_name(array.dtype)
    assert name is not None
    return name


def _parts(work: Translator, steps: int, workspace: Any, inputs: int) -> dict[str, Kind]:
    """The arrays of the controller, with their sizes."""
    table = work.program.module("search").table()
    nu, ny = (int(getattr(work.program.module("records"), name)) for name in ("NU", "NY"))
    parts: dict[str, Kind] = {
        "belief": Record("GAUSSIAN"),
        "before": Record("GAUSSIAN"),
        "u": Array(REAL, (nu,)),
        "stats": Array(REAL, (3,)),
        "settings": Record("SETTINGS"),
        "floors": Array(REAL, (inputs, nu)),
        **{n: Array(Record(_name_of(work, a)), a.shape) for n, a in workspace._asdict().items() if n != "settings"},
        "planned_states": Array(REAL, (steps + 1, int(work.program.module("records").NX))),
        "planned_inputs": Array(REAL, (steps, nu)),
        "missing": Array(REAL, (ny,)),
        **{f"table_{name}": Array(REAL, array.shape) for name, array in table._asdict().items()},
        **{f"memory_{name}": kind for name, kind in work.memory.items()},
        **dict.fromkeys(("k", "pending", "controller", "start", "end", "shift", "ready", "doubts"), INT),
    }
    if work.program.has("process"):
        parts |= dict.fromkeys(("saved", "settings_before"), Record("SETTINGS"))
    return parts


def _bytes(work: Translator, kind: Kind) -> int:
    real = 4 if work.numbers.single else 8
    if isinstance(kind, Scalar):
        return real if kind.name == "real" else 4
    if isinstance(kind, Array):
        return entries(kind) * _bytes(work, kind.element)
    fields = work.records[kind.name]  # type: ignore[union-attr]
    return sum(_bytes(work, own) for own in fields.values())


def _size(work: Translator, parts: Mapping[str, Kind]) -> int:
    """The size of the struct: reals first, whole numbers last, rounded up to the alignment of a real."""
    real = 4 if work.numbers.single else 8
    memory = sum(_bytes(work, kind) for kind in work.memory.values())
    if any(kind.element != INT for kind in work.memory.values()):
        memory = -(-memory // real) * real  # a struct of its own
    total = sum(_bytes(work, kind) for name, kind in parts.items() if not name.startswith("memory_")) + memory
    return -(-total // real) * real


# ------------------------------------------------------------ text


def _context(
    problem: Problem,
    longer: Problem,
    settings: Settings,
    work: Translator,
    choices: list[Choice],
    steps: int,
    size: int,
    workspace: Any,
) -> ControllerContext:
    package, prefix = problem.package, settings.prefix
    costs, places = _distinct(stage_costs_of(longer))
    covariance = problem.prior.covariance
    diagonal = not np.any(covariance - np.diag(np.diag(covariance)))
    spell, real = work.numbers.real, work.spelling.real
    vectors, matrices = setters(work.records, prefix, real)
    own = settings_of(problem, "dual", settings.order, settings.options)
    own["tolerance"] = work.numbers.tolerance(float(own["tolerance"][0]))
    if problem.prior.memory is not None:
        own["numbers"][0] = problem.prior.memory
    candidates = work.program.module("search")
    table = {f"table_{name}": array.shape for name, array in candidates.table()._asdict().items()}
    return ControllerContext(
        p=prefix,
        P=prefix.upper(),
        real=real,
        model=remark(package.name),
        scenario=remark(problem.name),
        digest=package.module.DIGEST,
        declarations=source.declarations(work),
        definitions=source.definitions(work),
        names=_names(package),
        z_places=_z_places(package),
        choices=tuple(choices),
        first=next((one for one in choices if one.name == "dual"), choices[0]),
        size=size,
        steps=steps,
        horizon=problem.horizon,
        window=settings.window or 0,
        times=len(longer.state_cost),
        inputs=len(longer.input_cost),
        candidates=int(candidates.CANDIDATES),
        nx=package.NX,
        nu=package.NU,
        ny=package.NY,
        ntheta=package.NTHETA,
        nz=package.NZ,
        ndata=package.DATA,
        signals=len(signals_of(package)),
        memory=bool(work.memory),
        processes=bool(package.PROCESSES),
        choosing=problem.choices is not None,
        weighted=any(one.field == "terms" for one in vectors),
        scratch=_scratch(work, workspace, table, package),
        workspace=tuple(line for name, array in _own(workspace).items() for line in _filling(name, array.shape)),
        table=tuple(table),
        vectors=vectors,
        matrices=matrices,
        options=option_setters((one.name for one in choices), asdict(settings.options)),
        statuses={
            name: int(value) for name, value in vars(work.program.module("controller")).items() if name in _STATUSES
        },
        chosen=tuple(f"c->settings.{name} = settings[controller][{i}];" for i, name in enumerate(choices[0].settings)),
        doubts=_doubts(work, package, settings.options.guard),
        factorise=f"\n    {prefix}_filter_factorise(&c->belief);" if package.SQUARE_ROOT else "",
        first_settings=_record_text(own[0], own.dtype, spell),
        costs=tuple(_record_text(one, costs.dtype, spell) for one in costs),
        places=tuple(places),
        floors=tuple(_braces(row, spell) for row in longer.floors),
        mean=_spelled(problem.prior.mean, spell),
        covariance=tuple(_spelled(row, spell) for row in ([np.diag(covariance)] if diagonal else covariance)),
        diagonal=diagonal,
        loose=tuple(map(int, processes_of(package))),
        slack=spell(work.numbers.tolerance(SLACK)).code,
        fabs=work.library("fabs"),
        sqrt=work.library("sqrt"),
    )


def _doubts(work: Translator, package: Any, guarded: bool) -> DoubtNumbers:
    spell, columns = work.numbers.real, work.program.module("dual_cost")
    return DoubtNumbers(
        RARE,
        FAR,
        spell(-math.log(RARE)).code,
        spell(FAR**2).code,
        spell(work.numbers.tolerance(SAME)).code,
        spell(APART).code,
        int(columns.OUT_COST),
        int(columns.OUT_STATUS),
        package.NTHETA > 0 and stays(package),
        int(work.program.module("starts").BEST) if guarded else None,
    )


def _own(workspace: Any) -> dict[str, Any]:
    """The parts of a workspace that nobody sets from outside."""
    return {name: array for name, array in workspace._asdict().items() if name not in _SET}


def _scratch(work: Translator, workspace: Any, table: Mapping[str, tuple[int, ...]], package: Any) -> Lines:
    """The declarations of the scratch of a controller."""
    real, saved = work.spelling.real, ("saved", "settings_before") if package.PROCESSES else ()
    arrays = {
        **{name: (work.spelling.name(Record(_name_of(work, a))), a.shape) for name, a in _own(workspace).items()},
        "missing": (real, (package.NY,)),
        **{name: (real, shape) for name, shape in table.items()},
    }
    declared = (f"{kind} {name}[{']['.join(map(str, shape))}]" for name, (kind, shape) in arrays.items())
    settings = (f"{work.spelling.prefix}_settings {name}" for name in saved)
    return (*declared, *settings, *((f"{work.spelling.prefix}_memory memory",) if work.memory else ()))


def _filling(name: str, shape: tuple[int, ...]) -> Lines:
    """Statements that give a workspace a part of the controller, with its sizes."""
    first = f"&c->{name}[0][0]" if len(shape) > 1 else f"c->{name}"
    return (f"workspace.{name} = {first};", *(f"workspace.{name}_{axis} = {size};" for axis, size in enumerate(shape)))


def _names(package: Any) -> Lines:
    """What the entries of x, u, y and theta are."""
    formulas = {n: one.formula(n) for n, one in zip(package.belief_names, package.transforms, strict=False)}
    unknowns = [
        f"{name} ({start} to {start + count - 1})" if count > 1 else formulas.get(name, name)
        for name, (start, count) in package.UNKNOWNS.items()
    ]
    found = {"x": package.STATES, "u": package.INPUTS, "y": package.MEASUREMENTS, "theta": unknowns}
    return tuple(f"{what}: {', '.join(map(remark, names)) or 'none'}" for what, names in found.items())


def _z_places(package: Any) -> tuple[tuple[str, int], ...]:
    """The first entry in z of each state, unknown and family, for macros; C++ keeps names with two _ for itself."""
    unknowns = ((name, package.NX + start) for name, (start, _) in package.UNKNOWNS.items())
    return tuple((name, place) for name, place in (*package.STATES.items(), *unknowns) if "__" not in name)


def _distinct(weights: Any) -> tuple[Any, list[int]]:
    """The different costs among those of all times, and which each time has."""
    kept: list[bytes] = []
    places = []
    for one in weights:
        content = one.tobytes()
        if content not in kept:
            kept.append(content)
        places.append(kept.index(content))
    firsts = [places.index(n) for n in range(len(kept))]
    return weights[firsts], places


def _record_text(record: Any, kind: np.dtype[Any], spell: Any) -> str:
    """A record as an initialiser; fields without entries do not exist."""
    assert kind.names is not None
    parts = [_braces(np.asarray(record[name]), spell) for name in kind.names if np.asarray(record[name]).size]
    return "{" + ", ".join(parts) + "}"


def _spelled(values: Any, spell: Any) -> Lines:
    return tuple(spell(float(value)).code for value in values)


def _braces(array: Any, spell: Any) -> str:
    if array.ndim == 0:
        return str(spell(float(array)).code)
    return "{" + ", ".join(_braces(item, spell) for item in array) + "}"
