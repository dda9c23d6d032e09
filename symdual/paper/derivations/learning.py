"""Sections 5.1 to 5.3: linearisation by complex steps, kernels by quadrature, sizes of the network."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from scipy import integrate, special

from symdual.common.arrays import Array
from symdual.paper.case import Case, Correction, Derivation, Form, Meant, Undecidable
from symdual.paper.derivations import draws
from symdual.paper.derivations.features import sigma
from symdual.paper.derivations.gaussians import moments, normal_nodes
from symdual.paper.machine import Indexed, counted
from symdual.paper.matrices import Matrix, identity, stack, zeros

LENGTH, SPREAD = 0.9, 1.1
"""Length-scale of the square exponential kernel and deviation of the measure in the examples."""

TERMS = 60
"""Terms that stand for an infinite series; the first one left out is below 1e-20."""


def _features(x: Any, waves: Array) -> Any:
    """(x, sin of mixtures, a square): the state itself and general features; works for complex x."""
    return np.concatenate([x, np.sin(waves @ x), [x[0] ** 2]])


def _unpack(theta: Any, n: int, m: int) -> tuple[Any, Any]:
    return theta[: n * m].reshape(n, m, order="F"), theta[n * m :].reshape(n, 1)


def _slope(function: Callable[[Any], Any], at: Array) -> Array:
    """The Jacobian by complex steps, exact to rounding."""
    tiny = 1e-30
    return np.stack([function(at + 1j * tiny * unit).imag / tiny for unit in np.eye(len(at))], axis=1)


def _along(function: Callable[[Any], Any], base: Array, step: Array, t: Any) -> Any:
    return function(base + t[0] * step)


def _linearisation(linear: bool) -> Iterator[Case]:
    for n in (1, 2, 3):
        rng = draws.source(80, n)
        waves = draws.matrix(rng, 2, n).array
        m = n + 3
        p = (m + 1) * n
        x, theta, dx, dtheta, xi = (draws.matrix(rng, size).array[:, 0] for size in (n, p, n, p, n))
        u = draws.matrix(rng, 1)

        def ahead(z: Any, n: int = n, m: int = m, waves: Array = waves, u: Matrix = u, xi: Array = xi) -> Any:
            a, b = _unpack(z[n:], n, m)
            return np.concatenate([a @ _features(z[:n], waves) + b[:, 0] * u.array[0, 0] + xi, z[n:]])

        base, step = np.append(x, theta), np.append(dx, dtheta)
        exact = ahead(base + step)
        first_order = ahead(base) + _slope(partial(_along, ahead, base, step), np.zeros(1))[:, 0]

        def slope(function: Callable[[Matrix], Matrix], at: Matrix) -> Matrix:
            return Matrix(_slope(lambda z: function(_Complex(z)).array[:, 0], at.array[:, 0]))

        symbols = {
            "n": n,
            "m": m,
            "p": p,
            "A": lambda t, n=n, m=m: _wrap(_unpack(t.array[:, 0], n, m)[0]),
            "B": lambda t, n=n, m=m: _wrap(_unpack(t.array[:, 0], n, m)[1]),
            "phi": lambda z, waves=waves: _wrap(_features(z.array[:, 0], waves)),
            "x_bar": Matrix(x),
            "theta_bar": Matrix(theta),
            "dx": Matrix(dx),
            "dtheta": Matrix(dtheta),
            "u": u,
            "xi": Matrix(xi),
            "slope": slope,
            "stack": stack,
            "zeros": zeros,
            "identity": identity,
        }
        yield Case(f"n = {n}, m = {m}", symbols, Matrix(first_order if linear else exact))


class _Complex(Matrix):
    """A matrix that keeps its imaginary part, for derivatives by complex steps."""

    __slots__ = ()

    def __init__(self, values: Any) -> None:
        array = np.asarray(values)
        self.array = array.reshape(-1, 1) if array.ndim == 1 else array

    def __add__(self, other: object) -> Matrix:
        return _Complex(self.array + self._same_shape(other, "+"))

    def __matmul__(self, other: object) -> Matrix:
        assert isinstance(other, Matrix)
        return _Complex(self.array @ other.array)


def _wrap(array: Any) -> Matrix:
    return _Complex(array) if np.iscomplexobj(array) else Matrix(array)


def _phi_form() -> Iterator[Case]:
    for n in (1, 2):
        symbols = {
            "x": draws.matrix(draws.source(81, n), n),
            "varphi": lambda x: Matrix(np.array([x.array[0, 0] ** 2, 1.0])),
            "stack": stack,
        }
        yield Case(f"n = {n}", symbols, Form(n + 2, 1))


def _kernel_numbers() -> Iterator[Case]:
    """How many covariances two points of an n-dimensional function have."""
    for n in (1, 2, 3):
        names = {(i, j) for i in range(n) for j in range(n)}
        yield Case(f"n = {n}", {"n": n}, len(names))


def square_exponential(x: float, other: float) -> float:
    """exp(-(x - x')^2 / (2 l^2))."""
    return math.exp(-((x - other) ** 2) / (2 * LENGTH**2))


def eigenvalue(index: int) -> float:
    """The eigenvalues of the square exponential kernel under N(0, s^2): a geometric series."""
    a, b, c = _mehler()
    total = a + b + c
    return math.sqrt(2 * a / total) * (b / total) ** (index - 1)


def eigenfunction(index: int, x: float) -> float:
    """The eigenfunctions: Hermite polynomials under a Gaussian, of unit norm under N(0, s^2)."""
    a, _, c = _mehler()
    degree = index - 1
    log_norm = 0.5 * (math.lgamma(degree + 1) + degree * math.log(2.0) + 0.5 * math.log(a / c))
    value = float(special.eval_hermite(degree, math.sqrt(2 * c) * x))
    if value == 0.0:
        return 0.0
    return math.copysign(math.exp(-(c - a) * x**2 + math.log(abs(value)) - log_norm), value)


def _mehler() -> tuple[float, float, float]:
    a, b = 1 / (4 * SPREAD**2), 1 / (2 * LENGTH**2)
    return a, b, math.sqrt(a * a + 2 * a * b)


def _under_measure(function: Callable[[float], float]) -> float:
    nodes, weights = normal_nodes(90)
    return float(sum(w * function(SPREAD * t) for t, w in zip(nodes, weights, strict=True)))


def _series_symbols() -> dict[str, object]:
    return {
        "infinity": TERMS,
        "lam": eigenvalue,
        "phi": eigenfunction,
        "kappa": square_exponential,
        "integral": _under_measure,
        "conj": lambda value: value,
    }


def _mercer() -> Iterator[Case]:
    for x, other in ((0.3, -0.4), (1.2, 0.5), (-0.8, -0.8)):
        symbols = {**_series_symbols(), "x": x, "x2": other}
        yield Case(f"square exponential kernel, x = {x}, x' = {other}", symbols, square_exponential(x, other))


def _eigen() -> Iterator[Case]:
    for index, x in ((1, 0.3), (2, -0.6), (5, 0.9)):
        yield Case(f"square exponential kernel, l = {index}, x = {x}", {**_series_symbols(), "l": index, "x": x}, 0.0)


def _draw() -> Iterator[Case]:
    """cov(f_i(x), f_j(x')) of a function of independent coefficients Omega_jl with variance lambda_l."""
    rng = draws.source(82)
    mixing = np.tril(draws.matrix(rng, 2, 2).array)
    places = (0.3, -0.4)

    def covariance(function: Callable[[int, float, Indexed], float]) -> Matrix:
        result = np.zeros((4, 4))
        for j in (1, 2):
            for term in range(1, 41):
                values = {(a, b): 1.0 if (a, b) == (j, term) else 0.0 for a in (1, 2) for b in range(1, 41)}
                unit = Indexed(values)
                effect = np.array([function(i, x, unit) for i in (1, 2) for x in places])
                result += eigenvalue(term) * np.outer(effect, effect)
        return Matrix(result)

    def product(i: int, x: float, omega: Indexed) -> float:
        phi = [eigenfunction(term, x) for term in range(1, 41)]
        return float(sum(mixing[i - 1, j - 1] * omega[j, t] * phi[t - 1] for j in (1, 2) for t in range(1, 41)))

    kernel = np.array([[square_exponential(x, other) for other in places] for x in places])
    symbols = {
        "T": 3,
        "n": 2,
        "infinity": 40,
        "L": Indexed({(i + 1, j + 1): mixing[i, j] for i in range(2) for j in range(2)}),
        "phi": eigenfunction,
        "covariance": covariance,
        "L_Omega_Phi": product,
    }
    yield Case("n = 2, T = 3, two points", symbols, Matrix(np.kron(mixing @ mixing.T, kernel)))


def _square_root() -> Iterator[Case]:
    """The covariance of L e for independent e of unit variance, by quadrature."""
    for n in (1, 2, 3):
        factor = Matrix(np.tril(draws.matrix(draws.source(83, n), n, n).array))
        _, spread = moments(partial(np.matmul, factor.array), np.zeros(n), np.eye(n))
        yield Case(f"n = {n}", {"L": factor}, Meant(Matrix(spread)))


def _process_form() -> Iterator[Case]:
    symbols = {
        "i": 1,
        "j": 2,
        "x": 0.3,
        "x2": -0.2,
        "kappa_bar": lambda i, j, x, y: 0.5 * square_exponential(x, y),
        "kappa": square_exponential,
        "V": Indexed({(1, 2): 0.5}),
        "exp": math.exp,
        "lam": LENGTH,
    }
    yield Case("one number", symbols, Form(1, 1))


def _square_exponential() -> Iterator[Case]:
    for x, other in ((0.3, -0.2), (1.1, 0.4)):
        symbols = {"x": x, "x2": other, "lam": LENGTH, "exp": math.exp}
        yield Case(f"x = {x}, x' = {other}", symbols, Meant(square_exponential(x, other)))


def _bochner() -> Iterator[Case]:
    """The density S from the kernel by quadrature; then back."""

    def kernel(r: float) -> float:
        return square_exponential(r, 0.0)

    def density(s: float) -> float:
        value, _ = integrate.quad(lambda r: kernel(r) * math.cos(2 * math.pi * s * r), 0, 9, epsabs=1e-13)
        return 2.0 * float(value)

    nodes = np.linspace(-2.4, 2.4, 241)
    table = [density(float(s)) for s in nodes]

    def whole_line(function: Callable[[float], complex]) -> float:
        return float(sum(function(float(s)) for s in nodes).real * (nodes[1] - nodes[0]))

    for r in (0.0, 0.5, 1.3):
        symbols = {
            "r": r,
            "S": lambda s: table[round((s + 2.4) / 0.02)],
            "exp": cmath.exp,
            "pi": math.pi,
            "i": 1j,
            "integral": whole_line,
        }
        yield Case(f"square exponential kernel, r = {r}", symbols, kernel(r))


def _approximate_kernel() -> Iterator[Case]:
    """The mean of the approximation over frequencies drawn from the power spectrum has to be the kernel."""

    def average(function: Callable[[Indexed], float], features: int) -> float:
        nodes, weights = normal_nodes(60)
        values = [function(counted([float(t) / LENGTH] * features)) for t in nodes]
        return float(weights @ np.array(values))

    for features in (2, 10, 30):
        for x, other in ((0.4, 0.4), (0.9, 0.2), (-0.3, 0.8)):
            symbols = {
                "F": features,
                "x": x,
                "x2": other,
                "average": partial(average, features=features),
                "sqrt": math.sqrt,
                "sin": math.sin,
                "cos": math.cos,
                "abs": abs,
            }
            yield Case(f"F = {features}, x = {x}, x' = {other}", symbols, square_exponential(x, other))


def _dot(weights: str, values: str, count: int) -> Any:
    """The first row of a weight matrix times a vector."""
    return sum(sp.Symbol(f"{weights}1{j}") * sp.Symbol(f"{values}{j}") for j in range(1, count + 1))


def _network_form(kind: str) -> Iterator[Case]:
    x = sp.Symbol("x")
    for count in (1, 3):
        v, w, b = (sp.symbols(f"{name}1:{count + 1}") for name in "vwb")
        pairs = [(i, j) for i in range(1, 4) for j in range(1, 4)]
        symbols = {
            "F": count,
            "n": 2,
            "i": 1,
            "x": x,
            "theta_lin": counted(v),
            "theta_nonlin": counted(w),
            "phi": lambda i, at, own: sp.tanh(at * own),
            "sigma": sigma,
            "v": v if kind == "vector" else counted(v),
            "w": w if kind == "vector" else counted(w),
            "b": counted(b),
            "W": Indexed({pair: sp.Symbol(f"w{pair[0]}{pair[1]}") for pair in pairs}),
            "V": Indexed({pair: sp.Symbol(f"v{pair[0]}{pair[1]}") for pair in pairs}),
            "X": counted(sp.symbols("x1:3")),
            "Z": counted(sp.symbols("z1:4")),
            "vector": lambda *parts: sp.Matrix([entry for part in parts for entry in part]),
        }
        network = sum(c * sigma(s * x + o) for c, s, o in zip(v, w, b, strict=True))
        units = sum(c * sp.tanh(x * s) for c, s in zip(v, w, strict=True))
        meant = {
            "network": network,
            "units": units,
            "hidden": sigma(_dot("w", "x", 2) + b[0]),
            "outputs": _dot("v", "z", count),
        }
        yield Case(f"F = {count}", symbols, Form(1 + 2 * count) if kind == "vector" else Meant(meant[kind]))


def _network(kind: str) -> Derivation:
    return Derivation("Written out for F = 1 and 3.", partial(_network_form, kind))


DERIVATIONS: dict[str, Derivation | Undecidable] = {
    "5.1.features": Derivation("Sizes.", _phi_form),
    "5.1.perturbed": Derivation(
        "Element by element: x' = A phi(x) + B u + xi, theta' = theta.", partial(_linearisation, False)
    ),
    "5.1.linearised": Derivation(
        "Value and directional derivative of the whole map by complex steps.", partial(_linearisation, True)
    ),
    "5.2.kernel-range": Derivation(
        "The covariances of two points of an n-dimensional function, counted.",
        _kernel_numbers,
        correction=Correction(
            r"\bar{\kappa}:\Re^n\times \Re^n\to \Re^{n\times n}", "n * n", "The kernel has a matrix as its value."
        ),
    ),
    "5.2.multi-output": Derivation("Sizes.", _process_form),
    "5.2.factors": Derivation("Sizes.", _process_form),
    "5.2.mercer": Derivation(
        "The square exponential kernel with its known eigenpairs under a normal measure.",
        _mercer,
        remark="An example, not a proof of the theorem.",
    ),
    "5.2.eigenfunctions": Derivation(
        "The square exponential kernel with its known eigenpairs under a normal measure, by quadrature.",
        _eigen,
        remark="An example, not a proof of the theorem.",
    ),
    "5.2.draw": Derivation(
        "cov(f_i(x), f_j(x')) over independent coefficients against V_ij kappa(x, x').",
        _draw,
        correction=Correction(
            r"f^i _k(x_k) = \sum_{j=1} ^n L_{ij}  \sum_{\ell=1} ^\infty \Omega_k ^{j\ell} \phi_\ell(x_k)",
            "covariance(lambda i, x, Omega: total(1, n, lambda j: L[i, j]"
            " * total(1, infinity, lambda l: Omega[j, l] * phi(l, x))))",
            "L has n columns, not T, and the feature carries the summation index.",
        ),
    ),
    "5.2.square-root": Derivation(
        "The covariance of L e for independent e of unit variance, by quadrature.", _square_root
    ),
    "5.2.mean-square": Undecidable(
        "Convergence of an infinite random series for every kernel and measure; examples do not decide it."
    ),
    "5.2.1.bochner": Derivation(
        "The spectral density of the square exponential kernel by quadrature, and back.",
        _bochner,
        remark="An example, not a proof of the theorem.",
    ),
    "5.2.1.square-exponential": Derivation("As the formulas on its spectrum take it.", _square_exponential),
    "5.2.1.approximate-kernel": Derivation(
        "The mean over frequencies drawn from the power spectrum, by quadrature, against the kernel.",
        _approximate_kernel,
        correction=Correction(
            r"\tilde \kappa(x,x') = \frac{2}{F}\sum_{i=1}^{\nicefrac{F}{2}} \cos(\omega_{2i} (x-x'))",
            "average(lambda omega: 2/F * total(1, F//2, lambda i: cos(omega[2*i]*(x - x2))))",
            "At x = x' the printed sum is (F/2)^(1/2) instead of 1, and the sine terms do not belong there:"
            " sin sin + cos cos is the cosine of the difference, with one frequency for each pair of features.",
        ),
    ),
    "5.3.nonlinear-parameters": _network("units"),
    "5.3.network": _network("network"),
    "5.3.hidden-units": _network("hidden"),
    "5.3.outputs": _network("outputs"),
    "5.3.augmented": Derivation("Sizes.", partial(_network_form, "vector")),
}
