"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from symdual.common.atomic_files import require_writable

model_file_argument = click.argument("model_file", metavar="MODEL.py", type=click.Path(path_type=Path))


def writable(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file that cannot be written before any work is done."""
    if file is not None:
        require_writable(file)
    return file


json_option = click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=writable,
    help="Write the result as JSON.",
)
backend_option = click.option(
    "--backend",
    type=click.Choice(["c", "numba"]),
    help="What compiles: the machine's C compiler, in seconds, or numba, which needs none [c where a compiler works].",
)
folder_option = click.option(
    "-o",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Parent folder of the generated packages [generated].",
)
