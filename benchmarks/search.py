"""How often does the search over the input miss the global minimum? Random decisions against brute force.

    python benchmarks/search.py [DECISIONS] [SEED] [CASE ...]

Prints for each case the number of decisions, the misses (a cost more than 1e-4 above brute force's, relative), the
worst excess, how often brute force found its minimum beyond the radius that bounds the search (never, if the bound
holds), and the median of candidates and of processor milliseconds of a decision. Six inputs are too many for brute
force.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import sympy as sp

from symdual import Model, Scenario, api, unknown
from symdual.checks.search import compare, random_decision
from symdual.runtime.controller import State, controller
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


def craft() -> Scenario:
    """A hovercraft with three thrusters of unknown strength, within bounds."""
    east, north, heading, fast, side, turn = sp.symbols("east north heading fast side turn")
    main, cross, rudder = sp.symbols("main cross rudder")
    force = unknown("strength", 1.0, 0.25) * main
    other = unknown("strength_across", 1.0, 0.25) * cross
    s, c = sp.sin(heading), sp.cos(heading)
    motion = [
        fast, side, turn, force * c - other * s - 0.2 * fast, force * s + other * c - 0.2 * side,
        unknown("response", 0.3, 0.2) * rudder - 0.1 * turn + 0.2 * (force - other),
    ]  # fmt: skip
    model = Model(
        [east, north, heading, fast, side, turn], [main, cross, rudder], derivatives=motion, step=0.3, method="rk4",
        bounds={main: (-2, 2), cross: (-2, 2), rudder: (-3, 3)}, process_noise=1e-4, measurement_noise=1e-3,
        name="craft",
    )  # fmt: skip
    return Scenario(
        model, horizon=12, input_cost=[0.05, 0.05, 0.02], state_cost=[1.0, 1.0, 0.5, 0.1, 0.1, 0.1],
        start=[1.0, -1.0, 0.6, 0.0, 0.0, 0.0], start_covariance=0.01, name="craft",
    )  # fmt: skip


def waves() -> Scenario:
    """Two inputs within bounds on a plant with many rests."""
    x, y, u, v = sp.symbols("x y u v")
    b, c = unknown("b", 1.0, 0.5), unknown("c", -0.3, 0.5)
    dynamics = [x + b * u + 0.6 * sp.sin(3 * x) + 0.2 * y, 0.8 * y + c * v + 0.3 * sp.tanh(u)]
    model = Model(
        [x, y], [u, v], dynamics, bounds={u: (-1, 1), v: (-2, 2)}, process_noise=0.02, measurement_noise=0.01,
        name="waves",
    )  # fmt: skip
    return Scenario(model, horizon=8, input_cost=[0.1, 0.05], reference=[3.0, 1.0], start_covariance=1.0, name="waves")


def tanks(count: int) -> Scenario:
    """A ring of tanks with a pump of unknown gain at each."""
    levels, pumps = sp.symbols(f"level:{count}"), sp.symbols(f"pump:{count}")
    gains = [unknown(f"gain_{i}", 0.5, 0.5) for i in range(count)]
    dynamics = [
        0.9 * levels[i] + 0.05 * levels[(i + 1) % count] + gains[i] * (pumps[i] - 0.1 * pumps[(i + 1) % count])
        for i in range(count)
    ]
    name = f"tanks_{count}"
    model = Model(list(levels), list(pumps), dynamics, process_noise=0.05, measurement_noise=0.01, name=name)
    return Scenario(model, horizon=8, input_cost=0.1, start=1.0, name=name)


def vary(problem: Problem, random: np.random.Generator) -> Problem:
    """The same model with another cost, reference and prior."""
    nx, nu = problem.package.NX, problem.package.NU
    state = np.diag(10.0 ** random.uniform(-1, 0.7, nx))
    factor = random.standard_normal((nu, nu))
    given = np.diag(np.diag(problem.input_cost[0])) + 0.3 * problem.input_cost[0, 0, 0] * factor @ factor.T / nu
    return replace(
        problem,
        state_cost=np.repeat(state[None], problem.horizon + 1, axis=0),
        input_cost=np.repeat((given * 10.0 ** random.uniform(-1, 0.5))[None], problem.horizon, axis=0),
        reference=np.repeat(random.standard_normal(nx)[None], problem.horizon + 1, axis=0),
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
    "waves": (waves, [("dual", 1)], 80),
    "three": (three_inputs, [("dual", 1)], 36),
    "tanks": (partial(tanks, 3), [("dual", 1)], 26),
    "craft": (craft, [("dual", 1)], 26),
    "six": (partial(tanks, 6), [("dual", 1)], 0),
}
VARIED = ("toy", "drift", "two", "three", "tanks")  # the other models have costs that belong to their story


def load_case(source: object, folder: Path) -> Problem:
    """The problem of a case, through C."""
    return api.problem(source if isinstance(source, Path) else source(), None, folder, "c")  # type: ignore[operator]


def main() -> None:
    decisions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        for case in sys.argv[3:] or CASES:
            source, kinds, points = CASES[case]
            problem = load_case(source, Path(folder))
            for name, order in kinds:
                study(case, problem, name, order, points, decisions, np.random.default_rng(seed))


def study(
    case: str, problem: Problem, name: str, order: int, points: int, decisions: int, random: np.random.Generator
) -> None:
    """Print what became of all decisions of a case, and those that missed."""
    misses, worst, beyond, candidates, times = 0, 0.0, 0, [], []
    for number in range(decisions):
        varied = vary(problem, random) if case in VARIED else problem
        k, belief = random_decision(varied, random)
        chosen = controller(varied, name, order)
        candidates.append(chosen.step(State(k, belief, None))[2].evaluations)
        started = time.process_time()
        chosen.choose(State(k, belief, None))
        times.append(1e3 * (time.process_time() - started))
        if not points:
            continue
        result = compare(chosen, k, belief, points)
        worst = max(worst, result.excess)
        beyond += bool(np.any(np.abs(result.best) > result.radius * (1 + 1e-9)))
        if result.excess > 1e-4:
            misses += 1
            print(
                f"  {case} {name} {number} k={k}: {result.found} {result.found_cost:.8g} "
                f"against {result.best} {result.best_cost:.8g}"
            )
    print(
        f"{case:10s} {name:9s} order {order}: {misses} misses in {decisions if points else 0}, "
        f"worst excess {worst:.1e}, {beyond} beyond the radius; "
        f"{np.median(candidates):.0f} candidates, {np.median(times):.2f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
