"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from symdual.common.atomic_files import require_writable

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

model_file_argument = click.argument("model_file", metavar="MODEL.py", type=click.Path(path_type=Path))


def writable(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Refuse a file that cannot be written before any work is done."""
    if file is not None:
        require_writable(file)
    return file


def results_option(help: str, default: str | None = "results") -> Decorator:
    """Where what is found goes."""
    shown = default is not None
    kind = click.Path(path_type=Path)
    return click.option("-o", "folder", metavar="DIR", default=default, show_default=shown, type=kind, help=help)


def page_option(help: str) -> Decorator:
    """A page to write."""
    kind = click.Path(path_type=Path)
    return click.option("--html", "html_file", metavar="FILE", type=kind, callback=writable, help=help)


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
folder_option = results_option("Parent folder of the generated packages [generated].", None)
