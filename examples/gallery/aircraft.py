"""
An aircraft whose elevator loses effect in flight
=================================================

In level flight, ice takes away a part of the elevator's effect. Nobody tells the controller. A little later the pilot
asks for a climb.

**What is unknown.** How much of the elevator's effect is left. The controller starts with full effect, and expects
that it may change at any time: `drift` adds to the variance in every step. Without `drift` the filter would be sure
after the first minutes, and would hardly notice the change.

**What dual control does about it.** In level flight the elevator does not move, so its effect cannot be seen: the
variance grows, and at the first command the controller acts on an old belief. Dual control may move the elevator a
little beforehand, if this costs less than the uncertainty costs later. In the first moments of the climb it weighs
probing in the same way.

**When it is not worth it.** In turbulence, or with a pilot who manoeuvres all the time, the elevator is excited
anyway. Passengers dislike probing: its price is in the cost of pitch and elevator, and if this is high, the
controller does not probe. A failure that must be found within a second needs a detector with models of failures, not
a drift.

*Sources.* Pitch dynamics of a commercial jet in cruise as in the Control Tutorials for MATLAB and Simulink (Messner
and Tilbury, University of Michigan, "Aircraft pitch"). The loss and the drift are assumptions.
"""

import numpy as np
import sympy as sp
from matplotlib import pyplot as plt

import symdual
from symdual import Model, Scenario, unknown
from symdual.report.gallery import bands, finish, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/aircraft/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("aircraft")
# sphinx_gallery_end_ignore

# %%
# The model
# ---------
# Angle of attack, pitch rate and pitch angle in radians; `effect` is the share of the elevator's effect that is left.

LOST, LEFT, CLIMB = 12, 0.3, 20  # the step of the loss, what is left then, the step of the command
attack, rate, pitch, elevator = sp.symbols("attack rate pitch elevator")
effect = unknown("effect", mean=1.0, variance=0.05)

model = Model(
    states=[attack, rate, pitch],
    inputs=[elevator],
    derivatives=[
        -0.313 * attack + 56.7 * rate + 0.232 * effect * elevator,
        -0.0139 * attack - 0.426 * rate + 0.0203 * effect * elevator,
        56.7 * rate,
    ],
    step=0.4,
    method="rk4",
    process_noise=[1e-6, 1e-9, 1e-6],
    measurement_noise=[1e-5, 1e-7, 1e-5],
    drift=0.01,
    bounds={elevator: (-0.45, 0.45)},
    name="aircraft",
)
scenario = Scenario(
    model,
    horizon=40,
    state_cost=[0.0, 0.0, 10.0],
    input_cost=0.05,
    reference=lambda k: [0.0, 0.0, 0.2 if k >= CLIMB else 0.0],
    truth=lambda k: {"effect": 1.0 if k < LOST else LEFT},
)

# %%
# The comparison
# --------------
# The truth is the same in every run, the loss after five seconds; only the noise differs. The oracle knows the loss.

RUNS = 100
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem(scenario)
found = symdual.simulate(problem, ["ce", "cautious", "dual", "oracle"], runs=RUNS)
print(table(found))
print(sentence(found, "dual"))
print(sentence(found, "dual", "cautious"))
# sphinx_gallery_start_ignore
page.remember("aircraft", found)
# sphinx_gallery_end_ignore

# %%
# What they do, and what they believe
# -----------------------------------
figure = plt.figure(figsize=(8.0, 8.0), layout="constrained")
top, middle, bottom = figure.subplots(3, 1, sharex=True)
seconds = 0.4 * np.arange(problem.horizon + 1)
for name in ("ce", "dual", "oracle"):
    bands(top, np.degrees(found[name].states[:, :, 2]), name, seconds)
    bands(middle, np.degrees(found[name].inputs[:, :, 0]), name, seconds)
    if name != "oracle":
        bands(bottom, found[name].means[:, :, 3], name, seconds)
top.step(seconds, np.degrees(problem.reference[:, 2]), where="post", color="black", lw=1.0, ls="--")
bottom.step(seconds, np.where(np.arange(len(seconds)) < LOST, 1.0, LEFT), where="post", color="black", lw=1.0, ls="--")
finish(
    (top, middle, bottom),
    ["pitch (degrees)", "elevator (degrees)", "believed effect"],
    "seconds (dashed: wanted, true)",
)
plt.show()
