"""Code in pages is run while the site is built, and what it prints is shown below it.

In every Markdown page, from top to bottom:

    ```python     is run; a page has one set of names. What it prints follows, and so do the figures that pyplot has
                  open, or one that is called `figure`.
    ```console    has a command in each line that begins with "$ "; what they print follows.
    ```{hidden}   is Python that is run and not shown.

A block of Python after a paragraph that begins with the name of a file and ends with a colon becomes that file
instead. Images and links whose address begins with `run:` are files that the code has made. A page has a folder of
its own below `out/docs/pages`, with a copy of the model files in `docs/models`; generated packages are shared by all
pages and kept from build to build. Code that fails ends the build. What `literalinclude` shows is a file already, and
is not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "out/docs/pages"
SHARED = "generated"
MODELS = ROOT / "docs/models"
SECONDS = 400
WIDTH = "98"


class Hidden(SphinxDirective):
    """Python that is run and not shown."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """A block that is taken out once it has run."""
        text = "\n".join(self.content)
        block = nodes.literal_block(text, text, language="python", classes=["hidden"])
        self.set_source_info(block)
        return [block]


class Page:
    """The folder and the names of one page while its code is run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = PLACE / name
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.figures = 0
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(MODELS, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        (PLACE / SHARED).mkdir(exist_ok=True)
        (self.folder / SHARED).symlink_to(PLACE / SHARED, target_is_directory=True)

    def run(self, block: nodes.literal_block) -> list[nodes.Node]:
        """What follows a block: what it prints, and its figures."""
        text = block.astext()
        file = _file_before(block)
        if file is not None:
            (self.folder / file).write_text(text + "\n")
            return []
        before, width = Path.cwd(), os.environ.get("COLUMNS")
        os.chdir(self.folder)
        os.environ["COLUMNS"] = WIDTH
        try:
            printed = self._commands(text) if block["language"] == "console" else self._python(text, block)
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS") if width is None else os.environ.update(COLUMNS=width)
        if block["language"] == "console":
            block.children[:] = [nodes.Text(printed)]
            block["language"] = "text"  # to others, a comment in what is printed is a command of root's
            block.rawsource = printed
            return []
        shown: list[nodes.Node] = []
        if printed.strip():
            shown.append(nodes.literal_block(printed.rstrip(), printed.rstrip(), language="text", classes=["printed"]))
        return shown + self._new_figures()

    def _python(self, text: str, block: nodes.literal_block) -> str:
        printed = io.StringIO()
        where = f"{self.name}.md, the code at line {block.line}"
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(text, where, "exec"), self.names)
        except Exception as failure:
            raise ExtensionError(f"{where}: {traceback.format_exc()}") from failure
        return printed.getvalue()

    def _commands(self, text: str) -> str:
        """The commands and what each of them prints."""
        lines = []
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        for line in text.splitlines():
            lines.append(line)
            if not line.startswith("$ "):
                raise ExtensionError(f'{self.name}.md: "{line}" is not a command: it must begin with "$ "')
            done = subprocess.run(
                line[2:], shell=True, capture_output=True, text=True, timeout=SECONDS, env={**os.environ, "PATH": path}
            )
            if done.returncode:
                raise ExtensionError(f"{self.name}.md: {line} ended with {done.returncode}: {done.stderr[-2000:]}")
            lines += [printed.rstrip() for printed in done.stdout.rstrip().splitlines()]
        return "\n".join(lines)

    def _new_figures(self) -> list[nodes.Node]:
        if "matplotlib" not in sys.modules:
            return []
        from matplotlib import figure, pyplot

        drawn = [pyplot.figure(number) for number in pyplot.get_fignums()]
        own = self.names.pop("figure", None)  # symdual's own figures are not pyplot's
        if isinstance(own, figure.Figure) and own not in drawn:
            drawn.append(own)
        found: list[nodes.Node] = []
        for each in drawn:
            self.figures += 1
            path = self.folder / f"figure-{self.figures}.png"
            each.savefig(path, dpi=110)
            found.append(nodes.image(uri=self.address(path), alt=f"figure {self.figures} of this page"))
        pyplot.close("all")
        return found

    def address(self, path: Path) -> str:
        """A file as seen from the folder of the pages."""
        return os.path.relpath(path, ROOT / "docs")


def _file_before(block: nodes.literal_block) -> str | None:
    """The name of the file that the paragraph before a block announces, if it does."""
    place = block.parent.index(block)
    before = block.parent[place - 1] if place else None
    if block["language"] == "console" or not isinstance(before, nodes.paragraph) or not before.astext().endswith(":"):
        return None
    name = before[0].astext() if isinstance(before[0], nodes.literal) else ""
    return name if re.fullmatch(r"[\w-]+\.(py|csv|md)", name) else None


def run_page(app: Sphinx, tree: nodes.document) -> None:
    """Run the code of a Markdown page."""
    if app.env.doc2path(app.env.docname).suffix != ".md":
        return
    written = [b for b in tree.findall(nodes.literal_block) if "source" not in b]
    blocks = [b for b in written if b.get("language") in ("python", "console")]
    page = None
    for block in blocks:
        page = page or Page(app.env.docname)
        after = page.run(block)
        place = block.parent.index(block)
        block.parent[place + 1 : place + 1] = after
        if "hidden" in block["classes"]:
            block.parent.remove(block)
    for image in tree.findall(nodes.image):
        if image["uri"].startswith("run:"):
            image["uri"] = os.path.relpath(PLACE / app.env.docname / image["uri"][4:], ROOT / "docs")


def setup(app: Sphinx) -> dict[str, Any]:
    """Run code when a page has been read, before its images are collected."""
    os.environ["MPLBACKEND"] = "agg"
    app.add_directive("hidden", Hidden)
    app.connect("doctree-read", run_page, priority=100)
    return {"parallel_read_safe": False}
