"""The planning controller beside the others, truth drawn from the prior: cost per step and paired differences.

    python benchmarks/planned.py [--runs 400] [--only NAME ...] [--store FILE] [--backend c] [--table]

The others are ce, cautious, beb with tau = .1, 1, 10 and 100, and dual; the best of their means in each column is what
planned is compared with, in the same episodes. One of them that costs more than the best by over FAR standard errors of
the paired difference after SURE runs is not run further: it is not the best. The ten systems of the arena are run
without beb. Where constraints are to be kept, only cautious and dual are compared with: ce and beb keep no distance,
and what they save is not theirs to save. The same difference then follows with the penalties of true violations,
w max(0, g)^2, which all of them minimise as well.

What is done is kept in the store, a JSON file, column by column and controller by controller: the command goes on where
it was interrupted, and --table prints what there is.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symdual import api
from symdual.runtime.closed_loop import Settings, draw, plant_problem, run
from symdual.runtime.costs import settings_of
from symdual.runtime.problem import Problem

ROOT = Path(__file__).parent.parent
PAPER, EXAMPLES = ROOT / "symdual/paper/models", ROOT / "examples"
SYSTEMS = ROOT / "benchmarks/arena/systems"
#: systems that were written down before any of them had run
TEN = (
    *("anaesthesia", "buck", "crane", "elevator", "furnace"),
    *("levitation", "mixing", "neutralisation", "photovoltaic", "ship"),
)
BONUSES = (0.1, 1.0, 10.0, 100.0)
PART = 25  # episodes between two entries in the store
SURE, FAR = 75, 4.0

SIGN = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
b = unknown("b", mean=0.0, variance=1.0)
sign = Model([x], [u], [x + b * u], process_noise=1e-2, measurement_noise=1e-2)
scenario = Scenario(sign, horizon=10, input_cost=0.1, start=2.0)
"""


def unknown_sign(backend: str) -> Problem:
    """A gain of unknown sign."""
    folder = Path(tempfile.mkdtemp())  # the package is read from there as long as the process runs
    (folder / "sign.py").write_text(SIGN)
    return api.problem(folder / "sign.py", folder=folder, backend=backend, parts="planned")


def wide_slopes(backend: str) -> Problem:
    """Exp 3 with slopes of variance 1."""
    return _file(PAPER / "relevance.py")(backend).changed(prior_covariance={"net_w": 1.0})


def soft_landing(backend: str) -> Problem:
    """The plant of Tse and Bar-Shalom, all of whose last state counts."""
    problem = _file(PAPER / "tse_bar_shalom.py")(backend)
    return problem.changed(state_cost=lambda k: [float(k == problem.horizon)] * 3)


PRIOR, DRIFT = Settings(truth="prior"), Settings(truth="drift")
KEEPING = ("cautious", "dual")
PLAIN = ("ce", "cautious", "dual")
OTHERS = ("ce", "cautious", *(f"beb, tau {bonus:g}" for bonus in BONUSES), "dual")


@dataclass(frozen=True)
class Column:
    """A problem, how its truth is drawn and how far ahead is planned, and what planned is compared with."""

    name: str
    problem: Callable[[str], Problem]
    settings: Settings = PRIOR
    others: tuple[str, ...] = OTHERS


def _file(path: Path) -> Callable[[str], Problem]:
    return lambda backend: api.problem(path, backend=backend, parts="planned")


COLUMNS = (
    Column("unknown sign", unknown_sign),
    Column("Exp 2", _file(PAPER / "schedule.py")),
    Column("Exp 3, w variance .1", _file(PAPER / "relevance.py")),
    Column("Exp 3, w variance 1", wide_slopes),
    Column("Exp 4", _file(PAPER / "drift.py")),
    Column("Exp 4, drift", _file(PAPER / "drift.py"), DRIFT),
    Column("interception", _file(PAPER / "tse_bar_shalom.py")),
    Column("soft landing", soft_landing),
    *(
        Column(name, _file(EXAMPLES / f"{name}.py"))
        for name in ("vehicle", "greenhouse", "pendulum", "gym_pendulum", "light_dark")
    ),
    *(Column(name, _file(EXAMPLES / f"{name}.py"), others=KEEPING) for name in ("brim", "heated_room")),
    Column("reactor", _file(EXAMPLES / "reactor.py"), Settings(truth="drift", window=8), KEEPING),
    *(Column(name, _file(SYSTEMS / f"{name}.py"), DRIFT if name == "buck" else PRIOR, PLAIN) for name in TEN),
)


def run_more(problem: Problem, controller: str, settings: Settings, runs: int, known: dict[str, Any]) -> dict[str, Any]:
    """At most PART further runs: their cost per step, the share of violations, and the milliseconds of a decision."""
    name, _, bonus = controller.partition(", tau ")
    done = len(known["costs"])
    problem = plant_problem(problem.changed(bonus=float(bonus)) if bonus else problem, settings)
    seeds = np.random.SeedSequence(0).spawn(runs)[done : done + PART]
    if done == 0:
        run(problem, name, draw(problem, settings, seeds[:1]), settings)  # compiles
    start = time.process_time()
    episodes = run(problem, name, draw(problem, settings, seeds), settings)
    spent = 1e3 * (time.process_time() - start) / (len(seeds) * problem.horizon)
    costs, over, penalties = episodes.costs / problem.horizon, [], np.zeros(len(seeds))
    if episodes.constraints.size:
        weights = settings_of(problem, name, settings.order, settings.options)[0]["constraint_weights"]
        penalties = np.nansum(weights * np.maximum(episodes.constraints, 0.0) ** 2, axis=(1, 2)) / problem.horizon
        over = [float(np.nanmean(np.any(one > 0.0, axis=1))) for one in episodes.constraints]
    return {
        "costs": [*known["costs"], *(float(one) for one in costs)],
        "penalties": [*known.get("penalties", []), *(float(one) for one in penalties)],
        "over": [*known.get("over", []), *over],
        "ms": min(spent, known.get("ms", spent)),
    }


def paired(found: dict[str, Any], one: str, other: str, what: str = "costs") -> np.ndarray:
    """What one costs more than the other, run by run, in the runs that both finished."""
    count = min(len(found[name]["costs"]) for name in (one, other))
    finished = np.isfinite(np.subtract(found[one]["costs"][:count], found[other]["costs"][:count]))
    return np.subtract(found[one][what][:count], found[other][what][:count])[finished]


def ratio(gap: np.ndarray) -> float:
    """The mean of differences in standard errors."""
    return float(gap.mean() / (gap.std() / np.sqrt(gap.size))) if gap.std() > 0 else 0.0


def contenders(column: Column, found: dict[str, Any]) -> list[str]:
    """The others that may be the best."""
    means = {name: np.nanmean(found[name]["costs"]) if found[name]["costs"] else np.inf for name in column.others}
    best = min(means, key=means.__getitem__)

    def out(name: str) -> bool:
        gap = paired(found, name, best)
        return gap.size >= SURE and ratio(gap) > FAR

    return [name for name in column.others if not out(name)]


def best_of(column: Column, found: dict[str, Any]) -> str:
    """The best of the others over as many runs as planned has."""
    rivals = contenders(column, found)
    full = [name for name in rivals if len(found[name]["costs"]) >= len(found["planned"]["costs"])] or rivals
    return min(full, key=lambda name: float(np.nanmean(found[name]["costs"])))


def written(gap: np.ndarray) -> str:
    """Mean and standard error of differences."""
    return f"{gap.mean():+.4f} +- {gap.std() / np.sqrt(gap.size):.4f}"


def row(column: Column, found: dict[str, Any]) -> str:
    """One line of the table."""
    best, own = best_of(column, found), found["planned"]
    gap = paired(found, "planned", best)

    def mean(name: str) -> str:
        """That of the best and, for one that was not run as often, what it costs more in the runs that it has."""
        if name not in found or not found[name]["costs"]:
            return "-"
        over = found[name].get("over", [])
        value = float(np.nanmean(found[best]["costs"]) + paired(found, name, best).mean())
        return f"{value:.4f}" + (f" ({100 * np.mean(over):.1f} %)" if over else "")

    beyond = f"; with penalties {written(gap + paired(found, 'planned', best, 'penalties'))}" if own.get("over") else ""
    return (
        f"| {column.name} | {gap.size} | {mean('ce')} | {mean('dual')} | {best}: {mean(best)} | {mean('planned')} "
        f"| {written(gap)} ({ratio(gap):+.1f}){beyond} "
        f"| {written(paired(found, 'planned', 'dual'))} | {own['ms']:.1f} |"
    )


def table(store: dict[str, Any]) -> str:
    """The table of all columns in which planned was run."""
    lines = [
        "| | runs | ce | dual | best of the others | planned | planned - best (ratio) | planned - dual | ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    done = [column for column in COLUMNS if store.get(column.name, {}).get("planned", {}).get("costs")]
    return "\n".join(lines + [row(column, store[column.name]) for column in done])


def main() -> None:
    """Run what is missing, part by part, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", nargs="+", action="extend")
    parser.add_argument("--store", type=Path, default=Path("results/planned.json"))
    parser.add_argument("--backend", choices=("numba", "c"), default="numba", help="c compiles in no time")
    parser.add_argument("--table", action="store_true", help="only print what is there")
    chosen = parser.parse_args()
    store: dict[str, Any] = json.loads(chosen.store.read_text()) if chosen.store.exists() else {}
    chosen.store.parent.mkdir(parents=True, exist_ok=True)
    for column in COLUMNS if not chosen.table else ():
        if chosen.only and column.name not in chosen.only:
            continue
        found = store.setdefault(column.name, {})
        for name in (*column.others, "planned"):
            found.setdefault(name, {"costs": []})
        problem = column.problem(chosen.backend)
        for least in range(PART, chosen.runs + PART, PART):
            for name in (*contenders(column, found), "planned"):
                if len(found[name]["costs"]) < min(least, chosen.runs):
                    found[name] = run_more(problem, name, column.settings, chosen.runs, found[name])
                    chosen.store.write_text(json.dumps(store))
        print(row(column, found), flush=True)
    print(table(store))


if __name__ == "__main__":
    main()
