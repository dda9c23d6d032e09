"""Plans beside those of a general solver: CasADi with IPOPT on the same nominal problems, from the same start.

    pip install casadi
    python benchmarks/solver.py [--problems 50] [--seed 0] [--backend c] [--json FILE]

Random problems of four models: first states, parameters and first guesses are drawn. IPOPT gets the problem as multiple
shooting with exact derivatives, from the trajectory of the guess. The planner of `ce` is given the guess too, and tries
its own fresh start besides, as it always does; `alone` is the same planner without the guess. Costs are those of the
inputs, rolled out by the same function. A plan is better if its cost is lower by more than 1e-6 of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from symdual import api
from symdual.runtime import evaluate
from symdual.runtime.belief import Belief
from symdual.runtime.controller import Controller, controller
from symdual.runtime.problem import Problem
from symdual.spec.loading import load_model_file

MODELS = {
    "waves": """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
b = unknown("b", mean=1.0, variance=0.04)
waves = Model([x], [u], [x + b * u + 0.8 * sp.sin(3 * x)], bounds={u: (-1, 1)})
scenario = Scenario(waves, horizon=12, input_cost=0.1, reference=4.0, start_covariance=4.0)
""",
    "swing": """
import sympy as sp
from symdual import Model, Scenario, unknown
angle, rate, torque = sp.symbols("angle rate torque")
pull = unknown("pull", mean=1.0, variance=0.01)
swing = Model([angle, rate], [torque], derivatives=[rate, pull * sp.sin(angle) + torque], step=0.2, method="rk4",
              bounds={torque: (-0.5, 0.5)})
scenario = Scenario(swing, horizon=40, state_cost=lambda k: [10.0, 10.0] if k == 40 else [0.1, 0.01], input_cost=0.01,
                    start=[3.0, 0.0], start_covariance=0.25)
""",
    "cart-pole": """
import sympy as sp
from symdual import Model, Scenario, unknown
place, angle, speed, rate, force = sp.symbols("place angle speed rate force")
mass = unknown("mass", mean=0.15, variance=1e-4)
s, c = sp.sin(angle), sp.cos(angle)
pushed = (force + mass * s * (0.5 * rate**2 - 9.81 * c)) / (1.0 + mass * s**2)
turned = (9.81 * s - pushed * c) / 0.5
cartpole = Model([place, angle, speed, rate], [force], derivatives=[speed, rate, pushed, turned], step=0.04,
                 method="rk4", bounds={force: (-10, 10)})
scenario = Scenario(cartpole, horizon=40, input_cost=1e-3, start=[0.0, 0.8, 0.0, 0.0], start_covariance=0.04,
                    state_cost=lambda k: [10.0, 100.0, 10.0, 10.0] if k == 40 else [0.1, 0.1, 0.01, 0.01])
""",
    "unicycle": """
import sympy as sp
from symdual import Model, Scenario, unknown
east, north, heading, speed, turn = sp.symbols("east north heading speed turn")
slip = unknown("slip", mean=1.0, variance=0.01)
unicycle = Model([east, north, heading], [speed, turn], [east + 0.3 * speed * sp.cos(heading),
                 north + 0.3 * speed * sp.sin(heading), heading + 0.3 * slip * turn],
                 bounds={speed: (0, 1), turn: (-2, 2)})
scenario = Scenario(unicycle, horizon=20, input_cost=[0.05, 0.02], state_cost=[1.0, 1.0, 0.0],
                    reference=[3.0, 0.0, 0.0], start_covariance=[1.0, 1.0, 2.0])
""",
}
SAME = 1e-6  # share of the cost within which two plans are equally good


class Found(NamedTuple):
    """One problem: costs and milliseconds of the planner with the guess, alone, and of IPOPT."""

    ours: float
    alone: float
    theirs: float
    ms: float
    their_ms: float
    solved: bool


def rolled_out(problem: Problem, x: np.ndarray, theta: np.ndarray, inputs: np.ndarray) -> tuple[float, np.ndarray]:
    """Cost and states of inputs."""
    total, states = 0.0, [x]
    for k, u in enumerate(inputs):
        error = states[-1] - problem.reference[k]
        total += error @ problem.state_cost[k] @ error + u @ problem.input_cost[k] @ u
        states.append(evaluate.dynamics(problem.package, states[-1], u, theta, k))
    error = states[-1] - problem.reference[len(inputs)]
    return float(total + error @ problem.state_cost[len(inputs)] @ error), np.array(states)


def shooting(
    problem: Problem, file: Path
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, float, bool]]:
    """IPOPT on the model as written: from first state, parameters and a guess to inputs, milliseconds and success."""
    import casadi as ca

    model = next(iter(load_model_file(file).models.values()))
    known = {name: getattr(ca, name) for name in ("sin", "cos", "tanh", "exp", "sqrt")}
    names = [*model.states, *model.inputs, *model.unknowns]
    written = sp.lambdify(names, list(model.dynamics), modules=[known, "math"], cse=True)

    def right_side(x: Any, u: Any, theta: Any) -> Any:
        return ca.vertcat(*written(*ca.vertsplit(x), *ca.vertsplit(u), *ca.vertsplit(theta)))

    def step(x: Any, u: Any, theta: Any) -> Any:
        if model.step is None:
            return right_side(x, u, theta)
        h, first = model.step, right_side(x, u, theta)  # Runge and Kutta's
        second = right_side(x + h / 2 * first, u, theta)
        third = right_side(x + h / 2 * second, u, theta)
        return x + h / 6 * (first + 2 * second + 2 * third + right_side(x + h * third, u, theta))

    nx, nu, T = problem.package.NX, problem.package.NU, problem.horizon
    X, U = ca.SX.sym("X", nx, T + 1), ca.SX.sym("U", nu, T)
    theta, start = ca.SX.sym("theta", problem.package.NTHETA), ca.SX.sym("start", nx)
    cost, gaps = 0, [X[:, 0] - start]
    for k in range(T + 1):
        error = X[:, k] - ca.DM(problem.reference[k])
        cost += ca.bilin(ca.DM(problem.state_cost[k]), error, error)
        if k < T:
            cost += ca.bilin(ca.DM(problem.input_cost[k]), U[:, k], U[:, k])
            gaps.append(X[:, k + 1] - step(X[:, k], U[:, k], theta))
    nlp = {"x": ca.veccat(X, U), "p": ca.vertcat(start, theta), "f": cost, "g": ca.vertcat(*gaps)}
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "tol": 1e-10, "max_iter": 1000}}
    solver = ca.nlpsol("solver", "ipopt", nlp, quiet)
    free, low, high = np.full(nx * (T + 1), np.inf), np.tile(problem.bounds[0], T), np.tile(problem.bounds[1], T)

    def solve(x: np.ndarray, parameters: np.ndarray, guess: np.ndarray) -> tuple[np.ndarray, float, bool]:
        first = np.concatenate([rolled_out(problem, x, parameters, guess)[1].ravel(), guess.ravel()])
        begin = time.perf_counter()
        found = solver(
            x0=first, p=np.concatenate([x, parameters]), lbg=0, ubg=0,
            lbx=np.concatenate([-free, low]), ubx=np.concatenate([free, high]),
        )  # fmt: skip
        spent = 1e3 * (time.perf_counter() - begin)
        inputs = np.array(found["x"]).ravel()[nx * (T + 1) :].reshape(T, nu)
        return np.clip(inputs, *problem.bounds), spent, bool(solver.stats()["success"])

    return solve


def planned(ce: Controller, x: np.ndarray, theta: np.ndarray, guess: np.ndarray | None) -> tuple[np.ndarray, float]:
    """The inputs of the planner and its milliseconds."""
    mean = np.concatenate([x, theta])
    state = ce.init(Belief(mean, np.zeros((len(mean), len(mean))), None), guess=guess)
    begin = time.perf_counter()
    ce.choose(state)
    spent = 1e3 * (time.perf_counter() - begin)
    return ce.step(state)[2].planned_inputs, spent


def problems(problem: Problem, file: Path, count: int, seed: int) -> list[Found]:
    """Both on random problems of one model."""
    random, nx = np.random.default_rng(seed), problem.package.NX
    known = replace(problem, prior=Belief(problem.prior.mean, np.zeros_like(problem.prior.covariance), None))
    ce, solve, found = controller(known, "ce"), shooting(problem, file), []
    for _ in range(count):
        z = random.multivariate_normal(problem.prior.mean, problem.prior.covariance)
        guess = random.uniform(*problem.bounds, size=(problem.horizon, problem.package.NU))
        x, theta = z[:nx], z[nx:]
        alone, _ = planned(ce, x, theta, None)
        inputs, spent = planned(ce, x, theta, guess)
        theirs, their_ms, solved = solve(x, theta, guess)
        costs = [rolled_out(problem, x, theta, one)[0] for one in (inputs, alone, theirs)]
        found.append(Found(*costs, spent, their_ms, solved))
    return found


def row(name: str, found: list[Found]) -> str:
    """One line of the table."""
    ours, theirs = np.array([one.ours for one in found]), np.array([one.theirs for one in found])
    apart = (ours - theirs) / theirs
    lower, higher = int(np.sum(apart < -SAME)), int(np.sum(apart > SAME))
    ms, their_ms = (float(np.median([getattr(one, key) for one in found])) for key in ("ms", "their_ms"))
    unsolved = sum(not one.solved for one in found)
    return (
        f"| {name} | {len(found)} | {ms:.3f} | {their_ms:.1f} | {lower} | {len(found) - lower - higher} | {higher} "
        f"| {np.mean(ours):.4f} | {np.mean(theirs):.4f} | {unsolved} |"
    )


def main() -> None:
    """Print the table, model by model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=("numba", "c"), default="numba", help="c compiles in no time")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    print(
        "| model | problems | ms | ms, IPOPT | ours better | same | IPOPT better | mean cost | IPOPT | IPOPT gave up |"
    )
    print("|" + "---|" * 10)
    every: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in MODELS.items():
            file = Path(folder) / f"{name.replace('-', '')}.py"
            file.write_text(text)
            problem = api.problem(file, folder=file.parent, backend=chosen.backend)
            every[name] = problems(problem, file, chosen.problems, chosen.seed)
            print(row(name, every[name]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps({name: [one._asdict() for one in found] for name, found in every.items()}))


if __name__ == "__main__":
    main()
