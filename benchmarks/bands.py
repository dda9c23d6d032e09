"""Are the bands of a fitted model honest, even if it leaves something out? Shares in 95 % bands, simulated recordings.

    python benchmarks/bands.py [--seeds 20] [--first 0] [--rows 600]

A heater with a valve, whose temperature is measured, is fitted to one recording and left alone on another, half
as long. Both fitted models are a lag of first order; `plain` has white noise only, `rest` a state more for what lasts
some steps. Recordings are of four kinds:

    right     what lasts is as in `rest`
    slow      there is also something that lasts 140 steps, as changes of the room would
    curved    the valve is no straight line, and there is a second lag
    restless  what lasts is large at times and small at others, for some 300 steps

A third model, `basin`, has an outlet that is a Gaussian process, the root of the volume in truth, and learns it from
120 rows in two recordings, whose parts are too short for predictions far ahead; it is left alone on 60 rows.

For the model left alone, and for predictions ten steps and one step ahead: the share in the bands that the model says,
in the bands widened by held-out parts of the fitted recording (`symdual.identification.held_out`), each with the
standard error of its mean over the seeds; the mean of the factor; and of how many recordings the share lies within what
`validate` expects of it, 0.95 +- 1.96 deviations.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import numpy as np
import sympy as sp

from symdual import Model, Scenario, features, fit, unknown, validate
from symdual.common.arrays import Array
from symdual.identification.fit import fit_parameters
from symdual.identification.parameters.prior_model import PriorModel, prior_model
from symdual.identification.surroundings import read_recordings
from symdual.identification.validate import Prediction, Validation, validated

CASES, AHEAD = ("right", "slow", "curved", "restless"), 10
LASTS, SLOW, MOOD = (0.9, 0.2), (0.993, 0.25), (0.997, 0.5)  # what is left of each after a step, and its deviation


def heater(with_rest: bool) -> Scenario:
    heat, rest, valve = sp.symbols("heat rest valve")
    gain, loss, level = unknown("gain", 1.0, 1.0), unknown("loss", 0.1, 0.01), unknown("level", 0.0, 1.0)
    fade = unknown("fade", 0.8, 0.04)
    states, dynamics = [heat], [heat + loss * (gain * valve + level - heat)]
    if with_rest:
        states, dynamics = [heat, rest], [*dynamics, fade * rest]
    model = Model(
        states,
        [valve],
        dynamics,
        observation=[sum(states)],
        process_noise=[0.0, 1e-2] if with_rest else [1e-4],
        measurement_noise=1e-2,
        name="heater_rest" if with_rest else "heater_plain",
    )
    return Scenario(model, horizon=20, start_covariance=1.0)


def basin() -> Scenario:
    volume, pump = sp.symbols("volume pump")
    outflow = features.gaussian_process(
        "outflow", volume, kernel="squared_exponential", lengthscale=60.0, amplitude=4.0
    )
    model = Model(
        [volume],
        [pump],
        [volume + 0.5 * (unknown("share", 1.0, 0.04) * pump - outflow)],
        observation=[0.4 * volume],
        process_noise=0.1,
        measurement_noise=0.05,
        name="basin",
    )
    return Scenario(model, horizon=20, start=100.0, start_covariance=25.0)


def poured(name: str, rows: int, random: np.random.Generator) -> dict[str, Array]:
    pump = np.repeat(random.uniform(0.0, 30.0, rows // 8 + 1), 8)[:rows]
    volume, seen = 100.0 + 5.0 * random.standard_normal(), np.full(rows, np.nan)
    for k in range(rows):
        if k % 11:  # every eleventh measurement is lost
            seen[k] = 0.4 * volume + 0.1 * random.standard_normal()
        volume += 0.5 * (0.9 * pump[k] - 1.35 * np.sqrt(volume)) + 0.2 * random.standard_normal()
    return {"pump": pump, name: seen}


def walk(rows: int, random: np.random.Generator, kept: float, deviation: float) -> Array:
    """What keeps this share of itself in a step and has this deviation."""
    values = deviation * random.standard_normal(rows)
    for k in range(1, rows):
        values[k] = kept * values[k - 1] + np.sqrt(1 - kept**2) * values[k]
    return values


def recorded(name: str, case: str, rows: int, random: np.random.Generator) -> dict[str, Array]:
    valve = np.repeat(random.uniform(-2.0, 2.0, rows // 12 + 1), 12)[:rows]
    rest, slow, mood = (walk(rows, random, *lasts) for lasts in (LASTS, SLOW, MOOD))
    if case == "slow":
        rest = rest + slow
    if case == "restless":
        rest = rest * np.exp(mood)
    lag, heat, seen = 0.0, 0.0, np.zeros(rows)
    for k in range(rows):
        seen[k] = heat + rest[k] + 0.05 * random.standard_normal()
        drive = 1.3 * valve[k] + 0.2
        if case == "curved":
            lag += 0.25 * (drive + 0.25 * valve[k] ** 2 - 1 / 3 - lag)
            heat += 0.15 * (lag - heat)
        else:
            heat += 0.12 * (drive - heat)
    return {"valve": valve, name: seen}


def shares(made: Prediction) -> tuple[float, float, float, float]:
    """In the model's own band, in the widened one, the factor, and whether the share is within what is expected."""
    off = abs(made.inside[0] - 0.95) <= 1.96 * made.inside_deviation[0]
    return float(made._replace(factor=np.ones(1)).inside[0]), float(made.inside[0]), float(made.factor[0]), float(off)


def judged(about: PriorModel, case: str, rows: int, seed: int) -> list[tuple[float, ...]]:
    random = np.random.default_rng(seed)
    (name,) = about.package.MEASUREMENTS
    seen, unseen = (read_recordings(recorded(name, case, count, random), about.package) for count in (rows, rows // 2))
    result = fit_parameters(about, seen, starts=1)
    (found,) = validated(result, unseen, length=AHEAD)
    return judgements(found)


def judged_process(scenario: Scenario, folder: str, seed: int) -> list[tuple[float, ...]]:
    random = np.random.default_rng(seed)
    *seen, unseen = (poured("y0", count, random) for count in (70, 50, 60))
    result = fit(scenario, seen, starts=1, folder=folder)
    (found,) = validate(result, unseen, length=2 * AHEAD, folder=folder)
    return judgements(found)


def judgements(found: Validation) -> list[tuple[float, ...]]:
    return [shares(found.simulation), shares(found.ahead[-1]), shares(found.ahead[0])]


def show(name: str, case: str, ahead: int, judged: list[list[tuple[float, ...]]]) -> None:
    found = np.array(judged)
    means, errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
    for what, mean, error in zip(("left alone", f"{ahead} ahead", "1 ahead"), means, errors, strict=True):
        print(
            f"{name:14s} {case:8s} {what:11s} own band {mean[0]:.3f} +- {error[0]:.3f}, widened "
            f"{mean[1]:.3f} +- {error[1]:.3f}, factor {mean[2]:.2f}, as expected {mean[3]:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", type=int, default=600)
    chosen = parser.parse_args()
    started = time.process_time()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    with tempfile.TemporaryDirectory() as folder:
        outlet = basin()
        show("basin", "process", 2 * AHEAD, [judged_process(outlet, folder, seed) for seed in seeds])
        for with_rest in (True, False):
            about = prior_model(heater(with_rest), folder=folder)
            for case in CASES:
                show(about.name, case, AHEAD, [judged(about, case, chosen.rows, seed) for seed in seeds])
    print(f"{time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    main()
