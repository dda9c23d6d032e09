"""
A stirred tank whose catalyst and jacket have aged
==================================================

A continuous stirred tank with an exothermic reaction rests at its lower steady state. At a given time more product is
required. This means a hotter tank, nearer to ignition.

**What is unknown.** The activity of the catalyst and the heat transfer to the jacket, each by a tenth. The
temperature is measured, the concentration is not.

**What dual control does about it.** It may change the jacket's temperature in the quiet minutes before the change,
and observe the tank. The table below shows its gain, and the distance between certainty equivalence and the oracle.

**When it is not worth it.** The change takes minutes, feedback corrects it on the way, and the filter learns from it
anyway. In a plant that runs for months at one point, nothing has to be learned; in a plant that changes its product
every shift, it does. Plans are one and a half minutes long: over longer ones a reaction that may ignite exceeds the
range of numbers, and the table shows failed episodes.

*Source.* The tank of most textbooks of process control: Uppal, Ray and Poore, "On the dynamic behavior of continuous
stirred tank reactors", Chemical Engineering Science 29 (1974), with the numbers of Henson and Seborg, "Nonlinear
Process Control", Prentice Hall 1997. Ageing and noise are assumptions.
"""

import numpy as np
import sympy as sp
from matplotlib import pyplot as plt

import symdual
from symdual import Model, Scenario, Settings, unknown
from symdual.report.gallery import bands, finish, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/stirred_tank/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("stirred_tank")
# sphinx_gallery_end_ignore

# %%
# The model
# ---------
# Concentration in mol/l; temperatures as distances from 350 K (tank) and 300 K (jacket), in tens of degrees, so that
# all numbers are of size one. Minutes.

FLOW, RATE, ENERGY = 1.0, 7.2e10, 8750.0  # flow over volume, 1/min; 1/min; K
HEAT, TRANSFER = 5e4 / 239.0, 5e4 / (239.0 * 100.0)  # heat of reaction over heat capacity; UA over heat capacity
STEP, CHANGE, WINDOW = 0.1, 15, 15
concentration, warmth, jacket = sp.symbols("concentration warmth jacket")
activity = unknown("activity", mean=1.0, variance=0.1**2)
transfer = unknown("transfer", mean=1.0, variance=0.1**2)

temperature, coolant = 350 + 10 * warmth, 300 + 10 * jacket
reaction = activity * RATE * sp.exp(-ENERGY / temperature) * concentration
model = Model(
    states=[concentration, warmth],
    inputs=[jacket],
    derivatives=[
        FLOW * (1 - concentration) - reaction,
        (FLOW * (350 - temperature) + HEAT * reaction + TRANSFER * transfer * (coolant - temperature)) / 10,
    ],
    step=STEP,
    method="rk4",
    observation=[warmth],
    process_noise=[1e-6, 1e-4],
    measurement_noise=1e-3,
    bounds={jacket: (-1.0, 1.0)},
    name="stirred_tank",
)
scenario = Scenario(
    model,
    horizon=40,
    state_cost=[200.0, 0.0],
    reference=lambda k: [0.877 if k < CHANGE else 0.8, 0.0],
    input_cost=0.02,
    start=[0.877, -2.55],
    start_covariance=[1e-4, 1e-3],
)

# %%
# The comparison
# --------------
RUNS = 100
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem(scenario)
found = symdual.simulate(problem, ["ce", "dual", "oracle"], runs=RUNS, settings=Settings("prior", window=WINDOW))
print(table(found))
print(sentence(found, "oracle"))
print(sentence(found, "dual"))
# sphinx_gallery_start_ignore
page.remember("stirred_tank", found)
# sphinx_gallery_end_ignore

# %%
# What they do, and what they learn
# ---------------------------------
figure = plt.figure(figsize=(8.0, 8.5), layout="constrained")
panels = figure.subplots(4, 1, sharex=True)
minutes = STEP * np.arange(problem.horizon + 1)
place = problem.package.NX + problem.package.UNKNOWNS["activity"][0]
for name in ("ce", "dual"):
    bands(panels[0], found[name].states[:, :, 0], name, minutes)
    bands(panels[1], 350 + 10 * found[name].states[:, :, 1], name, minutes)
    bands(panels[2], 300 + 10 * found[name].inputs[:, :, 0], name, minutes)
    bands(panels[3], np.sqrt(found[name].variances[:, :, place]), name, minutes)
panels[0].step(minutes, problem.reference[:, 0], where="post", color="black", lw=1.0, ls="--")
labels = ["concentration (mol/l)", "temperature (K)", "jacket (K)", "deviation of activity"]
finish(panels, labels, "minutes (dashed: wanted)")
plt.show()
