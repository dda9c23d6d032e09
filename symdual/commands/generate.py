"""`symdual generate`: write and compile packages."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import folder_option, json_option, model_file_argument
from symdual.commands.terminal import headed, new_console, print_remarks, show_compiling, shown


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
    from symdual.runtime.loading import load
    from symdual.runtime.warm import missing, parts_of

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
            works = [] if no_compile else missing(item.folder, parts_of(load(item.folder)))
            if works:
                entry["compile_seconds"] = show_compiling(works)
            continue
        pattern = structure(item.derivation)
        functions = kernel_functions(item.derivation, pattern)
        console.print(headed(name, f" -> {shown(item.folder)}"))
        seconds = None
        if not no_compile:
            seconds = show_compiling(missing(item.folder, parts_of(load(item.folder))))
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
