"""
Cart and pole
=============

The classical pole on a cart of Barto, Sutton and Anderson. Here it also has to be one metre further on at a given
time. Nobody has measured the pole or calibrated the motor.

**What is unknown.** The length of the pole (its inverse, so that the model is nearly linear in it), and the gain of
the motor.

**What dual control does about it.** Less than one might think. An upright pole is unstable: it must be balanced from
the first moment on, and every push that balances it is an experiment with the motor. Dual control can only be careful
in the first steps, and move a little before it must.

**When it is not worth it.** When balancing alone teaches enough. The table below shows how much there was to gain
(oracle), and how much dual control gained. Unstable plants with good sensors rarely need it.

*Source.* A. Barto, R. Sutton and C. Anderson, "Neuronlike adaptive elements that can solve difficult learning control
problems", IEEE Transactions on Systems, Man, and Cybernetics 13 (1983): a cart of 1 kg, a pole of 0.1 kg and half a
metre to its middle, 10 N. Frictions are left out; the prior and the noise are assumptions.
"""

import numpy as np
import sympy as sp
from matplotlib import pyplot as plt

import symdual
from symdual import Model, Scenario, unknown
from symdual.report.gallery import bands, finish, sentence, spread, table

# sphinx_gallery_thumbnail_path = "../out/gallery/cartpole/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("cartpole")
# sphinx_gallery_end_ignore

# %%
# The model
# ---------
# `turn` is the angular acceleration and `pull` that of the cart, as in the paper; `length` is half of the pole's.

GRAVITY, CART, POLE, STEP, GO = 9.8, 1.0, 0.1, 0.1, 12
position, speed, angle, rate, force = sp.symbols("position speed angle rate force")
inverse_length = unknown("inverse_length", mean=1.5, variance=0.3**2)
drive = unknown("drive", mean=1.0, variance=0.2**2)

push = (drive * force + POLE / inverse_length * rate**2 * sp.sin(angle)) / (CART + POLE)
turn = inverse_length * (GRAVITY * sp.sin(angle) - sp.cos(angle) * push)
turn /= sp.Rational(4, 3) - POLE * sp.cos(angle) ** 2 / (CART + POLE)
pull = push - POLE / inverse_length * turn * sp.cos(angle) / (CART + POLE)

model = Model(
    states=[position, speed, angle, rate],
    inputs=[force],
    derivatives=[speed, pull, rate, turn],
    step=STEP,
    method="rk4",
    process_noise=[1e-6, 1e-4, 1e-6, 1e-4],
    measurement_noise=[1e-4, 1e-3, 1e-4, 1e-3],
    bounds={force: (-10.0, 10.0)},
    name="cartpole",
)
scenario = Scenario(
    model,
    horizon=30,
    state_cost=lambda k: [10.0, 1.0, 10.0, 0.1] if k >= GO else [0.1, 0.1, 1.0, 0.1],
    reference=lambda k: [1.0 if k >= GO else 0.0, 0.0, 0.0, 0.0],
    input_cost=0.01,
)

# %%
# The comparison
# --------------
RUNS = 100
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem(scenario)
found = symdual.simulate(problem, ["ce", "dual", "oracle"], runs=RUNS, truth="prior")
print(table(found))
print(sentence(found, "dual"))
# sphinx_gallery_start_ignore
page.remember("cartpole", found)
# sphinx_gallery_end_ignore

gap, error = spread(found["oracle"].costs - found["ce"].costs)
print(f"An oracle, which knows pole and motor, costs {gap:+.2g} +- {error:.1g}: so much there was to gain.")

# %%
# What they do, and what they learn
# ---------------------------------
figure = plt.figure(figsize=(8.0, 8.5), layout="constrained")
panels = figure.subplots(4, 1, sharex=True)
seconds = STEP * np.arange(problem.horizon + 1)
place = problem.package.NX + problem.package.UNKNOWNS["drive"][0]
for name in ("ce", "dual"):
    bands(panels[0], found[name].states[:, :, 0], name, seconds)
    bands(panels[1], np.degrees(found[name].states[:, :, 2]), name, seconds)
    bands(panels[2], found[name].inputs[:, :, 0], name, seconds)
    bands(panels[3], np.sqrt(found[name].variances[:, :, place]), name, seconds)
panels[0].step(seconds, problem.reference[:, 0], where="post", color="black", lw=1.0, ls="--")
labels = ["position (m)", "angle (degrees)", "force (N)", "deviation of drive"]
finish(panels, labels, "seconds (dashed: wanted)")
plt.show()
