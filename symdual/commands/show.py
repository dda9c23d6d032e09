"""`symdual show`: what is derived, in the terminal or as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option, model_file_argument, page_option
from symdual.commands.terminal import headed, new_console, print_remarks, shown
from symdual.report.progress import new_progress

if TYPE_CHECKING:
    from rich.console import Console

    from symdual.derive.derivation import Derivation
    from symdual.derive.display import Equation
    from symdual.derive.structure import Structure
    from symdual.emit.kernels import KernelFunction


@click.command(short_help="Show the derivation: equations, zero blocks, operations.")
@model_file_argument
@page_option("Also write a page with typeset mathematics, the generated source and the check's worst errors.")
@click.option("--no-check", is_flag=True, help="Leave the check out of the page, so that nothing is compiled.")
@json_option
def show(model_file: Path, html_file: Path | None, no_check: bool, json_file: Path | None) -> None:
    """Show what is derived for every Model in MODEL.py: equations, zero blocks, sizes, operation counts."""
    from symdual.derive.derivation import derive
    from symdual.derive.display import equations
    from symdual.derive.structure import structure
    from symdual.emit.kernels import kernel_functions
    from symdual.report.terminal import derivation_view, kernel_table, model_summary
    from symdual.spec.loading import load_model_file

    console = new_console()
    report = []
    for name, model in load_model_file(model_file).specifications.items():
        derivation = derive(model)
        pattern = structure(derivation)
        functions = kernel_functions(derivation, pattern)
        console.print(headed(name))
        console.print(model_summary(model, pattern))
        listed = equations(derivation)
        console.print(derivation_view(derivation, listed))
        console.print()
        console.print(kernel_table(functions))
        print_remarks(console, derivation.remarks)
        if json_file is not None:
            report.append(_described(name, derivation, pattern, listed, functions))
    write_json(json_file, {"models": report})
    if html_file is not None:
        _write_derivation_page(console, model_file, html_file, checked=not no_check)


def _described(
    name: str,
    derivation: Derivation,
    pattern: Structure,
    listed: Sequence[Equation],
    functions: Sequence[KernelFunction],
) -> dict[str, Any]:
    from symdual.report.terminal import left_side, right_side

    return {
        "name": name,
        "structure": {key: getattr(pattern, key) for key in pattern.__dataclass_fields__},
        "equations": [
            {"block": e.block, "left": left_side(e), "right": right_side(e), "operations": e.operations} for e in listed
        ],
        "operations": {f.name: f.kernel.operations for f in functions},
        "remarks": derivation.remarks,
    }


def _write_derivation_page(console: Console, model_file: Path, html_file: Path, checked: bool) -> None:
    from symdual.report.html import write_page
    from symdual.report.page import page_of_file

    with new_progress() as progress:
        task = progress.add_task("deriving and checking", total=1.0)

        def report(name: str, fraction: float) -> None:
            progress.update(task, description=f"checking {name}", completed=fraction)

        text = page_of_file(model_file, checked, report)
    write_page(html_file, text)
    console.print(f"page written to {shown(html_file)}")
