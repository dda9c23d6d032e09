"""
A room to be warm at seven
==========================

An office is empty at night, and cold; at seven in the morning it has to be warm, no earlier than necessary. The
weather forecast is known, the building hardly.

**What is unknown.** How fast the room loses heat and how much a kilowatt of the heater warms it, each by a fifth:
somebody has left windows open, somebody has moved in furniture.

**What dual control does about it.** The art is to begin to heat at the right time. Who believes too much of the
heater begins too late. Dual control can heat for half an hour in the evening, see what it does, and decide better in
the morning. Heat costs money, though, and most of what is put in at midnight has leaked by seven.

**When it is not worth it.** On the second day. A building is the same every morning: keep the belief
(`controller.belief`) from day to day, and certainty equivalence has all it needs. And even on the first day the
warming-up itself teaches, because it takes hours and can be corrected on the way; the numbers below say what remains.

*Source.* The sizes, about 2 kWh/K of heat capacity and 5 K/kW to the outside, are those of the simplest model for a
light wooden office building in P. Bacher and H. Madsen, "Identifying suitable models for the heat dynamics of
buildings", Energy and Buildings 43 (2011). Prices, weather and priors are assumptions.
"""

import numpy as np
import sympy as sp
from _compared import PACKAGES, bands, finish, runs, sentence, table
from matplotlib import pyplot as plt

import symdual
from symdual import Model, Scenario, signal, unknown

# %%
# The model
# ---------
# Degrees, kilowatts, half hours, from eight in the evening to nine in the morning. `outside` is a known signal: the
# forecast.

STEP, STEPS, SEVEN = 0.5, 26, 22
warmth, heat = sp.symbols("warmth heat")
outside = signal("outside", usual=2.0)
loss = unknown("loss", mean=0.09, variance=0.02**2)  # 1 / (5.3 K/kW * 2.1 kWh/K), an hour
gain = unknown("gain", mean=0.48, variance=0.1**2)  # 1 / 2.1 K/kWh

model = Model(
    states=[warmth],
    inputs=[heat],
    dynamics=[warmth + STEP * (loss * (outside - warmth) + gain * heat)],
    process_noise=0.05**2,
    measurement_noise=0.1**2,
    bounds={heat: (0.0, 10.0)},
    name="room",
)
scenario = Scenario(
    model,
    horizon=STEPS,
    state_cost=lambda k: 4.0 if k >= SEVEN else 0.0,
    reference=21.0,
    input_cost=0.01,
    start=17.0,
    start_covariance=0.1,
    signals={outside: lambda k: 2.0 - 3.0 * np.sin(np.pi * k / STEPS)},
)

# %%
# The comparison
# --------------
task = symdual.prepare(scenario, folder=PACKAGES / "room")
found = symdual.simulate(task, ["ce", "cautious", "dual", "oracle"], runs=runs(400), truth="prior")
print(table(found))
print(sentence(found, "oracle"))
print(sentence(found, "dual"))

# %%
# What they do, and what they learn
# ---------------------------------
figure = plt.figure(figsize=(8.0, 7.5), layout="constrained")
panels = figure.subplots(3, 1, sharex=True)
hours = STEP * np.arange(STEPS + 1) - 4.0
place = task.package.NX + task.package.UNKNOWNS["gain"][0]
for name in ("ce", "cautious", "dual"):
    bands(panels[0], found[name].states[:, :, 0], name, hours)
    bands(panels[1], found[name].inputs[:, :, 0], name, hours)
    bands(panels[2], np.sqrt(found[name].variances[:, :, place]), name, hours)
panels[0].axhline(21.0, color="black", lw=1.0, ls="--")
for panel in panels:
    panel.axvspan(7.0, 9.0, color="black", alpha=0.05, lw=0)
finish(
    panels,
    ["temperature (degrees)", "heat (kW)", "deviation of gain"],
    "hours after midnight (shaded: when it matters)",
)
plt.show()
