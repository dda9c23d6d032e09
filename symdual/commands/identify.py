"""`symdual identify`: what an experiment can tell about the unknowns, before it is made."""

from __future__ import annotations

from pathlib import Path

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option, model_file_argument, results_option
from symdual.commands.terminal import headed, new_console, shown
from symdual.common.errors import SymdualError
from symdual.report.progress import late_progress


@click.command(short_help="Tell which unknowns an experiment can teach.")
@model_file_argument
@click.argument("data_file", metavar="[DATA.csv]", required=False, type=click.Path(path_type=Path))
@click.option("--steps", metavar="N", type=int, help="Length of the best experiment [the scenario's horizon, or 50].")
@click.option("--bound", "bounds", multiple=True, metavar="INPUT=LOW:HIGH", help="Instead of the model's own bounds.")
@click.option("--resample", is_flag=True, help="Put a recording with uneven times on the grid of the model.")
@click.option("--model", "name", metavar="NAME", help="Which model of the file, if there are several.")
@click.option("--scenario", metavar="NAME", help="Whose start and prior the experiment has, if there are several.")
@results_option("Where the figure and the best experiment go, as <model>.identify.png and .csv.")
@json_option
def identify(
    model_file: Path,
    data_file: Path | None,
    steps: int | None,
    bounds: tuple[str, ...],
    resample: bool,
    name: str | None,
    scenario: str | None,
    folder: Path,
    json_file: Path | None,
) -> None:
    """Which unknowns of MODEL.py, and which combinations of them, can be learned.

    DATA.csv is a recording in the format of `symdual replay`, or a plan: the same without measurements. Without it, the
    best experiment within the bounds of the inputs is found and written.
    """
    from symdual.identification.identify import identify as run
    from symdual.report.identifications import identification_figure, identification_table, write_plan

    console = new_console()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise SymdualError(f"cannot make the folder {folder}: {failure.strerror}") from failure
    with late_progress() as report:
        found = run(
            model_file,
            data_file,
            steps=steps,
            bounds=dict(_bound(text) for text in bounds),
            scenario=scenario,
            name=name,
            resample=resample,
            report=report,
        )
    what = {"recording": "this recording", "plan": "this plan", "best": "the best experiment found"}[found.kind]
    console.print(headed(found.model, f": {what}, {len(found.inputs) - 1} steps"))
    console.print(identification_table(found))
    for sentence in found.sentences():
        console.print(sentence, soft_wrap=True, markup=False)
    figure = identification_figure(found, folder / f"{found.model}.identify.png")
    written = [figure]
    if found.kind == "best":
        written.append(write_plan(found, folder / f"{found.model}.identify.csv"))
        console.print(f"the experiment is in {shown(written[-1])}", soft_wrap=True, markup=False)
    console.print(f"figure in {shown(figure)}", soft_wrap=True, markup=False)
    write_json(json_file, {**found.to_json(), "files": [str(file) for file in written]})


def _bound(text: str) -> tuple[str, tuple[float, float]]:
    name, _, pair = text.partition("=")
    low, _, high = pair.partition(":")
    try:
        return name.strip(), (float(low), float(high))
    except ValueError:
        raise SymdualError(f'--bound needs INPUT=LOW:HIGH, such as force=-1:1, not "{text}"') from None
