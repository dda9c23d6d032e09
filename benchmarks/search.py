"""How often does the search over the input miss the global minimum? Random decisions against brute force.

    python benchmarks/search.py [DECISIONS] [SEED] [CASE ...]

Prints for each case the number of decisions, the misses (a cost more than 1e-4 above brute force's, relative), the
worst excess, and how often brute force found its minimum beyond the radius that bounds the search (never, if the bound
holds).
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import sympy as sp

from symdual import Model, Scenario, api, unknown
from symdual.checks.search import compare, random_decision
from symdual.runtime.controller import controller
from symdual.runtime.problem import Problem

ROOT = Path(__file__).resolve().parent.parent


def two_inputs() -> Scenario:
    """Two states, two inputs with three unknown gains between them."""
    p, q, u, v = sp.symbols("p q u v")
    b, c, d = unknown("b", 0.5, 2.0), unknown("c", 0.3, 1.0), unknown("d", -0.5, 2.0)
    dynamics = [0.9 * p + 0.2 * q + b * u + c * v, 0.8 * q + d * v]
    model = Model(
        states=[p, q], inputs=[u, v], dynamics=dynamics, process_noise=0.1, measurement_noise=0.01, name="two"
    )
    return Scenario(model, horizon=4, input_cost=0.1, start=[1.0, -1.0], truth=[0.5, 0.3, -0.5], name="two")


def three_inputs() -> Scenario:
    """One state, three inputs of unknown strength."""
    x, inputs = sp.Symbol("x"), sp.symbols("u v w")
    gains = [unknown(f"gain_{i}", 0.4, 1.0) for i in range(3)]
    dynamics = [x + sum(g * u for g, u in zip(gains, inputs, strict=True))]
    model = Model(
        states=[x], inputs=list(inputs), dynamics=dynamics, process_noise=0.1, measurement_noise=0.01, name="three"
    )
    return Scenario(model, horizon=3, input_cost=0.2, start=1.0, truth=[0.4, 0.4, 0.4], name="three")


def vary(task: Problem, random: np.random.Generator) -> Problem:
    """The same model with another cost, reference and prior."""
    nx, nu = task.package.NX, task.package.NU
    state = np.diag(10.0 ** random.uniform(-1, 0.7, nx))
    factor = random.standard_normal((nu, nu))
    given = np.diag(np.diag(task.input_cost[0])) + 0.3 * task.input_cost[0, 0, 0] * factor @ factor.T / nu
    return replace(
        task,
        state_cost=np.repeat(state[None], task.horizon + 1, axis=0),
        input_cost=np.repeat((given * 10.0 ** random.uniform(-1, 0.5))[None], task.horizon, axis=0),
        reference=np.repeat(random.standard_normal(nx)[None], task.horizon + 1, axis=0),
    )


CASES = {
    # name: where the scenario comes from, controllers with their order, grid points per input
    "toy": (ROOT / "symdual/paper/models/toy.py", [("dual", 1), ("cautious", 1), ("beb", 1), ("dual", 2)], 2000),
    "drift": (ROOT / "symdual/paper/models/drift.py", [("dual", 1)], 1000),
    "pendulum": (ROOT / "examples/pendulum.py", [("dual", 1)], 400),
    "schedule": (ROOT / "symdual/paper/models/schedule.py", [("dual", 1)], 400),
    "relevance": (ROOT / "symdual/paper/models/relevance.py", [("dual", 1)], 400),
    "gym_pendulum": (ROOT / "examples/gym_pendulum.py", [("dual", 1)], 400),
    "greenhouse": (ROOT / "examples/greenhouse.py", [("dual", 1)], 60),
    "vehicle": (ROOT / "examples/vehicle.py", [("dual", 1)], 60),
    "two": (two_inputs, [("dual", 1), ("beb", 1)], 120),
    "three": (three_inputs, [("dual", 1)], 36),
}
VARIED = ("toy", "drift", "two", "three")  # the other models have costs that belong to their story


def load_case(source: object, folder: Path) -> Problem:
    """The problem of a case, through numba."""
    return api.problem(source if isinstance(source, Path) else source(), None, folder, "numba")  # type: ignore[operator]


def main() -> None:
    decisions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        for case in sys.argv[3:] or CASES:
            source, kinds, points = CASES[case]
            task = load_case(source, Path(folder))
            for name, order in kinds:
                study(case, task, name, order, points, decisions, np.random.default_rng(seed))


def study(
    case: str, task: Problem, name: str, order: int, points: int, decisions: int, random: np.random.Generator
) -> None:
    started = time.perf_counter()
    misses, worst, beyond = [], 0.0, 0
    for number in range(decisions):
        varied = vary(task, random) if case in VARIED else task
        k, belief = random_decision(varied, random)
        result = compare(controller(varied, name, order), k, belief, points)
        worst = max(worst, result.excess)
        beyond += float(np.linalg.norm(result.best)) > result.radius * (1 + 1e-9)
        if result.excess > 1e-4:
            misses.append(number)
            print(
                f"  {case} {name} {number} k={k}: {result.found} {result.found_cost:.8g} "
                f"against {result.best} {result.best_cost:.8g}"
            )
    seconds = time.perf_counter() - started
    print(
        f"{case:10s} {name:9s} order {order}: {len(misses)} misses in {decisions}, worst excess {worst:.1e}, "
        f"{beyond} beyond the radius, {seconds:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
