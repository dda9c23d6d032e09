"""Feature families: sums over an index, g(x) = sum_i v_i phi(x; psi_i), with unknown weights and known psi_i.

Every family returns a scalar that can be used like any SymPy expression in the dynamics or the observation.
It is kept as its summand for a generic index, so that nothing derived or generated grows with the number of features.

>>> x, u = sympy.symbols("x u")
>>> slope = symdual.features.fourier("v", x, count=30, lengthscale=7.0)
>>> symdual.Model([x], [u], [x + slope + u])
<Model without a name: states x, inputs u, unknowns v_sin (15), v_cos (15)>
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from statistics import NormalDist

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import ModelError
from symdual.common.numbers import as_numbers, as_semidefinite, as_vector, rounded
from symdual.spec.arguments import Arguments, array_symbol, expressions, output_count, require_count, slots_for
from symdual.spec.expressions import as_expression, check_part
from symdual.spec.names import check_name
from symdual.spec.processes import gaussian_process as gaussian_process
from symdual.spec.symbols import (
    Constant,
    DataArray,
    Family,
    FeatureSum,
    WeightArray,
    constant,
    monomial,
    unknown,
)
from symdual.spec.symbols import (
    logistic as _logistic_function,
)
from symdual.spec.symbols import (
    matern as matern,
)

__all__ = ["custom", "fourier", "gaussian_process", "linear", "logistic", "matern", "polynomial", "rbf"]


def __dir__() -> list[str]:
    """What is public, for completion."""
    return __all__


def linear(name: str, arguments: Arguments, mean: ArrayLike = 0.0, variance: ArrayLike = 1.0) -> sp.Expr:
    """Return sum_i v_i x_i over the given arguments, with unknown weights whose names are `name` and a number.

    >>> sorted(s.name for s in symdual.features.linear("a", sympy.symbols("x v")).free_symbols)
    ['a0', 'a1', 'v', 'x']
    """
    points = expressions(name, arguments)
    require_count(name, len(points))
    means = as_vector(mean, len(points), f'the prior mean of "{name}"')
    variances = as_vector(variance, len(points), f'the prior variance of "{name}"')
    weights = [unknown(f"{name}{i}", float(means[i]), float(variances[i])) for i in range(len(points))]
    return sp.Add(*(weight * point for weight, point in zip(weights, points, strict=True)))


def polynomial(
    name: str,
    arguments: Arguments,
    degree: int,
    mean: ArrayLike = 0.0,
    variance: ArrayLike = 1.0,
    outputs: int = 1,
) -> FeatureSum | tuple[FeatureSum, ...]:
    """Return sum_i v_i prod_q x_q**p_qi over all monomials of total degree at most `degree`, the constant included.

    >>> symdual.features.polynomial("p", sympy.symbols("x v"), degree=2).family.count
    6
    """
    points = expressions(name, arguments)
    require_count(name, degree + 1)
    powers = [p for p in product(range(degree + 1), repeat=len(points)) if sum(p) <= degree]
    powers.sort(key=lambda p: (sum(p), tuple(-q for q in p)))
    exponents = np.array(powers, dtype=np.float64)
    slots = slots_for(len(points))
    data = _data_columns(name, "power", exponents)
    term = sp.Mul(*(monomial(slot, array.symbol) for slot, array in zip(slots, data, strict=True)))
    return _weighted(name, "polynomial", points, slots, (term,), ("",), data, (), mean, variance, outputs)


def fourier(
    name: str,
    arguments: Arguments,
    count: int,
    lengthscale: ArrayLike = 1.0,
    amplitude: float = 1.0,
    frequencies: ArrayLike | None = None,
    seed: int | None = None,
    mean: ArrayLike = 0.0,
    variance: ArrayLike = 1.0,
    outputs: int = 1,
) -> FeatureSum | tuple[FeatureSum, ...]:
    """Return c sum_i [v_sin_i sin(omega_i x) + v_cos_i cos(omega_i x)], `count` features, c = amplitude sqrt(2/count).

    With unit prior variance the covariance of two values is c^2 sum_i cos(omega_i (x - x')), which approaches
    amplitude^2 times the squared-exponential kernel exp(-(x - x')^2 / (2 lengthscale^2)). The frequencies are

    - quantiles of the kernel's spectrum N(0, 1/lengthscale^2), folded to positive values (one argument, the default);
    - drawn from it with `seed` (any number of arguments);
    - or given as `frequencies`: count/2 rows that a sine and a cosine share, or `count` rows, one per feature, sines at
      the first, third, ... place and cosines at the second, fourth, ... as in the paper's Appendix B.

    Rounded to 12 digits, so that every machine generates the same bytes.

    >>> symdual.features.fourier("v", sympy.Symbol("x"), count=30, lengthscale=7.0).family.size
    30
    """
    points = expressions(name, arguments)
    require_count(name, count)
    if count % 2:
        raise ModelError(f'the features "{name}" come in pairs of a sine and a cosine: count must be even, not {count}')
    if frequencies is None:
        omega = _spectrum(name, len(points), count // 2, lengthscale, seed)
    else:
        omega = as_numbers(frequencies, f'the frequencies of "{name}"')
        omega = omega[:, None] if omega.ndim == 1 else omega
        if omega.ndim != 2 or omega.shape[1] != len(points) or omega.shape[0] not in (count // 2, count):
            raise ModelError(
                f'the frequencies of "{name}" must be {count // 2} or {count} rows of {len(points)}, '
                f"but have shape {omega.shape}"
            )
    scale = constant(f"{name}_scale", float(f"{amplitude * np.sqrt(2.0 / count):.12g}"))
    slots = slots_for(len(points))
    if len(omega) == count // 2:
        data = _data_columns(name, "frequency", omega)
        sine_phase = cosine_phase = _inner(data, slots)
    else:
        sines = _data_columns(name, "sine_frequency", omega[0::2])
        cosines = _data_columns(name, "cosine_frequency", omega[1::2])
        data, sine_phase, cosine_phase = sines + cosines, _inner(sines, slots), _inner(cosines, slots)
    terms = (scale * sp.sin(sine_phase), scale * sp.cos(cosine_phase))
    return _weighted(name, "fourier", points, slots, terms, ("_sin", "_cos"), data, (scale,), mean, variance, outputs)


def rbf(
    name: str,
    arguments: Arguments,
    centres: ArrayLike,
    lengthscale: ArrayLike = 1.0,
    mean: ArrayLike = 0.0,
    variance: ArrayLike = 1.0,
    outputs: int = 1,
) -> FeatureSum | tuple[FeatureSum, ...]:
    """Return sum_i v_i exp(-sum_q (x_q - c_qi)^2 / (2 lengthscale_q^2)), one feature per row of `centres`.

    >>> symdual.features.rbf("g", sympy.Symbol("x"), centres=[-1.0, 0.0, 1.0]).family.count
    3
    """
    points = expressions(name, arguments)
    places = as_numbers(centres, f'the centres of "{name}"')
    places = places[:, None] if places.ndim == 1 else places
    if places.ndim != 2 or places.shape[1] != len(points):
        raise ModelError(f'the centres of "{name}" must be rows of {len(points)}, but have shape {places.shape}')
    require_count(name, len(places))
    scales = _lengthscales(name, lengthscale, len(points))
    slots = slots_for(len(points))
    data = _data_columns(name, "centre", places)
    suffixes = [""] if len(points) == 1 else [str(q) for q in range(len(points))]
    lengths = tuple(constant(f"{name}_lengthscale{s}", float(scales[q])) for q, s in enumerate(suffixes))
    square = sp.Add(
        *(
            (slot - array.symbol) ** 2 / (2 * length**2)
            for slot, array, length in zip(slots, data, lengths, strict=True)
        )
    )
    return _weighted(name, "rbf", points, slots, (sp.exp(-square),), ("",), data, lengths, mean, variance, outputs)


def logistic(
    name: str,
    arguments: Arguments,
    locations: ArrayLike,
    location_variance: ArrayLike | None = None,
    mean: ArrayLike = 0.0,
    variance: ArrayLike = 1.0,
    slope_mean: ArrayLike = 1.0,
    slope_variance: ArrayLike = 1.0,
    outputs: int = 1,
) -> FeatureSum | tuple[FeatureSum, ...]:
    """Return the two-layer network sum_i v_i s(a_i) with s(a) = 1/(1 + exp(-a)), unknown weights v and slopes w.

    One argument: a_i = w_i (x - b_i). Several arguments: a_i = sum_q w_qi x_q + b_i, with one slope array per argument.
    `locations` are the b_i; they are known unless `location_variance` is given. `slope_mean` and `slope_variance` are
    one number, one per unit, or one row of them per argument.

    >>> network = symdual.features.logistic("net", sympy.Symbol("x"), locations=[-1.0, 0.0, 1.0])
    >>> [weight.symbol.name for weight in network.family.weights]
    ['net_v', 'net_w']
    """
    points = expressions(name, arguments)
    places = as_numbers(locations, f'the locations of "{name}"')
    if places.ndim != 1:
        raise ModelError(f'the locations of "{name}" must be a list of numbers, but have shape {places.shape}')
    require_count(name, len(places))
    count = len(places)
    slots = slots_for(len(points))
    suffixes = [""] if len(points) == 1 else [str(q) for q in range(len(points))]
    slopes = tuple(
        _weights(
            f"{name}_w{suffix}",
            count,
            _row(slope_mean, q, len(points), count),
            _row(slope_variance, q, len(points), count),
        )
        for q, suffix in enumerate(suffixes)
    )
    location: WeightArray | DataArray
    if location_variance is None:
        location = DataArray(array_symbol(f"{name}_b"), places)
    else:
        location = _weights(f"{name}_b", count, places, location_variance)
    if len(points) == 1:
        activation = slopes[0].symbol * (slots[0] - location.symbol)
    else:
        activation = sp.Add(*(w.symbol * slot for w, slot in zip(slopes, slots, strict=True))) + location.symbol
    heads = tuple(
        _weights(f"{name}_v{o if outputs > 1 else ''}", count, mean, variance)
        for o in range(output_count(name, outputs))
    )
    family = Family(
        name=check_name(name, f'the family "{name}"'),
        kind="logistic",
        count=count,
        arguments=slots,
        summands=tuple(head.symbol * _logistic_function(activation) for head in heads),
        weights=heads + slopes + ((location,) if isinstance(location, WeightArray) else ()),
        data=(location,) if isinstance(location, DataArray) else (),
        constants=(),
    )
    return _evaluate(family, points)


def custom(
    name: str,
    arguments: Arguments,
    summand: Callable[..., sp.Expr],
    unknowns: Mapping[str, tuple[ArrayLike, ArrayLike]],
    data: Mapping[str, ArrayLike],
    count: int | None = None,
) -> FeatureSum:
    """Return sum_i summand(x_1, ..., x_q, **unknowns_i, **data_i) for any differentiable summand.

    `summand` is called once with SymPy symbols: the arguments by position, then one keyword for each name in `unknowns`
    (a pair of prior mean and variance) and in `data` (one number per feature).

    >>> x, bump = sympy.Symbol("x"), lambda x, v, p: v * sympy.tanh(x - p)
    >>> symdual.features.custom("c", x, bump, unknowns={"v": (0, 1)}, data={"p": [-1, 0, 1]}).family.count
    3
    """
    points = expressions(name, arguments)
    arrays = {key: as_numbers(values, f'the data "{key}" of "{name}"') for key, values in data.items()}
    lengths = {len(values) if values.ndim == 1 else -1 for values in arrays.values()} | (
        {count} if count is not None else set()
    )
    if len(lengths) != 1 or -1 in lengths:
        raise ModelError(f'the data of "{name}" must be lists of one length, equal to count if it is given')
    (features,) = lengths
    assert features is not None
    require_count(name, features)
    slots = slots_for(len(points))
    weights = tuple(_weights(f"{name}_{key}", features, *prior) for key, prior in unknowns.items())
    known = tuple(DataArray(array_symbol(f"{name}_{key}"), values) for key, values in arrays.items())
    symbols = {key: w.symbol for key, w in zip(unknowns, weights, strict=True)}
    symbols |= {key: d.symbol for key, d in zip(arrays, known, strict=True)}
    body = as_expression(summand(*slots, **symbols), f'the summand of "{name}"')
    if not isinstance(body, sp.Expr):
        raise ModelError(f'the summand of "{name}" is {body!r}, which is not a scalar SymPy expression')
    for part in sp.preorder_traversal(body):
        if isinstance(part, FeatureSum):
            raise ModelError(
                f'the summand of "{name}" contains the features "{part.family.name}": sums cannot be nested'
            )
        if not isinstance(part, sp.Symbol):
            check_part(part, f'the summand of "{name}"')
    foreign = body.free_symbols - set(slots) - set(symbols.values())
    constants = tuple(sorted((s for s in foreign if isinstance(s, Constant)), key=lambda s: str(s.name)))
    if foreign - set(constants):
        stranger = sorted(str(s) for s in foreign - set(constants))[0]
        raise ModelError(
            f'the summand of "{name}" contains "{stranger}", which is neither an argument nor declared for it'
        )
    family = Family(
        check_name(name, f'the family "{name}"'),
        "custom",
        features,
        slots,
        (body,),
        weights,
        known,
        constants,
    )
    return FeatureSum.of(family, 0, points)


def _data_columns(name: str, what: str, rows: Array) -> tuple[DataArray, ...]:
    columns = rows.shape[1]
    return tuple(
        DataArray(array_symbol(f"{name}_{what}{q if columns > 1 else ''}"), np.ascontiguousarray(rows[:, q]))
        for q in range(columns)
    )


def _inner(data: tuple[DataArray, ...], slots: tuple[sp.Symbol, ...]) -> sp.Expr:
    return sp.Add(*(array.symbol * slot for array, slot in zip(data, slots, strict=True)))


def _lengthscales(name: str, lengthscale: ArrayLike, arguments: int) -> Array:
    scales = as_vector(lengthscale, arguments, f'the length-scale of "{name}"')
    if np.any(scales <= 0):
        raise ModelError(f'the length-scale of "{name}" must be positive')
    return scales


def _spectrum(name: str, arguments: int, count: int, lengthscale: ArrayLike, seed: int | None) -> Array:
    scales = _lengthscales(name, lengthscale, arguments)
    if seed is not None:
        levels = np.random.Generator(np.random.PCG64(seed)).random((count, arguments))
    elif arguments == 1:
        levels = 0.5 + (np.arange(count)[:, None] + 0.5) / (2 * count)
    else:
        raise ModelError(
            f'the frequencies of "{name}" have {arguments} arguments: give a seed to draw them, or the frequencies'
        )
    return rounded(np.vectorize(NormalDist().inv_cdf, otypes=[float])(levels) / scales)


def _row(value: ArrayLike, index: int, arguments: int, count: int) -> ArrayLike:
    numbers = np.asarray(value)
    return numbers[index] if numbers.shape == (arguments, count) and arguments > 1 else numbers


def _weights(name: str, count: int, mean: ArrayLike, variance: ArrayLike) -> WeightArray:
    symbol = array_symbol(name)
    covariance = as_numbers(variance, f'the prior variance of "{name}"')
    if covariance.ndim < 2:
        covariance = as_vector(covariance, count, f'the prior variance of "{name}"')
        if np.any(covariance < 0):
            raise ModelError(f'the prior variance of "{name}" is negative ({covariance.min():g})')
    else:
        covariance = as_semidefinite(covariance, count, f'the prior covariance of "{name}"')
    return WeightArray(symbol, as_vector(mean, count, f'the prior mean of "{name}"'), covariance)


def _weighted(
    name: str,
    kind: str,
    points: tuple[sp.Expr, ...],
    slots: tuple[sp.Symbol, ...],
    terms: tuple[sp.Expr, ...],
    suffixes: tuple[str, ...],
    data: tuple[DataArray, ...],
    constants: tuple[Constant, ...],
    mean: ArrayLike,
    variance: ArrayLike,
    outputs: int,
) -> FeatureSum | tuple[FeatureSum, ...]:
    """Build the family sum_i sum_t v_ti terms_t for each output, every output with weights of its own."""
    count = len(data[0].values)
    heads = [
        [_weights(f"{name}{o if outputs > 1 else ''}{suffix}", count, mean, variance) for suffix in suffixes]
        for o in range(output_count(name, outputs))
    ]
    family = Family(
        name=check_name(name, f'the family "{name}"'),
        kind=kind,
        count=count,
        arguments=slots,
        summands=tuple(sp.Add(*(head.symbol * term for head, term in zip(row, terms, strict=True))) for row in heads),
        weights=tuple(head for row in heads for head in row),
        data=data,
        constants=constants,
    )
    return _evaluate(family, points)


def _evaluate(family: Family, points: tuple[sp.Expr, ...]) -> FeatureSum | tuple[FeatureSum, ...]:
    values = tuple(FeatureSum.of(family, o, points) for o in range(len(family.summands)))
    return values[0] if len(values) == 1 else values
