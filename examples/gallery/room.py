"""
A room, the weather and the price of heat
=========================================

A house must be at least 20 degrees warm from seven in the morning to ten at night, and 17 at night, with a
probability of 0.95 in every hour. Heat is expensive in the morning and in the evening. A weather forecast and the
prices of the day are known; the house hardly is.

**What is unknown.** The losses of the house, the sun through its windows and the power of its heater, each by a fifth
or a quarter. And the forecast is wrong: a cloudy front arrives at noon, one degree colder than forecast. Only the
thermometer shows it.

**What dual control does about it.** Its plans include the knowledge it will have by the morning. `cautious`, whose
plans do not, heats more from midnight on, and much of that heat is lost by seven. By day both stay some degrees above
the limit, because the weather is uncertain, and warm the house while heat is cheap. `ce` keeps no distance and is too
cold whenever the house is worse than expected.

**When it is not worth it.** On the second day: keep the belief (`controller.belief`), and there is little left to
learn. If it may be too cold in every third hour, `ce` is the cheapest.

*Source.* Heat capacity, losses and windows are those of the simplest model of a small test house in P. Bacher and H.
Madsen, "Identifying suitable models for the heat dynamics of buildings", Energy and Buildings 43 (2011): 2.07 kWh/K,
5.29 K/kW, 7.89 m2. Prices, weather, priors and noise are assumptions.
"""

import numpy as np
from matplotlib import pyplot as plt

import symdual
from symdual.report.gallery import bands, finish, kept, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/room/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("room")
# sphinx_gallery_end_ignore

# %%
# The comparison
# --------------
# A day in steps of an hour, from midnight on. The cost is the price of the heat. It does not include the soft limit:
# read the table together with the violations below it.

RUNS = 60
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem("../heated_room.py")
found = symdual.simulate(problem, ["ce", "cautious", "dual", "oracle"], runs=RUNS, truth="prior")
print(table(found))
print(kept(found))
print(sentence(found, "dual", "cautious"))
# sphinx_gallery_start_ignore
page.remember("room", found, "cautious", since=1)
# sphinx_gallery_end_ignore

# %%
# What they do, and what they learn
# ---------------------------------
figure = plt.figure(figsize=(8.0, 9.0), layout="constrained")
panels = figure.subplots(4, 1, sharex=True)
hours = np.arange(problem.horizon + 1.0)
place = problem.package.NX + problem.package.UNKNOWNS["strength"][0]
for name in ("ce", "cautious", "dual"):
    bands(panels[0], found[name].states[:, :, 0], name, hours)
    bands(panels[1], found[name].inputs[:, :, 0], name, hours)
    bands(panels[2], np.sqrt(found[name].variances[:, :, place]), name, hours)
names, true, believed = problem.signals
panels[0].step(hours, true[:, names.index("least")], where="post", color="black", lw=1.0, ls="--")
panels[3].plot(hours, true[:, names.index("outside")], color="black", lw=1.4, label="outside")
panels[3].plot(hours, believed[:, names.index("outside")], color="black", lw=1.0, ls=":", label="forecast")
panels[3].step(hours, 10 * true[:, names.index("price")], where="post", color="#8a5a00", lw=1.2, label="price x 10")
panels[3].legend(frameon=False, fontsize=8)
finish(
    panels,
    ["temperature (degrees)", "heat (kW)", "deviation of strength", "degrees, price"],
    "hours after midnight (dashed: the least temperature; bands: 80 % of the runs)",
)
plt.show()
