"""The command line. Heavy imports stand inside the commands, so that `symdual --help` answers at once."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symdual import __version__
from symdual.errors import SymdualError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from symdual.runtime.sweep import Sweep


class _Commands(click.Group):
    """A group that turns symdual's own errors into one sentence and exit status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; `--debug` lets errors through with their traceback."""
        try:
            return super().invoke(ctx)
        except SymdualError as problem:
            if ctx.params.get("debug"):
                raise
            click.echo(f"symdual: {problem}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("symdual: interrupted", err=True)
            sys.exit(130)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="symdual")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Derive, generate and run dual controllers: controllers that learn a system while they steer it."""


_model_file = click.argument("model_file", metavar="MODEL.py", type=click.Path(path_type=Path))


def _json_place(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file that cannot be written before any work is done."""
    if file is not None and (file.is_dir() or not os.access(file.resolve().parent, os.W_OK)):
        raise SymdualError(f"cannot write {file}: it is a folder, or its folder is missing or cannot be written")
    return file


_json_option = click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_json_place,
    help="Write the result as JSON.",
)
_folder_option = click.option(
    "-o",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Parent folder of the generated packages [generated].",
)


@main.command()
@_model_file
@_folder_option
@click.option("--force", is_flag=True, help="Write and compile again even if nothing has changed.")
@click.option("--no-compile", is_flag=True, help="Only write; numba compiles at the first call.")
@_json_option
def generate(model_file: Path, folder: Path | None, force: bool, no_compile: bool, json_file: Path | None) -> None:
    """Write and compile the package of every Model in MODEL.py."""
    from symdual import api
    from symdual.derive.derivation import derive
    from symdual.derive.structure import structure
    from symdual.emit.kernels import kernel_functions
    from symdual.report.terminal import kernel_table, model_summary
    from symdual.runtime.warm import is_compiled

    console = _console()
    started = time.perf_counter()
    items = api.generate(model_file, folder, force)
    written = time.perf_counter() - started
    report = []
    for item in items:
        name = item.model.name
        entry: dict[str, Any] = {"name": name, "folder": str(item.folder), "changed": item.changed}
        report.append(entry)
        if not item.changed:
            console.print(f"[bold]{name}[/] is up to date in {_shown(item.folder)}")
            if not no_compile and not is_compiled(item.folder):
                entry["compile_seconds"] = _compile(console, item.folder)
            continue
        derivation = derive(item.model)
        pattern = structure(derivation)
        functions = kernel_functions(derivation, pattern)
        console.print(f"[bold]{name}[/] -> {_shown(item.folder)}")
        seconds = None if no_compile else _compile(console, item.folder)
        console.print(model_summary(item.model, pattern))
        console.print(kernel_table(functions, seconds))
        entry["operations"] = {f.name: f.kernel.operations for f in functions}
        entry["compile_seconds"] = seconds
    if any(item.changed for item in items) and not no_compile:
        console.print(
            f"derived and written in {written:.1f} s, compiled in {time.perf_counter() - started - written:.1f} s"
        )
    _write_json(json_file, {"models": report})


def _compile(console: Console, folder: Path) -> dict[str, float]:
    from symdual.runtime.loading import load
    from symdual.runtime.warm import warm

    with _progress(console) as progress:
        task = progress.add_task(f"compiling {folder.name}", total=1.0)
        return warm(load(folder), lambda fraction: progress.update(task, completed=fraction))


@main.command()
@_model_file
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_json_place,
    help="Also write a page with typeset mathematics, the generated source and the check's worst errors.",
)
@click.option("--no-check", is_flag=True, help="Leave the check out of the page, so that nothing is compiled.")
@_json_option
def show(model_file: Path, html_file: Path | None, no_check: bool, json_file: Path | None) -> None:
    """Show what is derived for every Model in MODEL.py: equations, zero blocks, sizes, operation counts."""
    from symdual.derive.derivation import derive
    from symdual.derive.display import equations
    from symdual.derive.structure import structure
    from symdual.emit.kernels import kernel_functions
    from symdual.report.terminal import derivation_view, kernel_table, left_side, model_summary, right_side
    from symdual.spec.loading import load_model_file

    console = _console()
    report = []
    for name, model in load_model_file(model_file).models.items():
        derivation = derive(model)
        pattern = structure(derivation)
        functions = kernel_functions(derivation, pattern)
        console.print(f"[bold]{name}[/]")
        console.print(model_summary(model, pattern))
        console.print(derivation_view(derivation))
        console.print()
        console.print(kernel_table(functions))
        report.append(
            {
                "name": name,
                "structure": {key: getattr(pattern, key) for key in pattern.__dataclass_fields__},
                "equations": [
                    {
                        "block": e.block,
                        "left": left_side(e),
                        "right": right_side(e),
                        "operations": e.operations,
                    }
                    for e in equations(derivation)
                ],
                "operations": {f.name: f.kernel.operations for f in functions},
            }
        )
    _write_json(json_file, {"models": report})
    if html_file is not None:
        _write_derivation_page(console, model_file, html_file, checked=not no_check)


def _write_derivation_page(console: Console, model_file: Path, html_file: Path, checked: bool) -> None:
    from symdual.report.html import write_page
    from symdual.report.page import page_of_file

    with _progress(console) as progress:
        task = progress.add_task("deriving and checking", total=1.0)

        def report(name: str, fraction: float) -> None:
            progress.update(task, description=f"checking {name}", completed=fraction)

        text = page_of_file(model_file, checked, report)
    write_page(html_file, text)
    console.print(f"page written to {_shown(html_file)}")


@main.command()
@_model_file
@_folder_option
@click.option(
    "--points",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Random points for each kernel.",
)
@click.option("--kernels", is_flag=True, help="Only the kernels, which compile in seconds, without the recursions.")
@_json_option
def check(model_file: Path, folder: Path | None, points: int, kernels: bool, json_file: Path | None) -> None:
    """Compare what is generated for every Model in MODEL.py with independent oracles; exit status 1 on a miss."""
    from symdual import api
    from symdual.report.terminal import check_table

    console = _console()
    with _progress(console) as progress:
        tasks: dict[str, Any] = {}

        def report(name: str, fraction: float) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(f"checking {name}", total=1.0)
            progress.update(tasks[name], completed=fraction)

        results = api.check(model_file, folder, points, report, recursions=not kernels)
    misses = [(name, r) for name, blocks in results.items() for r in blocks if not r.passed]
    for name, blocks in results.items():
        worst = max(blocks, key=lambda r: r.error)
        console.print(
            f"[bold]{name}[/]: {len(blocks)} comparisons, worst {worst.ulps:.1f} ulp ({worst.block}, {worst.oracle})"
        )
        console.print(check_table(blocks))
    for name, result in misses:
        console.print(f"[bold red]miss[/] in {name}: {result.block} differs from {result.oracle} by {result.error:.2e}")
    rows = {
        name: [
            {"block": r.block, "oracle": r.oracle, "entries": r.entries, "error": _number(r.error), "passed": r.passed}
            for r in blocks
        ]
        for name, blocks in results.items()
    }
    _write_json(json_file, {"passed": not misses, "models": rows})
    if misses:
        sys.exit(1)


@main.command()
@_model_file
@click.option(
    "--controller",
    "controllers",
    metavar="NAME",
    multiple=True,
    default=("dual", "ce"),
    show_default=True,
    help="oracle, ce, cautious, beb, dual, or exact for the smallest models; may be given several times.",
)
@click.option("--runs", default=100, show_default=True, type=int, help="Episodes with each controller.")
@click.option("--seed", default=0, show_default=True, type=int, help="All controllers meet the same luck.")
@click.option("--scenario", metavar="NAME", help="Which scenario of the file, if there are several.")
@click.option(
    "--truth",
    default="scenario",
    show_default=True,
    type=click.Choice(["scenario", "prior", "drift"]),
    help="True parameters: the scenario's, drawn from the prior (the fair test), or drawn and drifting.",
)
@click.option("--order", default=1, show_default=True, type=click.IntRange(1, 2), help="Order of the dual cost.")
@click.option("--window", metavar="N", type=click.IntRange(min=1), help="Plan N steps ahead instead of to the end.")
@click.option("--jobs", metavar="N", type=click.IntRange(min=1), help="Threads, at most those of the machine [all].")
@click.option("--cluster", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler (tcp://host:port).")
@click.option(
    "-o",
    "folder",
    metavar="DIR",
    default="results",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Parent folder; a sweep lies below it under the name of its scenario.",
)
@click.option(
    "--resume", is_flag=True, help="Continue an interrupted sweep, or add runs and controllers to a finished one."
)
@_json_option
def simulate(
    model_file: Path,
    controllers: tuple[str, ...],
    runs: int,
    seed: int,
    scenario: str | None,
    truth: str,
    order: int,
    window: int | None,
    jobs: int | None,
    cluster: str | None,
    folder: Path,
    resume: bool,
    json_file: Path | None,
) -> None:
    """Run closed-loop episodes of a scenario in MODEL.py and compare controllers."""
    from symdual import api
    from symdual.report import figures
    from symdual.report.sweeps import summary_table
    from symdual.runtime.closed_loop import Settings
    from symdual.runtime.results import Results
    from symdual.runtime.summary import summarise
    from symdual.runtime.sweep import sweep

    console = _console()
    with _executor(jobs, cluster) as executor:
        settings = Settings(truth=truth, order=order, window=window)
        plan = sweep(api.prepare(model_file, scenario), controllers, runs, seed, settings)
        file = _run_sweep(console, plan, folder, executor, resume)
    with Results(file) as results:
        summary = summarise(results)
        drawable = figures.available()
        figure = figures.sweep_figure(results, summary, file.with_name("figure.png")) if drawable else None
    console.print(f"[bold]{plan.problem.name}[/]: {runs} runs, seed {seed}, truth: {truth}")
    console.print(summary_table(summary))
    for sentence in summary.sentences():
        console.print(f"[yellow]{sentence}[/]", soft_wrap=True)
    drawn = "no figure without matplotlib (the extra `plot`)" if figure is None else f"figure in {_shown(figure)}"
    console.print(f"results in {_shown(file)}, {drawn}", soft_wrap=True, markup=False)
    _write_json(json_file, {**summary.to_json(), "results": str(file), "figure": figure and str(figure)})


@contextmanager
def _executor(jobs: int | None, address: str | None) -> Iterator[Callable[[Callable[[str], None]], Any]]:
    """How chunks are run, here or on a cluster, given whom to tell what is going on."""
    if address is None:
        from symdual.runtime.threads import on_this_machine

        yield lambda say: on_this_machine(jobs, say)
        return
    from symdual.runtime.cluster import connect, on_cluster

    client = connect(address)
    try:
        yield lambda say: on_cluster(client, say)
    finally:
        client.close(timeout=1)


def _run_sweep(
    console: Console, plan: Sweep, folder: Path, executor: Callable[[Callable[[str], None]], Any], resume: bool
) -> Path:
    from symdual.runtime.sweep import Doing, run_sweep

    with _progress(console) as progress:
        bars: list[Any] = []

        def show(doing: Doing) -> None:
            if not bars:  # the bar starts where the sweep does, so that the time left counts only what is new
                bars.append(progress.add_task(doing.what, total=doing.total, completed=doing.done))
            progress.update(bars[0], description=doing.what, completed=doing.done)

        def tell(sentence: str) -> None:
            console.print(f"[yellow]{sentence}[/]", soft_wrap=True)

        def say(what: str) -> None:
            progress.update(bars[0], description=what)

        try:
            return run_sweep(plan, folder, executor(say), resume, show, tell)
        except KeyboardInterrupt:
            progress.stop()
            click.echo(f"symdual: interrupted; what is done is kept in {folder}, continue with --resume", err=True)
            sys.exit(130)


@main.command()
@_model_file
@click.argument("data_file", metavar="DATA.csv", type=click.Path(path_type=Path))
@click.option("--scenario", metavar="NAME", help="Whose prior to start from, if there are several scenarios.")
@click.option(
    "-o",
    "folder",
    metavar="DIR",
    default="results",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Parent folder; the replay lies below it under the name of the recording.",
)
@_json_option
def replay(model_file: Path, data_file: Path, scenario: str | None, folder: Path, json_file: Path | None) -> None:
    """Run the filter of a scenario in MODEL.py over a recording: columns time, inputs, measurements; gaps allowed."""
    from symdual import api
    from symdual.report.replays import replay_figure
    from symdual.runtime.replay import read_recording, summary, write_belief
    from symdual.runtime.replay import replay as run

    console = _console()
    task = api.prepare(model_file, scenario)
    recording = read_recording(data_file, task.package)
    result = run(task, recording)
    place = folder / data_file.stem
    table = write_belief(place / "belief.csv", result, task.package)
    figure = replay_figure(result, task.package, place / "figure.png")
    report = summary(result, task)
    if recording.ignored:
        console.print(
            f"[yellow]columns that the model does not know: {', '.join(recording.ignored)}[/]", soft_wrap=True
        )
    console.print(
        f"[bold]{task.name}[/]: {report['rows']} rows, {report['measured']} of {report['entries']} entries used, "
        f"log-likelihood {result.log_likelihood:.6g}"
    )
    for name, (mean, deviation) in report["belief"].items():
        console.print(f"  {name} = {mean:.4g} +- {deviation:.2g}")
    for sentence in (report["consistency"]["sentence"], *report["losses"]):
        console.print(f"[yellow]{sentence}[/]", soft_wrap=True)
    console.print(f"belief in {_shown(table)}, figure in {_shown(figure)}", soft_wrap=True)
    _write_json(json_file, {**report, "table": str(table), "figure": str(figure)})


@main.command()
@_model_file
@click.argument("data_file", metavar="DATA.csv", type=click.Path(path_type=Path))
@click.option("--model", "name", metavar="NAME", help="Which model of the file, if several have Gaussian processes.")
@click.option("--scenario", metavar="NAME", help="Whose start and prior the recording has, if there are several.")
@click.option(
    "-o", "file", metavar="FILE", type=click.Path(path_type=Path), help="The fit [NAME.fit.json beside MODEL.py]."
)
@_json_option
def fit(
    model_file: Path, data_file: Path, name: str | None, scenario: str | None, file: Path | None, json_file: Path | None
) -> None:
    """Fit the hyperparameters of Gaussian processes in MODEL.py to a recording, in the format of `symdual replay`."""
    from symdual.fitting.result import fit as run
    from symdual.fitting.task import read_task
    from symdual.report.fits import fit_table, summary
    from symdual.spec.fitted import require_writable, write

    console = _console()
    task = read_task(model_file, data_file, name, scenario)
    place = model_file.with_name(f"{task.model.name}.fit.json") if file is None else file
    require_writable(place)
    started = time.perf_counter()
    bars: list[Progress] = []
    with ExitStack() as stack:

        def report(what: str) -> None:
            if not bars and time.perf_counter() - started > 2.0:
                bars.append(stack.enter_context(_progress(console)))
                bars[0].add_task(what, total=None)
            for bar in bars:
                bar.update(bar.task_ids[0], description=what)

        result = run(task, report)
    write(place, result.to_json())
    console.print(
        f"[bold]{task.model.name}[/]: {len(task.times)} rows, {task.steps} steps, {result.measured} measurements used"
    )
    console.print(fit_table(result))
    console.print(summary(result), soft_wrap=True)
    for sentence in result.warnings:
        console.print(sentence, style="yellow", soft_wrap=True, markup=False)
    console.print(f"values in {_shown(place)}", soft_wrap=True, markup=False)
    _write_json(json_file, {**result.to_json(), "file": str(place)})


@main.group()
def paper() -> None:
    """The paper: its equations checked, its experiments run."""


@paper.command("check")
@click.option("--only", metavar="ID", help="One formula, or a section such as A.1.")
@click.option("--html", "html_file", metavar="FILE", type=click.Path(path_type=Path), help="Write a page.")
@click.option("--errata", "errata_file", metavar="FILE", type=click.Path(path_type=Path), help="Write Markdown.")
@_json_option
def paper_check(only: str | None, html_file: Path | None, errata_file: Path | None, json_file: Path | None) -> None:
    """Confront the paper's formulas with derivations; exit status 1 when a verdict is not the recorded one."""
    from symdual.paper import checking

    console = _console()
    with _progress(console) as progress:
        task = progress.add_task("deriving", total=1.0)

        def report(done: int, total: int, name: str) -> None:
            progress.update(task, completed=done / max(total, 1), description=f"deriving {name}")

        results = checking.run(only, report)
    console.print(checking.table(results))
    console.print(checking.summary(results))
    for file, text in ((html_file, checking.page), (errata_file, checking.errata), (json_file, checking.to_json)):
        if file is not None:
            checking.save(file, text(results))
    if not checking.agree(results):
        sys.exit(1)


@paper.command("run")
@click.option("--experiment", "experiments", multiple=True, type=int, help="1 to 4; may be repeated [all].")
@click.option("--runs", type=int, help="Runs of every controller [50; 8 with --quick].")
@click.option("--seed", default=0, show_default=True, type=int, help="Decides all noise; shared by the controllers.")
@click.option("--truth", metavar="[paper|prior]", help="The paper's parameters, or drawn from the prior [both].")
@click.option("--extra", is_flag=True, help="Also run the studies that go beyond the paper.")
@click.option("--quick", is_flag=True, help="Few runs, all figures.")
@click.option("--resume", is_flag=True, help="Go on after an interruption.")
@click.option(
    "--html",
    "html_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_json_place,
    help="Where the page goes [DIR/index.html].",
)
@_json_option
@click.option(
    "-o",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Packages, finished runs, figures and page [out/paper].",
)
def paper_run(
    experiments: tuple[int, ...],
    runs: int | None,
    seed: int,
    truth: str | None,
    extra: bool,
    quick: bool,
    resume: bool,
    html_file: Path | None,
    json_file: Path | None,
    folder: Path | None,
) -> None:
    """Run the paper's experiments: its table beside ours, its figures, and one page with all of it."""
    from symdual.paper.experiments import command, outcome, terminal

    console = _console()
    asked = command.request(experiments, runs, seed, truth, folder, extra, quick, resume)
    with _progress(console) as progress:
        task = progress.add_task("starting", total=1.0)

        def report(what: str, fraction: float) -> None:
            progress.update(task, description=what, completed=fraction)

        try:
            written = command.execute(asked, html_file, report)
        except KeyboardInterrupt:
            progress.stop()
            click.echo("symdual: interrupted; the runs that are done are kept, go on with --resume", err=True)
            sys.exit(130)
    terminal.show(console, written.outcome)
    _write_json(json_file, outcome.outcome_json(written.outcome))
    console.print(f"page written to {_shown(written.page)}, figures to {_shown(written.figures)}")


@main.command()
@click.option(
    "--features", "sizes", multiple=True, type=int, help="Number of features; may be repeated [2 30 100 300]."
)
@click.option("--peer", "peers", multiple=True, help="A peer that must take part; may be repeated [all installed].")
@click.option("--rounds", default=25, show_default=True, type=int, help="Visits to each implementation.")
@click.option("--processes", default=1, show_default=True, type=int, help="Fresh processes; the fastest counts.")
@_json_option
def bench(sizes: tuple[int, ...], peers: tuple[str, ...], rounds: int, processes: int, json_file: Path | None) -> None:
    """Time the generated code beside C, CasADi, JAX and numpy, whatever is installed, in one process."""
    from symdual import bench as benchmark

    console = _console()
    with _progress(console) as progress:
        task = progress.add_task("measuring", total=1.0)

        def report(text: str, fraction: float) -> None:
            progress.update(task, completed=fraction, description=text)

        results = benchmark.run(sizes or benchmark.SIZES, peers or None, rounds, processes, report)
    console.print(benchmark.table(results))
    if json_file is not None:
        _write_json(json_file, json.loads(benchmark.to_json(results)))


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _progress(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def _shown(folder: Path) -> str:
    """A folder as seen from here."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


def _write_json(file: Path | None, content: dict[str, Any]) -> None:
    """Write JSON in one go, so that a reader never sees half a file."""
    if file is None:
        return
    text = json.dumps(content, indent=2, default=_plain) + "\n"
    fresh = file.with_name(f".{file.name}.new")
    try:
        fresh.write_text(text)
        fresh.replace(file)
    except OSError as problem:
        raise SymdualError(f"cannot write {file}: {problem.strerror}") from problem


def _number(value: float) -> float | None:
    """JSON knows no infinity."""
    return value if math.isfinite(value) else None


def _plain(value: object) -> object:
    """Numpy numbers and arrays as plain Python, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
