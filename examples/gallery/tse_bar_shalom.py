"""
The third-order plant of Tse and Bar-Shalom
===========================================

The classical demonstration of dual control, from 1973: a linear plant with six unknown parameters has to hit a target
at one moment, twenty steps ahead.

**What is unknown.** All three coefficients of the characteristic equation and all three gains of the input. Only one
of the three states is measured, with noise. Prior and plant are those of Tse and Bar-Shalom.

**What dual control does about it.** The state has no cost before the last step, and inputs cost almost nothing. The
certainty-equivalent controller waits, because it expects to hit the target with its last few inputs. Then it hardly
knows the parameters. The dual controller excites the plant at once.

**When it is not worth it.** If the plant has to be near its target all the time, regulation is excitation enough. In
many attempts on the same plant the first one teaches most of it; this example is about a single attempt.

*Source.* E. Tse and Y. Bar-Shalom, "An actively adaptive control for linear systems with random parameters via the
dual control approach", IEEE Transactions on Automatic Control 18 (1973). There the costs of certainty equivalence
were several times those of the dual controller, over 20 runs; their second task, soft landing, is not here.
"""

import numpy as np
from matplotlib import pyplot as plt

import symdual
from symdual.paper.models.tse_bar_shalom import scenario
from symdual.report.gallery import bands, finish, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/tse_bar_shalom/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("tse_bar_shalom")
# sphinx_gallery_end_ignore

# %%
# The comparison
# --------------
# The model is a file of symdual's own (`symdual/paper/models/tse_bar_shalom.py`). First with the plant of 1973, the
# same in every run:

RUNS = 200
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem(scenario)
names = ["ce", "cautious", "dual", "oracle"]
found = symdual.simulate(problem, names, runs=RUNS, truth="scenario")
print(table(found))
print(sentence(found, "dual"))
# sphinx_gallery_start_ignore
page.remember("tse_bar_shalom", found, case="theirs")
# sphinx_gallery_end_ignore

# %%
# And with another plant in each run, drawn from the prior, which is the fairer test of a Bayesian controller:

drawn = symdual.simulate(problem, names, runs=RUNS, truth="prior")
print(table(drawn))
print(sentence(drawn, "dual"))
print(sentence(drawn, "dual", "cautious"))
# sphinx_gallery_start_ignore
page.remember("tse_bar_shalom", drawn, case="drawn")
# sphinx_gallery_end_ignore

# %%
# What they do
# ------------
# The plant of 1973. What the controllers know of the sixth unknown, in the median of the runs:
known = {name: np.median(np.sqrt(found[name].variances[:, :, 8]), axis=0) for name in names[:3]}
print(f"dual after 3 steps {known['dual'][3]:.2f}, after 10 {known['dual'][10]:.2f}; ", end="")
print(f"ce after 10 steps {known['ce'][10]:.2f}, at the end {known['ce'][-1]:.2f}")
figure = plt.figure(figsize=(8.0, 7.5), layout="constrained")
top, middle, bottom = figure.subplots(3, 1, sharex=True)
for name in ("ce", "cautious", "dual"):
    bands(top, found[name].states[:, :, 2], name)
    bands(middle, found[name].inputs[:, :, 0], name)
    bands(bottom, np.sqrt(found[name].variances[:, :, 8]), name)
top.plot(20, 20, "kx", ms=8, label="target")
middle.set_yscale("symlog", linthresh=1.0)
bottom.set_xticks(range(0, 21, 5))
finish((top, middle, bottom), ["third state", "input", "deviation of the sixth unknown"], "step")
plt.show()
