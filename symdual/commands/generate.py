"""`symdual generate`: write and compile packages."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import folder_option, json_option, model_file_argument
from symdual.commands.terminal import headed, new_console, new_progress, print_remarks, shown


@click.command()
@model_file_argument
@folder_option
@click.option("--force", is_flag=True, help="Write and compile again even if nothing has changed.")
@click.option("--no-compile", is_flag=True, help="Only write; numba compiles at the first call.")
@json_option
def generate(model_file: Path, folder: Path | None, force: bool, no_compile: bool, json_file: Path | None) -> None:
    """Write and compile the package of every Model in MODEL.py."""
    from symdual import api
    from symdual.derive.structure import structure
    from symdual.emit.kernels import kernel_functions
    from symdual.report.terminal import kernel_table, model_summary
    from symdual.runtime.warm import is_compiled

    console = new_console()
    started = time.perf_counter()
    items = api.generate(model_file, folder, force)
    written = time.perf_counter() - started
    report = []
    for item in items:
        name = item.model.name
        entry: dict[str, Any] = {"name": name, "folder": str(item.folder), "changed": item.changed}
        report.append(entry)
        if item.derivation is None:
            console.print(headed(name, f" is up to date in {shown(item.folder)}"))
            if not no_compile and not is_compiled(item.folder):
                entry["compile_seconds"] = _compile(item.folder)
            continue
        pattern = structure(item.derivation)
        functions = kernel_functions(item.derivation, pattern)
        console.print(headed(name, f" -> {shown(item.folder)}"))
        seconds = None if no_compile else _compile(item.folder)
        console.print(model_summary(item.model, pattern))
        console.print(kernel_table(functions))
        print_remarks(console, item.derivation.remarks)
        entry["operations"] = {f.name: f.kernel.operations for f in functions}
        entry["remarks"] = item.derivation.remarks
        entry["compile_seconds"] = seconds
    if any(item.changed for item in items) and not no_compile:
        console.print(
            f"derived and written in {written:.1f} s, compiled in {time.perf_counter() - started - written:.1f} s"
        )
    write_json(json_file, {"models": report})


def _compile(folder: Path) -> dict[str, float]:
    from symdual.runtime.warm import warm

    with new_progress() as progress:
        task = progress.add_task(f"compiling {folder.name}", total=1.0)

        def report(what: str, share: float) -> None:
            progress.update(task, description=f"compiling {folder.name}: {what}", completed=share)

        return warm(folder, progress=report)
