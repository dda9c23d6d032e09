"""`symdual fit`: unknowns, noise and first states, or the hyperparameters of Gaussian processes, from recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option, model_file_argument
from symdual.commands.terminal import headed, late_progress, new_console, shown

if TYPE_CHECKING:
    from rich.console import Console

    from symdual.estimation.fit import Subject
    from symdual.estimation.series import Series
    from symdual.estimation.validation import Validation
    from symdual.fitting.task import Task


@click.command()
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
    from symdual.fitting.task import concerns_processes, task_of
    from symdual.spec.loading import load_model_file

    contents = load_model_file(model_file)
    console, method = new_console(), "likelihood" if likelihood else "map"
    if concerns_processes(contents, name, scenario):
        task = task_of(contents, list(data_files), name, scenario, resample, anyway)
        unseen = task.read(list(held_out), resample) if held_out else []
        chosen = {"only": only, "hold": hold, "full": full, "method": method, "starts": starts}
        place = model_file.with_name(f"{task.model.name}.fit.json") if file is None else file
        _with_processes(console, task, chosen, unseen, figures, place, json_file)
        return
    from symdual.estimation.fit import fit_series, subject
    from symdual.estimation.result import sentences
    from symdual.estimation.surroundings import read_series
    from symdual.report.estimates import estimate_table, summary
    from symdual.spec.fitted import write
    from symdual.whole_file import require_writable

    about = subject(model_file, scenario, name)
    place = model_file.with_name(f"{about.name}.fit.json") if file is None else file
    require_writable(place)
    series = read_series(list(data_files), about.package, about.around, resample)
    unseen = read_series(list(held_out), about.package, about.around, resample) if held_out else []
    with late_progress() as report:
        result = fit_series(about, series, only, hold, full, method, starts, anyway, report)
    write(place, result.to_json())
    many = f"{len(series)} {'recording' if len(series) == 1 else 'recordings'}"
    steps = sum(len(s.times) for s in series)
    console.print(headed(about.name, f": {many}, {steps} steps, {result.measured} measurements"))
    console.print(estimate_table(result))
    console.print(summary(result), soft_wrap=True)
    for sentence in sentences(result):
        console.print(sentence, style="yellow", soft_wrap=True, markup=False)
    console.print(f"values in {shown(place)}", soft_wrap=True, markup=False)
    content: dict[str, Any] = {**result.to_json(), "file": str(place)}
    if unseen or figures is not None:
        from symdual.estimation.validation import validate_series

        judged = validate_series(about, result, unseen or series)
        content |= _shown_validation(console, judged, about, place.with_name(f"{about.name}.fit"), figures)
    write_json(json_file, content)


def _shown_validation(
    console: Console, judged: list[Validation], about: Subject, place: Path, figures: Path | None
) -> dict[str, Any]:
    """Print and draw how well recordings are predicted; returns it as plain data."""
    from symdual.report.validations import validation_figures

    for one in judged:
        for sentence in one.sentences():
            console.print(f"{one.recording}: {sentence}", soft_wrap=True, markup=False)
    folder = place if figures is None else figures
    drawn = validation_figures(judged, about.package, folder)
    console.print(f"figures in {shown(folder)}", soft_wrap=True, markup=False)
    return {"validation": [one.to_json() for one in judged], "figures": [str(path) for path in drawn]}


def _with_processes(
    console: Console,
    task: Task,
    chosen: dict[str, Any],
    unseen: list[Series],
    figures: Path | None,
    place: Path,
    json_file: Path | None,
) -> None:
    """Fit the hyperparameters of Gaussian processes together with the noise; the unknowns follow from them."""
    from symdual.estimation.result import sentences
    from symdual.fitting.joint import fit_task
    from symdual.report.fits import fit_table, summary
    from symdual.spec.fitted import write
    from symdual.whole_file import require_writable

    require_writable(place)
    with late_progress() as report:
        result = fit_task(task, **chosen, report=report)
    found = result.processes
    assert found is not None
    write(place, result.to_json())
    used = f"{task.rows} rows, {task.steps - len(task.breaks)} steps, {result.measured} measurements used"
    console.print(headed(task.model.name, f": {used}"))
    console.print(fit_table(found))
    console.print(summary(found))
    for sentence in sentences(result):
        console.print(sentence, style="yellow", soft_wrap=True, markup=False)
    console.print(f"values in {shown(place)}")
    content: dict[str, Any] = {**result.to_json(), "file": str(place)}
    if unseen or figures is not None:
        from symdual.estimation.validation import validate_processes

        judged, about = validate_processes(result, unseen or list(task.series))
        content |= _shown_validation(console, judged, about, place.with_name(f"{task.model.name}.fit"), figures)
    write_json(json_file, content)
