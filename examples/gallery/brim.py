"""
A vessel and its brim
=====================

A vessel is to be filled as near to its brim as possible, and must stay below it with a probability of 0.95. The pump
is new. Every filling line has this task, and so has every process with its best point on a limit.

**What is unknown.** The gain of the pump: 1 per stroke, give or take 0.5.

**What dual control does about it.** For eight steps nothing is required. `dual` uses them: it draws the level far
down, where strong strokes are safe and teach most. It knows the pump better when it matters, and can go nearer to the
brim than `cautious`, which keeps a distance because of the uncertain pump. `ce` keeps no distance at all. `planned`
compares the cost of every stroke with the distance that it saves.

**When it is not worth it.** If you fill the vessel a hundred times with the same pump, keep the belief from fill to
fill instead. If the distance to the brim costs little, `cautious` is simpler and as good. The cost does not include
the constraint: the gain of `dual` at the brim first has to pay for its strokes.

*Source.* None: the system is invented, to show a constraint with little around it (`examples/brim.py`). The
:doc:`reactor <reactor>` and the :doc:`room <room>` are from the literature.
"""

import numpy as np
from matplotlib import pyplot as plt

import symdual
from symdual.report.gallery import bands, finish, kept, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/brim/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("brim")
# sphinx_gallery_end_ignore

# %%
# The comparison
# --------------
# Every run has another pump, drawn from the prior. All controllers meet the same pumps. The constraint and the cost of
# the level count from the same step on.

WANTED = 8
RUNS = 200
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem("../brim.py")
found = symdual.simulate(problem, ["ce", "cautious", "dual", "planned"], runs=RUNS, truth="prior")
print(table(found, "cautious"))
print(kept(found, since=WANTED))
print(sentence(found, "dual", "cautious"))
print(sentence(found, "planned", "dual"))
print(sentence(found, "planned", "cautious"))
# sphinx_gallery_start_ignore
page.remember("brim", found, "cautious", since=WANTED)
# sphinx_gallery_end_ignore

# %%
# What they do, and what they learn
# ---------------------------------
figure = plt.figure(figsize=(8.0, 8.5), layout="constrained")
panels = figure.subplots(4, 1, sharex=True)
for name, own in found.items():
    bands(panels[0], own.states[:, :, 0], name)
    bands(panels[1], own.states[:, :, 0], name)
    bands(panels[2], own.inputs[:, :, 0], name)
    bands(panels[3], np.sqrt(own.variances[:, :, 2]), name)
for panel in panels[:2]:
    panel.axhline(1.0, color="black", lw=1.0, ls="--")
for panel in panels:
    panel.axvspan(0, WANTED, color="black", alpha=0.04, lw=0)
panels[1].set_ylim(0.8, 1.12)
labels = ["level", "level near the brim", "stroke", "deviation of strength"]
finish(panels, labels, "step (dashed: the brim; shaded: nothing is asked for)")
plt.show()
