"""Plans beside those of a general solver: CasADi with IPOPT on the same nominal problems, from the same start.

    pip install casadi
    python benchmarks/solver.py [--problems 50] [--seed 0] [--backend c] [--json FILE]

Random problems of six models: first states, parameters and first guesses are drawn. The last two are unstable, and the
reactor is not finite on most ways. IPOPT gets the problem as multiple shooting with exact derivatives, from the inputs
of the guess, with the trajectory of these and with one that stays at the first state; the better result counts. The
planner of `ce` is given the guess too, and tries its own fresh start besides, as it always does; `alone` is the same
planner without the guess. Costs are those of plans as they were found, with states that follow from each other; a plan
that was not found costs infinitely much. A plan is better if its cost is lower by more than 1e-6 of it.
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
from symdual.common.errors import SymdualError
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
    "reactor": """
import sympy as sp
from symdual import Model, Scenario, unknown
C, T, jacket = sp.symbols("C T jacket")
rate = unknown("k0", mean=7.2, variance=0.01) * 1e10 * sp.exp(-8750 / T) * C
reactor = Model([C, T], [jacket], derivatives=[1 - C - rate, 350 - T + 209.2 * rate + 2.09 * (300 + jacket - T)],
                step=0.05, method="rk4", bounds={jacket: (-20, 20)})
scenario = Scenario(reactor, horizon=100, input_cost=1e-4, state_cost=[100.0, 0.01], start=[0.5, 350.0],
                    reference=[0.5, 350.0], start_covariance=[0.0025, 25.0])
""",
    "triple pendulum": """
import sympy as sp
from sympy.physics.mechanics import LagrangesMethod, Particle, Point, ReferenceFrame, dynamicsymbols
from symdual import Model, Scenario, unknown
angles, torques = dynamicsymbols("ankle knee hip"), dynamicsymbols("lower upper")
space, point, energy = ReferenceFrame("N"), Point("ground"), 0
point.set_vel(space, 0)
ground, links = point, [space.orientnew(f"L{i}", "Axis", [angle, space.z]) for i, angle in enumerate(angles)]
for link, mass in zip(links, (1.0, 1.0, unknown("load", mean=1.0, variance=0.01))):
    tip = point.locatenew("tip", 0.5 * link.y)
    tip.v2pt_theory(point, space, link)
    energy += Particle("body", tip, mass).kinetic_energy(space) - 9.81 * mass * tip.pos_from(ground).dot(space.y)
    point = tip
forces = [(links[0], (torques[0] - torques[1]) * space.z), (links[1], torques[1] * space.z)]
equations = LagrangesMethod(energy, angles, forcelist=forces, frame=space)
equations.form_lagranges_equations()
triple = Model.from_mechanics(equations, torques, step=0.03, bounds={torque: (-20, 20) for torque in torques})
scenario = Scenario(triple, horizon=100, input_cost=1e-3, start=[0.0] * 6, start_covariance=[0.0225] * 3 + [0.01] * 3,
                    state_cost=[1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
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


def rolled_out(problem: Problem, x: np.ndarray, theta: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """States of inputs."""
    states = [x]
    for k, u in enumerate(inputs):
        states.append(evaluate.dynamics(problem.package, states[-1], u, theta, k))
    return np.array(states)


def cost_of(problem: Problem, states: np.ndarray, inputs: np.ndarray) -> float:
    """Cost of a plan."""
    errors = states - problem.reference
    total = np.einsum("ki,kij,kj", errors, problem.state_cost, errors)
    return float(total + np.einsum("ka,kab,kb", inputs, problem.input_cost, inputs))


def shooting(
    problem: Problem, file: Path
) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[float, float]]:
    """IPOPT on the model as written: from first state, parameters, guessed states and inputs to cost and time."""
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
    one = [ca.SX.sym(name, size) for name, size in (("x", nx), ("u", nu), ("theta", problem.package.NTHETA))]
    moved = ca.Function("moved", one, [step(*one)])
    X, U = ca.MX.sym("X", nx, T + 1), ca.MX.sym("U", nu, T)
    theta, start = ca.MX.sym("theta", problem.package.NTHETA), ca.MX.sym("start", nx)
    cost, gaps = 0, [X[:, 0] - start]
    for k in range(T + 1):
        error = X[:, k] - ca.DM(problem.reference[k])
        cost += ca.bilin(ca.DM(problem.state_cost[k]), error, error)
        if k < T:
            cost += ca.bilin(ca.DM(problem.input_cost[k]), U[:, k], U[:, k])
            gaps.append(X[:, k + 1] - moved(X[:, k], U[:, k], theta))
    nlp = {"x": ca.veccat(X, U), "p": ca.vertcat(start, theta), "f": cost, "g": ca.vertcat(*gaps)}
    options = {"print_level": 0, "sb": "yes", "tol": 1e-10, "max_iter": 1000}
    quiet = {"print_time": False, "expand": True, "show_eval_warnings": False, "ipopt": options}
    solver = ca.nlpsol("solver", "ipopt", nlp, quiet)
    free, low, high = np.full(nx * (T + 1), np.inf), np.tile(problem.bounds[0], T), np.tile(problem.bounds[1], T)

    def solve(x: np.ndarray, parameters: np.ndarray, states: np.ndarray, inputs: np.ndarray) -> tuple[float, float]:
        begin = time.perf_counter()
        found = solver(
            x0=np.concatenate([states.ravel(), inputs.ravel()]), p=np.concatenate([x, parameters]), lbg=0, ubg=0,
            lbx=np.concatenate([-free, low]), ubx=np.concatenate([free, high]),
        )  # fmt: skip
        spent = 1e3 * (time.perf_counter() - begin)
        plan = np.array(found["x"]).ravel()
        cost = cost_of(problem, plan[: nx * (T + 1)].reshape(T + 1, nx), plan[nx * (T + 1) :].reshape(T, nu))
        return cost if solver.stats()["success"] else np.inf, spent

    return solve


def planned(ce: Controller, x: np.ndarray, theta: np.ndarray, guess: np.ndarray | None) -> tuple[float, float]:
    """The cost of the plan, infinite if there is none, and milliseconds."""
    mean = np.concatenate([x, theta])
    state = ce.init(Belief(mean, np.zeros((len(mean), len(mean))), None), guess=guess)
    begin = time.perf_counter()
    try:
        ce.choose(state)
    except SymdualError:  # it says that it has found none
        return np.inf, 1e3 * (time.perf_counter() - begin)
    spent = 1e3 * (time.perf_counter() - begin)
    info = ce.step(state)[2]
    return cost_of(ce.problem, info.planned_states, info.planned_inputs), spent


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
        ours, spent = planned(ce, x, theta, guess)
        ways = [rolled_out(problem, x, theta, guess), np.tile(x, (problem.horizon + 1, 1))]
        tried = [solve(x, theta, states, guess) for states in ways if np.isfinite(states).all()]
        theirs, their_ms = min(tried)
        found.append(Found(ours, alone, theirs, spent, their_ms))
    return found


def row(name: str, found: list[Found]) -> str:
    """One line of the table; means are those of the problems that both have solved."""
    ours, theirs = np.array([one.ours for one in found]), np.array([one.theirs for one in found])
    both = np.isfinite(ours) & np.isfinite(theirs)
    neither = int(np.sum(np.isinf(ours) & np.isinf(theirs)))
    lower, higher = int(np.sum(ours < theirs - SAME * theirs)), int(np.sum(ours > theirs + SAME * theirs))
    ms, their_ms = (float(np.median([getattr(one, key) for one in found])) for key in ("ms", "their_ms"))
    return (
        f"| {name} | {len(found)} | {ms:.3f} | {their_ms:.1f} | {lower} | {len(found) - lower - higher - neither} "
        f"| {higher} | {np.mean(ours[both]):.4f} | {np.mean(theirs[both]):.4f} | {np.sum(np.isinf(ours))} "
        f"| {np.sum(np.isinf(theirs))} |"
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
        "| model | problems | ms | ms, IPOPT | ours better | same | IPOPT better | mean cost | IPOPT | we gave up "
        "| IPOPT gave up |"
    )
    print("|" + "---|" * 11)
    every: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in MODELS.items():
            file = Path(folder) / f"{name.translate({45: None, 32: None})}.py"
            file.write_text(text)
            problem = api.problem(file, folder=file.parent, backend=chosen.backend)
            every[name] = problems(problem, file, chosen.problems, chosen.seed)
            print(row(name, every[name]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps({name: [one._asdict() for one in found] for name, found in every.items()}))


if __name__ == "__main__":
    main()
