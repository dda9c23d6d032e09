"""The same episode as main.c, with the controller in Python: the output is the same."""

import math
import sys
from pathlib import Path

import symdual

problem = symdual.problem(Path(__file__).parent.parent / "pendulum.py", backend=(sys.argv[1:] or ["numba"])[0])
controller = symdual.controller(problem, "planned")
x, theta, y = [0.0, 0.0], {"inverse_length": 1.25, "friction": 0.1}, [math.nan, math.nan]
for k in range(problem.horizon):
    u = controller.act(y)
    believed, deviation = controller.belief["inverse_length"]
    print(f"{k:2d}  angle {x[0]:6.3f}  torque {u[0]:6.3f}  believed 1/length {believed:.3f} +- {deviation:.3f}")
    x = symdual.evaluate.dynamics(problem.package, x, u, theta)
    y = [x[0], math.nan if k % 5 == 4 else x[1]]
