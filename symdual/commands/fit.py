"""`symdual fit`: hyperparameters from a recording."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option, model_file_argument
from symdual.commands.terminal import headed, new_console, new_progress, shown

if TYPE_CHECKING:
    from rich.progress import Progress


@click.command()
@model_file_argument
@click.argument("data_file", metavar="DATA.csv", type=click.Path(path_type=Path))
@click.option("--model", "name", metavar="NAME", help="Which model of the file, if several have Gaussian processes.")
@click.option("--scenario", metavar="NAME", help="Whose start and prior the recording has, if there are several.")
@click.option(
    "-o", "file", metavar="FILE", type=click.Path(path_type=Path), help="The fit [NAME.fit.json beside MODEL.py]."
)
@json_option
def fit(
    model_file: Path, data_file: Path, name: str | None, scenario: str | None, file: Path | None, json_file: Path | None
) -> None:
    """Fit the hyperparameters of Gaussian processes in MODEL.py to a recording, in the format of `symdual replay`."""
    from symdual.fitting.result import fit as run
    from symdual.fitting.task import read_task
    from symdual.report.fits import fit_table, summary
    from symdual.spec.fitted import write
    from symdual.whole_file import require_writable

    console = new_console()
    task = read_task(model_file, data_file, name, scenario)
    place = model_file.with_name(f"{task.model.name}.fit.json") if file is None else file
    require_writable(place)
    started = time.perf_counter()
    bars: list[Progress] = []
    with ExitStack() as stack:

        def report(what: str) -> None:
            if not bars and time.perf_counter() - started > 2.0:
                bars.append(stack.enter_context(new_progress()))
                bars[0].add_task(what, total=None)
            for bar in bars:
                bar.update(bar.task_ids[0], description=what)

        result = run(task, report)
    write(place, result.to_json())
    used = f"{len(task.times)} rows, {task.steps} steps, {result.measured} measurements used"
    console.print(headed(task.model.name, f": {used}"))
    console.print(fit_table(result))
    console.print(summary(result))
    for sentence in result.warnings:
        console.print(sentence, style="yellow")
    console.print(f"values in {shown(place)}")
    write_json(json_file, {**result.to_json(), "file": str(place)})
