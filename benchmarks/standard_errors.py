"""Are the standard errors of a fit honest? How often 95 % intervals contain the truth, over many simulated recordings.

    python benchmarks/standard_errors.py [--seeds 100] [--first 0] [--rows 300]

A cart with friction, drive and a spring of unknown strengths, of which only the position is measured, every tenth time
not at all. The intervals are value +- 1.96 standard errors for unknowns and first states, and on the scale of
logarithms for variances. If they are honest, the number of hits of each quantity is binomial, and errors in units of
their standard errors have mean zero and deviation one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

import numpy as np
import sympy as sp

from symdual import Model, unknown
from symdual.identification.fitted import fitted
from symdual.identification.parameters.likelihood import parameter_likelihood
from symdual.identification.parameters.prior_model import PriorModel, prior_model
from symdual.identification.surroundings import read_recordings
from symdual.runtime import evaluate

TRUTH = {"drive": 1.4, "friction": 0.5, "spring": 0.8}
PROCESS, MEASUREMENT, STEP = 4e-4, 2.5e-3, 0.1


def cart() -> Model:
    position, velocity, force = sp.symbols("position velocity force")
    drive, friction, spring = unknown("drive", 1.0, 1.0), unknown("friction", 0.3, 1.0), unknown("spring", 0.5, 1.0)
    pull = drive * force - friction * velocity - spring * sp.sin(position)
    return Model(
        [position, velocity],
        [force],
        [position + STEP * velocity, velocity + STEP * pull],
        observation=[position],
        process_noise=[0.0, 1e-3],
        measurement_noise=1e-2,
        name="coverage_cart",
    )


def recorded(about: PriorModel, rows: int, seed: int) -> tuple[dict[str, Any], dict[str, float]]:
    """A recording and the true values of all quantities."""
    random = np.random.default_rng(seed)
    inputs = 2.0 * np.repeat(random.standard_normal(rows // 15 + 1), 15)[:rows]
    x = np.array([0.5, -0.2]) + 0.1 * random.standard_normal(2)
    truth = TRUTH | {"start[position]": x[0], "start[velocity]": x[1]}
    truth |= {"process_noise[velocity]": PROCESS, "measurement_noise[position]": MEASUREMENT}
    seen = np.full(rows, np.nan)
    theta = np.array([TRUTH[name] for name in about.package.UNKNOWNS])
    for k in range(rows):
        if k % 10 != 5:
            seen[k] = x[0] + np.sqrt(MEASUREMENT) * random.standard_normal()
        x = evaluate.dynamics(about.package, x, inputs[k : k + 1], theta)
        x = x + np.array([0.0, np.sqrt(PROCESS)]) * random.standard_normal(2)
    return {"force": inputs, "position": seen}, truth


def errors(about: PriorModel, rows: int, seed: int, method: str) -> dict[str, float]:
    """Value minus truth of each quantity in units of its standard error."""
    table, truth = recorded(about, rows, seed)
    likelihood = parameter_likelihood(about, read_recordings(table, about.package), method=method)
    result = fitted(likelihood, starts=1)
    found = {}
    for e in result.estimates:
        if e.deviation is None:
            continue
        if "noise" in e.name:
            found[e.name] = float(np.log(e.value / truth[e.name]) * e.value / e.deviation)
        else:
            found[e.name] = float((e.value - truth[e.name]) / e.deviation)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--method", default="map", choices=["map", "likelihood"])
    chosen = parser.parse_args()
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        about = prior_model(cart(), folder=folder)
        seeds = range(chosen.first, chosen.first + chosen.seeds)
        found = [errors(about, chosen.rows, seed, chosen.method) for seed in seeds]
    names = sorted({name for one in found for name in one})
    columns = {name: np.array([one[name] for one in found if name in one]) for name in names}
    for name, own in (columns | {"together": np.concatenate(list(columns.values()))}).items():
        inside, spread = float(np.mean(np.abs(own) <= 1.96)), own.std(ddof=1)
        middle = f"errors {own.mean():+.2f} +- {spread / np.sqrt(len(own)):.2f}, deviation {spread:.2f}"
        print(f"{name:30s} {inside:.3f} +- {np.sqrt(inside * (1 - inside) / len(own)):.3f} of {len(own)}; {middle}")
    print(f"{time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    main()
