"""`symdual check`: what is generated against independent oracles."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import backend_option, folder_option, json_option, model_file_argument
from symdual.commands.terminal import headed, new_console
from symdual.report.progress import new_progress


@click.command(short_help="Compare the code with 50-digit values; compare filters.")
@model_file_argument
@folder_option
@click.option(
    "--points",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Points for each kernel, besides those at the boundaries of cases; a quarter for models with many features.",
)
@click.option("--kernels", is_flag=True, help="Only the kernels, which compile in seconds, without the recursions.")
@click.option("--c", "as_c", is_flag=True, help="Check the translation to C instead; needs a C compiler.")
@click.option(
    "--belief",
    is_flag=True,
    help="Check the filters instead: side by side on systems that are drawn from the prior, and which one to take.",
)
@click.option(
    "--runs", default=100, show_default=True, type=int, help="With --belief: systems drawn for each Scenario."
)
@click.option("--seed", default=0, show_default=True, type=int, help="With --belief: seed of what is drawn.")
@backend_option
@json_option
def check(
    model_file: Path,
    folder: Path | None,
    points: int,
    kernels: bool,
    as_c: bool,
    belief: bool,
    runs: int,
    seed: int,
    backend: str | None,
    json_file: Path | None,
) -> None:
    """Compare what is generated for every Model in MODEL.py with independent oracles; exit status 1 on a miss.

    With --belief a miss is a filter of the model that is overconfident.
    """
    if belief and (kernels or as_c):
        raise click.UsageError("--belief compares filters, --kernels and --c are about code: give one of them")
    if belief:
        _check_belief(model_file, folder, runs, seed, backend, json_file)
        return
    if backend is not None:
        raise click.UsageError(
            "--backend is for --belief; the other checks are made with numba, and with --c through C"
        )
    from symdual import api
    from symdual.generation import packages_folder
    from symdual.report.terminal import check_table, verdict

    console = new_console()
    with new_progress() as progress:
        tasks: dict[str, Any] = {}

        def report(name: str, fraction: float) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(f"checking {name}", total=1.0)
            progress.update(tasks[name], completed=fraction)

        def tell(name: str, what: str) -> None:
            if name not in tasks:
                report(name, 0.0)
            progress.update(tasks[name], description=f"checking {name}: {what}")

        results = api.check(model_file, folder, points, report, recursions=not kernels, c=as_c, tell=tell)
        edited = {name for name, blocks in results.items() if any(r.oracle == "manifest" for r in blocks)}
        whole = [] if kernels else [name for name in results if name not in edited]
        packages = [api.load(packages_folder(folder) / name) for name in whole]
        steps, rates = api.step_accuracy(model_file), api.stiffness(model_file, packages)
    misses = [(name, r) for name, blocks in results.items() for r in blocks if not r.passed]
    for name, blocks in results.items():
        console.print(headed(name, f": {verdict(blocks)}"))
        if name in steps and steps[name].noticed:
            console.print(f"{name}: {steps[name].sentence()}", style="yellow")
        if name in rates and rates[name].unsafe:
            console.print(f"{name}: {rates[name].sentence()}", style="yellow")
        console.print(check_table(blocks))
        if any(r.undefined for r in blocks):
            console.print(
                "not finite: there the model, its derivative, or a number on the way to it is not finite in double "
                "precision, so nothing is compared; that alone is no miss"
            )
    for name, result in misses:
        console.print(f"miss in {name}: {result.block} differs from {result.oracle} by {result.error:.2e}", style="red")
    rows = {
        name: [
            {
                "block": r.block,
                "oracle": r.oracle,
                "entries": r.entries,
                "error": r.error,
                "passed": r.passed,
                "undefined": r.undefined,
            }
            for r in blocks
        ]
        for name, blocks in results.items()
    }
    accuracy = {name: {**asdict(one), "noticed": one.noticed} for name, one in steps.items()}
    fastest = {name: {**asdict(one), "unsafe": one.unsafe} for name, one in rates.items()}
    write_json(json_file, {"passed": not misses, "models": rows, "steps": accuracy, "stiffness": fastest})
    if misses:
        sys.exit(1)


def _check_belief(
    model_file: Path, folder: Path | None, runs: int, seed: int, backend: str | None, json_file: Path | None
) -> None:
    from symdual import api
    from symdual.report.filters import NOTE, filter_table
    from symdual.report.progress import late_progress

    console = new_console()
    with late_progress() as report:
        found = api.compare_filters(model_file, runs, seed, folder, backend, report)
    for name, one in found.items():
        drawn = f": {runs} systems drawn from the prior, steered by ce, seed {seed}"
        console.print(headed(name, drawn))
        console.print(filter_table(one))
        console.print(NOTE, style="dim")
        for sentence in one.sentences():
            console.print(sentence, style="yellow")
    passed = all(one.passed for one in found.values())
    write_json(json_file, {"passed": passed, "scenarios": {name: one.to_json() for name, one in found.items()}})
    if not passed:
        sys.exit(1)
