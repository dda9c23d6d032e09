"""Costs as functions of the current input: what the controllers minimise, and what sampling says (Fig. 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.runtime import exact
from symdual.runtime.belief import Belief
from symdual.runtime.planning import Planning
from symdual.runtime.problem import Problem


def cost_curve(problem: Problem, name: str, inputs: Array) -> Array:
    """J(u_0) of a controller for a problem with one input, at each of `inputs`, which should ascend.

    ce: Jbar;  beb: Jbar + tau tr S_theta;  dual: Jbar + w Jd;  cautious: Jbar + Jd without learning.
    """
    planning, module = Planning(problem, "beb" if name == "ce" else name), problem.package.dual_cost
    planning.begin()
    out = planning.costs(np.asarray(inputs)[:, None])
    return np.asarray(out[:, module.OUT_NOMINAL if name == "ce" else module.OUT_COST].copy())


class Samples(NamedTuple):
    """Sampled costs L(u_0) of the toy, (samples, inputs), under the best second input."""

    inputs: Array
    costs: Array


def sampled_costs(problem: Problem, inputs: Array, count: int, seed: int) -> Samples:
    """L(u_0) of the toy for sampled b, xi_0 and xi_1, with u_1 = -m_1 x_1 / (U + s_1 + m_1^2) (Fig. 1, left).

    The noise comes in pairs of opposite sign, and b in pairs around its mean: the mean of the samples is then smoother.
    """
    x0, m = problem.prior.mean
    s = problem.prior.covariance[1, 1]
    q = problem.package.numbers["process_noise"][0, 0]
    u_cost = problem.input_cost[:, 0, 0]
    w_cost = problem.state_cost[:, 0, 0]
    half = np.random.default_rng(seed).standard_normal((count // 2, 3))
    unit = np.concatenate([half, -half])[:, :, None]
    b, first, second = m + np.sqrt(s) * unit[:, 0], np.sqrt(q) * unit[:, 1], np.sqrt(q) * unit[:, 2]
    u0 = inputs[None]
    x1 = x0 + b * u0 + first
    spread = u0**2 * s + q
    mean, variance = (s * u0 * (x1 - x0) + m * q) / spread, s * q / spread
    u1 = -w_cost[2] * mean * x1 / (u_cost[1] + w_cost[2] * (variance + mean**2))
    x2 = x1 + b * u1 + second
    costs = w_cost[0] * x0**2 + u_cost[0] * u0**2 + w_cost[1] * x1**2 + u_cost[1] * u1**2 + w_cost[2] * x2**2
    return Samples(inputs, costs)


def exact_curve(problem: Problem, inputs: Array) -> Array:
    """The expected cost of each first input when every later one is chosen optimally (toy only)."""
    return np.array([exact.expected_cost(problem, 0, problem.prior, float(u)) for u in inputs])


def with_prior(problem: Problem, mean: float, variance: float, horizon: int) -> Problem:
    """The toy with another prior of b and another horizon."""
    covariance = problem.prior.covariance.copy()
    covariance[1, 1] = variance
    return replace(
        problem,
        state_cost=np.repeat(problem.state_cost[:1], horizon + 1, axis=0),
        input_cost=np.repeat(problem.input_cost[:1], horizon, axis=0),
        reference=np.repeat(problem.reference[:1], horizon + 1, axis=0),
        prior=Belief(np.array([problem.start[0], mean]), covariance),
    )
