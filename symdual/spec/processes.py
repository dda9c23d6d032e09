"""Gaussian processes as feature families: unknown functions without a fixed basis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import ModelError, did_you_mean
from symdual.common.numbers import as_semidefinite, rounded
from symdual.spec import covariances
from symdual.spec.arguments import Arguments, array_symbol, expressions, output_count, require_count, slots_for
from symdual.spec.covariances import Covariance
from symdual.spec.expressions import as_expression, check_part
from symdual.spec.fitted import read as read_fitted
from symdual.spec.names import check_name
from symdual.spec.symbols import (
    Constant,
    DataArray,
    Family,
    FeatureSum,
    Process,
    WeightArray,
    constant,
)


def gaussian_process(
    name: str,
    arguments: Arguments,
    kernel: str | Covariance | Callable[..., sp.Expr] = "squared_exponential",
    lengthscale: ArrayLike | None = None,
    amplitude: float | None = None,
    mean: sp.Expr | Callable[..., sp.Expr] = sp.S.Zero,
    outputs: int = 1,
    output_covariance: ArrayLike | None = None,
    memory: int = 64,
    novelty: float = 0.0,
    fitted: Mapping[str, float] | str | Path | None = None,
) -> sp.Expr | tuple[sp.Expr, ...]:
    """Return m(a) + g(a) with g ~ GP(0, kappa): an unknown function of states and inputs.

    What is learned of g is kept at the points where the system has been, at most `memory` of them. As long as there is
    room, nothing is approximated; the points of a plan need room too, so an episode of T steps needs `memory` = T for
    each point that one step evaluates. Beyond that a value is taken as a combination of the remembered ones, and what
    they leave open of it as noise.

    Args:
        kernel: the name of one of `symdual.covariances`, a combination of them, or a function kappa(*x, *x').
        lengthscale, amplitude: for a kernel given by name; one length-scale or one per argument.
        mean: m, as an expression or a function of the arguments.
        novelty: a value that the remembered ones explain up to this share of its prior variance takes no room; for
            endless operation, where the memory should cover a region and not the first steps.
        outputs, output_covariance: several functions g_o with cov(g_o(a), g_p(b)) = V_op kappa(a, b).
        fitted: values of hyperparameters by name, or the file that `symdual fit` wrote.

    >>> wind = symdual.features.gaussian_process("wind", sympy.Symbol("x"), "matern52", lengthscale=2.0, memory=40)
    >>> wind.family.count
    40
    """
    points = expressions(name, arguments)
    check_name(name, f'the Gaussian process "{name}"')
    require_count(name, memory)
    if not 0 <= novelty < 1:
        raise ModelError(f'the novelty of "{name}" must be at least 0 and below 1, but is {novelty:g}')
    slots = slots_for(len(points))
    suffixes = [""] if len(points) == 1 else [str(q) for q in range(len(points))]
    places = tuple(array_symbol(f"{name}_point{suffix}") for suffix in suffixes)
    kappa, constants = covariances.expression(name, _chosen(name, kernel, lengthscale, amplitude), slots, places)
    if fitted is not None:
        kappa, constants = _with_values(name, kappa, constants, fitted)
    for part in sp.preorder_traversal(kappa):
        if not isinstance(part, sp.Symbol):
            check_part(part, f'the kernel of "{name}"')
    lengths = [c.value for c in constants if "_lengthscale" in c.name]
    covariances.check(name, kappa, slots, places, (0.3 * min(lengths, default=1.0), 2.0 * max(lengths, default=1.0)))
    family = _family(name, slots, places, kappa, constants, memory, novelty, output_count(name, outputs))
    values = [FeatureSum.of(family, o, points) for o in range(outputs)]
    mixed = values if output_covariance is None else _mixed(name, values, output_covariance)
    prior = as_expression(mean(*points) if callable(mean) else mean, f'the mean of "{name}"')
    shifted = tuple(prior + value for value in mixed)
    return shifted[0] if outputs == 1 else shifted


def _chosen(
    name: str, kernel: str | Covariance | Callable[..., sp.Expr], lengthscale: ArrayLike | None, amplitude: float | None
) -> Covariance | Callable[..., sp.Expr]:
    if isinstance(kernel, str):
        if kernel not in covariances.KNOWN:
            hint = did_you_mean(kernel, covariances.KNOWN)
            raise ModelError(f'there is no kernel "{kernel}"{hint}; known: {", ".join(covariances.KNOWN)}')
        return covariances.KNOWN[kernel](
            1.0 if lengthscale is None else lengthscale, 1.0 if amplitude is None else amplitude
        )
    if lengthscale is not None or amplitude is not None:
        raise ModelError(f'give the length-scale and the amplitude of "{name}" inside its kernel, which is not a name')
    return kernel


def _family(
    name: str,
    slots: tuple[sp.Symbol, ...],
    places: tuple[sp.Symbol, ...],
    kappa: sp.Expr,
    constants: tuple[Constant, ...],
    memory: int,
    novelty: float,
    outputs: int,
) -> Family:
    """The family of features kappa(., s_i) at the remembered points."""
    known = array_symbol(f"{name}_known")
    weights = tuple(
        WeightArray(array_symbol(f"{name}{o if outputs > 1 else ''}"), np.zeros(memory), np.zeros(memory))
        for o in range(outputs)
    )
    return Family(
        name=name,
        kind="gaussian_process",
        count=memory,
        arguments=slots,
        summands=tuple(w.symbol * known * kappa for w in weights),
        weights=weights,
        data=tuple(DataArray(symbol, np.zeros(memory)) for symbol in (*places, known)),
        constants=constants,
        process=Process(kappa, places, known, novelty),
    )


def _mixed(name: str, values: list[FeatureSum], covariance: ArrayLike) -> list[sp.Expr]:
    """Independent processes mixed by a root of V."""
    size = len(values)
    matrix = as_semidefinite(covariance, size, f'the output covariance of "{name}"')
    eigenvalues, vectors = np.linalg.eigh(matrix)
    root: Array = rounded((vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T)
    return [
        sp.Add(*(constant(f"{name}_mix{a}_{b}", float(root[a, b])) * values[b] for b in range(size)))
        for a in range(size)
    ]


def _with_values(
    name: str, kappa: sp.Expr, constants: tuple[Constant, ...], fitted: Mapping[str, float] | str | Path
) -> tuple[sp.Expr, tuple[Constant, ...]]:
    values = fitted if isinstance(fitted, Mapping) else read_fitted(Path(fitted))
    for c in constants:
        if c.name not in values and not isinstance(fitted, Mapping):
            raise ModelError(f'{fitted} has no value for "{c.name}"; fit the model again without fitted=')
    if constants and not any(c.name in values for c in constants):
        known = [c.name for c in constants]
        hint = did_you_mean(str(next(iter(values), "")), known)
        raise ModelError(f'the fitted values hold none of "{name}": {", ".join(known)}{hint}')
    replaced = {c: constant(c.name, values.get(c.name, c.value)) for c in constants}
    for before, after in replaced.items():
        if after.value <= 0 < before.value:
            raise ModelError(f'the fitted value of "{after.name}" must be positive, not {after.value:g}')
    return kappa.xreplace(replaced), tuple(replaced.values())
