"""The planning controller beside the others, truth drawn from the prior: cost per step and paired differences.

    python benchmarks/planned.py [--runs 400] [--only NAME ...] [--store FILE] [--table]

The others are ce, cautious, beb with tau = .1, 1, 10 and 100, and dual; the best of their means in each column is what
planned is compared with, in the same episodes. What is done is kept in the store, a JSON file, column by column and
controller by controller: the command goes on where it was interrupted, and --table prints what there is.
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
from symdual.runtime.problem import Problem

ROOT = Path(__file__).parent.parent
PAPER, EXAMPLES = ROOT / "symdual/paper/models", ROOT / "examples"
BONUSES = (0.1, 1.0, 10.0, 100.0)
PART = 25  # episodes between two entries in the store

SIGN = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
b = unknown("b", mean=0.0, variance=1.0)
sign = Model([x], [u], [x + b * u], process_noise=1e-2, measurement_noise=1e-2)
scenario = Scenario(sign, horizon=10, input_cost=0.1, start=2.0)
"""


def unknown_sign() -> Problem:
    """A gain of unknown sign."""
    folder = Path(tempfile.mkdtemp())  # the package is read from there as long as the process runs
    (folder / "sign.py").write_text(SIGN)
    return api.prepare(folder / "sign.py", folder=folder)


def wide_slopes() -> Problem:
    """Exp 3 with slopes of variance 1."""
    return api.prepare(PAPER / "relevance.py").changed(prior_covariance={"net_w": 1.0})


def soft_landing() -> Problem:
    """The plant of Tse and Bar-Shalom, all of whose last state counts."""
    task = api.prepare(PAPER / "tse_bar_shalom.py")
    return task.changed(state_cost=lambda k: [float(k == task.horizon)] * 3)


@dataclass(frozen=True)
class Column:
    """A problem, and how its truth is drawn."""

    name: str
    problem: Callable[[], Problem]
    truth: str = "prior"


def _file(path: Path) -> Callable[[], Problem]:
    return lambda: api.prepare(path)


COLUMNS = (
    Column("unknown sign", unknown_sign),
    Column("Exp 2", _file(PAPER / "schedule.py")),
    Column("Exp 3, w variance .1", _file(PAPER / "relevance.py")),
    Column("Exp 3, w variance 1", wide_slopes),
    Column("Exp 4", _file(PAPER / "drift.py")),
    Column("Exp 4, drift", _file(PAPER / "drift.py"), "drift"),
    Column("interception", _file(PAPER / "tse_bar_shalom.py")),
    Column("soft landing", soft_landing),
    *(Column(name, _file(EXAMPLES / f"{name}.py")) for name in ("vehicle", "greenhouse", "pendulum", "gym_pendulum")),
)
CONTROLLERS = ("ce", "cautious", *(f"beb, tau {bonus:g}" for bonus in BONUSES), "dual", "planned")


def run_more(task: Problem, controller: str, truth: str, runs: int, known: dict[str, Any]) -> dict[str, Any]:
    """At most PART further runs: their cost per step, and the processor milliseconds of a decision."""
    name, _, bonus = controller.partition(", tau ")
    settings, done = Settings(truth=truth), len(known["costs"])
    task = plant_problem(task.changed(bonus=float(bonus)) if bonus else task, settings)
    seeds = np.random.SeedSequence(0).spawn(runs)[done : done + PART]
    if done == 0:
        run(task, name, draw(task, settings, seeds[:1]), settings)  # compiles
    start = time.process_time()
    found = run(task, name, draw(task, settings, seeds), settings).costs / task.horizon
    spent = 1e3 * (time.process_time() - start) / (len(seeds) * task.horizon)
    costs = [*known["costs"], *(float(one) for one in found)]
    return {"costs": costs, "ms": min(spent, known.get("ms", spent))}


def compare(found: dict[str, Any]) -> tuple[str, np.ndarray, np.ndarray]:
    """The best of the others, and what planned costs more than it and than dual, run by run, where all finished."""
    arrays = {name: np.array(one["costs"]) for name, one in found.items()}
    good = np.all([np.isfinite(one) for one in arrays.values()], axis=0)
    best = min((name for name in arrays if name != "planned"), key=lambda name: float(arrays[name][good].mean()))
    return best, (arrays["planned"] - arrays[best])[good], (arrays["planned"] - arrays["dual"])[good]


def written(gap: np.ndarray) -> str:
    """Mean and standard error of differences."""
    return f"{gap.mean():+.4f} +- {gap.std() / np.sqrt(gap.size):.4f}"


def row(column: str, found: dict[str, Any]) -> str:
    """One line of the table."""
    mean = {name: float(np.nanmean(one["costs"])) for name, one in found.items()}
    best, gap, against = compare(found)
    error = gap.std() / np.sqrt(gap.size)
    ratio = gap.mean() / error if error > 0 else 0.0
    return (
        f"| {column} | {gap.size} | {mean['ce']:.4f} | {mean['dual']:.4f} | {best}: {mean[best]:.4f} "
        f"| {mean['planned']:.4f} | {written(gap)} ({ratio:+.1f}) | {written(against)} | {found['planned']['ms']:.1f} |"
    )


def table(store: dict[str, Any]) -> str:
    """The table of all columns that are complete."""
    lines = [
        "| | runs | ce | dual | best of the others | planned | planned - best (ratio) | planned - dual | ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [row(name, found) for name, found in store.items() if set(found) == set(CONTROLLERS)])


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--store", type=Path, default=Path("results/planned.json"))
    parser.add_argument("--table", action="store_true", help="only print what is there")
    chosen = parser.parse_args()
    store: dict[str, Any] = json.loads(chosen.store.read_text()) if chosen.store.exists() else {}
    for column in COLUMNS if not chosen.table else ():
        if chosen.only and column.name not in chosen.only:
            continue
        found = store.setdefault(column.name, {})
        if all(len(found.get(name, {}).get("costs", [])) >= chosen.runs for name in CONTROLLERS):
            continue
        task = column.problem()
        for name in CONTROLLERS:
            found.setdefault(name, {"costs": []})
            while len(found[name]["costs"]) < chosen.runs:
                found[name] = run_more(task, name, column.truth, chosen.runs, found[name])
                chosen.store.parent.mkdir(parents=True, exist_ok=True)
                chosen.store.write_text(json.dumps(store))
        print(row(column.name, found), flush=True)
    print(table(store))


if __name__ == "__main__":
    main()
