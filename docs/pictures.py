"""Make the pictures of README and first page again: `python docs/pictures.py` (a minute).

    static/learning.gif    one run of the cart of `symdual new`, with `ce` and with `dual`
    static/cart.png        the figure that `symdual simulate cart.py` draws

The run that is shown is the one, of a hundred, whose costs are nearest to the mean costs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

from symdual.report.palette import EDGE, INK, LOOKS, SOFT
from symdual.runtime.results import Results

STATIC = Path(__file__).parent / "static"
SECONDS, PICTURES, REST = 20.0, 8, 2.0  # of the film, a second of it, and at its end
TARGET, DUE = 2.0, 18
SCALE = 1.6  # of the rail
LANES = {
    "ce": ("ce", "treats its best guess as the truth"),
    "dual": ("dual", "pushes hard at first: that shows what the motor can do"),
}


def main() -> None:
    """Run the starter and draw."""
    with tempfile.TemporaryDirectory() as place:
        for command in (["new", "cart"], ["simulate", "cart.py"]):
            subprocess.run([sys.executable, "-m", "symdual", *command], cwd=place, check=True)
        folder = Path(place) / "results/cart"
        STATIC.mkdir(exist_ok=True)
        shutil.copy(folder / "figure.png", STATIC / "cart.png")
        with Results(folder / "results.npz") as results:
            film(results, STATIC / "learning.gif")


def typical(results: Results) -> int:
    """The run whose costs are nearest to the mean costs of both controllers."""
    off = [results.array(name, "costs") / results.array(name, "costs").mean() - 1.0 for name in LANES]
    return int(np.argmin(np.hypot(*off)))


def film(results: Results, file: Path) -> None:
    """Both carts on their rails, and what their controllers believe of the motor."""
    run = typical(results)
    figure = Figure(figsize=(8.0, 4.0), dpi=96, facecolor="white")
    grid = figure.add_gridspec(
        2, 2, width_ratios=[2.1, 1], left=0.02, right=0.98, top=0.86, bottom=0.12, wspace=0.1, hspace=0.55
    )
    figure.text(
        0.02, 0.94, "The cart has 18 steps to get to the flag. Nobody knows how strong its motor is.", fontsize=11
    )
    clock = figure.text(0.02, 0.02, "", fontsize=10, color=SOFT)
    lanes = [Lane(figure, grid[row, 0], grid[row, 1], name, results, run) for row, name in enumerate(LANES)]
    moving = round((SECONDS - REST) * PICTURES)
    steps = lanes[0].steps

    def draw(number: int) -> list[Any]:
        time = min(number / moving, 1.0) * steps
        clock.set_text(
            f"step {int(time)} of {steps}" + ("; every distance from the flag costs now" if time >= DUE else "")
        )
        for lane in lanes:
            lane.draw(time)
        return []

    frames = round(SECONDS * PICTURES)
    FuncAnimation(figure, draw, frames=frames, blit=False).save(file, PillowWriter(fps=PICTURES))


class Lane:
    """One cart on its rail, and the belief beside it."""

    def __init__(self, figure: Figure, left: Any, right: Any, name: str, results: Results, run: int) -> None:
        self.position = SCALE * results.array(name, "states")[run, :, 0]
        self.force = results.array(name, "inputs")[run, :, 0]
        self.steps = len(self.force)
        self.mean = results.array(name, "means")[run, :, 2]
        self.deviation = np.sqrt(results.array(name, "variances")[run, :, 2])
        self.costs = np.cumsum(results.array(name, "step_costs")[run])
        self.colour = LOOKS[name].colour
        title, words = LANES[name]
        rail = figure.add_subplot(left)
        rail.set(xlim=(-0.35, 4.0), ylim=(-0.4, 1.0), aspect="equal", anchor="W")
        rail.axis("off")
        rail.text(-0.35, 1.02, title, color=self.colour, weight="bold", fontsize=12)
        rail.text(-0.02 if name == "ce" else 0.2, 1.02, words, color=INK, fontsize=9.5)
        rail.plot([-0.35, 4.0], [-0.06, -0.06], color=EDGE, linewidth=2)
        rail.plot([SCALE * TARGET, SCALE * TARGET], [-0.06, 0.75], color=INK, linewidth=1.5)
        rail.add_patch(Rectangle((SCALE * TARGET, 0.55), 0.22, 0.2, color="#e8850c"))
        self.body = rail.add_patch(
            FancyBboxPatch((0, 0.06), 0.36, 0.2, boxstyle="round,pad=0,rounding_size=0.04", color=self.colour)
        )
        self.wheels = [rail.add_patch(Circle((0, 0), 0.055, color=INK)) for _ in range(2)]
        (self.push,) = rail.plot([], [], color=INK, linewidth=3.5, solid_capstyle="butt")
        self.cost = rail.text(-0.35, -0.32, "", fontsize=9.5, color=INK)
        belief = figure.add_subplot(right)
        belief.set(xlim=(0, self.steps), ylim=(0.2, 1.8), yticks=[0.5, 1.0, 1.5], xticks=[0, 18, 25])
        belief.tick_params(labelsize=8, colors=SOFT)
        belief.spines[["top", "right"]].set_visible(False)
        belief.set_title("strength of the motor: truth, and belief", fontsize=8.5, loc="left", color=SOFT)
        belief.axhline(results.array(name, "truths")[run, 0], color=INK, linewidth=1.0)
        self.belief, self.band = belief, None
        (self.line,) = belief.plot([], [], color=self.colour, linewidth=1.8)

    def draw(self, time: float) -> None:
        """The lane at a time between two steps."""
        k = min(int(time), self.steps - 1)
        x = float(np.interp(time, np.arange(self.steps + 1), self.position))
        self.body.set_x(x - 0.18)
        for wheel, side in zip(self.wheels, (-0.1, 0.1), strict=True):
            wheel.center = (x + side, 0.0)
        self.push.set_data([x, x + 0.22 * self.force[k]], [0.16, 0.16])
        self.push.set_visible(time < self.steps)
        self.cost.set_text(f"cost so far: {self.costs[int(time)]:.2f}")
        seen = np.arange(int(time) + 1)
        if self.band is not None:
            self.band.remove()
        low, high = (self.mean[seen] + sign * 2.0 * self.deviation[seen] for sign in (-1.0, 1.0))
        self.band = self.belief.fill_between(seen, low, high, color=self.colour, alpha=0.2, linewidth=0)
        self.line.set_data(seen, self.mean[seen])


if __name__ == "__main__":
    main()
