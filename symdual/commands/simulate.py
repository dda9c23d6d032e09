"""`symdual simulate`: closed-loop episodes, here or on a cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import backend_option, json_option, model_file_argument, page_option, results_option
from symdual.commands.terminal import headed, idle_filter, new_console, shown, try_other_filters
from symdual.controllers import OPTIONS, listed
from symdual.report.progress import late_progress, new_progress, show_compiling

if TYPE_CHECKING:
    from symdual.runtime.results import Results
    from symdual.runtime.sweep import Execute, Sweep

    Executor = Callable[[Callable[[str], None], Callable[[str], None]], Execute]


@click.command(short_help="Compare controllers: a table, a figure, all results.")
@model_file_argument
@click.option(
    "--controller",
    "controllers",
    metavar="NAME",
    multiple=True,
    default=("dual", "ce"),
    show_default=True,
    help=f"{listed()}, the last one for the smallest models; may be given several times.",
)
@click.option("--runs", default=100, show_default=True, type=int, help="Episodes with each controller.")
@click.option("--seed", default=0, show_default=True, type=int, help="All controllers meet the same random draws.")
@click.option("--scenario", metavar="NAME", help="Which scenario of the file, if there are several.")
@click.option(
    "--truth",
    type=click.Choice(["scenario", "prior", "drift"]),
    help="True parameters: the scenario's, drawn from the prior (the fair test), or drawn and drifting [the scenario's "
    "if it has any, else drawn].",
)
@click.option("--order", default=1, show_default=True, type=click.IntRange(1, 2), help="Order of the dual cost.")
@click.option("--window", metavar="N", type=click.IntRange(min=1), help="Plan N steps ahead instead of to the end.")
@click.option(
    "--starts",
    default=OPTIONS["starts"].default,
    show_default=True,
    type=click.IntRange(OPTIONS["starts"].least, OPTIONS["starts"].most),
    help="Plans that `planned` improves in a step.",
)
@click.option(
    "--option",
    "numbers",
    metavar="NAME=N",
    multiple=True,
    help=f"A number that controllers are told, such as starts=2 ({', '.join(n for n in OPTIONS if n != 'seed')}).",
)
@click.option("--no-look-ahead", is_flag=True, help="Let `planned` take the first input of its best plan as it is.")
@click.option("--no-rollouts", is_flag=True, help="Let `planned` choose between its plans without rollouts.")
@click.option("--jobs", metavar="N", type=click.IntRange(min=1), help="Threads, at most those of the machine [all].")
@backend_option
@click.option("--cluster", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler (tcp://host:port).")
@results_option(
    "Parent folder; a sweep lies below it under the name of its scenario, with a number where another lies there."
)
@click.option(
    "--resume", is_flag=True, help="Continue an interrupted sweep, or add runs and controllers to a finished one."
)
@click.option(
    "--failure-cost",
    metavar="L",
    type=float,
    help="Cost of an episode that fails. The mean over all episodes is then shown as well.",
)
@click.option("--force", is_flag=True, help="Overwrite what is there instead of taking a new folder.")
@page_option("Also write a page that shows every decision of one run: beliefs, plans, costs, with a slider over time.")
@click.option("--run", default=0, show_default=True, type=click.IntRange(min=0), help="Which run the page shows.")
@json_option
def simulate(
    model_file: Path,
    controllers: tuple[str, ...],
    runs: int,
    seed: int,
    scenario: str | None,
    truth: str | None,
    order: int,
    window: int | None,
    starts: int,
    numbers: tuple[str, ...],
    no_look_ahead: bool,
    no_rollouts: bool,
    jobs: int | None,
    backend: str | None,
    cluster: str | None,
    folder: Path,
    resume: bool,
    failure_cost: float | None,
    force: bool,
    html_file: Path | None,
    run: int,
    json_file: Path | None,
) -> None:
    """Run closed-loop episodes of a scenario in MODEL.py and compare controllers.

    Exit status 1 means that no episode with one of the controllers finished.
    """
    from symdual import api
    from symdual.backends.numba.ahead import works_for
    from symdual.controllers import parts_for
    from symdual.report import figures
    from symdual.report.sweeps import summary_table
    from symdual.runtime.closed_loop import Settings
    from symdual.runtime.options import Options
    from symdual.runtime.readiness import make_ready
    from symdual.runtime.results import Results
    from symdual.runtime.summary import summarise
    from symdual.runtime.sweep import as_begun, place_beside, results_folder, sweep

    if resume and force:
        raise click.UsageError("--resume continues what is there and --force throws it away: give one of them")
    if html_file is not None and run >= runs:
        raise click.UsageError(f"there is no run {run}: runs are numbered from 0 to {runs - 1}")
    console, began = new_console(), time.perf_counter()
    with _executor(jobs, cluster) as executor:
        backend = backend or ("numba" if cluster else None)
        options = Options(starts, not no_look_ahead).told(dict(one.partition("=")[::2] for one in numbers))
        if no_rollouts:
            options = replace(options, samples=0)
        parts = parts_for(controllers, asdict(options))
        problem = api.problem(model_file, scenario, backend=backend, parts=parts)
        if resume and backend is None:
            problem = as_begun(problem, folder)
        truth = truth or ("prior" if problem.truth is None else "scenario")
        plan = sweep(problem, controllers, runs, seed, Settings(truth, order, window, None, options))
        place = plan.problem.name if force else place_beside(plan, folder, resume)
        results_folder(plan, folder, resume or force, place)  # says what is wrong before anybody waits
        with late_progress(timed=False) as report:
            make_ready(plan.problem, plan.controllers, order, window, report)
        works = [] if cluster else works_for(plan.problem, plan.controllers, order, window, episodes=True)
        compiled = show_compiling(works)
        console.print(_start(time.perf_counter() - began, sum(compiled.values()), problem.package.backend), style="dim")
        file = _run_sweep(plan, folder, executor, resume, force, place)
    with Results(file) as results:
        summary = summarise(results, failure_cost)
        console.print(headed(plan.problem.name, f": {runs} runs, seed {seed}, truth: {truth}"))
        console.print(summary_table(summary))
        for sentence in [*idle_filter(plan.problem.package), *summary.sentences()]:
            console.print(sentence, style="yellow")
        if summary.overconfident:
            console.print(try_other_filters(model_file, plan.problem.package.name), style="yellow")
        culprits = _culprits(model_file, results) if any(c.failed for c in summary.controllers) else []
        if not cluster:  # what runs there need not be compiled here
            culprits += _reasons(plan, results, [c.name for c in summary.controllers if c.failed])
        for sentence in culprits:
            console.print(sentence, style="yellow")
        drawable = figures.available()
        figure = figures.sweep_figure(results, summary, file.with_name("figure.png")) if drawable else None
    drawn = "no figure without matplotlib" if figure is None else f"figure in {shown(figure)}"
    console.print(f"results in {shown(file)}, {drawn}")
    if html_file is not None:
        _write_decisions(model_file, plan, run, html_file)
        console.print(f"decisions of run {run} in {shown(html_file)}")
    page = html_file and str(html_file)
    found = {"culprits": culprits, "results": str(file), "figure": figure and str(figure), "page": page}
    write_json(json_file, {**summary.to_json(), **found})
    hopeless = [
        f"no episode with {c.name} finished ({', '.join(c.failed)})" for c in summary.controllers if not c.finished
    ]
    if hopeless:
        click.echo(f"symdual: {'; '.join(hopeless)}", err=True)
        sys.exit(1)


def _start(seconds: float, compiling: float, backend: str) -> str:
    """How long it took to get ready."""
    if backend == "c":
        return f"ready in {seconds:.1f} s through C"
    if compiling:
        return f"ready in {seconds:.1f} s; what was compiled ({compiling:.0f} s of work) is kept for the next time"
    return f"ready in {seconds:.1f} s: everything was compiled already"


def _write_decisions(model_file: Path, plan: Sweep, run: int, html_file: Path) -> None:
    """One run again, step by step, as a page."""
    from symdual.runtime.explained import explained
    from symdual.spec.loading import load_model_file

    model = load_model_file(model_file).specifications.get(plan.problem.package.name)
    with late_progress() as report:
        explained(plan, run, model, tell=report).html(html_file)


def _culprits(model_file: Path, results: Results) -> list[str]:
    """Which expressions of the model or of the plant were not finite in episodes that failed."""
    from symdual.report.culprits import culprits
    from symdual.spec.loading import load_model_file

    models = load_model_file(model_file).specifications
    names = [results.about[role] for role in ("model", "plant")]
    return list(culprits(results, *(models[name] for name in names))) if set(names) <= set(models) else []


def _reasons(plan: Sweep, results: Results, failed: Sequence[str]) -> list[str]:
    """Why the first episode that failed did so, for each controller: it is run once more."""
    import numpy as np

    from symdual.runtime.closed_loop import run_part
    from symdual.runtime.endings import reason
    from symdual.runtime.results import Chunk

    found = []
    for name in failed:
        n = int(np.flatnonzero(results.array(name, "outcomes"))[0])
        noise_draws = plan.noise_draws([Chunk(name, n, n + 1)])
        told = reason(
            plan.problem, name, noise_draws, run_part(plan.problem, name, noise_draws, plan.settings), plan.settings
        )
        if told is not None:
            found.append(f"{name}, run {n}: {told[1]}")
    return found


@contextmanager
def _executor(jobs: int | None, address: str | None) -> Iterator[Executor]:
    """How chunks are run, here or on a cluster, given whom to tell what is going on and what is wrong."""
    if address is None:
        from symdual.runtime.threads import on_this_machine

        yield lambda say, tell: on_this_machine(jobs, say)
        return
    from symdual.runtime.cluster import connect, on_cluster

    client = connect(address, lambda sentence: click.echo(f"symdual: {sentence}", err=True))
    try:
        yield lambda say, tell: on_cluster(client, say, tell)
    finally:
        client.close(timeout=1)


def _run_sweep(plan: Sweep, folder: Path, executor: Executor, resume: bool, force: bool, place: str) -> Path:
    from symdual.runtime.sweep import Doing, run_sweep

    with new_progress() as progress:
        bars: list[Any] = []

        def show(doing: Doing) -> None:
            if not bars:  # the bar starts where the sweep does, so that the time left counts only what is new
                bars.append(progress.add_task(doing.what, total=doing.total, completed=doing.done))
            progress.update(bars[0], description=doing.what, completed=doing.done)

        def tell(sentence: str) -> None:
            progress.console.print(sentence, style="yellow", soft_wrap=True)

        def say(what: str) -> None:
            progress.update(bars[0], description=what)

        try:
            return run_sweep(plan, folder, executor(say, tell), resume, show, tell, force, place)
        except KeyboardInterrupt:
            progress.stop()
            click.echo(f"symdual: interrupted; what is done is kept in {folder}, continue with --resume", err=True)
            sys.exit(130)
