"""
A battery whose charge shows only where its voltage curve is steep
==================================================================

A cell that has lain about is to be stored at half its charge, within a few per cent, four hours from now.

**What is unknown.** The charge itself: 0.4, give or take 0.1. And an aged cell's capacity and inner resistance, by a
tenth and a quarter. All there is to see is the voltage between its poles, and in the middle of its curve a cell gives
away little: 0.1 of charge is 30 mV there, no more than the noise of the sensor.

**What dual control does about it.** It knows the curve, and so it knows where to look. Within the first quarter of an
hour it charges the cell to where the voltage rises faster, reads it there again and again while it comes back slowly,
and is in place in time. The certainty-equivalent controller moves the cell from where it believes it to be to where
it ought to be, along the flat of the curve, and has learned less when it arrives. `cautious` does as `dual` does: it
plans no learning about *parameters*, but its plans count on what will be learned of the *state*, and here that is all
that matters. Nor does knowing capacity and resistance help: the oracle knows the cell but not its charge, and plans
as if it did.

**When it is not worth it.** With cells of lead acid, or of the older lithium chemistries with a sloping curve, one
look is enough anywhere. With a good coulomb counter and a full charge once a week the charge is known. And cycling
wears a cell: here a swing is priced like any other current, which is a matter of the cost, not of the method.

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
# Current is counted in capacities per hour and charge as a share, so that `gain` is nominal over true capacity. The
# voltage is measured under the current of the step before.

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
# Every run has another cell, drawn from what is believed, and all controllers meet the same ones.

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
# How far off the charge was after four hours, by the share of the runs that were nearer; and the curve that explains
# it. In the middle one measurement leaves the charge open by a tenth.

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
