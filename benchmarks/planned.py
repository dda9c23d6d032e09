"""The planning controller beside the others, truth drawn from the prior: cost per step and paired differences.

    python benchmarks/planned.py [--runs 400] [--only NAME ...]

The others are ce, cautious, beb with tau = .1, 1, 10 and 100, and dual; the best of their means in each column is what
planned is compared with, in the same episodes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from symdual import api
from symdual.paper.experiments.extra import with_prior
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.problem import Problem

ROOT = Path(__file__).parent.parent
PAPER, EXAMPLES = ROOT / "symdual/paper/models", ROOT / "examples"
BONUSES = (0.1, 1.0, 10.0, 100.0)

SIGN = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
b = unknown("b", mean=0.0, variance=1.0)
sign = Model([x], [u], [x + b * u], process_noise=1e-2, measurement_noise=1e-2)
scenario = Scenario(sign, horizon=10, input_cost=0.1, start=2.0)
"""


def columns(folder: Path) -> Iterator[tuple[str, Problem, str]]:
    """Name, problem and truth of every column."""
    file = folder / "sign.py"
    file.write_text(SIGN)
    yield "unknown sign", api.prepare(file), "prior"
    yield "Exp 1", with_prior(api.prepare(PAPER / "toy.py"), 1.0, 10.0, 2), "prior"
    yield "Exp 2", api.prepare(PAPER / "schedule.py"), "prior"
    yield "Exp 3", api.prepare(PAPER / "relevance.py"), "prior"
    yield "Exp 4", api.prepare(PAPER / "drift.py"), "prior"
    yield "Exp 4, drift", api.prepare(PAPER / "drift.py"), "drift"
    yield "interception", api.prepare(PAPER / "tse_bar_shalom.py"), "prior"
    for name in ("pendulum", "gym_pendulum", "vehicle", "greenhouse"):
        yield name, api.prepare(EXAMPLES / f"{name}.py"), "prior"


def costs(problem: Problem, name: str, runs: int, settings: Settings) -> tuple[np.ndarray, float]:
    """Cost per step of each run, and the milliseconds of a decision."""
    simulate(problem, [name], 1, 1, settings)
    start = time.perf_counter()
    found = simulate(problem, [name], runs, 0, settings)[name].costs / problem.horizon
    return found, 1e3 * (time.perf_counter() - start) / (runs * problem.horizon)


def row(name: str, problem: Problem, truth: str, runs: int) -> str:
    """One line of the table."""
    settings = Settings(truth=truth)
    others = {kind: costs(problem, kind, runs, settings)[0] for kind in ("ce", "cautious", "dual")}
    for bonus in BONUSES:
        others[f"beb, tau {bonus:g}"] = costs(problem.changed(bonus=bonus), "beb", runs, settings)[0]
    planned, milliseconds = costs(problem, "planned", runs, settings)
    best = min(others, key=lambda kind: float(np.mean(others[kind])))
    gap = planned - others[best]
    error = float(np.std(gap) / np.sqrt(runs))
    against = planned - others["dual"]
    return (
        f"| {name} | {np.mean(others['ce']):.4f} | {np.mean(others['dual']):.4f} | {best}: {np.mean(others[best]):.4f} "
        f"| {np.mean(planned):.4f} | {np.mean(gap):+.4f} +- {error:.4f} ({np.mean(gap) / error if error else 0:+.1f}) "
        f"| {np.mean(against):+.4f} +- {np.std(against) / np.sqrt(runs):.4f} | {milliseconds:.1f} |"
    )


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", nargs="*")
    chosen = parser.parse_args()
    print("| | ce | dual | best of the others | planned | planned - best (in standard errors) | planned - dual | ms |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, problem, truth in columns(Path(folder)):
            if not chosen.only or name in chosen.only:
                print(row(name, problem, truth, chosen.runs), flush=True)


if __name__ == "__main__":
    main()
