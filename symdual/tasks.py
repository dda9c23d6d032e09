"""The front door for programs and notebooks: whatever stands for a task, and what is done with it.

A task is a `Problem`, a generated package, a `Scenario`, or a model file. Where it is a scenario or a file, its package
is generated and compiled first if that is out of date; a problem or a package needs neither SymPy nor jinja2.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Union

from symdual.common.errors import SymdualError, SymdualWarning
from symdual.common.named import Given
from symdual.common.parts import parts_for
from symdual.common.words import spelled
from symdual.export.loading import load as load_package
from symdual.runtime import controller as controllers_module
from symdual.runtime import problem as problems
from symdual.runtime import replay as replays
from symdual.runtime import sweep as sweeps
from symdual.runtime.closed_loop import Settings
from symdual.runtime.controller import Controller
from symdual.runtime.costs import NAMES
from symdual.runtime.explained import POINTS, Explained, explained
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.planned_options import USUAL, PlannedOptions
from symdual.runtime.problem import Problem
from symdual.runtime.readiness import works_for
from symdual.runtime.replay import Recording, Replay
from symdual.runtime.results import Results
from symdual.runtime.simulation import Simulation, simulated
from symdual.runtime.sweep import Sweep

if TYPE_CHECKING:
    from symdual.spec.model import Model
    from symdual.spec.scenario import Scenario

#: whatever stands for a task
Task = Union[Problem, LoadedPackage, "Scenario", str, Path]


def load(name: str | Path | Model | Scenario, backend: str | None = None) -> LoadedPackage:
    """Load a generated package: by its name, its folder, or the model or scenario that it is generated from.

    A name is looked up in `generated/` of the current folder, then in the user's cache folder, then as a folder. The
    files are verified against the manifest: a package that was edited by hand or written by another version is refused.
    A package whose model file was edited since is loaded as it is, with a warning. The package of a `Model` or a
    `Scenario` is generated first where it is out of date.

    With backend "c" its functions are translated to C and compiled by the machine's C compiler, which takes seconds;
    with "numba" they are numba's, which takes longer, needs no compiler, and gives functions that your own compiled
    Python may call. By default it is C where a compiler works, and numba elsewhere; results agree up to rounding.

    >>> symdual.load(folder / "generated" / "toy").INPUTS
    {'u': 0}
    """
    if isinstance(name, str | Path):
        return load_package(name, backend)
    from symdual.api import generate

    return load_package(generate(name)[0].folder, backend)


def problem(task: Task | Model, scenario: str | Scenario | None = None) -> Problem:
    """The task that a scenario describes, for controllers and simulations.

    Args:
        task: a scenario, a model file, a generated package, or a model together with a scenario.
        scenario: the name of a scenario where there are several, or a `Scenario` of the model or package.

    >>> b, x, u = symdual.unknown("b", mean=1.0, variance=10.0), *sympy.symbols("x u")
    >>> model = symdual.Model([x], [u], [x + b * u], process_noise=1.0, name="gain")
    >>> symdual.problem(symdual.Scenario(model, horizon=3))
    <Problem gain: 3 steps, model gain, states x, inputs u, unknowns b, plant the model itself>
    """
    if isinstance(task, Problem):
        return task
    if scenario is not None and not isinstance(scenario, str):
        return _of_scenario(task, scenario)
    if isinstance(task, LoadedPackage):
        return problems.problem(task, scenario)
    from symdual.api import prepare

    return prepare(task, scenario)


def problem_for(task: Task, controllers: str | Sequence[str]) -> Problem:
    """The task, with a package that has what controllers need: one that lacks it is generated again."""
    parts = parts_for(controllers)
    if not parts:
        return problem(task)
    from symdual import api

    if isinstance(task, Problem | LoadedPackage):
        return api.with_parts(problem(task), parts)
    return api.prepare(task, parts=parts)


def _of_scenario(task: Task | Model, scenario: Scenario) -> Problem:
    """The problem of a scenario that was made in a program, for the package or the model that it is about."""
    from symdual.api import prepare
    from symdual.emit.package import model_digest
    from symdual.spec.loading import gathered
    from symdual.spec.model import Model

    if isinstance(task, LoadedPackage):
        contents = gathered(scenario)
        believed = next(iter(contents.scenarios.values())).model.named(task.name)
        if model_digest(believed) != task.model_digest:
            raise SymdualError(
                f"the package {task.name} was not generated from the model of this scenario and what it asks for; use "
                "symdual.problem(scenario), which generates the one that it needs"
            )
        if scenario.plant is scenario.model:
            own = next(iter(contents.scenarios.items()))
            return problems.from_numbers(own[0], task, task, own[1].numbers())
    elif not (isinstance(task, Model) and scenario.model is task):
        raise SymdualError("this scenario is about another model; symdual.problem(scenario) finds its own")
    return prepare(scenario)


@spelled
def controller(
    task: Task,
    name: str = "dual",
    order: int = 1,
    window: int | None = None,
    truth: Given | None = None,
    planned_options: PlannedOptions = USUAL,
) -> Controller:
    """Make a controller of a task, ready to be asked for inputs: all that it needs is compiled or loaded here.

    Args:
        name: oracle, ce, cautious, beb, dual, planned or exact.
        order, window, planned_options: see `Controller`.
        truth: the true parameters for `oracle`, where they are not the problem's.

    >>> dual = symdual.controller(task, "dual")
    >>> u = dual.act()             # the first input; then u = dual.act(y) for every measurement y
    >>> u.shape
    (1,)
    """
    subject = problem_for(task, name)
    if name in NAMES:
        _get_ready(subject, [name], order, window)
    return controllers_module.controller(subject, name, order, window, truth, planned_options)


def _get_ready(subject: Problem, names: Sequence[str], order: int, window: int | None, episodes: bool = False) -> None:
    """Compile what is not compiled yet, on all cores; whoever sits before a terminal or a notebook is told."""
    works = works_for(subject, names, order, window, episodes)
    if works:
        from symdual.commands.terminal import show_compiling

        with suppress(SymdualError):  # where no process can be started, everything is compiled in this one
            show_compiling(works)


@spelled
def simulate(
    task: Task,
    controllers: str | Sequence[str] = ("dual", "ce"),
    runs: int = 100,
    seed: int = 0,
    settings: Settings | None = None,
    *,
    truth: str | None = None,
) -> Simulation:
    """Run closed-loop episodes with each controller, all with the same random draws, in memory and on all cores.

    Args:
        controllers: names as in `controller`; `runs`: episodes with each of them.
        seed: run i draws its start, its noise and its truth from child i of this seed.
        settings: how episodes are run.
        truth: "scenario", "prior" or "drift", as in `Settings`; by default the scenario's true parameters, or such that
            are drawn from the prior where it has none.

    >>> simulation = symdual.simulate(task, ["ce", "dual"], runs=3, seed=1)
    >>> simulation["dual"].costs.shape
    (3,)
    """
    return simulated(_plan(task, controllers, runs, seed, settings, truth))


@spelled
def sweep(
    task: Task,
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
    """The same episodes as `simulate`, kept on disk as they finish; returns the open results.

    They lie in `folder/<scenario>/results.npz`, where `open_results` finds them again.

    Args:
        resume: continue an interrupted sweep, or add runs and controllers to a finished one, with the same backend.
        force: overwrite what is there, be it the results of another sweep.
        jobs: the number of threads; all that the machine has by default.
        cluster: the address of the scheduler of a Dask cluster to run on instead, where numba compiles. Its first
            worker is waited for 10 s, and ten minutes a new one when the last one has gone; a `SymdualWarning` says so
            before the waiting, a `SymdualError` after it.

    >>> with symdual.sweep(task, ["ce", "dual"], runs=4, folder=folder) as results:
    ...     results.controllers
    ('ce', 'dual')
    """
    from symdual.runtime.threads import on_this_machine

    subject = problem_for(task, controllers)
    if cluster is not None:
        subject = subject.by_numba()
    elif resume:
        subject = sweeps.as_begun(subject, folder)
    plan = _plan(subject, controllers, runs, seed, settings, truth)
    client = None
    try:
        if cluster is None:
            execute = on_this_machine(jobs)
        else:
            from symdual.runtime.cluster import connect, on_cluster

            client = connect(cluster, _warn)
            execute = on_cluster(client, tell=_warn)
        return Results(sweeps.run_sweep(plan, folder, execute, resume=resume, tell=_warn, force=force))
    except SymdualError as refusal:
        refusal.args = (_with_arguments(str(refusal)),)
        raise
    finally:
        if client is not None:
            client.close(timeout=1)


def _with_arguments(sentence: str) -> str:
    """A sentence that advises options of the command, with the arguments that they are here."""
    for option, argument in (("--resume", "resume=True"), ("--force", "force=True"), ("with -o", "with folder=")):
        sentence = re.sub(rf"{option}(?=[\s,;.]|$)", argument, sentence)
    return sentence


def _warn(sentence: str) -> None:
    warnings.warn(sentence, SymdualWarning, stacklevel=2)


def _plan(
    task: Task,
    controllers: str | Sequence[str],
    runs: int,
    seed: int,
    settings: Settings | None,
    truth: str | None,
) -> Sweep:
    subject = problem_for(task, controllers)
    if settings is None:
        settings = Settings("prior" if subject.truth is None else "scenario")
    if truth is not None:
        settings = replace(settings, truth=truth)
    names = [controllers] if isinstance(controllers, str) else controllers
    plan = sweeps.sweep(subject, names, runs, seed, settings)
    _get_ready(plan.problem, plan.controllers, plan.settings.order, plan.settings.window, episodes=True)
    return plan


@spelled
def explain(
    task: Task,
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

    >>> explained = symdual.explain(task, "dual", run=2)
    >>> curve = explained["dual"].decisions[0].curves[0]
    >>> bool(abs(curve.values[curve.cost.argmin()] - explained["dual"].decisions[0].u[0]) < 0.2)
    True
    """
    subject = problem_for(task, controllers)
    settings = Settings(truth or ("prior" if subject.truth is None else "scenario"), order, window)
    names = [controllers] if isinstance(controllers, str) else list(controllers)
    plan = sweeps.sweep(subject, names, run + 1, seed, settings)
    _get_ready(plan.problem, plan.controllers, order, window)
    model = None
    if not isinstance(task, Problem | LoadedPackage):
        from symdual.spec.loading import contents_of

        model = contents_of(task).models.get(subject.package.name)
    return explained(plan, run, model, points, tell)


def replay(task: Task, recording: Recording | str | Path) -> Replay:
    """Run the filter over a recording from the prior of a task: what it would have believed, and whether rightly.

    The recording is a file (columns time, inputs, measurements; gaps allowed) or what `read_recording` returns.

    >>> table = folder / "recording.csv"
    >>> _ = table.write_text("time,u,x\\n0,0.5,1.0\\n1,-0.5,1.4\\n2,0.0,0.9\\n")
    >>> symdual.replay(task, table).means.shape
    (3, 2)
    """
    subject = problem(task)
    if isinstance(recording, str | Path):
        recording = replays.read_recording(Path(recording), subject.package)
    return replays.replay(subject, recording)
