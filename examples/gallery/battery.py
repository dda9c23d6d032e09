"""
A battery whose charge shows only where its voltage curve is steep
==================================================================

A cell of unknown charge is to be at half its charge, within a few per cent, four hours from now.

**What is unknown.** The charge itself: 0.4, give or take 0.1. The cell is old, so its capacity is uncertain by a
tenth and its inner resistance by a quarter. Only the voltage is measured, and in the middle of its curve it says
little: 0.1 of charge is 30 mV there, no more than the noise of the sensor.

**What dual control does about it.** Within the first quarter of an hour it charges the cell to a point where the
voltage curve is steeper. There it measures again and again while it slowly discharges, and it reaches the target in
time. The certainty-equivalent controller moves the cell from the estimated charge to the target, along the flat part
of the curve, and has learned less when it arrives. `cautious` does the same as `dual`: it does not plan to learn
*parameters*, but its plans include what it will learn about the *state*, and here only this matters. It does not help
to know capacity and resistance: the oracle knows them, but not the charge, and plans as if its estimate were right.

**When it is not worth it.** Lead-acid cells, and older lithium cells with a sloping curve, show their charge
anywhere. With a good coulomb counter and a full charge once a week, the charge is known. Cycling also wears a cell;
here it has the price of any other current.

*Sources.* Voltage curve of Chen and Rincon-Mora, "Accurate electrical battery model capable of predicting runtime and
I-V performance", IEEE Transactions on Energy Conversion 21 (2006), for a lithium-ion polymer cell (their series
resistance is 0.07 ohm in the middle range). Ageing and noise are assumptions.
"""

import numpy as np
import sympy as sp
from matplotlib import pyplot as plt

import symdual
from symdual import Model, Scenario, previous, unknown
from symdual.report.gallery import COLOURS, bands, finish, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/battery/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("battery")
# sphinx_gallery_end_ignore

# %%
# The model
# ---------
# The current is in capacities per hour and the charge is a share, so `gain` is nominal over true capacity. The voltage
# is measured under the current of the step before.

STEP = 0.25  # hours
charge, current = sp.symbols("charge current")
gain = unknown("gain", mean=1.1, variance=0.1**2)
resistance = unknown("resistance", mean=0.08, variance=0.02**2)
at_rest = 3.685 - 1.031 * sp.exp(-35 * charge) + 0.2156 * charge - 0.1178 * charge**2 + 0.3201 * charge**3

model = Model(
    states=[charge],
    inputs=[current],
    dynamics=[charge + STEP * gain * current],
    observation=[at_rest + resistance * previous(current)],
    process_noise=1e-6,
    measurement_noise=0.03**2,
    bounds={current: (-1.0, 1.0)},
    name="battery",
)
scenario = Scenario(
    model,
    horizon=20,
    state_cost=lambda k: 100.0 if k >= 16 else 0.0,
    reference=0.5,
    input_cost=0.005,
    start=0.4,
    start_covariance=0.1**2,
)

# %%
# The comparison
# --------------
# Every run has another cell, drawn from the prior. All controllers meet the same cells.

RUNS = 200
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem(scenario)
found = symdual.simulate(problem, ["ce", "cautious", "dual", "oracle"], runs=RUNS, truth="prior")
print(table(found))
print(sentence(found, "dual"))
print(sentence(found, "dual", "cautious"))
# sphinx_gallery_start_ignore
page.remember("battery", found)
# sphinx_gallery_end_ignore

# %%
# What they do
# ------------
figure = plt.figure(figsize=(8.0, 7.5), layout="constrained")
top, middle, bottom = figure.subplots(3, 1, sharex=True)
hours = STEP * np.arange(problem.horizon + 1)
for name in ("ce", "cautious", "dual"):
    bands(top, found[name].states[:, :, 0], name, hours)
    bands(middle, found[name].inputs[:, :, 0], name, hours)
    bands(bottom, np.sqrt(found[name].variances[:, :, 0]), name, hours)
top.axhline(0.5, color="black", lw=1.0, ls="--")
for panel in (top, middle, bottom):
    panel.axvspan(4.0, 5.0, color="black", alpha=0.05, lw=0)
finish((top, middle, bottom), ["charge", "current", "deviation of the charge"], "hours (shaded: when it matters)")
plt.show()

# %%
# The error of the charge after four hours, sorted over the runs, and the voltage curve that explains it. In the middle,
# one measurement leaves the charge uncertain by a tenth.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.2), layout="constrained")
for name in ("ce", "dual"):
    distances = np.sort(np.abs(found[name].states[:, 16, 0] - 0.5))
    left.plot(distances, np.arange(1, len(distances) + 1) / len(distances), color=COLOURS[name], label=name)
finish((left,), ["share of the runs"], "distance from 0.5 after four hours", "")
shares = np.linspace(0.02, 1.0, 200)
slope = sp.lambdify(charge, sp.diff(at_rest, charge))(shares)
right.semilogy(shares, 0.03 / slope, color="black", lw=1.4)
right.set_ylabel("left open by one measurement")
right.set_xlabel("charge")
right.grid(alpha=0.25, lw=0.6)
plt.show()
