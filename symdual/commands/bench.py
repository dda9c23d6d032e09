"""`symdual bench`: the generated code beside its peers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option
from symdual.commands.terminal import new_marked_console
from symdual.report.progress import new_progress

if TYPE_CHECKING:
    from symdual.bench.results import Found


@click.command(short_help="Time the code beside C, CasADi, JAX and numpy.")
@click.option(
    "--features", "sizes", multiple=True, type=int, help="Number of features; may be repeated [2 30 100 300]."
)
@click.option("--peer", "peers", multiple=True, help="A peer that must take part; may be repeated [all installed].")
@click.option("--rounds", default=25, show_default=True, type=int, help="Visits to each implementation.")
@click.option("--processes", default=1, show_default=True, type=int, help="Fresh processes; the fastest counts.")
@json_option
def bench(sizes: tuple[int, ...], peers: tuple[str, ...], rounds: int, processes: int, json_file: Path | None) -> None:
    """Time the generated code beside C, CasADi, JAX and numpy, whatever is installed, in one process.

    What is measured is told at once, a line for each kernel and size; the tables come at the end.
    """
    from symdual import bench as benchmark

    console = new_marked_console()
    with new_progress() as progress:
        task = progress.add_task("measuring", total=1.0)

        def report(text: str, fraction: float) -> None:
            progress.update(task, completed=fraction, description=text)

        def tell(found: Found) -> None:
            for line in benchmark.lines(found):
                progress.console.print(line, soft_wrap=True)

        results = benchmark.run(sizes or benchmark.SIZES, peers or None, rounds, processes, report, tell)
    console.print(benchmark.table(results))
    if json_file is not None:
        write_json(json_file, json.loads(benchmark.to_json(results)))
