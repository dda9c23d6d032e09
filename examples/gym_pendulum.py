"""Gymnasium's Pendulum-v1 with an unknown mass: hang still for a second, then hold the pendulum out to the side.

The angle is measured from the upright position, as in Gymnasium, but not wrapped. The unknown is 1 / mass: the
acceleration is linear in it. Gravity and length are known. The prior says "probably heavy, but who knows": a motor that
seems to move nothing is hardly worth its current, so a controller that only trusts its mean holds back.
`examples/gallery/gym_pendulum.py` runs it.
"""

import math

import sympy as sp

from symdual import Model, Scenario, unknown

angle, rate, torque = sp.symbols("angle rate torque")
lightness = unknown("lightness", mean=0.1, variance=0.5)
step, gravity, length = 0.05, 10.0, 1.0

new_rate = rate + step * (1.5 * gravity / length * sp.sin(angle) + 3.0 / length**2 * lightness * torque)

model = Model(
    states=[angle, rate],
    inputs=[torque],
    dynamics=[angle + step * new_rate, new_rate],
    process_noise=[1e-6, 1e-4],
    measurement_noise=[1e-2, 1.0],
    bounds={torque: (-2.0, 2.0)},
)

# nothing is asked for before step 20, then 20 degrees off the vertical; 2 sin(a/2)^2 = 1 - cos(a)
WANTED = math.pi + 0.35
off = sp.sin((angle - WANTED) / 2)
scenario = Scenario(
    model,
    horizon=50,
    cost=[off, rate],
    cost_weights=lambda k: [40.0, 0.1] if k >= 20 else [0.0, 0.0],
    terminal_cost=[off, rate],
    terminal_weights=[40.0, 0.1],
    input_cost=0.1,
    start=[math.pi, 0.0],
    start_covariance=1e-2,
    truth={"lightness": 1.0},
)
