"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path

import click

from symdual.errors import SymdualError

model_file_argument = click.argument("model_file", metavar="MODEL.py", type=click.Path(path_type=Path))


def writable(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file that cannot be written before any work is done."""
    if file is not None and (file.is_dir() or not os.access(file.resolve().parent, os.W_OK)):
        raise SymdualError(f"cannot write {file}: it is a folder, or its folder is missing or cannot be written")
    return file


json_option = click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=writable,
    help="Write the result as JSON.",
)
folder_option = click.option(
    "-o",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Parent folder of the generated packages [generated].",
)
