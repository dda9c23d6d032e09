"""`symdual fit`: unknowns, noise and first states, or the hyperparameters of Gaussian processes, from recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option, model_file_argument
from symdual.commands.terminal import headed, new_console, shown
from symdual.report.progress import late_progress

if TYPE_CHECKING:
    from rich.console import Console

    from symdual.identification.result import Fit
    from symdual.identification.validate import Validation


@click.command(short_help="Fit unknowns and noise to recordings.")
@model_file_argument
@click.argument("data_files", metavar="DATA.csv...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--only", multiple=True, metavar="NAME", help="Fit this and nothing else; may be given several times.")
@click.option("--hold", multiple=True, metavar="NAME", help="Leave this as it is; may be given several times.")
@click.option(
    "--full", multiple=True, metavar="NOISE", help="Fit process_noise, measurement_noise or drift as a full matrix."
)
@click.option("--likelihood", is_flag=True, help="Maximum likelihood, without the model's own prior.")
@click.option("--starts", default=5, show_default=True, metavar="N", help="From how many starting points to search.")
@click.option(
    "--validate",
    "held_out",
    multiple=True,
    metavar="DATA.csv",
    type=click.Path(path_type=Path),
    help="Predict this recording, which is not fitted; may be given several times.",
)
@click.option("--resample", is_flag=True, help="Put a recording with uneven times on the grid of the model.")
@click.option("--anyway", is_flag=True, help="Fit measurements that are far from anything that the model expects.")
@click.option("--model", "name", metavar="NAME", help="Which model of the file, if there are several.")
@click.option("--scenario", metavar="NAME", help="Whose start and prior the recordings have, if there are several.")
@click.option(
    "--figures",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where figures go [NAME.fit beside the fit, with --validate].",
)
@click.option(
    "-o", "file", metavar="FILE", type=click.Path(path_type=Path), help="The fit [NAME.fit.json beside MODEL.py]."
)
@json_option
def fit(
    model_file: Path,
    data_files: tuple[Path, ...],
    only: tuple[str, ...],
    hold: tuple[str, ...],
    full: tuple[str, ...],
    likelihood: bool,
    starts: int,
    held_out: tuple[Path, ...],
    resample: bool,
    anyway: bool,
    name: str | None,
    scenario: str | None,
    figures: Path | None,
    file: Path | None,
    json_file: Path | None,
) -> None:
    """Fit the unknowns, noise levels and first states of MODEL.py to recordings in the format of `symdual replay`.

    NAME is an unknown, a family, process_noise, measurement_noise, drift or start, or an entry of these such as
    process_noise[velocity]. Everything that the model leaves open is fitted by default. Gaussian processes have their
    hyperparameters fitted together with the noise.
    """
    from symdual.common.atomic_files import require_writable
    from symdual.identification.chosen_model import chosen_model
    from symdual.identification.fit import likelihood_of
    from symdual.identification.fitted import fitted
    from symdual.identification.validate import validated
    from symdual.spec.fitted import write
    from symdual.spec.loading import load_model_file

    chosen = chosen_model(load_model_file(model_file), name, scenario)[0].name
    place = model_file.with_name(f"{chosen}.fit.json") if file is None else file
    require_writable(place)
    method = "likelihood" if likelihood else "map"
    function = likelihood_of(model_file, list(data_files), only, hold, full, method, scenario, name, resample, anyway)
    unseen = function.read(list(held_out), resample) if held_out else []
    with late_progress() as report:
        result = fitted(function, starts, report)
    write(place, result.to_json())
    console = new_console()
    _show(console, result, place)
    content: dict[str, Any] = {**result.to_json(), "file": str(place)}
    if unseen or figures is not None:
        judged = validated(result, unseen or result.recordings)
        content |= _shown_validation(console, judged, figures or place.with_name(f"{result.model}.fit"))
    write_json(json_file, content)


def _show(console: Console, result: Fit, place: Path) -> None:
    """Print what was fitted, how the search ended, and what to be wary of."""
    from symdual.identification.result import sentences
    from symdual.report.estimates import estimate_table, summary

    count, steps = len(result.recordings), sum(len(one.times) for one in result.recordings)
    many = f"{count} {'recording' if count == 1 else 'recordings'}"
    console.print(headed(result.model, f": {many}, {steps} steps, {result.measured} measurements"))
    console.print(estimate_table(result))
    console.print(summary(result), soft_wrap=True)
    for sentence in sentences(result):
        console.print(sentence, style="yellow", soft_wrap=True, markup=False)
    console.print(f"values in {shown(place)}", soft_wrap=True, markup=False)


def _shown_validation(console: Console, judged: Sequence[Validation], folder: Path) -> dict[str, Any]:
    """Print and draw how well recordings are predicted; returns it as plain data."""
    from symdual.report.validations import validation_figures

    for one in judged:
        for sentence in one.sentences():
            console.print(f"{one.recording}: {sentence}", soft_wrap=True, markup=False)
    drawn = validation_figures(judged, folder)
    console.print(f"figures in {shown(folder)}", soft_wrap=True, markup=False)
    return {"validation": [one.to_json() for one in judged], "figures": [str(path) for path in drawn]}
