"""`symdual paper check` and `symdual paper run`: the paper's equations and experiments."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import backend_option, json_option, page_option, results_option
from symdual.commands.terminal import new_marked_console, shown
from symdual.report.progress import new_progress, side_by_side


@click.group(short_help="Check the paper's equations; run its experiments.")
def paper() -> None:
    """The paper: its equations checked, its experiments run."""


@paper.command("check")
@click.option("--only", metavar="ID", help="One formula, or a section such as A.1.")
@click.option("--html", "html_file", metavar="FILE", type=click.Path(path_type=Path), help="Write a page.")
@click.option("--errata", "errata_file", metavar="FILE", type=click.Path(path_type=Path), help="Write Markdown.")
@json_option
def paper_check(only: str | None, html_file: Path | None, errata_file: Path | None, json_file: Path | None) -> None:
    """Compare the paper's formulas with derivations; exit status 1 when a verdict is not the recorded one."""
    from symdual.paper import checking

    console = new_marked_console()
    with new_progress() as progress:
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
@click.option("--runs", type=int, help="Runs of every controller [50; 100 with --quick].")
@click.option(
    "--seed", default=0, show_default=True, type=int, help="Seed of all noise, the same for every controller."
)
@click.option("--truth", metavar="[paper|prior]", help="The paper's parameters, or drawn from the prior [both].")
@click.option("--extra", is_flag=True, help="Also run the studies that go beyond the paper.")
@click.option(
    "--quick", is_flag=True, help="All that fits into a minute: 100 runs, coarser figures; only page and figures stay."
)
@click.option("--resume", is_flag=True, help="Go on after an interruption.")
@page_option("Where the page goes [DIR/index.html].")
@backend_option
@json_option
@results_option("Packages, sweeps, figures and page [out/paper].", None)
def paper_run(
    experiments: tuple[int, ...],
    runs: int | None,
    seed: int,
    truth: str | None,
    extra: bool,
    quick: bool,
    resume: bool,
    html_file: Path | None,
    backend: str | None,
    json_file: Path | None,
    folder: Path | None,
) -> None:
    """Run the paper's experiments: its table beside ours, its figures, and one page with all of it."""
    from symdual.paper.experiments import command, outcome, terminal, words

    console = new_marked_console()
    asked = command.request(experiments, runs, seed, truth, folder, extra, quick, resume, backend)
    with side_by_side() as report:

        def tell(sentence: str) -> None:
            console.print(sentence, style="yellow", soft_wrap=True, markup=False)

        try:
            written = command.execute(asked, html_file, report, tell)
        except KeyboardInterrupt:
            click.echo("symdual: interrupted; the runs that are done are kept, go on with --resume", err=True)
            sys.exit(130)
    terminal.show(console, written.outcome)
    write_json(json_file, outcome.outcome_json(written.outcome))
    console.print(f"\n{words.in_one_sentence(written.outcome.tables)}", style="bold", markup=False)
    console.print(f"page written to {shown(written.page)}, figures to {shown(written.figures)}", markup=False)
