"""How much controllers lose to the exact optimum of the integrator with an unknown gain, x' = x + b u + e.

    python benchmarks/optimum.py [--runs 200] [--steps 2 4 6] [--controller ce cautious dual planned] [--store FILE]
    python benchmarks/optimum.py --first [--steps 2 4 6] [--controller ...]

Unit noise, cost x^2, b ~ N(m, 1), in 27 beliefs (x, m). What an input costs beyond the best one is known exactly
(`symdual.runtime.unknown_gain`). The loss of a controller is the mean over episodes of the sum of these, in percent of
what the optimum costs beyond the present state. Inputs have a cost of 1e-6, because a search needs one; the optimum has
none. What is done is kept in the store, and the command goes on from there.

With --first, only the first input of each belief counts: what it costs beyond the best one, if all later ones are the
best. This has no noise.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from symdual import api
from symdual.runtime.closed_loop import Settings, draw, run
from symdual.runtime.problem import Problem
from symdual.runtime.unknown_gain import UnknownGain

MODEL = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
gain = Model([x], [u], [x + unknown("b", mean=0.5, variance=1.0) * u], process_noise=1.0, measurement_noise=0.0)
scenario = Scenario(gain, horizon=6, state_cost=1.0, input_cost=1e-6, start=1.0)
"""
STATES = (0.0, 1.0, 3.0)
MEANS = (0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 3.0)
OPTIMUM = UnknownGain(a=1.0, noise=1.0, weight=1.0)


def integrator() -> Problem:
    """The problem that all beliefs change."""
    folder = Path(tempfile.mkdtemp())  # the package is read from there as long as the process runs
    (folder / "gain.py").write_text(MODEL)
    return api.problem(folder / "gain.py", folder=folder, parts="planned")


def losses(problem: Problem, controller: str, runs: int) -> tuple[np.ndarray, float]:
    """What each episode costs beyond the optimum, by the losses of its inputs; and the milliseconds of a decision."""
    settings = Settings(truth="draw")
    noise = draw(problem, settings, np.random.SeedSequence(0).spawn(runs))
    begun = time.process_time()
    episodes = run(problem, controller, noise, settings)
    spent = 1e3 * (time.process_time() - begun) / (runs * problem.horizon)
    lost = [
        sum(
            OPTIMUM.loss(
                episodes.inputs[i, k, 0], problem.horizon - k, *episodes.means[i, k], episodes.variances[i, k, 1]
            )
            for k in range(problem.horizon)
        )
        for i in range(runs)
    ]
    return np.array(lost), spent


def in_percent(problem: Problem, steps: int, x: float, m: float, controller: str, runs: int) -> dict[str, float]:
    """The loss in one belief, with its standard error."""
    here = problem.changed(horizon=steps, start=[x], prior_mean={"b": m})
    lost, spent = losses(here, controller, runs)
    least = OPTIMUM.cost(steps, x, m, 1.0) - x * x
    return {"loss": 100 * lost.mean() / least, "error": 100 * lost.std() / np.sqrt(runs) / least, "ms": spent}


def first_losses(problem: Problem, steps: int, controller: str) -> dict[tuple[float, float], float]:
    """What the first input in each belief (x, m) costs beyond the best one, in percent of the optimum."""
    found = {}
    for x, m in product(STATES, MEANS):
        here = problem.changed(horizon=steps, start=[x], prior_mean={"b": m})
        (u,) = api.controller(here, controller).act()
        found[x, m] = 100 * OPTIMUM.loss(u, steps, x, m, 1.0) / (OPTIMUM.cost(steps, x, m, 1.0) - x * x)
    return found


def table(store: dict[str, Any], steps: list[int], controllers: list[str]) -> str:
    """Mean and worst loss by number of steps and controller."""
    lines = ["| steps | controller | mean loss, % | worst, % | worst belief (x, m) | ms |", "|---|---|---|---|---|---|"]
    for count in steps:
        for name in controllers:
            found = {key: one for key, one in store.items() if key.startswith(f"{count} {name} ")}
            if not found:
                continue
            worst = max(found, key=lambda key: found[key]["loss"])
            mean = np.mean([one["loss"] for one in found.values()])
            ms = np.mean([one["ms"] for one in found.values()])
            _, _, x, m = worst.split()
            lines.append(
                f"| {count} | {name} | {mean:.2f} | {found[worst]['loss']:.2f} +- {found[worst]['error']:.2f} "
                f"| {x}, {m} | {ms:.2f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, nargs="+", default=[2, 4, 6])
    parser.add_argument("--controller", nargs="+", default=["ce", "cautious", "dual", "planned"])
    parser.add_argument("--first", action="store_true", help="the first input alone, without noise")
    parser.add_argument("--store", type=Path, default=Path("results/optimum.json"))
    chosen = parser.parse_args()
    store: dict[str, Any] = json.loads(chosen.store.read_text()) if chosen.store.exists() else {}
    chosen.store.parent.mkdir(parents=True, exist_ok=True)
    problem = integrator()
    for steps, name in product(chosen.steps, chosen.controller) if chosen.first else ():
        lost = first_losses(problem, steps, name)
        worst = max(lost, key=lost.__getitem__)
        print(f"{steps} steps, {name}: mean {np.mean(list(lost.values())):.2f} %, worst {lost[worst]:.2f} % at {worst}")
    if chosen.first:
        return
    for steps in chosen.steps:
        for name in chosen.controller:
            for x in STATES:
                for m in MEANS:
                    key = f"{steps} {name} {x:g} {m:g}"
                    if key not in store:
                        store[key] = in_percent(problem, steps, x, m, name, chosen.runs)
                        chosen.store.write_text(json.dumps(store))
            print(table(store, [steps], [name]).splitlines()[-1], flush=True)
    print(table(store, chosen.steps, chosen.controller))


if __name__ == "__main__":
    main()
