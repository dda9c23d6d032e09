"""
Telescope guiding with a periodic error
=======================================

The worm gear of a telescope's mount is never quite round: the star moves over the sensor and comes back with every
turn of the worm. A guide camera measures the star, blurred by the air, and corrects.

**What is unknown.** The slip of the gear in each part of its turn: a periodic function, otherwise unknown. It is a
Gaussian process with a periodic kernel.

**What dual control does about it.** Nothing, and it knows why. The gear turns independently of the corrections; no
correction makes the next measurement more informative. `symdual show` says so before any run: "u shows in theta:
never". So the dual controller does the same as the certainty-equivalent one, and this page is about another question:
the value of a *model* of the unknown. After one turn the process knows the gear and corrects *before* the star moves;
a guider without it follows the star, always a step late.

**When it is not worth it.** Dual control: never here. The process: if exposures are short compared with the turn of
the worm, a simple guider follows well enough. In bad air a simple guider cannot average without delay, and the
process helps most.

*Sources.* The method for telescopes: Klenske, Zeilinger, Schoelkopf and Hennig, "Gaussian process-based predictive
control for periodic error correction", IEEE Transactions on Control Systems Technology 24 (2016), which is part of
the guiding program PHD2. The gear (480 s a turn, some arc seconds, with a second harmonic) and the air (0.7 arc
seconds) are typical numbers, not a measured mount.
"""

import numpy as np
import sympy as sp
from matplotlib import pyplot as plt

import symdual
from symdual import Model, Scenario, Settings, covariances, features, unknown
from symdual.report.gallery import COLOURS, finish, sentence, table

# sphinx_gallery_thumbnail_path = "../out/gallery/telescope/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("telescope")
# sphinx_gallery_end_ignore

# %%
# Two models and a mount
# ----------------------
# Arc seconds, and steps of 20 s: 24 to a turn. The plain guider expects a slip that drifts at random, at the
# rate that suits it best here. The mount itself is a third model; only the simulation knows it.

TURN, STEPS, WINDOW = 24, 72, 4
error, phase, correction = sp.symbols("error phase correction")


def mount(name: str, slip: sp.Expr, drift: float | None = None) -> Model:
    """A mount that slips by so much in a step."""
    return Model(
        states=[error, phase],
        inputs=[correction],
        dynamics=[error + slip + correction, phase + 1],
        process_noise=[0.02, 0.0],
        measurement_noise=[0.5, 0.0],
        drift=drift,
        name=name,
    )


gear = 2.2 * sp.sin(2 * sp.pi * phase / TURN) + 0.9 * sp.cos(4 * sp.pi * phase / TURN) + 0.3
periodic = covariances.periodic(1.0, amplitude=2.0, period=float(TURN))
slip = features.gaussian_process("slip", phase, periodic, memory=STEPS + WINDOW)
true = mount("telescope_gear", gear)
learning = mount("telescope", slip)
plain = mount("telescope_plain", unknown("slip", mean=0.0, variance=4.0), drift=1.0)
costs = {"state_cost": [1.0, 0.0], "input_cost": 1e-3, "plant": true}
scenarios = {
    "with a process": Scenario(learning, STEPS, **costs),
    "plain": Scenario(plain, STEPS, **costs),
}

# %%
# The comparison
# --------------
# Three turns of the worm, planned four steps ahead. The gear is the same in each run; air and wind differ. All guiders
# meet the same air and wind.

RUNS = 100
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problems = {name: symdual.problem(scenario) for name, scenario in scenarios.items()}
settings = Settings(window=WINDOW)
process = symdual.simulate(problems["with a process"], ["ce", "dual"], runs=RUNS, settings=settings)
follower = symdual.simulate(problems["plain"], ["ce"], runs=RUNS, settings=settings)
guiders = {"plain": follower["ce"], "process": process["ce"]}
print(table(guiders, "plain"))
print(sentence(guiders, "process", "plain"))
print(sentence(process, "dual", "ce"))
# sphinx_gallery_start_ignore
page.remember("telescope", process)
# sphinx_gallery_end_ignore

# %%
# The star on the sensor
# ----------------------
# For some four minutes both are alike. Before the end of the first turn, the process knows the gear well enough to
# predict it; the other guider is late at every bend. Squares are averaged over two minutes.
figure, (top, bottom) = plt.subplots(2, 1, figsize=(8.0, 6.0), sharex=True, layout="constrained")
minutes = np.arange(STEPS + 1) / 3
near = np.convolve(np.ones(STEPS + 1), np.ones(6), mode="same")  # how many squares there are: fewer at the ends
for name, colour in (("plain", "ce"), ("process", "dual")):
    squares = guiders[name].states[:, :, 0] ** 2
    smooth = np.convolve(squares.mean(axis=0), np.ones(6), mode="same") / near
    top.plot(minutes, np.sqrt(smooth), color=COLOURS[colour], label=name)
    low, middle, high = np.quantile(guiders[name].states[:, :, 0], [0.1, 0.5, 0.9], axis=0)
    bottom.plot(minutes, middle, color=COLOURS[colour], label=name)
    bottom.fill_between(minutes, low, high, color=COLOURS[colour], alpha=0.13, lw=0)
for turn in (1, 2):
    for panel in (top, bottom):
        panel.axvline(turn * TURN / 3, color="black", lw=0.8, ls=":")
labels = ["root mean square (arc seconds)", "error (arc seconds)"]
finish((top, bottom), labels, "minutes (dotted: a turn of the worm)", "below: medians, and 80 % of the runs")
plt.show()

# %%
# The belief of the process about the gear after three turns, in the first run:

known = symdual.posterior(problems["with a process"].package, process["ce"].last_belief(0), np.linspace(0, TURN, 97))
at, shape = np.linspace(0, TURN, 97) / 3, sp.lambdify(phase, gear)(np.linspace(0, TURN, 97))
figure, panel = plt.subplots(figsize=(8.0, 3.0), layout="constrained")
deviation = np.sqrt(np.diag(np.atleast_2d(known.covariance)))
panel.plot(at, known.mean, color=COLOURS["dual"], label="believed, with two deviations")
panel.fill_between(at, known.mean - 2 * deviation, known.mean + 2 * deviation, color=COLOURS["dual"], alpha=0.15, lw=0)
panel.plot(at, shape, color="black", lw=1.0, ls="--", label="true")
finish((panel,), ["slip in a step"], "minutes of a turn", "")
plt.show()
