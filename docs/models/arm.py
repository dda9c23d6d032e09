"""An upright arm with two links picks up a load of unknown weight."""

import sympy as sp
from sympy.physics.mechanics import (
    LagrangesMethod,
    Particle,
    Point,
    ReferenceFrame,
    dynamicsymbols,
)

from symdual import Model, Scenario, unknown

shoulder, elbow = dynamicsymbols("shoulder elbow")  # angles to the horizontal, in radians
lower, upper = dynamicsymbols("lower upper")  # torques of the motors, in newton metres
load = unknown("load", mean=1.0, variance=0.4**2)  # kilograms

space, base = ReferenceFrame("N"), Point("base")
base.set_vel(space, 0)
first = space.orientnew("A", "Axis", [shoulder, space.z])
second = space.orientnew("B", "Axis", [elbow, space.z])
joint = base.locatenew("joint", 0.5 * first.x)
hand = joint.locatenew("hand", 0.4 * second.x)
joint.v2pt_theory(base, space, first)
hand.v2pt_theory(joint, space, second)
bodies = Particle("motor", joint, 2.0), Particle("load", hand, load)
kinetic = sum(body.kinetic_energy(space) for body in bodies)
heights = [body.point.pos_from(base).dot(space.y) for body in bodies]
potential = sum(9.81 * body.mass * height for body, height in zip(bodies, heights, strict=True))
torques = [(first, (lower - upper) * space.z), (second, upper * space.z)]

lagrangian, angles = kinetic - potential, [shoulder, elbow]
equations = LagrangesMethod(lagrangian, angles, forcelist=torques, frame=space)
equations.form_lagranges_equations()

arm = Model.from_mechanics(
    equations,
    [lower, upper],
    step=0.05,
    substeps=2,
    observation=[shoulder, elbow],
    process_noise=[0.0, 0.0, 1e-3, 1e-3],
    measurement_noise=0.002**2,
    bounds={lower: (-30.0, 30.0), upper: (-12.0, 12.0)},
    filter="iterated_second_order",
)

lift = Scenario(
    arm,
    horizon=40,
    start=[-sp.pi / 2, -sp.pi / 2, 0.0, 0.0],  # hanging
    start_covariance=1e-5,
    reference=[0.3, 0.8, 0.0, 0.0],
    state_cost=[100.0, 100.0, 1.0, 1.0],
    input_cost=0.005,
    truth={"load": 1.6},
)
