"""What constraints cost: decisions on the cart with 30 features, with two constraints and without, in one process.

    python benchmarks/constraints.py [--rounds 20] [--backend c]

The cart is to be at 1.0 from the eleventh step on, but not beyond 0.95 nor faster than 0.4 at any time. Decisions with
and without the constraints are made in turns, from the same beliefs along an episode; what is told is the least
processor time of a decision over all rounds, in milliseconds, for some steps and every controller.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from symdual import api
from symdual.runtime import evaluate
from symdual.runtime.controller import Controller, controller
from symdual.runtime.info import State

TEXT = """
import sympy as sp
from symdual import Model, Scenario, features

position, velocity, force = sp.symbols("position velocity force")
slope = features.fourier("v", position, count=30, lengthscale=1.0, seed=3)
motion = [position + 0.4 * velocity, velocity + slope + force]
{name} = Model([position, velocity], [force], motion, process_noise=1e-4, measurement_noise=1e-4)
scenario = Scenario(
    {name},
    20,
    state_cost=lambda k: [10.0 if k < 5 else 100.0 if k > 10 else 0.0, 0.0],
    input_cost=1e-2,
    reference=[1.0, 0.0],
    {more}
)
"""
WALLS = "constraints=[position <= 0.95, velocity <= 0.4],"
STEPS = (0, 4, 8, 12)  # at which decisions are timed


def states(one: Controller) -> list[State]:
    """What a controller knows at some steps of an episode with one draw of the rail."""
    package, random = one.problem.package, np.random.default_rng(1)
    theta, x = random.standard_normal(package.NTHETA), one.problem.start.copy()
    state, found = one.init(), []
    for k in range(max(STEPS) + 1):
        state, _ = one.update(state, None if k == 0 else x + 0.01 * random.standard_normal(package.NX))
        found.append(state)
        state, u = one.choose(state)
        x = evaluate.dynamics(package, x, u, theta) + 0.01 * random.standard_normal(package.NX)
    return [found[k] for k in STEPS]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--backend", default="numba")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems = []
        for name, more in (("free", ""), ("walled", WALLS)):
            file = Path(folder) / f"{name}.py"
            file.write_text(TEXT.format(name=name, more=more))
            problems.append(api.problem(file, folder=folder, backend=given.backend))
        for name in ("ce", "cautious", "dual"):
            pair = [controller(problem, name) for problem in problems]
            belief = states(pair[1])
            ratios = []
            for k, state in zip(STEPS, belief, strict=True):
                taken: list[list[float]] = [[], []]
                for _ in range(given.rounds):
                    for side, one in enumerate(pair):
                        start = time.process_time()
                        one._tools.decide(state)
                        taken[side].append(time.process_time() - start)
                free, walled = (1e3 * min(times) for times in taken)
                ratios.append(walled / free)
                print(f"| {name} | {k} | {free:.2f} | {walled:.2f} | {walled / free:.2f} |", flush=True)
            print(f"{name}: mean ratio {statistics.mean(ratios):.2f}")


if __name__ == "__main__":
    main()
