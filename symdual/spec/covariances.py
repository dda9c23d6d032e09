"""Covariance functions kappa(x, x') of Gaussian processes, given symbolically, with their hyperparameters as data.

    squared_exponential   a^2 exp(-d^2/2)                        d^2 = sum_q (x_q - x'_q)^2 / lengthscale_q^2
    matern52, matern32    a^2 (1 + r + r^2/3) exp(-r), r = sqrt(5) d;   a^2 (1 + r) exp(-r), r = sqrt(3) d
    rational_quadratic    a^2 (1 + d^2 / (2 shape))^-shape
    periodic              a^2 exp(-2 sum_q sin(pi (x_q - x'_q) / period_q)^2 / lengthscale_q^2)

Sums and products of them are covariance functions too: `matern32(2.0) + periodic(1.0, period=24.0)`.

>>> day = symdual.covariances.matern32(2.0) + symdual.covariances.periodic(1.0, period=24.0)
>>> heat = symdual.features.gaussian_process("heat", sympy.Symbol("hour"), day)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import ModelError
from symdual.common.numbers import as_vector
from symdual.spec.expressions import as_expression
from symdual.spec.numeric import as_numpy
from symdual.spec.symbols import Constant, constant, matern

__all__ = ["Covariance", "matern32", "matern52", "periodic", "rational_quadratic", "squared_exponential"]

Points = tuple[sp.Symbol, ...]
#: How a covariance function gets the symbol of a hyperparameter: by its role and value.
Namer = Callable[[str, float], Constant]


def __dir__() -> list[str]:
    """What is public, for completion."""
    return __all__


@dataclass(frozen=True)
class Covariance:
    """A covariance function that is still to be told its arguments; combine two with `+` or `*`.

    >>> isinstance(symdual.covariances.matern32() * symdual.covariances.periodic(), symdual.covariances.Covariance)
    True
    """

    build: Callable[[Points, Points, Namer], sp.Expr]

    def __add__(self, other: Covariance) -> Covariance:
        return Covariance(lambda x, y, name: self.build(x, y, name) + other.build(x, y, name))

    def __mul__(self, other: Covariance) -> Covariance:
        return Covariance(lambda x, y, name: self.build(x, y, name) * other.build(x, y, name))


def squared_exponential(lengthscale: ArrayLike = 1.0, amplitude: float = 1.0) -> Covariance:
    """Very smooth functions: all derivatives exist.

    >>> g = symdual.features.gaussian_process("g", sympy.Symbol("x"), symdual.covariances.squared_exponential(2.0))
    """
    return _of_distance(lengthscale, amplitude, lambda square, name: sp.exp(-square / 2))


def matern52(lengthscale: ArrayLike = 1.0, amplitude: float = 1.0) -> Covariance:
    """Functions with two derivatives.

    >>> g = symdual.features.gaussian_process("g", sympy.Symbol("x"), symdual.covariances.matern52(2.0))
    """
    return _of_distance(lengthscale, amplitude, lambda square, name: matern(5, 5 * square) / 3)


def matern32(lengthscale: ArrayLike = 1.0, amplitude: float = 1.0) -> Covariance:
    """Functions with one derivative.

    >>> g = symdual.features.gaussian_process("g", sympy.Symbol("x"), symdual.covariances.matern32(2.0))
    """
    return _of_distance(lengthscale, amplitude, lambda square, name: matern(3, 3 * square))


def rational_quadratic(lengthscale: ArrayLike = 1.0, amplitude: float = 1.0, shape: float = 1.0) -> Covariance:
    """A mixture of squared exponentials of many length-scales.

    >>> mixed = symdual.covariances.rational_quadratic(2.0, shape=0.5)
    >>> g = symdual.features.gaussian_process("g", sympy.Symbol("x"), mixed)
    """

    def of(square: sp.Expr, name: Namer) -> sp.Expr:
        alpha = name("shape", shape)
        return (1 + square / (2 * alpha)) ** (-alpha)

    return _of_distance(lengthscale, amplitude, of)


def periodic(lengthscale: ArrayLike = 1.0, amplitude: float = 1.0, period: ArrayLike = 1.0) -> Covariance:
    """Functions that repeat themselves.

    >>> g = symdual.features.gaussian_process("g", sympy.Symbol("x"), symdual.covariances.periodic(1.0, period=24.0))
    """

    def build(x: Points, y: Points, name: Namer) -> sp.Expr:
        scale = name("amplitude", amplitude)
        lengths = _each("lengthscale", lengthscale, len(x), name)
        periods = _each("period", period, len(x), name)
        terms = zip(x, y, lengths, periods, strict=True)
        return scale**2 * sp.exp(-2 * sp.Add(*(sp.sin(sp.pi * (a - b) / p) ** 2 / s**2 for a, b, s, p in terms)))

    return Covariance(build)


#: What a model file may name by a string.
KNOWN = {f.__name__: f for f in (squared_exponential, matern52, matern32, rational_quadratic, periodic)}


def _of_distance(lengthscale: ArrayLike, amplitude: float, shape: Callable[[sp.Expr, Namer], sp.Expr]) -> Covariance:
    def build(x: Points, y: Points, name: Namer) -> sp.Expr:
        scale = name("amplitude", amplitude)
        lengths = _each("lengthscale", lengthscale, len(x), name)
        square = sp.Add(*((a - b) ** 2 / s**2 for a, b, s in zip(x, y, lengths, strict=True)))
        return scale**2 * shape(square, name)

    return Covariance(build)


def _each(role: str, values: ArrayLike, size: int, name: Namer) -> tuple[Constant, ...]:
    numbers = as_vector(values, size, f"the {role} of a covariance function")
    suffixes = [""] if size == 1 else [str(q) for q in range(size)]
    return tuple(name(role + suffix, float(number)) for suffix, number in zip(suffixes, numbers, strict=True))


def expression(
    family: str, given: Covariance | Callable[..., sp.Expr], x: Points, y: Points
) -> tuple[sp.Expr, tuple[Constant, ...]]:
    """kappa(x, x') with its constants; a plain function is called with the coordinates of x and then those of x'."""
    made: list[Constant] = []
    if isinstance(given, Covariance):
        kappa = given.build(x, y, _namer(family, made))
    else:
        kappa = as_expression(given(*x, *y), f'the kernel of "{family}"')
        if not isinstance(kappa, sp.Expr) or kappa.is_Matrix:
            raise ModelError(f'the kernel of "{family}" is {kappa!r}, which is not a scalar SymPy expression')
    foreign = kappa.free_symbols - set(x) - set(y)
    constants = tuple(sorted((s for s in foreign if isinstance(s, Constant)), key=lambda s: str(s.name)))
    if len(constants) < len(foreign):
        stranger = sorted(str(s) for s in foreign - set(constants))[0]
        raise ModelError(f'the kernel of "{family}" contains "{stranger}", which is neither an argument nor a constant')
    return kappa, constants


def _namer(family: str, made: list[Constant]) -> Namer:
    """Names like g_lengthscale; a second one of the same role becomes g_lengthscale_2."""

    def name(role: str, value: float) -> Constant:
        if role.rstrip("0123456789") in ("lengthscale", "period", "shape", "amplitude") and not value > 0:
            raise ModelError(f'the {role} of "{family}" must be positive, not {value:g}')
        taken = {c.name for c in made}
        free = next(n for n in count(1) if _numbered(family, role, n) not in taken)
        made.append(constant(_numbered(family, role, free), value))
        return made[-1]

    return name


def _numbered(family: str, role: str, number: int) -> str:
    return f"{family}_{role}" if number == 1 else f"{family}_{role}_{number}"


def check(family: str, kappa: sp.Expr, x: Points, y: Points, scales: Sequence[float]) -> None:
    """Refuse a kernel that is not symmetric, not positive semidefinite, or not differentiable where x = x'.

    Tried on random points, a few of them near each other, at each of the given scales of distance.
    """
    functions = {part: numeric(e, x, y) for part, e in _derivatives(kappa, x, y).items()}
    random = np.random.Generator(np.random.PCG64(0))
    for scale in scales:
        points = scale * random.standard_normal((24, len(x)))
        points[12:] = points[:12] + 0.1 * scale * random.standard_normal((12, len(x)))
        gram = functions[""](points[:, None], points[None])
        if not np.all(np.isfinite(gram)):
            raise ModelError(f'the kernel of "{family}" is NaN or infinite at some points')
        largest = float(np.max(np.abs(gram)))
        if np.max(np.abs(gram - gram.T)) > 1e-9 * largest:
            raise ModelError(f"the kernel of \"{family}\" is not symmetric: kappa(x, x') and kappa(x', x) differ")
        smallest = float(np.linalg.eigvalsh(0.5 * (gram + gram.T))[0])
        if smallest < -1e-9 * largest:
            raise ModelError(
                f'the kernel of "{family}" is not positive semidefinite: a covariance matrix of 24 points '
                f"has the eigenvalue {smallest:.6g}"
            )
        near = points + 1e-6 * scale / np.sqrt(len(x))
        for part, function in functions.items():
            here, beside = function(points, points), function(points, near)
            size = np.max(np.abs(function(points[:12], points[12:])), initial=0.0) + largest / scale ** len(part)
            if not np.allclose(here, beside, rtol=1e-3, atol=1e-3 * size):
                raise ModelError(
                    f'the kernel of "{family}" has no {"first" if len(part) == 1 else "second"} derivative where its '
                    "two points are the same; write distances through features.matern, or as squares"
                )


def _derivatives(kappa: sp.Expr, x: Points, y: Points) -> dict[str, sp.Expr]:
    """kappa and its derivatives by x, and by x and x' or x and x: the keys have one letter per derivative."""
    found = {"": kappa, "x": kappa.diff(x[0]), "xy": kappa.diff(x[0], y[-1]), "xx": kappa.diff(x[0], x[-1])}
    return {part: e.replace(sp.DiracDelta, lambda *_: sp.S.Zero) for part, e in found.items()}


def numeric(e: sp.Expr, x: Points, y: Points) -> Callable[[Array, Array], Array]:
    """An expression in two points as a function of arrays whose last axis holds the coordinates."""
    values = {c: sp.Float(c.value) for c in e.free_symbols if isinstance(c, Constant)}
    function = as_numpy([*x, *y], [e.xreplace(values)])

    def at(left: Array, right: Array) -> Array:
        (value,) = function(*np.moveaxis(left, -1, 0), *np.moveaxis(right, -1, 0))
        return np.broadcast_to(np.asarray(value, dtype=np.float64), np.broadcast_shapes(left.shape, right.shape)[:-1])

    return at
