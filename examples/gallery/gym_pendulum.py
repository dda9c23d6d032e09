"""
Gymnasium's pendulum
====================

Pendulum-v1 of Gymnasium with unknown mass: the plant is somebody else's program. The pendulum has to hang still for a
second, and then to stay out to the side.

**What is unknown.** The mass. The model (`examples/gym_pendulum.py`, with the equations of the environment's own
documentation) has 1/mass as its unknown, because it is linear in it: 0.1, give or take 0.7, while the truth is 1. The
sensors are poor.

**What dual control does about it.** In the first second nothing is required. `dual` swings a little to weigh the
pendulum. `ce` believes that the motor hardly moves it, does nothing, and enters the second that counts with its first
guess.

**When it is not worth it.** Mostly. The prior was chosen so that learning matters, after others for which it does
not. Swinging up fails even with a known mass, because the plan stays in a local minimum. With a better guess, or when
balancing upright, dual control was no better than certainty equivalence, or worse. The number of better seeds is
below: dual control gains in the bad ones.

*Source.* The environment and its numbers: Gymnasium's documentation of Pendulum-v1. Prior and noise are assumptions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray

import symdual
from symdual.report.gallery import COLOURS, finish, sentence, table
from symdual.runtime.plants import ForeignEpisode, cost_along

# sphinx_gallery_thumbnail_path = "../out/gallery/gym_pendulum/thumbnail.png"
# sphinx_gallery_start_ignore
page = __import__("_compared")  # hidden: what keeps the results of a page
page.begin("gym_pendulum")
# sphinx_gallery_end_ignore

# %%
# The environment
# ---------------
# It hangs down at rest, except for a small push. The environment returns sine and cosine of the angle; the model
# measures the angle, not wrapped, and its rate, both with noise.

Array = NDArray[np.float64]


class Hanging(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The pendulum starts at rest, hanging down, but for a small push."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment, then move it."""
        super().reset(seed=seed, options=options)
        inner: Any = self.unwrapped
        inner.state = np.array([np.pi, 0.0]) + 0.05 * inner.np_random.standard_normal(2)
        cosine, sine = np.cos(inner.state[0]), np.sin(inner.state[0])
        return np.array([cosine, sine, inner.state[1]], dtype=np.float32), {}


def sensors(seed: int, variances: Array, truth: list[Array]) -> Callable[[Array, Array | None], Array]:
    """What the controller is given; the true angles and rates go to a list."""
    random = np.random.default_rng(seed)

    def observe(observation: Array, before: Array | None) -> Array:
        cosine, sine, rate = observation
        last = np.pi if not truth else truth[-1][0]
        angle = np.arctan2(sine, cosine)
        angle += 2 * np.pi * np.round((last - angle) / (2 * np.pi))
        truth.append(np.array([angle, rate]))
        return truth[-1] + np.sqrt(variances) * random.standard_normal(2)

    return observe


# %%
# The comparison
# --------------
# Both controllers meet the same starts and the same sensor noise, and have only one episode to learn the mass.

RUNS = 100
# sphinx_gallery_start_ignore
RUNS = page.runs(RUNS)
# sphinx_gallery_end_ignore
problem = symdual.problem("../gym_pendulum.py")
noise = np.diag(problem.package.numbers["measurement_noise"])


class Steered(NamedTuple):
    """The episodes of a controller, their true angles, and what they have cost."""

    episodes: list[ForeignEpisode]
    angles: Array
    costs: Array
    outcomes: NDArray[np.int64]


def steered(name: str, count: int) -> Steered:
    """One controller on so many seeds."""
    controller, environment = symdual.controller(problem, name), Hanging(gymnasium.make("Pendulum-v1"))
    episodes, states = [], []
    for seed in range(count):
        truth: list[Array] = []
        plant = symdual.GymPlant(environment, sensors(seed, noise, truth))
        episodes.append(symdual.run_foreign(controller, plant, seed=seed))
        states.append(np.array(truth))
    environment.close()
    failures = [episode.failure for episode in episodes if episode.failure is not None]
    if failures:
        raise SystemExit(f"{name}: {failures[0]}")
    costs = np.array([cost_along(problem, x, e.inputs) for x, e in zip(states, episodes, strict=True)])
    return Steered(episodes, np.array(states)[:, :, 0], costs, np.zeros(count, np.int64))


found = {name: steered(name, RUNS) for name in ("ce", "dual")}
print(table(found))
print(sentence(found, "dual"))
for name, own in found.items():
    known = np.mean([np.sqrt(episode.variances[20, 2]) for episode in own.episodes])
    print(f"{name:5s} deviation of 1/mass when it begins to matter: {known:.2f}")
# sphinx_gallery_start_ignore
page.remember("gym_pendulum", found)
# sphinx_gallery_end_ignore

# %%
# What they do, and what they believe
# -----------------------------------
# The first twenty seeds. `ce` on the left, `dual` on the right.

figure = plt.figure(figsize=(8.5, 6.4), layout="constrained")
axes = figure.subplots(3, 2, sharex=True, sharey="row")
seconds = 0.05 * np.arange(problem.horizon + 1)
for column, (name, own) in zip(axes.T, found.items(), strict=True):
    style = {"color": COLOURS[name], "lw": 0.9, "alpha": 0.6}
    for angles, episode in zip(own.angles[:20], own.episodes, strict=False):
        column[0].plot(seconds, np.degrees(angles) - 180.0, **style)
        column[1].step(seconds[:-1], episode.inputs[:, 0], where="post", **style)
        column[2].plot(seconds, episode.means[:, 2], **style)
    column[0].plot([1.0, seconds[-1]], [np.degrees(0.35)] * 2, "k--", lw=1.0, label="wanted")
    column[2].axhline(1.0, color="black", lw=1.0, ls="--")
    for panel in column:
        panel.axvspan(0.0, 1.0, color="black", alpha=0.04, lw=0)
    finish(column, ["angle from hanging (degrees)", "torque", "mean of 1/mass"], "seconds", name)
for panel in axes[:, 1]:
    panel.set_ylabel("")
plt.show()
