"""Which likelihood fits the truth where a state is uncertain and its measurement curved?

    python benchmarks/fits_by_filter.py [--recordings 100] [--rows 200]

A wind tunnel with strong turbulence: the fan sets the mean speed, a probe of unknown constant measures dynamic
pressure, constant times speed squared. Constant, turbulence and noise of the probe are fitted with each filter to the
same recordings.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np
import sympy as sp

from symdual import Model, Scenario, unknown
from symdual.common.arrays import Array
from symdual.identification.fitted import fitted
from symdual.identification.parameters.likelihood import parameter_likelihood
from symdual.identification.parameters.prior_model import PriorModel, prior_model
from symdual.identification.surroundings import read_recordings

CONSTANT, TURBULENCE, NOISE = 0.6, 2.0**2, 0.5**2  # Pa s2/m2, m2/s2, Pa2
DECAY = 0.5  # of a difference from the fan's speed, in a step


def tunnel(filter: str) -> Scenario:
    """The model with its start; its numbers are guesses."""
    speed, fan = sp.symbols("speed fan")  # m/s
    constant = unknown("constant", mean=0.8, variance=0.3**2)
    model = Model(
        [speed],
        [fan],
        [speed + DECAY * (fan - speed)],
        observation=[constant * speed**2],
        process_noise=1.5**2,
        measurement_noise=1.0**2,
        filter=filter,
        name=f"tunnel_{filter}",
    )
    return Scenario(model, horizon=10, start=5.0, start_covariance=4.0)


def recorded(rows: int, seed: int) -> dict[str, Array]:
    """A recording of the true tunnel."""
    random = np.random.default_rng(seed)
    fan = np.repeat(random.uniform(3.0, 8.0, rows // 10 + 1), 10)[:rows]
    speed, seen = 5.0 + 2.0 * random.standard_normal(), np.zeros(rows)
    for k in range(rows):
        seen[k] = CONSTANT * speed**2 + np.sqrt(NOISE) * random.standard_normal()
        speed += DECAY * (fan[k] - speed) + np.sqrt(TURBULENCE) * random.standard_normal()
    return {"fan": fan, "y0": seen}


def estimates(about: PriorModel, rows: int, seed: int) -> list[float]:
    """The constant with its standard error, and both variances."""
    recordings = read_recordings(recorded(rows, seed), about.package, about.around)
    named = ["constant", "process_noise", "measurement_noise"]
    found = fitted(parameter_likelihood(about, recordings, only=named), starts=2).estimates
    return [found[0].value, found[0].deviation or np.nan, *(one.value for one in found[1:])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=100)
    parser.add_argument("--rows", type=int, default=200)
    chosen = parser.parse_args()
    for filter in ("extended", "second_order"):
        with tempfile.TemporaryDirectory() as folder:
            about = prior_model(tunnel(filter), folder=folder)
            estimates(about, chosen.rows, 0)  # compiled
            started = time.process_time()
            found = np.array([estimates(about, chosen.rows, seed) for seed in range(chosen.recordings)])
        seconds = (time.process_time() - started) / len(found)
        error, deviation = found[:, 0] - CONSTANT, found[:, 1]
        share, inside = ((error / deviation) ** 2).mean(), (np.abs(error / deviation) < 1.96).mean()
        print(
            f"{filter:14s} constant {found[:, 0].mean():.4f} +- {error.std(ddof=1) / np.sqrt(len(error)):.4f}, error "
            f"{np.sqrt((error**2).mean()):.4f}, standard error {deviation.mean():.4f}, squared error over its square "
            f"{share:.2f}, in 95 % interval {inside:.2f}; medians of variances {np.median(found[:, 2]):.2f}, "
            f"{np.median(found[:, 3]):.3f}; {seconds:.2f} s a fit"
        )


if __name__ == "__main__":
    main()
