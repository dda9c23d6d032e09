"""`symdual export`: the controller of a scenario as C99."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option, model_file_argument
from symdual.commands.terminal import headed, new_console, shown


@click.command(short_help="Write a controller as C99.")
@model_file_argument
@click.option("--c", "as_c", is_flag=True, required=True, help="Write C99, the only language so far.")
@click.option(
    "-o",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("exported"),
    help="Parent folder of the exported controllers [exported].",
)
@click.option("--real", type=click.Choice(["double", "float"]), default="double", show_default=True, help="Precision.")
@click.option("--prefix", metavar="NAME", help="What all names begin with [the name of the model].")
@click.option("--scenario", metavar="NAME", help="Which scenario, if the file has several.")
@click.option("--controller", "controllers", multiple=True, metavar="NAME", help="A controller; may be repeated [all].")
@click.option(
    "--window", metavar="N", type=click.IntRange(min=1), help="Plan N steps ahead for ever [to the scenario's end]."
)
@click.option("--order", type=click.IntRange(1, 2), default=1, show_default=True, help="Order of the dual cost.")
@click.option(
    "--option",
    "numbers",
    metavar="NAME=N",
    multiple=True,
    help="A number that controllers are told from the start, such as guard=1; most have setters in C too.",
)
@json_option
def export(
    model_file: Path,
    as_c: bool,
    folder: Path,
    real: str,
    prefix: str | None,
    scenario: str | None,
    controllers: tuple[str, ...],
    window: int | None,
    order: int,
    numbers: tuple[str, ...],
    json_file: Path | None,
) -> None:
    """Write the controller for a Scenario in MODEL.py as C99: a header and a C file that need nothing but math.h."""
    from symdual import api
    from symdual.common.atomic_files import write_atomically
    from symdual.common.errors import SymdualError
    from symdual.controllers import NAMES, parts_for
    from symdual.export.controller import Settings
    from symdual.export.controller import export as exported
    from symdual.export.target import sections
    from symdual.runtime.options import Options

    console, options = new_console(), Options().told(dict(one.partition("=")[::2] for one in numbers))
    problem = api.problem(model_file, scenario, backend="c", parts=parts_for(controllers or NAMES, asdict(options)))
    settings = Settings(prefix or problem.package.name, real, window, order, controllers, options)
    found = exported(problem, settings)
    place = folder / found.settings.prefix
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in found.files.items():
            write_atomically(place / name, text.encode())
    except OSError as trouble:
        raise SymdualError(f"cannot write to the folder {place}: {trouble.strerror}") from trouble
    console.print(headed(problem.package.name, f", scenario {problem.name} -> {shown(place)}"))
    for name, text in found.files.items():
        console.print(f"  {name}  {len(text.splitlines())} lines")
    head = found.settings.prefix
    console.print(f"sizeof({head}_controller)  {found.bytes} bytes, of which")
    for name, size in sorted(found.memory.items(), key=lambda item: -item[1])[:5]:
        console.print(f"  {name.replace('_', ' ')}  {size}")
    console.print(f"controllers  {', '.join(one.name for one in found.choices)}; plans of {found.steps} steps")
    for reason in found.left_out:
        console.print(f"left out: {reason}", style="yellow")
    target = sections(found.files, real)
    if isinstance(target, str):
        console.print(f"no report for a Cortex-M: {target}")
    else:
        console.print(
            f"{target.processor}, -Os  {target.code} bytes of code and constants, {target.data} of other memory, "
            f"at most {target.stack} of stack in one function"
        )
    for warning in found.warnings:
        console.print(f"single precision: {warning}", style="yellow")
    write_json(
        json_file,
        {
            "model": problem.package.name,
            "scenario": problem.name,
            "files": [str(place / name) for name in found.files],
            "prefix": head,
            "real": real,
            "sizeof": found.bytes,
            "memory": dict(found.memory),
            "steps": found.steps,
            "controllers": [one.name for one in found.choices],
            "left_out": list(found.left_out),
            "functions": [unit.name for unit in found.work.units if unit.public],
            "target": None if isinstance(target, str) else target._asdict(),
            "warnings": list(found.warnings),
        },
    )
