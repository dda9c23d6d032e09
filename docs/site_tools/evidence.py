"""The table of what the gallery has found, from what its pages keep when they are run (`out/gallery/*/evidence.json`).

    ```{evidence}
    battery | it is the state that is learned
    tse_bar_shalom theirs | a remark
    ```

A line is a page, the name of one of its comparisons if it has several, and a remark. With the option `:constraint:` the
table says how often each controller has violated it. Numbers are never written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "out/gallery"


class Evidence(SphinxDirective):
    """A table with a row for each line."""

    has_content = True
    option_spec: ClassVar = {"constraint": directives.flag}

    def run(self) -> list[nodes.Node]:
        """The table, written as Markdown and read as such."""
        bound = "constraint" in self.options
        wanted = ["violated by `ce`", "`cautious`", "`dual`"] if bound else ["cost of `ce`", "of `oracle`"]
        head = ["system", "runs", *wanted, f"`dual` minus `{'cautious' if bound else 'ce'}`", ""]
        rows = [head, ["---"] * len(head), *(self._row(line, bound) for line in self.content if line.strip())]
        return self.parse_text_to_nodes("\n".join(f"| {' | '.join(row)} |" for row in rows))

    def _row(self, line: str, bound: bool) -> list[str]:
        names, _, remark = line.partition("|")
        page, *case = names.split()
        path = PLACE / page / f"evidence{''.join(f'-{c}' for c in case)}.json"
        if not path.exists():
            raise self.error(f"{path} is not there: has {page}.py of the gallery been run?")
        self.env.note_dependency(str(path))
        return [f"[{self._title(page)}](gallery/{page}.rst)", *cells(json.loads(path.read_text()), bound, remark)]

    def _title(self, page: str) -> str:
        return (ROOT / f"examples/gallery/{page}.py").read_text().splitlines()[1]


def cells(row: dict[str, Any], bound: bool, remark: str) -> list[str]:
    """What follows the name of the system in its row."""
    costs, own = row["costs"], row["costs"][row["baseline"]]
    if bound:
        told = [f"{100 * row['violated'][name]:.2g}\N{NO-BREAK SPACE}%" for name in ("ce", "cautious", "dual")]
    else:
        told = [f"{costs['ce']:.4g}", f"{costs['oracle']:.4g}" if "oracle" in costs else ""]
    return [str(row["runs"]), *told, difference(row["gap"], row["error"], own), remark.strip()]


def difference(gap: float, error: float, own: float) -> str:
    """A paired difference with its error, and a share of the cost where it is more than two of them."""
    if max(abs(gap), error) < 1e-9 * abs(own):
        return "0"
    told = f"{gap:+.3g} +- {error:.2g}"
    if abs(gap) < 2 * error:
        return f"{told}: no clear difference"
    return f"{told}: {100 * abs(gap / own):.2g}\N{NO-BREAK SPACE}% {'less' if gap < 0 else 'more'}"


def setup(app: Sphinx) -> dict[str, Any]:
    """A directive of the pages."""
    app.add_directive("evidence", Evidence)
    return {"parallel_read_safe": True}
