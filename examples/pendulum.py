"""A pendulum with a motor, of unknown length and friction, in continuous time.

Its derivatives are those of the Runge-Kutta step, exactly.

The angle is measured from the lower rest position. The unknowns are 1/length and friction/(mass length^2): chosen so
that the acceleration is linear in them.
"""

import sympy as sp

from symdual import Model, Scenario, constant, unknown

angle, rate, torque = sp.symbols("angle rate torque")
gravity = constant("gravity", 9.81)
inverse_length = unknown("inverse_length", mean=1.0, variance=0.1)
friction = unknown("friction", mean=0.2, variance=0.05)

model = Model(
    states=[angle, rate],
    inputs=[torque],
    derivatives=[rate, -gravity * inverse_length * sp.sin(angle) - friction * rate + torque],
    step=0.1,
    method="rk4",
    process_noise=[1e-5, 1e-4],
    measurement_noise=1e-3,
    bounds={torque: (-6.0, 6.0)},
)

# swing up to the horizontal and hold there; 2 sin(a/2)^2 = 1 - cos(a) has no opinion about whole turns
off = sp.sin((angle - sp.pi / 2) / 2)
scenario = Scenario(
    model,
    horizon=30,
    cost=[off, rate],
    cost_weights=lambda k: [40.0, 0.1] if k >= 15 else [0.0, 0.0],
    terminal_cost=[off, rate],
    terminal_weights=[40.0, 0.1],
    input_cost=1e-2,
    truth={"inverse_length": 1.25, "friction": 0.1},
)
