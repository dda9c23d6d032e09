"""JAX, compiled in double precision: generic code (jacfwd, hessian, dense products), one with structure."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.workload import STEP, Answer, Workload


def missing() -> str | None:
    """Return why JAX cannot run here, or None."""
    return None if importlib.util.find_spec("jax") else "jax is not installed"


def implementations(work: Workload, build: Path) -> list[Implementation]:
    """Return all kernels, repeated inside compiled code."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    one_thread = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ.setdefault("XLA_FLAGS", one_thread)
    import jax

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    import jax.numpy as jnp

    move = _dynamics(jnp, work)
    slope, curvature = jax.jacfwd(move), jax.hessian(lambda z, u, costate: jnp.dot(costate, move(z, u)))
    step = _covariance_step(jnp, work)
    z, covariance, u, y, costate, controls = (
        jnp.asarray(a)
        for a in (work.mean, work.covariance, work.control, work.measurement, work.costate, work.controls)
    )

    def ekf(z: Any, covariance: Any, u: Any, y: Any) -> Any:
        following = move(z, u)
        _, updated, gain = step(slope(z, u), covariance)
        return following + gain @ (y - following[:2]), updated

    dense, structured = _dense_cost(jax, jnp, work, move, slope, step), _structured_cost(jax, jnp, work)
    tasks: list[tuple[str, str, str, Callable[..., Any], tuple[Any, ...]]] = [
        ("dynamics", "JAX", "f", move, (z, u)),
        ("jacobian", "JAX", "jacfwd", slope, (z, u)),
        ("hessian", "JAX", "hessian", curvature, (z, u, costate)),
        ("ekf", "JAX", "dense", ekf, (z, covariance, u, y)),
        ("dual_cost", "JAX", "dense", dense, (z, covariance, controls)),
        ("dual_cost", "JAX, structured by hand", "structured", structured, (z, covariance, controls)),
    ]
    return [_repeated(jax, jnp, *task) for task in tasks]


def _repeated(
    jax: Any,
    jnp: Any,
    kernel: str,
    row: str,
    variant: str,
    function: Callable[..., Any],
    given: tuple[Any, ...],
) -> Implementation:
    """Return the repetition in a compiled loop; each turn depends on the last, so that none is left out."""

    def loop(n: Any, given: tuple[Any, ...]) -> Any:
        def turn(_: Any, state: Any) -> Any:
            z, _last = state
            found = function(z, *given[1:])
            first = jax.tree.leaves(found)[0].ravel()[0]
            return z + 1e-300 * first, found

        blank = jax.tree.map(jnp.zeros_like, function(*given))
        return jax.lax.fori_loop(0, n, turn, (given[0], blank))[1]

    compiled = jax.jit(loop)
    last: list[Any] = [None]

    def repeat(n: int) -> None:
        last[0] = jax.block_until_ready(compiled(n, given))

    def answer() -> Answer:
        return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(last[0]))

    return Implementation(kernel, row, variant, repeat, answer, True)


def _basis(jnp: Any, work: Workload) -> Callable[[Any], tuple[Any, Any]]:
    frequencies, sine = jnp.asarray(work.frequencies), jnp.asarray(np.arange(work.features) % 2 == 0)

    def basis(position: Any) -> tuple[Any, Any]:
        s, c = jnp.sin(frequencies * position), jnp.cos(frequencies * position)
        return work.scale * jnp.where(sine, s, c), work.scale * frequencies * jnp.where(sine, c, -s)

    return basis


def _dynamics(jnp: Any, work: Workload) -> Callable[[Any, Any], Any]:
    basis = _basis(jnp, work)

    def move(z: Any, u: Any) -> Any:
        moved = jnp.stack([z[0] + STEP * z[1], z[1] + basis(z[0])[0] @ z[2:] + u])
        return jnp.concatenate([moved, z[2:]])

    return move


def _covariance_step(jnp: Any, work: Workload) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
    """Return a function to predicted and updated covariance and gain, with dense products."""
    constant = workload.matrices(work)
    process, observation, noise = map(jnp.asarray, (constant.process, constant.observation, constant.measurement))

    def step(slope: Any, covariance: Any) -> tuple[Any, Any, Any]:
        predicted = slope @ covariance @ slope.T + process
        seen = observation @ predicted
        innovation = seen @ observation.T + noise
        gain = jnp.linalg.solve(innovation, seen).T
        return predicted, predicted - gain @ seen, gain

    return step


def _dense_cost(jax: Any, jnp: Any, work: Workload, move: Any, slope: Any, step: Any) -> Callable[..., Any]:
    constant = workload.matrices(work)
    weights, push = jnp.asarray(constant.weights), jnp.asarray(constant.control)

    def forward(state: Any, u: Any) -> Any:
        z, covariance = state
        moved = slope(z, u)
        predicted, updated, _ = step(moved, covariance)
        return (move(z, u), updated), (moved, predicted, updated, covariance)

    def backward(state: Any, step_data: Any) -> Any:
        riccati, cost = state
        moved, predicted, updated, covariance, weight = step_data
        cost = cost + jnp.sum(weight * covariance) + jnp.sum((predicted - updated) * riccati)
        pushed = riccati @ push
        reduced = riccati - pushed @ pushed.T / (push.T @ pushed + workload.CONTROL_COST)
        return (moved.T @ reduced @ moved + weight, cost), None

    def cost(z: Any, covariance: Any, controls: Any) -> Any:
        (_, last), history = jax.lax.scan(forward, (z, covariance), controls)
        end = (weights[-1], jnp.sum(weights[-1] * last))
        (_, total), _ = jax.lax.scan(backward, end, (*history, weights[:-1]), reverse=True)
        return 0.5 * total

    return cost


def _structured_cost(jax: Any, jnp: Any, work: Workload) -> Callable[..., Any]:
    """Return the same recursions in blocks (states, weights), with only what varies rebuilt."""
    basis, identity = _basis(jnp, work), jnp.eye(2)
    weights = jnp.asarray(np.stack([np.diag(pair) for pair in work.weights]))
    drift = jnp.array([[1.0, STEP], [0.0, 1.0]])

    def forward(state: Any, u: Any, v: Any) -> Any:
        x, spread, cross, inner = state
        phi, slope = basis(x[0])
        moved = drift.at[1, 0].set(slope @ v)
        carried = inner @ phi
        row = (moved @ cross).at[1].add(carried)
        mixed = jnp.zeros((2, 2)).at[:, 1].set(moved @ (cross @ phi))
        predicted = moved @ spread @ moved.T + mixed + mixed.T + workload.PROCESS_VARIANCE * identity
        predicted = predicted.at[1, 1].add(phi @ carried)
        seen = predicted + workload.MEASUREMENT_VARIANCE * identity
        adjugate = jnp.array([[seen[1, 1], -seen[0, 1]], [-seen[1, 0], seen[0, 0]]])
        inverse = adjugate / (seen[0, 0] * seen[1, 1] - seen[0, 1] ** 2)
        gain = inverse @ row
        following = jnp.array([x[0] + STEP * x[1], x[1] + phi @ v + u])
        updated = (predicted - predicted @ inverse @ predicted, row - predicted @ gain, inner - row.T @ gain)
        return (following, *updated), (moved, phi, row, predicted, inverse, spread)

    def backward(state: Any, step_data: Any) -> Any:
        own, mixed, inner, cost = state
        moved, phi, row, predicted, inverse, spread, weight = step_data
        half = predicted @ mixed @ row.T
        quadratic = predicted @ own @ predicted + half + half.T + row @ (inner @ row.T)
        cost = cost + jnp.sum(weight * spread) + jnp.sum(inverse * quadratic)
        scale = 1.0 / (own[1, 1] + workload.CONTROL_COST)
        reduced = own - jnp.outer(own[:, 1], own[1]) * scale
        reduced_mixed = mixed - jnp.outer(own[:, 1], mixed[1]) * scale
        pair = reduced_mixed[1] + 0.5 * reduced[1, 1] * phi
        inner = inner - jnp.outer(mixed[1], mixed[1]) * scale + jnp.outer(phi, pair) + jnp.outer(pair, phi)
        mixed = moved.T @ (jnp.outer(reduced[:, 1], phi) + reduced_mixed)
        return (moved.T @ reduced @ moved + weight, mixed, inner, cost), None

    def cost(z: Any, covariance: Any, controls: Any) -> Any:
        start = (z[:2], covariance[:2, :2], covariance[:2, 2:], covariance[2:, 2:])
        (_, last, _, _), history = jax.lax.scan(lambda state, u: forward(state, u, z[2:]), start, controls)
        blank = (jnp.zeros((2, work.features)), jnp.zeros((work.features, work.features)))
        end = (weights[-1], *blank, jnp.sum(weights[-1] * last))
        (*_, total), _ = jax.lax.scan(backward, end, (*history, weights[:-1]), reverse=True)
        return 0.5 * total

    return cost
