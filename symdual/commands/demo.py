"""`symdual demo`: the paper's experiments in a minute, and a page that shows them."""

from __future__ import annotations

import os
import sys
import webbrowser
from functools import partial
from pathlib import Path

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import backend_option, json_option
from symdual.commands.terminal import new_marked_console, shown
from symdual.report.progress import side_by_side


@click.command(short_help="See in a minute what planning to learn gains.")
@click.option("--no-open", "quiet", is_flag=True, help="Do not open the page in a browser.")
@backend_option
@json_option
@click.option(
    "-o",
    "folder",
    metavar="DIR",
    default=Path("out") / "demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the page, its figures and the generated code go.",
)
def demo(quiet: bool, backend: str | None, json_file: Path | None, folder: Path) -> None:
    """See in a minute what planning to learn gains: four experiments, 100 runs of every controller, and a page."""
    from symdual.paper.experiments import command, outcome, terminal, words
    from symdual.paper.experiments.plan import EXPERIMENTS
    from symdual.paper.experiments.trial import check_kernels

    console = new_marked_console()
    asked = command.request((), None, 0, None, folder, quick=True, resume=True, backend=backend)
    with side_by_side() as report:

        def tell(sentence: str) -> None:
            console.print(sentence, soft_wrap=True, markup=False)

        try:
            check = partial(check_kernels, EXPERIMENTS[1], asked.folder)
            written = command.execute(asked, None, report, tell, [check])
        except KeyboardInterrupt:
            click.echo("symdual: interrupted; the runs that are done are kept, go on with `symdual demo`", err=True)
            sys.exit(130)
    console.print(terminal.fair_table(written.outcome))
    write_json(json_file, outcome.outcome_json(written.outcome))
    console.print()
    console.print(words.in_one_sentence(written.outcome.tables), style="bold", markup=False, soft_wrap=True)
    where = "open in your browser" if not quiet and _opened(written.page) else "open it in a browser"
    console.print(f"The page: {shown(written.page)} ({where})", markup=False, soft_wrap=True)
    console.print("Next: symdual new cart && symdual simulate cart.py", markup=False)


def _opened(page: Path) -> bool:
    """Whether a browser shows the page now; none is started where there is no screen, or nobody at the terminal."""
    screen = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    try:
        return bool(screen and sys.stdout.isatty() and webbrowser.open(page.resolve().as_uri()))
    except webbrowser.Error:
        return False
