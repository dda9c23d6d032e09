"""The front door for programs and notebooks.

A `Scenario` says what is wanted of a model; a `Problem` is a scenario with its loaded package, ready to run. What runs
takes a problem, or what one is made of: a generated package, a `Scenario`, or a model file. Packages are generated and
compiled where they are out of date; a problem or a package needs neither SymPy nor jinja2.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Union

from symdual.backends.loading import load as load_package
from symdual.backends.numba.ahead import get_ready
from symdual.common.errors import SymdualError, SymdualWarning, did_you_mean
from symdual.common.named import Given
from symdual.common.parts import checked_parts
from symdual.common.words import spelled
from symdual.controllers import NAMES, parts_for
from symdual.runtime import controller as controllers_module
from symdual.runtime import problem as problems
from symdual.runtime import replay as replays
from symdual.runtime import sweep as sweeps
from symdual.runtime.closed_loop import Settings
from symdual.runtime.controller import Controller
from symdual.runtime.explained import POINTS, Explained, explained
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.options import USUAL, Options
from symdual.runtime.problem import Problem
from symdual.runtime.replay import Recording, Replay
from symdual.runtime.results import Results
from symdual.runtime.simulation import Simulation, simulated
from symdual.runtime.sweep import Sweep

if TYPE_CHECKING:
    from symdual.checks.filters import Comparison
    from symdual.checks.kernels import BlockResult
    from symdual.checks.steps import StepAccuracy
    from symdual.checks.stiffness import Stiffness
    from symdual.generation import Generated
    from symdual.spec.loading import ModelFile, Source
    from symdual.spec.model import Model
    from symdual.spec.scenario import Scenario

#: a problem, or what one is made of
ProblemLike = Union[Problem, LoadedPackage, "Scenario", str, Path]


@spelled
def generate(
    source: Source, folder: str | Path | None = None, force: bool = False, parts: str | Iterable[str] = ()
) -> list[Generated]:
    """Write the generated package of a model, or of every model in a model file or a scenario.

    Packages are written to `folder`: by default `generated` in the current folder or, if that is read-only, the
    user's cache folder. Intact and current packages are kept unless `force` is set.

    A package is enough for ce, cautious, beb, dual and oracle. `parts` ("planned", "thompson", "rivals", "likelihood")
    adds more; otherwise they are added at first use.

    >>> [item.folder.name for item in symdual.generate(toy, folder / "generated")]
    ['toy']
    """
    from symdual.generation import generated
    from symdual.spec.loading import contents_of

    return generated(contents_of(source), folder, force, parts)


@spelled
def check(
    source: Source,
    folder: str | Path | None = None,
    points: int = 20,
    progress: Callable[[str, float], None] = lambda name, fraction: None,
    recursions: bool = True,
    c: bool = False,
    tell: Callable[[str, str], None] = lambda name, what: None,
) -> dict[str, list[BlockResult]]:
    """Generate what is out of date, then compare all compiled code with independent oracles.

    The kernels are compared with 50-digit values and with differences of the model as written, the recursions with
    dense ones, the likelihood of a recording with 50 digits; `recursions=False` leaves out the last two, because they
    take longer to compile. Returns the results by model; a model passes when all of its blocks do. A package that was
    edited by hand is not written again but checked as it is, and each edited file is a miss of its own. With `c` the
    translation to C is checked instead, against the same oracles and against numba. `progress` hears how far the
    check of a model is, `tell` what is being compared.

    >>> results = symdual.check(toy, folder / "generated", points=2, recursions=False)
    >>> all(block.passed for block in results["toy"])
    True
    """
    from symdual.checks.packages import check_packages
    from symdual.spec.loading import contents_of

    return check_packages(contents_of(source), folder, points, progress, recursions, c, tell)


def step_accuracy(source: Source) -> dict[str, StepAccuracy]:
    """How accurate the time step of each model in continuous time is where it lives, by model; others are left out.

    >>> symdual.api.step_accuracy(toy)
    {}
    """
    from symdual.checks.steps import step_accuracy as accuracy_of
    from symdual.generation import wanted
    from symdual.spec.loading import contents_of

    found = {one.name: accuracy_of(one.specification, one.scenarios) for one in wanted(contents_of(source))}
    return {name: accuracy for name, accuracy in found.items() if accuracy is not None}


def stiffness(source: Source, packages: Iterable[LoadedPackage] = ()) -> dict[str, Stiffness]:
    """How fast each model in continuous time is, against the limit of its method, by model; others are left out.

    It is looked at where it goes with its inputs at rest and, of `packages` that are given, along the plan of `ce`.

    >>> symdual.api.stiffness(toy)
    {}
    """
    from symdual.checks.stiffness import stiffness as stiffness_of
    from symdual.generation import wanted
    from symdual.spec.loading import contents_of

    own = {package.name: package for package in packages}
    asked = wanted(contents_of(source))
    found = {one.name: stiffness_of(one.specification, one.scenarios, own.get(one.name)) for one in asked}
    return {name: one for name, one in found.items() if one is not None}


def compare_filters(
    source: Source,
    runs: int = 100,
    seed: int = 0,
    folder: str | Path | None = None,
    backend: str | None = None,
    report: Callable[[str, float], None] = lambda what, share: None,
) -> dict[str, Comparison]:
    """All filters side by side on systems that are drawn from the prior of each scenario, by scenario.

    The same data for all: what `ce` with the model's own filter does. `report` hears what is done and how far it is.

    >>> found = symdual.api.compare_filters(folder / "toy.py", runs=3, folder=folder / "generated")
    >>> found["toy"].chosen in ("extended", "second_order")
    True
    """
    from symdual.checks.filters import compare_filters as compared
    from symdual.spec.loading import contents_of

    return compared(contents_of(source), runs, seed, folder, backend, report)


def load(name: str | Path | Model | Scenario, backend: str | None = None) -> LoadedPackage:
    """Load a generated package: by its name, its folder, its model or its scenario.

    A name is looked up in `generated/` of the current folder, then in the user's cache folder, then as a folder. The
    files are verified against the manifest: a package that was edited by hand or written by another version is
    refused. If its model file has changed since, it is still loaded, with a warning. The package of a `Model` or a
    `Scenario` is first generated if it is out of date.

    With backend "c" its functions are translated to C and compiled by the machine's C compiler, which takes seconds.
    With "numba" they take longer, need no compiler, and may be called by your own numba functions. By default it is C
    if a compiler works, and numba otherwise; results agree up to rounding.

    >>> symdual.load(folder / "generated" / "toy").INPUTS
    {'u': 0}
    """
    return load_package(name if isinstance(name, str | Path) else generate(name)[0].folder, backend)


@spelled
def problem(
    given: ProblemLike | Model,
    scenario: str | Scenario | None = None,
    folder: str | Path | None = None,
    backend: str | None = None,
    parts: str | Iterable[str] = (),
) -> Problem:
    """A scenario with its loaded package, ready for controllers and simulations.

    Args:
        given: a scenario, a model file, a generated package, or a model together with a scenario.
        scenario: the name of a scenario if there are several, or a `Scenario` of the model or package.
        folder, backend: the folder of generated packages, as in `generate`, and their compiler, as in `load`.
        parts: additional parts of its package, as in `generate`.

    >>> b, x, u = symdual.unknown("b", mean=1.0, variance=10.0), *sympy.symbols("x u")
    >>> model = symdual.Model([x], [u], [x + b * u], process_noise=1.0, name="gain")
    >>> symdual.problem(symdual.Scenario(model, horizon=3))
    <Problem gain: 3 steps, model gain, states x, inputs u, unknowns b, plant the model itself>
    """
    if isinstance(given, Problem | LoadedPackage) and (folder is not None or backend is not None):
        raise SymdualError("folder and backend are for what a package is generated from; this one is loaded already")
    if isinstance(given, Problem):
        return _with_parts(given, parts)
    if scenario is not None and not isinstance(scenario, str):
        return _of_scenario(given, scenario, folder, backend, parts)
    if isinstance(given, LoadedPackage):
        return _with_parts(problems.problem(given, scenario), parts)
    from symdual.generation import generated
    from symdual.spec.loading import contents_of

    contents = contents_of(given)
    name = _scenario_name(contents, scenario)
    folders = {item.model.name: item.folder for item in generated(contents, folder, parts=parts)}
    return problems.problem(load_package(folders[contents.scenarios[name].model.name], backend), name)


def _with_parts(own: Problem, parts: str | Iterable[str]) -> Problem:
    """A problem whose package has these parts, as far as that can be."""
    if checked_parts(parts) <= own.package.parts:
        return own
    from symdual.generation import with_parts

    return with_parts(own, parts)


def _scenario_name(contents: ModelFile, scenario: str | None) -> str:
    """The name of the scenario that is meant: the only one needs none."""
    names, place = contents.scenarios, contents.place
    if not names:
        raise SymdualError(f"{place} has no Scenario: add one, the task of the model (horizon, cost, start)")
    if scenario is None and len(names) > 1:
        raise SymdualError(f"{place} has several scenarios; name one of {', '.join(sorted(names))}")
    if scenario is not None and scenario not in names:
        raise SymdualError(f'{place} has no scenario "{scenario}"{did_you_mean(scenario, names)}')
    return next(iter(names)) if scenario is None else scenario


def _of_scenario(
    given: ProblemLike | Model,
    scenario: Scenario,
    folder: str | Path | None,
    backend: str | None,
    parts: str | Iterable[str],
) -> Problem:
    """The problem of a scenario that was made in a program, for the package or the model that it is about."""
    from symdual.emit.package import model_digest
    from symdual.spec.loading import gathered

    if isinstance(given, LoadedPackage):
        contents = gathered(scenario)
        ((name, own),) = contents.scenarios.items()
        if model_digest(contents.specifications[own.model.name].named(given.name)) != given.model_digest:
            raise SymdualError(
                f"the package {given.name} was not generated from the model of this scenario and what it asks for; use "
                "symdual.problem(scenario), which generates the one that it needs"
            )
        if scenario.plant is scenario.model:
            return _with_parts(problems.from_numbers(name, given, given, own.numbers()), parts)
    elif given is not scenario.model:
        raise SymdualError("this scenario is about another model; symdual.problem(scenario) finds its own")
    return problem(scenario, None, folder, backend, parts)


@spelled
def controller(
    given: ProblemLike,
    name: str = "dual",
    order: int = 1,
    window: int | None = None,
    truth: Given | None = None,
    options: Options = USUAL,
    budget: float | None = None,
) -> Controller:
    """Make a controller for a problem, ready for its first input: everything is compiled or loaded here.

    Args:
        given: a problem, or an argument of `problem`. name: one of `symdual.controllers.NAMES`, such as "ce" or
        "dual".
        order, window, options, budget: see `Controller`.
        truth: the true parameters for `oracle`, if not those of the problem.

    >>> dual = symdual.controller(problem, "dual")
    >>> u = dual.act()             # the first input; then u = dual.act(y) for every measurement y
    >>> u.shape
    (1,)
    """
    own = problem(given, parts=parts_for(name, asdict(options)))
    if name in NAMES:
        get_ready(own, [name], order, window)
    return controllers_module.controller(own, name, order, window, truth, options, budget)


@spelled
def load_controller(path: str | Path, given: LoadedPackage | Model | Scenario | str | Path | None = None) -> Controller:
    """Restore a controller from a file of `Controller.save`: its next input is the same as without saving.

    Args:
        path: the file.
        given: the package of its model, or an argument of `load`; by default it is found by its name. Its equations
            must not have changed.

    >>> dual = symdual.controller(problem, "dual")
    >>> u = dual.act()
    >>> dual.save(folder / "dual.npz")
    >>> again = symdual.load_controller(folder / "dual.npz", problem.package)
    >>> bool(again.act([0.4]) == dual.act([0.4]))
    True
    """
    package = given if given is None or isinstance(given, LoadedPackage) else load(given)
    return controllers_module.load_controller(path, load_package, package)


@spelled
def simulate(
    given: ProblemLike,
    controllers: str | Sequence[str] = ("dual", "ce"),
    runs: int = 100,
    seed: int = 0,
    settings: Settings | None = None,
    *,
    truth: str | None = None,
) -> Simulation:
    """Run closed-loop episodes with each controller, all with the same random draws, in memory and on all cores.

    Args:
        given: a problem, or what `problem` makes one of.
        controllers: names as in `controller`; `runs`: episodes with each of them.
        seed: run i draws its start, its noise and its truth from child i of this seed.
        settings: how episodes are run.
        truth: "scenario", "prior" or "drift", as in `Settings`; by default the scenario's true parameters, or draws
            from the prior if it has none.

    >>> simulation = symdual.simulate(problem, ["ce", "dual"], runs=3, seed=1)
    >>> simulation["dual"].costs.shape
    (3,)
    """
    own = problem(given, parts=_parts(controllers, settings))
    return simulated(_plan(own, controllers, runs, seed, settings, truth))


@spelled
def sweep(
    given: ProblemLike,
    controllers: str | Sequence[str] = ("dual", "ce"),
    runs: int = 100,
    seed: int = 0,
    settings: Settings | None = None,
    *,
    truth: str | None = None,
    folder: str | Path = "results",
    resume: bool = False,
    force: bool = False,
    jobs: int | None = None,
    cluster: str | None = None,
) -> Results:
    """The same episodes as `simulate`, saved to disk as they finish; returns the open results.

    The file is `folder/<scenario>/results.npz`; `open_results` opens it again.

    Args:
        resume: continue an interrupted sweep, or add runs and controllers to a finished one, with the same backend.
        force: overwrite existing results, even those of another sweep.
        jobs: the number of threads; all that the machine has by default.
        cluster: the address of the scheduler of a Dask cluster to run on instead, where numba compiles. It waits 10 s
            for the first worker, and ten minutes for a new one if the last one is gone, with a `SymdualWarning` first
            and a `SymdualError` after that time.

    >>> with symdual.sweep(problem, ["ce", "dual"], runs=4, folder=folder) as results:
    ...     results.controllers
    ('ce', 'dual')
    """
    from symdual.runtime.threads import on_this_machine

    own = problem(given, parts=_parts(controllers, settings))
    if cluster is not None:
        own = own.by_numba()
    elif resume:
        own = sweeps.as_begun(own, folder)
    plan = _plan(own, controllers, runs, seed, settings, truth)
    client = None
    try:
        if cluster is None:
            execute = on_this_machine(jobs)
        else:
            from symdual.runtime.cluster import connect, on_cluster

            client = connect(cluster, _warn)
            execute = on_cluster(client, tell=_warn)
        return Results(sweeps.run_sweep(plan, folder, execute, resume=resume, tell=_warn, force=force))
    finally:
        if client is not None:
            client.close(timeout=1)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, SymdualWarning, stacklevel=2)


def _parts(controllers: str | Sequence[str], settings: Settings | None) -> frozenset[str]:
    """The parts of a package that controllers need with these settings."""
    return parts_for(controllers, asdict(USUAL if settings is None else settings.options))


def _plan(
    own: Problem,
    controllers: str | Sequence[str],
    runs: int,
    seed: int,
    settings: Settings | None,
    truth: str | None,
) -> Sweep:
    """A sweep with all that it needs compiled."""
    if settings is None:
        settings = Settings("prior" if own.truth is None else "scenario")
    if truth is not None:
        settings = replace(settings, truth=truth)
    names = [controllers] if isinstance(controllers, str) else controllers
    plan = sweeps.sweep(own, names, runs, seed, settings)
    get_ready(plan.problem, plan.controllers, plan.settings.order, plan.settings.window, episodes=True)
    return plan


@spelled
def explain(
    given: ProblemLike,
    controllers: str | Sequence[str] = ("dual", "ce"),
    run: int = 0,
    seed: int = 0,
    *,
    truth: str | None = None,
    order: int = 1,
    window: int | None = None,
    points: int = POINTS,
    tell: Callable[[str, float], None] = lambda what, share: None,
) -> Explained:
    """Run one episode with each controller step by step, and keep what every decision was made from.

    It is run number `run` of `simulate` with the same seed.

    Args:
        truth, order, window: as in `Settings`.
        points: how many inputs the cost is shown for.
        tell: is told what is being done, and which share of it is done.

    >>> explained = symdual.explain(problem, "dual", run=2)
    >>> curve = explained["dual"].decisions[0].curves[0]
    >>> bool(abs(curve.values[curve.cost.argmin()] - explained["dual"].decisions[0].u[0]) < 0.2)
    True
    """
    own = problem(given, parts=parts_for(controllers))
    settings = Settings(truth or ("prior" if own.truth is None else "scenario"), order, window)
    names = [controllers] if isinstance(controllers, str) else list(controllers)
    plan = sweeps.sweep(own, names, run + 1, seed, settings)
    get_ready(plan.problem, plan.controllers, order, window)
    model = None
    if not isinstance(given, Problem | LoadedPackage):
        from symdual.spec.loading import contents_of

        model = contents_of(given).specifications.get(own.package.name)
    return explained(plan, run, model, points, tell)


def replay(given: ProblemLike, recording: Recording | str | Path) -> Replay:
    """Run the filter over a recording from the prior of a problem: what it would have believed, and whether rightly.

    The recording is a file (columns time, inputs, measurements; gaps allowed) or what `read_recording` returns.

    >>> table = folder / "recording.csv"
    >>> _ = table.write_text("time,u,x\\n0,0.5,1.0\\n1,-0.5,1.4\\n2,0.0,0.9\\n")
    >>> symdual.replay(problem, table).means.shape
    (3, 2)
    """
    own = problem(given)
    if isinstance(recording, str | Path):
        recording = replays.read_recording(Path(recording), own.package)
    return replays.replay(own, recording)
