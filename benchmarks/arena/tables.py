"""The arena in tables: a line for the terminal, and those of docs/arena.md, from the results that are committed."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .roster import BASELINE, CONTROLLERS, HERE
from .scores import LEVEL, Played, cliques, holm, ranks

PAGE = Path(__file__).parents[2] / "docs/arena.md"
RESULTS = HERE / "results"


def line(one: Played) -> str:
    """A system in a line: costs in percent of that of `ce`."""
    base = abs(one.scores[BASELINE].cost)
    found = [f"{name} {100 * one.scores[name].cost / base:.0f}" for name in CONTROLLERS if name in one.scores]
    return f"{one.name:16} {one.runs} runs, {one.seconds:.0f} s: " + "  ".join(found)


def read(name: str) -> tuple[list[Played], int, int]:
    """A file of committed results: scores, runs and seed."""
    told = json.loads((RESULTS / f"{name}.json").read_text())
    return [Played.from_json(one) for one in told["systems"]], told["runs"], told["seed"]


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def gaps(played: list[Played]) -> str:
    """Differences from `ce` in percent of its cost, in bold where they are no chance."""
    sure = holm(played)
    rows = []
    for one in played:
        base = one.scores[BASELINE].cost
        row = [one.name.replace("_", " "), f"{base:.3g}"]
        for name in CONTROLLERS[1:]:
            row.append(gap_text(one, name, base, sure.get((one.name, name), 1.0)) if name in one.scores else "-")
        rows.append(row)
    return markdown(["", "cost of ce", *CONTROLLERS[1:]], rows)


def gap_text(one: Played, name: str, base: float, p: float) -> str:
    """One difference with its standard error."""
    found = one.scores[name]
    text = f"{100 * found.gap / abs(base):+.0f} ± {100 * found.gap_error / abs(base):.0f}"
    text = f"**{text}**" if p < LEVEL else text
    return text + (f" ({found.failed} failed)" if found.failed else "")


def regrets(played: list[Played]) -> str:
    """Percent beyond the reference."""

    def cell(one: Played, name: str) -> str:
        if name not in one.scores or one.scores[name].regret is None:
            return "-"
        return f"{one.scores[name].regret:.0f} ± {one.scores[name].regret_error:.0f}"

    rows = [[one.name.replace("_", " "), one.reference, *(cell(one, name) for name in CONTROLLERS)] for one in played]
    return markdown(["", "beyond", *CONTROLLERS], rows)


def overview(played: list[Played]) -> str:
    """Mean ranks, wins and losses against `ce` that are no chance, milliseconds of a decision."""
    found, sure = ranks(played), holm(played)
    rows = []
    for name in sorted(found.mean, key=lambda one: found.mean[one]):
        clear = [one for one in played if sure.get((one.name, name), 1.0) < LEVEL]
        better = sum(one.scores[name].gap < 0.0 for one in clear)
        times = sorted(one.scores[name].ms for one in played if name in one.scores)
        failed = sum(one.scores[name].failed for one in played if name in one.scores)
        rows.append(
            [
                f"`{name}`",
                f"{found.mean[name]:.2f}",
                "-" if name == BASELINE else str(better),
                "-" if name == BASELINE else str(len(clear) - better),
                str(failed),
                f"{times[len(times) // 2]:.2g}",
                f"{times[-1]:.2g}",
            ]
        )
    header = ["", "mean rank", "systems better than `ce`", "worse", "failed episodes", "ms, median system", "slowest"]
    groups = "; ".join(", ".join(group) for group in cliques(found))
    return (
        markdown(header, rows)
        + f"\n\nFriedman's test over {found.systems} systems: p = {found.p:.2g}. Two mean ranks differ where they are "
        f"further apart than {found.critical:.2f} (Nemenyi, 5 %). No difference is shown among: {groups or 'none'}."
    )


def systems(played: list[Played]) -> str:
    """What the systems are."""
    return markdown(
        ["", "what it is", "steps"],
        [[one.name.replace("_", " "), " ".join(one.about.split("\n\n")[0].split()), str(one.steps)] for one in played],
    )


def conditions(runs: int, seed: int, played: list[Played]) -> str:
    """How the numbers came about."""
    return f"{len(played)} systems, {runs} runs each with the truth drawn from the prior, seed {seed}."


def renewed(text: str) -> str:
    """A page with all its tables made again: `<!-- arena: TABLE of RESULTS -->`, a table, `<!-- end -->`."""
    makers = {"overview": overview, "differences": gaps, "regret": regrets, "systems": systems}

    def made(match: re.Match[str]) -> str:
        played, runs, seed = read(match[2])
        made_of = conditions(runs, seed, played) if match[1] == "conditions" else makers[match[1]](played)
        return f"<!-- arena: {match[1]} of {match[2]} -->\n\n{made_of}\n\n<!-- end -->"

    return re.sub(r"<!-- arena: (\w+) of ([\w-]+) -->.*?<!-- end -->", made, text, flags=re.DOTALL)


def write() -> None:
    """Renew all tables of the page."""
    PAGE.write_text(renewed(PAGE.read_text()))
