"""`symdual generate`: write and compile packages."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import backend_option, folder_option, json_option, model_file_argument
from symdual.commands.terminal import headed, new_console, print_remarks, shown
from symdual.report.progress import late_progress, show_compiling


@click.command(short_help="Derive a model and write its code.")
@model_file_argument
@folder_option
@click.option("--force", is_flag=True, help="Write and compile again even if nothing has changed.")
@click.option("--no-compile", is_flag=True, help="Only write; what is needed is compiled at the first call.")
@click.option(
    "--with",
    "parts",
    metavar="PART",
    multiple=True,
    help="Also write a part: `planned`, `thompson`, `rivals`, or `likelihood` for fits; else at first use. "
    "May be repeated.",
)
@backend_option
@json_option
def generate(
    model_file: Path,
    folder: Path | None,
    force: bool,
    no_compile: bool,
    parts: tuple[str, ...],
    backend: str | None,
    json_file: Path | None,
) -> None:
    """Write and compile the package of every Model in MODEL.py."""
    from symdual import api
    from symdual.derive.structure import structure
    from symdual.emit.kernels import kernel_functions
    from symdual.report.terminal import kernel_table, model_summary

    console = new_console()
    started = time.perf_counter()
    items = api.generate(model_file, folder, force, parts)
    written = time.perf_counter() - started
    report = []
    for item in items:
        name = item.model.name
        entry: dict[str, Any] = {"name": name, "folder": str(item.folder), "changed": item.changed}
        report.append(entry)
        where = f" is up to date in {shown(item.folder)}" if item.derivation is None else f" -> {shown(item.folder)}"
        console.print(headed(name, where))
        entry["compile_seconds"] = None if no_compile else _compile(item.folder, backend)
        if item.derivation is None:
            continue
        pattern = structure(item.derivation)
        functions = kernel_functions(item.derivation, pattern)
        console.print(model_summary(item.derivation.model, pattern))
        console.print(kernel_table(functions))
        print_remarks(console, item.derivation.remarks)
        entry["operations"] = {f.name: f.kernel.operations for f in functions}
        entry["remarks"] = item.derivation.remarks
    if any(item.changed for item in items):
        packages = [] if no_compile else [api.load(item.folder, backend) for item in items]
        for name, one in api.stiffness(model_file, packages).items():
            if one.unsafe:
                console.print(f"{name}: {one.sentence()}", style="yellow")
    if any(item.changed for item in items) and not no_compile:
        console.print(
            f"derived and written in {written:.1f} s, compiled in {time.perf_counter() - started - written:.1f} s"
        )
    write_json(json_file, {"models": report})


def _compile(folder: Path, backend: str | None) -> dict[str, float]:
    """Compile what the usual controllers need; returns the seconds of what was not compiled before, part by part."""
    from symdual.backends.loading import load
    from symdual.backends.numba.ahead import missing, parts_of
    from symdual.runtime.readiness import compile_through_c
    from symdual.runtime.standby import with_standby

    package = load(folder, backend)

    def compiled() -> dict[str, float]:
        if package.backend == "numba":
            return show_compiling(missing(folder, parts_of(package)))
        started = time.perf_counter()
        with late_progress(timed=False) as report:
            compile_through_c(package, lambda part, share: report(f"compiling {package.name}: {part}", share))
        return {"c": time.perf_counter() - started}

    return with_standby((package,), compiled)
