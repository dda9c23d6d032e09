"""
A planar quadrotor with unknown mass and inertia
================================================

A small quadrotor has picked up a load and has to be elsewhere in less than a second. It flies in a vertical plane:
six states, two inputs.

**What is unknown.** The load, and so two numbers: lift per thrust (1/mass), uncertain by an eighth, and angular
acceleration per torque (1/inertia), uncertain by a sixth.

**What dual control does about it.** It may shake the craft while it hovers, to learn its inertia. It need not probe
for its mass: hovering is weighing, and the certainty-equivalent controller knows the mass after a few steps, too.

**When it is not worth it.** The distance between oracle and certainty equivalence is the most that any learning could
gain; the table below shows it. A hovering craft is never at rest, its sensors are good, and feedback ten times a
second corrects much. A single chance would be another matter: a drop, or a landing on a moving deck without a second
approach.

*Sources.* Mass and inertia of the Crazyflie 2.0 from J. Foerster, "System identification of the Crazyflie 2.0 nano
quadrocopter", ETH Zurich 2015: 28 g and 1.66e-5 kg m^2; its motors lift about twice its weight. Load and noise are
assumptions (motion capture, a load of 0 to 15 g).
"""

import numpy as np
import sympy as sp
from matplotlib import pyplot as plt

import symdual
from symdual import Model, Scenario, unknown
from symdual.report.gallery import bands, finish, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/quadrotor/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("quadrotor")
# sphinx_gallery_end_ignore

# %%
# The model
# ---------
# The unit of thrust is the weight of the empty craft. The unit of torque turns the empty craft with 30 rad/s^2 (0.5 mN
# m).

GRAVITY, TURN, STEP, GO = 9.81, 30.0, 0.1, 8
x, z, tilt, vx, vz, rate = sp.symbols("x z tilt vx vz rate")
thrust, torque = sp.symbols("thrust torque")
lift = unknown("lift", mean=0.8, variance=0.1**2)  # mass of the empty craft over its mass
agility = unknown("agility", mean=0.9, variance=0.15**2)  # inertia of the empty craft over its inertia

model = Model(
    states=[x, z, tilt, vx, vz, rate],
    inputs=[thrust, torque],
    derivatives=[
        vx,
        vz,
        rate,
        -GRAVITY * lift * thrust * sp.sin(tilt),
        GRAVITY * (lift * thrust * sp.cos(tilt) - 1),
        TURN * agility * torque,
    ],
    step=STEP,
    method="rk4",
    process_noise=[1e-6, 1e-6, 1e-5, 1e-4, 1e-4, 1e-3],
    measurement_noise=[1e-5, 1e-5, 1e-4, 1e-3, 1e-3, 1e-2],
    bounds={thrust: (0.3, 2.2), torque: (-1.0, 1.0)},
    name="quadrotor",
)
scenario = Scenario(
    model,
    horizon=16,
    state_cost=lambda k: [20.0, 20.0, 1.0, 1.0, 1.0, 0.02] if k >= GO else [0.2, 0.2, 0.2, 0.02, 0.02, 0.02],
    reference=lambda k: [0.8, 0.5, 0.0, 0.0, 0.0, 0.0] if k >= GO else [0.0] * 6,
    input_cost=[0.01, 0.1],
    input_reference=[1.25, 0.0],
)

# %%
# The comparison
# --------------
# Every run has another load. A decision of `dual` with two inputs takes some 50 to 100 ms here; too slow for this
# craft without a faster machine, which is a reason more to ask whether it is worth it.

RUNS = 24
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem(scenario)
found = symdual.simulate(problem, ["ce", "dual", "oracle"], runs=RUNS, truth="prior")
print(table(found))
print(sentence(found, "oracle"))
print(sentence(found, "dual"))
# sphinx_gallery_start_ignore
page.remember("quadrotor", found)
# sphinx_gallery_end_ignore

# %%
# What they do, and what they learn
# ---------------------------------
figure = plt.figure(figsize=(8.0, 8.5), layout="constrained")
panels = figure.subplots(4, 1, sharex=True)
seconds = STEP * np.arange(problem.horizon + 1)
places = {name: problem.package.NX + problem.package.UNKNOWNS[name][0] for name in ("lift", "agility")}
for name in ("ce", "dual"):
    bands(panels[0], found[name].states[:, :, 0], name, seconds)
    bands(panels[1], np.degrees(found[name].states[:, :, 2]), name, seconds)
    for panel, place in zip(panels[2:], places.values(), strict=True):
        bands(panel, np.sqrt(found[name].variances[:, :, place]), name, seconds)
panels[0].step(seconds, problem.reference[:, 0], where="post", color="black", lw=1.0, ls="--")
labels = ["x (m)", "tilt (degrees)", "deviation of lift", "deviation of agility"]
finish(panels, labels, "seconds (dashed: wanted)")
plt.show()
