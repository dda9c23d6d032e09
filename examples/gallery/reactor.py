"""
A reactor whose catalyst drifts, at a limit
===========================================

A stirred tank makes B from A. A higher feed gives more B, but also leaves more A, and no more than 1.85 mol/l of A
may leave the tank, with a probability of 0.95. So the best flow lies on the limit. Its place depends on the activity
of the catalyst, which drifts.

**What is unknown.** The activity: 1, give or take a tenth, with a drift of 1.5 % in every two minutes. B is measured,
A is not. And there is a trap: an active catalyst also turns B into C. At about 11 volumes of the tank an hour, just
at the limit, both effects balance, and B says nothing about the catalyst.

**What dual control does about it.** Now and then it moves the flow away from there, observes B, and comes back.
`cautious` does not plan to learn, but its distance from the limit takes it to lower flows, where it sees more than
`ce`. `ce` stays on the limit without knowing where the limit is.

**When it is not worth it.** The table below shows the price of the experiments: within this hour the product does not
pay for them; only the limit is kept more often. If one violation in twenty minutes is allowed, `cautious` is enough.
With an analyser for A there is no question.

*Source.* Rates and feed are those of H. Chen, A. Kremling and F. Allgöwer, "Nonlinear predictive control of a
benchmark CSTR", European Control Conference 1995, at its operating temperature, which the jacket is assumed to hold.
Drift, noise and limit are assumptions. There were three versions before this one: a limit of 2.3 mol/l with one
unknown, where running at the limit taught all controllers the same; two unknowns; and the present limit, where the
measurement is blind. Step and length of the plans were then chosen to save computing time.
"""

import numpy as np
from matplotlib import pyplot as plt

import symdual
from symdual import Settings
from symdual.report.gallery import bands, finish, kept, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/reactor/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("reactor")
# sphinx_gallery_end_ignore

# %%
# The comparison
# --------------
# Plans of sixteen minutes, episodes of an hour. The cost is minus the outflow of B, plus a little for changes of the
# flow. It does not include the limit: read the table together with the violations below it.

RUNS = 60
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem("../reactor.py")
settings = Settings("drift", window=8)
found = symdual.simulate(problem, ["ce", "cautious", "dual", "oracle"], runs=RUNS, settings=settings)
print(table(found))
print(kept(found, since=5))
print(sentence(found, "dual", "cautious"))
# sphinx_gallery_start_ignore
page.remember("reactor", found, "cautious", since=5)
# sphinx_gallery_end_ignore

# %%
# What they do, and what they learn
# ---------------------------------
figure = plt.figure(figsize=(8.0, 8.5), layout="constrained")
panels = figure.subplots(4, 1, sharex=True)
minutes = 2.0 * np.arange(problem.horizon + 1)
place = problem.package.NX + problem.package.UNKNOWNS["activity"][0]
for name in ("ce", "cautious", "dual"):
    bands(panels[0], found[name].states[:, :, 0], name, minutes)
    bands(panels[1], 10 * found[name].inputs[:, :, 0], name, minutes)
    bands(panels[2], np.sqrt(found[name].variances[:, :, place]), name, minutes)
panels[0].axhline(1.85, color="black", lw=1.0, ls="--")
for name in ("ce", "cautious", "dual"):
    bands(panels[3], 10 * found[name].inputs[:1, :, 0], name, minutes)
finish(
    panels,
    ["A left over (mol/l)", "flow (1/h)", "deviation of activity", "flow of run 0 (1/h)"],
    "minutes (dashed: limit; bands: 80 % of the runs)",
)
plt.show()
