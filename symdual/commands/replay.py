"""`symdual replay`: the filter over a recording."""

from __future__ import annotations

from pathlib import Path

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option, model_file_argument, results_option
from symdual.commands.terminal import headed, idle_filter, new_console, shown, try_other_filters
from symdual.common.errors import SymdualError


@click.command(short_help="Run the filter over a recording.")
@model_file_argument
@click.argument("data_file", metavar="DATA.csv", type=click.Path(path_type=Path))
@click.option("--scenario", metavar="NAME", help="Whose prior to start from, if there are several scenarios.")
@results_option("Parent folder; the replay lies below it under the name of the recording.")
@json_option
def replay(model_file: Path, data_file: Path, scenario: str | None, folder: Path, json_file: Path | None) -> None:
    """Run the filter of a scenario in MODEL.py over a recording: columns time, inputs, measurements; gaps allowed."""
    from symdual import api
    from symdual.report.culprits import culprit
    from symdual.report.replays import replay_figure
    from symdual.runtime.replay import BeliefNotFinite, read_recording, summary, write_belief
    from symdual.runtime.replay import replay as run
    from symdual.spec.loading import load_model_file

    console = new_console()
    problem = api.problem(model_file, scenario)
    recording = read_recording(data_file, problem.package)
    try:
        result = run(problem, recording)
    except BeliefNotFinite as failure:
        model = load_model_file(model_file).specifications[problem.package.name]
        found = culprit(model, failure.mean, failure.inputs, failure.step)
        raise SymdualError(f"{failure}: {found}" if found else str(failure)) from failure
    place = folder / _folder_name(data_file)
    table = write_belief(place / "belief.csv", result, problem.package)
    figure = replay_figure(result, problem.package, place / "figure.png")
    report = summary(result, problem)
    if recording.ignored:
        console.print(f"columns that the model does not know: {', '.join(recording.ignored)}", style="yellow")
    used = f"{report['rows']} rows, {report['measured']} of {report['entries']} entries used"
    console.print(headed(problem.name, f": {used}, log-likelihood {result.log_likelihood:.6g}"))
    for name, (mean, deviation) in report["belief"].items():
        console.print(f"  {name} = {mean:.4g} +- {deviation:.2g}")
    if result.outliers:
        found = ", ".join(f"{name} {count} times" for name, count in result.outliers.items())
        console.print(f"outliers, which counted less: {found}")
    for sentence in (
        *idle_filter(problem.package),
        report["consistency"]["sentence"],
        *report["limits"],
        *report["losses"],
    ):
        console.print(sentence, style="yellow")
    if result.consistency.verdict == "overconfident":
        console.print(try_other_filters(model_file, problem.package.name), style="yellow")
    console.print(f"belief in {shown(table)}, figure in {shown(figure)}")
    write_json(json_file, {**report, "table": str(table), "figure": str(figure)})


def _folder_name(data_file: Path) -> str:
    """The name of a recording without its ending; all of it where that would mean a folder that exists already."""
    return data_file.name if data_file.stem in (".", "..") else data_file.stem
