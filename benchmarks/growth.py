"""How files and compile times grow with states and unknowns.

    python benchmarks/growth.py                    # the table in README.md, some five minutes
    python benchmarks/growth.py --quick            # the smaller half of it
    python benchmarks/growth.py --backend numba    # where there is no C compiler

Masses on a line with springs that are not linear, pushed at one end, and a quadrotor in space, both in continuous time
and discretised by rk4 where nothing else is said. Every package is generated and compiled in a fresh process; times are
those of the processor, the C compiler's included: `kernels` are the Jacobian and the contracted Hessian, `all` what
the controllers ce and dual need with their episodes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import sympy as sp

from symdual import Model, Scenario, unknown
from symdual.backends.c.compilation import quickest

PROGRAM = """
import gc, resource, sys, time
gc.disable()
import numpy as np
import symdual
from symdual.runtime import evaluate
from symdual.runtime.closed_loop import Settings, simulate
from symdual.backends.numba.ahead import compile_part, parts_of
from symdual.runtime.readiness import compile_through_c
def spent():
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime
package = symdual.load(sys.argv[1], backend=sys.argv[2])
start = spent()
x, u, theta = np.zeros(package.NX), np.zeros(package.NU), np.ones(package.NTHETA)
evaluate.jacobian(package, x, u, theta)
evaluate.hessian(package, x, u, theta, x)
kernels = spent() - start
if package.backend == "c":
    compile_through_c(package, lambda part, share: None)
else:
    for part in parts_of(package):
        compile_part(package, part)
simulate(symdual.problem(package), ["ce"], 1, settings=Settings(truth="prior"))
print(kernels, spent() - start)
"""


def chain(states: int, unknowns: int, method: str = "rk4") -> Model:
    """Half as many masses as states; the unknowns are coefficients of springs, friction and tilt."""
    count = states // 2
    places, speeds, push = sp.symbols(f"x0:{count}"), sp.symbols(f"v0:{count}"), sp.Symbol("u")
    coefficients = [unknown(f"k{i}", mean=1.0, variance=0.1) for i in range(unknowns)]
    forces = []
    for i, (place, speed) in enumerate(zip(places, speeds, strict=True)):
        left = place - (places[i - 1] if i else 0)
        right = (places[i + 1] if i + 1 < count else 0) - place
        shapes = (left, left**3, sp.sin(place), speed, speed**3)
        own = coefficients[i::count]
        forces.append(right - left + (push if i == 0 else 0) - sum(c * shapes[n % 5] for n, c in enumerate(own)))
    return Model(
        [*places, *speeds], [push], derivatives=[*speeds, *forces], step=0.05, method=method, name="masses",
        process_noise=1e-4, measurement_noise=1e-3,
    )  # fmt: skip


def quadrotor() -> Model:
    """Position, velocity, attitude and body rates; thrust and three torques; mass, inertia and drag are unknown."""
    place, speed, rates = sp.symbols("px py pz"), sp.symbols("vx vy vz"), sp.symbols("wx wy wz")
    roll, pitch, yaw = sp.symbols("roll pitch yaw")
    thrust, *torques = sp.symbols("thrust mx my mz")
    lightness, drag = unknown("lightness", 1.0, 0.04), unknown("drag", 0.1, 0.01)
    agility = [unknown(f"agility_{axis}", 1.0, 0.04) for axis in "xyz"]
    sin, cos = sp.sin, sp.cos
    up = [
        cos(roll) * sin(pitch) * cos(yaw) + sin(roll) * sin(yaw),
        cos(roll) * sin(pitch) * sin(yaw) - sin(roll) * cos(yaw),
        cos(roll) * cos(pitch),
    ]
    pace = sp.sqrt(sum(v**2 for v in speed) + sp.Rational(1, 100))
    pull = [thrust * lightness * e - drag * pace * v for e, v in zip(up, speed, strict=True)]
    turn = rates[1] * sin(roll) + rates[2] * cos(roll)
    attitude = [rates[0] + turn * sp.tan(pitch), rates[1] * cos(roll) - rates[2] * sin(roll), turn / cos(pitch)]
    spin = [rates[1] * rates[2] * 0.3, -rates[0] * rates[2] * 0.3, rates[0] * rates[1] * 0.05]
    spin = [a * m + s for a, m, s in zip(agility, torques, spin, strict=True)]
    return Model(
        [*place, *speed, roll, pitch, yaw, *rates], [thrust, *torques],
        derivatives=[*speed, pull[0], pull[1], pull[2] - 9.81, *attitude, *spin], step=0.05, method="rk4",
        name="quadrotor", process_noise=1e-4, measurement_noise=1e-3,
        bounds={thrust: (0.0, 20.0)} | dict.fromkeys(torques, (-2.0, 2.0)),
    )  # fmt: skip


MODEL_FILE = """
import sys
sys.path.insert(0, {here!r})
import growth
model = growth.{making}
scenario = growth.scenario(model)
"""
GENERATE = """
import sys, time
import symdual
start = time.process_time()
symdual.generate(sys.argv[1], folder=sys.argv[2])
print(time.process_time() - start)
"""


def scenario(model: Model) -> Scenario:
    """Bring every state to zero."""
    return Scenario(model, horizon=10, state_cost=[1.0] * len(model.states), input_cost=[0.1] * len(model.inputs))


def measured(making: str, compiling: bool, backend: str) -> str:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        model_file = Path(folder) / "model.py"
        model_file.write_text(MODEL_FILE.format(here=str(Path(__file__).parent), making=making))
        seconds = _run(GENERATE, str(model_file), f"{folder}/generated")[0]
        package = next(path.parent for path in Path(folder).glob("generated/*/manifest.json"))
        lines = len((package / "kernels/kernels.py").read_text().splitlines())
        size = sum(file.stat().st_size for file in package.rglob("*.py"))
        kernels, everything = _run(PROGRAM, str(package), backend) if compiling else (None, None)
    shown = [f"{s:.1f} s" if s is not None else "" for s in (seconds, kernels, everything)]
    return " | ".join([shown[0], str(lines), f"{size // 1024} kB", *shown[1:]])


def _run(program: str, *arguments: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return [float(word) for word in done.stdout.split()[-2:]]


#: what the row is called, how its model is made, and whether it is compiled
ROWS: tuple[tuple[str, str, bool], ...] = (
    ("quadrotor: 12 states, 5 unknowns", "quadrotor()", True),
    ("masses: 4 states, 4 unknowns", "chain(4, 4)", True),
    ("masses: 12 states, 12 unknowns", "chain(12, 12)", True),
    ("masses: 20 states, 20 unknowns", "chain(20, 20)", True),
    ("masses: 40 states, 40 unknowns", "chain(40, 40)", True),
    ("masses: 40 states, 300 unknowns", "chain(40, 300)", True),
    ("masses by Euler: 12 states, 500 unknowns", 'chain(12, 500, "euler")', False),
    ("masses by Euler: 12 states, 2000 unknowns", 'chain(12, 2000, "euler")', False),
)


def main(say: Callable[[str], None] = print) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smaller half")
    parser.add_argument("--backend", choices=["c", "numba"], default=quickest(), help="what compiles")
    given = parser.parse_args()
    rows = ROWS[:4] if given.quick else ROWS
    say("| model | generate | lines of `kernels` | all files | compile `kernels` | compile all |")
    say("|---|---|---|---|---|---|")
    for name, making, compiling in rows:
        say(f"| {name} | {measured(making, compiling, given.backend)} |")


if __name__ == "__main__":
    main()
