"""Fig. 3: the squared-exponential kernel and its approximation by the Fourier features of Exp 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from symdual.common.arrays import Array
from symdual.common.numbers import root
from symdual.paper.experiments.figures.style import LOOKS, Picture, figure, picture
from symdual.report.palette import HIGHLIGHT, INK, SOFT
from symdual.runtime.loading import LoadedPackage

LENGTHSCALE = 7.0  # that of Exp 2
NOISE = 1e-2
POINTS = np.array([-11.0, -6.0, -1.0, 2.0, 9.0])
GRID = np.linspace(-25.0, 25.0, 301)


def kernel_figure(package: LoadedPackage, seed: int) -> Picture:
    """Prior, posterior and kernel function of the full kernel (top) and of the features of Exp 2 (bottom)."""
    omega, scale = _entries(package)

    def cosines(a: Array, b: Array) -> Array:
        return np.asarray(scale**2 * np.sum(np.cos(omega * (a[:, None] - b)[:, :, None]), axis=2))

    drawn = figure(4.0)
    panels = drawn.subplots(2, 3, width_ratios=[1, 1, 0.9])
    names = ("squared-exponential kernel", f"{2 * len(omega)} Fourier features")
    distance = np.linspace(0.0, 50.0, 301)
    truth = full(distance, np.zeros(1))[:, 0]
    near = distance <= 20.0
    worst = float(np.max(np.abs(cosines(distance, np.zeros(1))[:, 0] - truth)[near]))
    for row, kernel, name in zip(panels, (full, cosines), names, strict=True):
        draws = np.random.default_rng(seed).standard_normal((len(GRID), 3))
        _process(row[0], np.zeros(len(GRID)), kernel(GRID, GRID), draws)
        _process(row[1], *posterior(kernel(POINTS, POINTS), kernel(GRID, POINTS), kernel(GRID, GRID)), draws)
        row[1].plot(POINTS, true_slope(POINTS), color=INK, marker="o", linestyle="", markersize=4)
        row[2].plot(distance, truth, color=SOFT, linestyle=(0, (1, 1)), linewidth=1.4)
        row[2].plot(distance, kernel(distance, np.zeros(1))[:, 0], color=LOOKS["dual"].colour)
        row[2].axhline(0.0, color=SOFT, linewidth=0.5)
        row[2].set(xlim=(0, 50), ylim=(-0.25, 1.08))
        row[0].set_ylabel(name)
    for axes, title in zip(panels[0], ("prior", "after five values of the true slope", "kernel function"), strict=True):
        axes.set_title(title)
    for axes, label in zip(panels[1], ("position", "position", "distance"), strict=True):
        axes.set_xlabel(label)
    return picture(
        drawn,
        "fig3-kernel",
        "Fig. 3: the kernel and its approximation by features",
        "Thick: mean. Thin: two standard deviations. Dashed: draws. Top: the squared-exponential kernel with the "
        "length-scale of Exp 2; bottom: the features that Exp 2 really uses (dotted in the right column: the full "
        f"kernel again). Up to a distance of 20, the width of the track, the two kernel functions differ by at most "
        f"{worst:.2f}; farther away the features stay correlated, because a finite sum of waves comes back.",
        f"Six panels; the kernel functions differ by at most {worst:.3f} up to a distance of 20.",
    )


def full(a: Array, b: Array) -> Array:
    """exp(-(a_i - b_j)^2 / (2 lengthscale^2))."""
    return np.asarray(np.exp(-((a[:, None] - b) ** 2) / (2.0 * LENGTHSCALE**2)))


def _entries(package: LoadedPackage) -> tuple[Array, float]:
    data, places = package.numbers["data"], package.DATA_ENTRIES
    start, count = places["v_frequency"]
    return data[start : start + count], float(data[places["v_scale"][0]])


def true_slope(position: Array) -> Array:
    """g of Exp 2 and 3: -0.8 s(-(x + 5)) + 0.4 s(x - 5) with the logistic s."""
    return -0.8 / (1.0 + np.exp(position + 5.0)) + 0.4 / (1.0 + np.exp(5.0 - position))


def posterior(given: Array, across: Array, prior: Array) -> tuple[Array, Array]:
    """Mean and covariance of a Gaussian process after the values of the true slope at `POINTS`."""
    gain = np.linalg.solve(given + NOISE * np.eye(len(given)), across.T).T
    return gain @ true_slope(POINTS), prior - gain @ across.T


def _process(axes: Any, mean: Array, covariance: Array, draws: Array) -> None:
    look = LOOKS["dual"]
    spread = 2.0 * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    axes.plot(GRID, mean[:, None] + root(covariance) @ draws, color=HIGHLIGHT, linestyle=(0, (4, 2)), linewidth=0.8)
    axes.plot(GRID, np.stack([mean - spread, mean + spread]).T, color=look.colour, linewidth=0.8)
    axes.plot(GRID, mean, color=look.colour, linewidth=2.0)
    axes.set(xlim=(GRID[0], GRID[-1]), ylim=(-3.2, 3.2), yticks=[-2, 0, 2])
