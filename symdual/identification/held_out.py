"""How wide bands must be, from parts of the fitted recordings that are held out in turn.

Bands of a fitted model are right if the model is. What it leaves out makes errors larger than it expects, here more and
there less, and mostly when it is left alone for long; the fit itself cannot tell, for it has seen these errors. So each
recording is cut into `PARTS` + 1 parts. The first stays, since it says where the recording begins; each of the others
is held out once, the same quantities are fitted to what is left, and errors e in the part are compared with the
deviations s that the model expects of them: for each measurement, 1 to L steps ahead, and for the model left alone from
the part's first row to its last. A part j says that the variance is m_j times what the model expects,

    log m_j = log mean (e / s)^2 + 1 / nu_j  +-  (2 / nu_j)^1/2

where nu_j independent squares would know as much as these errors, which last for a while (`autocorrelation`). Parts may
differ by more than that. A recording to come is like another part: with the variance tau^2 between parts (DerSimonian
and Laird) and the mean mu +- sigma over them,

    log m ~ Student's distribution around mu, of scale (tau^2 + sigma^2)^1/2, degrees of freedom: parts - 1

and the factor f makes the band right on average over m, E P(|z| m^1/2 < 1.96 f) = 0.95 for a normal z. Bands are never
made narrower than the model says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student

from symdual.common.arrays import Array
from symdual.identification.autocorrelation import LIMIT, effective_squares
from symdual.identification.parameters.filtering import Filter
from symdual.identification.parameters.prior_model import PriorModel, fitted_filter
from symdual.identification.result import FirstState, Setting
from symdual.runtime.replay import Recording

PARTS = 4  #: how many parts of each recording are held out
SHORTEST = 10  #: rows of a part; shorter ones say nothing of a model that is left alone


class Wider(NamedTuple):
    """By how much a band is wider than the model says, and the scale of log m around its mean: (NY,) both."""

    factor: Array
    unsure: Array


class Factors(NamedTuple):
    """What bands are multiplied by, for 1 to L steps ahead and when left alone."""

    ahead: tuple[Wider, ...]
    simulation: Wider


class Rest(NamedTuple):
    """A model fitted to recordings without a part: its numbers, and the covariance (NTHETA, NTHETA) of unknowns.

    `filters` run over the recordings with these unknowns known: they have learned from the same rows already.
    """

    about: PriorModel
    setting: Setting
    unknowns: Array
    filters: Sequence[Filter]


#: fits recordings of which a part is blank
Refit = Callable[[Sequence[Recording]], Rest]


class Predictor(NamedTuple):
    """A fitted model, ready to predict: its numbers, and the covariance (NTHETA, NTHETA) of unknowns.

    `starts` are the first states of the recordings that it was fitted to; `refit` fits it without a part of them.
    """

    about: PriorModel
    setting: Setting
    unknowns: Array
    starts: tuple[FirstState, ...]
    refit: Refit


class Part(NamedTuple):
    """Errors in units of what is expected in a part of a recording: (rows, L, NY) ahead, (rows, NY) left alone."""

    ahead: Array
    simulation: Array


def factors(recordings: Sequence[Recording], fitted_without: Refit, length: int) -> Factors:
    """Judge a fit by parts of its own recordings; factors are one where these are too short."""
    outputs = recordings[0].measurements.shape[1]
    as_it_says = Wider(np.ones(outputs), np.zeros(outputs))
    if min(len(one.times) for one in recordings) < SHORTEST * (PARTS + 1):
        return Factors((as_it_says,) * length, as_it_says)
    found = [part for number in range(1, PARTS + 1) for part in judged(recordings, fitted_without, number, length)]
    ahead: list[Wider] = []
    for steps in range(length):
        # a part has few errors farther ahead than half its length: what was found nearer is all that is known there
        long_enough = [part.ahead[:, steps] for part in found if 2 * (steps + 1) <= len(part.ahead)]
        ahead.append(_wider(long_enough, ahead[-1] if ahead else as_it_says))
    return Factors(tuple(ahead), _wider([part.simulation for part in found], as_it_says))


def judged(recordings: Sequence[Recording], fitted_without: Refit, number: int, length: int) -> Iterator[Part]:
    """What a fit without part `number` of each recording makes of these parts."""
    cuts = [np.linspace(0, len(one.times), PARTS + 2).astype(int) for one in recordings]
    parts = [slice(cut[number], cut[number + 1]) for cut in cuts]
    blanked = [_without(one, part) for one, part in zip(recordings, parts, strict=True)]
    rest = fitted_without(blanked)
    for one, part, known, whole in zip(blanked, parts, rest.filters, recordings, strict=True):
        filtered = known.run(one.inputs, one.measurements)
        nx, nz = rest.about.package.NX, rest.about.package.NZ
        covariance = np.zeros((nz, nz))
        covariance[np.ix_(known.active, known.active)] = filtered.covariances[part.start]
        covariance[nx:, nx:] += rest.unknowns
        own = fitted_filter(rest.about, rest.setting, None, one)._replace(
            mean=filtered.means[part.start],
            covariance=covariance,
            signals=None if one.signals is None else np.ascontiguousarray(one.signals[part]),
        )
        yield _part(own, one.inputs[part], whole.measurements[part], length)


def _without(one: Recording, part: slice) -> Recording:
    measurements = one.measurements.copy()
    measurements[part] = np.nan
    return one._replace(measurements=measurements)


def _part(own: Filter, inputs: Array, measured: Array, length: int) -> Part:
    alone = own.run(inputs, np.full_like(measured, np.nan))
    outputs, variances = own.forecast(inputs, measured, own.run(inputs, measured), length)
    ahead = np.full_like(outputs, np.nan)
    for steps in range(1, length + 1):
        ahead[steps:, steps - 1] = (measured[steps:] - outputs[:-steps, steps - 1]) / np.sqrt(
            variances[:-steps, steps - 1]
        )
    return Part(ahead, (measured - alone.outputs) / np.sqrt(alone.variances))


def _wider(parts: Sequence[Array], otherwise: Wider) -> Wider:
    """The factor of each measurement from errors (rows, NY) of all parts; `otherwise` where these say nothing."""
    found = [factor([part[:, a] for part in parts]) or known for a, known in enumerate(zip(*otherwise, strict=True))]
    return Wider(*np.array(found).T)


def factor(parts: Sequence[Array]) -> tuple[float, float] | None:
    """By how much a band is wider, and the scale of log m, from errors (rows,) of each part in expected deviations.

    None if fewer than two parts have errors.
    """
    known = [part for part in parts if np.any(part[np.isfinite(part)])]
    if len(known) < 2:
        return None
    counts = np.array([np.isfinite(part).sum() for part in known])
    freedom = effective_squares(known) * counts / counts.sum()
    levels = np.log([np.nanmean(part**2) for part in known]) + 1.0 / freedom
    mean, scale = _predicted(levels, 2.0 / freedom)
    # the distribution of log m by its quantiles
    quantiles = mean + scale * student.ppf((np.arange(400) + 0.5) / 400, len(known) - 1)

    def short_of(wider: float) -> float:
        return float(np.mean(norm.cdf(LIMIT * wider * np.exp(-0.5 * quantiles))) - norm.cdf(LIMIT))

    return float(brentq(short_of, 1.0, 1e3)) if short_of(1.0) < 0 < short_of(1e3) else 1.0, scale


def _predicted(levels: Array, variances: Array) -> tuple[float, float]:
    """Where another level lies, and the scale of what is not known of it, from levels known with these variances."""
    weights = 1.0 / variances
    off = levels - np.average(levels, weights=weights)
    excess = float(weights @ off**2) - (len(levels) - 1)
    between = max(0.0, excess / float(weights.sum() - weights @ weights / weights.sum()))
    weights = 1.0 / (variances + between)
    return float(np.average(levels, weights=weights)), math.sqrt(between + 1.0 / weights.sum())
