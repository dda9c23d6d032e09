"""Appendix B: gradients and Hessians of the feature families, for concrete small F and for a generic index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any

import sympy as sp

from symdual.paper.case import Case, Computed, Convention, Correction, Derivation, Meant, Printed
from symdual.paper.derivations import generic
from symdual.paper.machine import counted

X, LAMBDA = sp.Symbol("x", real=True), sp.Symbol("lam", positive=True)
Wanted = Callable[[Any, int], Any]
"""From the concrete f and an index to the derivative that the paper prints."""


def sigma(a: Any) -> Any:
    """1 / (1 + exp(-a))."""
    return 1 / (1 + sp.exp(-a))


def _named(name: str, count: int) -> tuple[Any, ...]:
    return tuple(sp.symbols(f"{name}1:{count + 1}", real=True))


class Network:
    """f = sum_i v_i s(w_i (x - b_i)) written out for F units."""

    counts = (1, 2, 3)
    line = "B.1.network"

    def __init__(self, count: int) -> None:
        self.count = count
        self.v, self.w, self.b = (_named(name, count) for name in "vwb")
        self.value = sum(v * sigma(w * (X - b)) for v, w, b in zip(self.v, self.w, self.b, strict=True))

    def symbols(self) -> dict[str, Any]:
        """What the printed formulas refer to."""
        arguments = [w * (X - b) for w, b in zip(self.w, self.b, strict=True)]
        arrays = {"v": self.v, "w": self.w, "b": self.b, "a": arguments}
        return {"F": self.count, "x": X, "sigma": sigma, **{name: counted(array) for name, array in arrays.items()}}

    @staticmethod
    def generic() -> tuple[dict[str, Any], generic.Generic]:
        """The same for a generic index."""
        family = generic.network()
        v, w, b, x = family.weight("net_v"), family.weight("net_w"), family.data("net_b"), family.state
        arrays = {"v": v, "w": w, "b": b, "a": w * (x - b)}
        places = {name: generic.GenericArray({generic.INDEX: value}) for name, value in arrays.items()}
        return {"x": x, "sigma": sigma, **places}, family


class Fourier:
    """f = c sum_i v_{2i-1} sin(omega_{2i-1} x) + v_{2i} cos(omega_{2i} x) written out for F features."""

    counts = (2, 4)
    line = "B.2.fourier"

    def __init__(self, count: int) -> None:
        self.count = count
        self.v, self.omega = _named("v", count), _named("omega", count)
        scale = sp.sqrt(sp.Rational(2, count))
        terms = [
            v * (sp.sin(omega * X) if place % 2 == 0 else sp.cos(omega * X))
            for place, (v, omega) in enumerate(zip(self.v, self.omega, strict=True))
        ]
        self.value = scale * sum(terms)

    def symbols(self) -> dict[str, Any]:
        """What the printed formulas refer to."""
        return {
            "F": sp.Integer(self.count),
            "x": X,
            "v": counted(self.v),
            "omega": counted(self.omega),
            "c": sp.sqrt(sp.Rational(2, self.count)),
            "vector": _vector,
            **_FUNCTIONS,
        }

    @staticmethod
    def generic() -> tuple[dict[str, Any], generic.Generic]:
        """The same for a generic pair of features."""
        family = generic.fourier()
        odd, even = 2 * generic.INDEX - 1, 2 * generic.INDEX
        weights = {odd: family.weight("v_sin"), even: family.weight("v_cos")}
        waves = {odd: family.data("v_sine_frequency"), even: family.data("v_cosine_frequency")}
        symbols = {
            "x": family.state,
            "v": generic.GenericArray(weights),
            "omega": generic.GenericArray(waves),
            "c": sp.sqrt(2 / generic.COUNT),
            "vector": _vector,
            **_FUNCTIONS,
        }
        return symbols, family


class Radial:
    """f = sum_i v_i exp(-(x - c_i)^2 / (2 lambda^2)) written out for F features."""

    counts = (1, 2, 3)
    line = "B.3.radial"

    def __init__(self, count: int) -> None:
        self.count = count
        self.v, self.c = _named("v", count), _named("c", count)
        self.value = sum(v * sp.exp(-((X - c) ** 2) / (2 * LAMBDA**2)) for v, c in zip(self.v, self.c, strict=True))

    def symbols(self) -> dict[str, Any]:
        """What the printed formulas refer to."""
        return {"F": self.count, "x": X, "lam": LAMBDA, "v": counted(self.v), "c": counted(self.c), "exp": sp.exp}

    @staticmethod
    def generic() -> tuple[dict[str, Any], generic.Generic]:
        """The same for a generic index."""
        family = generic.radial()
        places = {"v": family.weight("v"), "c": family.data("v_centre")}
        arrays = {name: generic.GenericArray({generic.INDEX: value}) for name, value in places.items()}
        return {"x": family.state, "lam": LAMBDA, "exp": sp.exp, **arrays}, family


_FUNCTIONS = {"sin": sp.sin, "cos": sp.cos, "sqrt": sp.sqrt}


def _vector(*entries: Any) -> Any:
    return sp.Matrix(entries)


def _of_printed(written: Any, wanted: Wanted, index: int) -> Computed:
    """A derivative of f, with f as the paper prints it."""

    def derivative(value: Any) -> Any:
        own = copy(written)
        own.value = value
        return wanted(own, index)

    return Computed(derivative, {"value": Printed(written.line)})


def _whole(family: type[Any], wanted: Wanted) -> Iterator[Case]:
    """A printed sum, for each concrete F."""
    for count in family.counts:
        written = family(count)
        yield Case(f"F = {count}", written.symbols(), _of_printed(written, wanted, 0))


def _each(family: type[Any], wanted: Wanted) -> Iterator[Case]:
    """A printed row, for each concrete F and each index (for the Fourier features, each pair)."""
    for count in family.counts:
        written = family(count)
        for index in range(1, count + 1 if family is not Fourier else count // 2 + 1):
            symbols = {**written.symbols(), "i": index}
            yield Case(f"F = {count}, i = {index}", symbols, _of_printed(written, wanted, index))


def _generic(family: type[Any], wanted: Callable[[generic.Generic], Any]) -> Iterator[Case]:
    symbols, derived = family.generic()
    symbols = {**symbols, "F": generic.COUNT, "i": generic.INDEX, "total": generic.generic_total}
    yield Case("generic index, through symdual.derive", symbols, wanted(derived))


def _both(concrete: Callable[[], Iterator[Case]], generic_cases: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    yield from concrete()
    yield from generic_cases()


def _claim(
    family: type[Any],
    shape: Callable[[type[Any], Wanted], Iterator[Case]],
    concrete: Wanted,
    derived: Callable[[generic.Generic], Any],
    correction: Correction | None = None,
) -> Derivation:
    return Derivation(
        f"SymPy derivatives of the printed f for F = {', '.join(map(str, family.counts))},"
        " and symdual's own derivation for a generic index.",
        partial(_both, partial(shape, family, concrete), partial(_generic, family, derived)),
        correction=correction,
    )


def _pair(entry: Callable[[Any, Any], Any]) -> Wanted:
    """The entries of the odd and of the even feature of a pair."""
    return lambda f, i: sp.Matrix([entry(f, f.v[2 * i - 2]), entry(f, f.v[2 * i - 1])])


def _definition(family: type[Any]) -> Iterator[Case]:
    for count in family.counts:
        written = family(count)
        yield Case(f"F = {count}", written.symbols(), Meant(written.value))


def _normalisation() -> Iterator[Case]:
    for count in Fourier.counts:
        symbols = Fourier(count).symbols()
        yield Case(f"F = {count}", symbols, Meant(symbols["c"]))


def _logistic(order: int) -> Iterator[Case]:
    a = sp.Symbol("a", real=True)
    yield Case("SymPy", {"a": a, "sigma": sigma}, sp.diff(sigma(a), a, order))


def _logistic_definition() -> Iterator[Case]:
    a = sp.Symbol("a", real=True)
    yield Case("scalar", {"a": a, "exp": sp.exp}, Meant(sigma(a)))


def _activation() -> Iterator[Case]:
    """The argument of the logistic function in the printed f: the inverse of it applied to df/dv_i."""
    for count in Network.counts:
        network = Network(count)
        for index in range(1, count + 1):
            symbols = {**network.symbols(), "i": index}
            yield Case(f"F = {count}, i = {index}", symbols, _of_printed(network, _argument, index))


def _argument(network: Any, index: int) -> Any:
    return -sp.log(1 / sp.diff(network.value, network.v[index - 1]) - 1)


def _network_of_section_5(shifted: bool) -> Iterator[Case]:
    """The network as Section 5.3 prints it, with offsets beta_i in place of its b_i."""
    for count in Network.counts:
        network = Network(count)
        offsets = _named("beta", count)
        shifts = [-offset / w for offset, w in zip(offsets, network.w, strict=True)] if shifted else offsets
        printed = Printed("5.3.network", symbols={"b": counted(offsets)})
        yield Case(f"F = {count}", {**network.symbols(), "b": counted(shifts)}, Computed(_same, {"value": printed}))


def _same(value: Any) -> Any:
    return value


def _radial_correction(latex: str, machine: str) -> Correction:
    return Correction(
        latex, machine, "The derivative of (x - c)^2 / (2 lambda^2) is (x - c) / lambda^2: the 2 cancels."
    )


_BELL = "exp(-(x - c[i])**2 / (2*lam**2))"
_BELL_LATEX = r"\exp\left(-\frac{(x-c_i)^2}{2\lambda^2}\right)"

DERIVATIONS = {
    "B.1.network": Derivation(
        "The network as Section 5.3 prints it, written out for F = 1, 2, 3.",
        partial(_network_of_section_5, False),
        conventions=(
            Convention(
                "b_i is a location here and an offset in Section 5.3: offset = -w_i location",
                partial(_network_of_section_5, True),
            ),
        ),
    ),
    "B.1.logistic": Derivation("As the derivatives take it.", _logistic_definition),
    "B.1.slope": Derivation("SymPy.", partial(_logistic, 1)),
    "B.1.curvature": Derivation("SymPy.", partial(_logistic, 2)),
    "B.1.gradient-x": _claim(Network, _whole, lambda f, i: sp.diff(f.value, X), generic.Generic.gradient_x),
    "B.1.gradient-v": _claim(Network, _each, lambda f, i: sp.diff(f.value, f.v[i - 1]), lambda g: g.gradient("net_v")),
    "B.1.gradient-w": _claim(Network, _each, lambda f, i: sp.diff(f.value, f.w[i - 1]), lambda g: g.gradient("net_w")),
    "B.1.activation": Derivation(
        "The inverse of the logistic function applied to df/dv_i, with SymPy.",
        _activation,
        correction=Correction(
            r"a_i = w_i (x - b_i)",
            "w[i]*(x - b[i])",
            "This is the argument in the appendix's own f; b_i is a location.",
        ),
    ),
    "B.1.hessian-xx": _claim(Network, _whole, lambda f, i: sp.diff(f.value, X, 2), generic.Generic.hessian_xx),
    "B.1.hessian-xv": _claim(
        Network, _each, lambda f, i: sp.diff(f.value, X, f.v[i - 1]), lambda g: g.hessian_x("net_v")
    ),
    "B.1.hessian-xw": _claim(
        Network,
        _each,
        lambda f, i: sp.diff(f.value, X, f.w[i - 1]),
        lambda g: g.hessian_x("net_w"),
        Correction(
            r"""\nabla_x \nabla_{w_i} f(x) = v_i\s(a_i)(1-\s(a_i))
            + (x-b_i)w_i v_i \s(a_i)(1-\s(a_i))(1-2\s(a_i))""",
            "v[i]*sigma(a[i])*(1 - sigma(a[i]))"
            " + (x - b[i])*w[i]*v[i]*sigma(a[i])*(1 - sigma(a[i]))*(1 - 2*sigma(a[i]))",
            "One bracket stands too many.",
        ),
    ),
    "B.1.hessian-vv": _claim(
        Network, _each, lambda f, i: sp.diff(f.value, f.v[i - 1], 2), lambda g: g.hessian("net_v", "net_v")
    ),
    "B.1.hessian-vw": _claim(
        Network, _each, lambda f, i: sp.diff(f.value, f.v[i - 1], f.w[i - 1]), lambda g: g.hessian("net_v", "net_w")
    ),
    "B.1.hessian-ww": _claim(
        Network, _each, lambda f, i: sp.diff(f.value, f.w[i - 1], 2), lambda g: g.hessian("net_w", "net_w")
    ),
    "B.2.fourier": Derivation("As the derivatives take it, F = 2, 4.", partial(_definition, Fourier)),
    "B.2.normalisation": Derivation("As the derivatives take it.", _normalisation),
    "B.2.gradient-x": _claim(Fourier, _whole, lambda f, i: sp.diff(f.value, X), generic.Generic.gradient_x),
    "B.2.gradient-v": _claim(
        Fourier,
        _each,
        _pair(lambda f, v: sp.diff(f.value, v)),
        lambda g: sp.Matrix([g.gradient("v_sin"), g.gradient("v_cos")]),
    ),
    "B.2.hessian-xx": _claim(Fourier, _whole, lambda f, i: sp.diff(f.value, X, 2), generic.Generic.hessian_xx),
    "B.2.hessian-xv": _claim(
        Fourier,
        _each,
        _pair(lambda f, v: sp.diff(f.value, X, v)),
        lambda g: sp.Matrix([g.hessian_x("v_sin"), g.hessian_x("v_cos")]),
    ),
    "B.2.hessian-vv": _claim(
        Fourier,
        _each,
        _pair(lambda f, v: sp.diff(f.value, v, 2)),
        lambda g: sp.Matrix([g.hessian("v_sin", "v_sin"), g.hessian("v_cos", "v_cos")]),
    ),
    "B.3.radial": Derivation("As the derivatives take it, F = 1, 2, 3.", partial(_definition, Radial)),
    "B.3.gradient-x": _claim(
        Radial,
        _whole,
        lambda f, i: sp.diff(f.value, X),
        generic.Generic.gradient_x,
        _radial_correction(
            rf"\sum_{{i=1}}^F v_i {_BELL_LATEX} \frac{{(c_i-x)}}{{\lambda^2}}",
            f"total(1, F, lambda i: v[i]*{_BELL}*(c[i] - x)/lam**2)",
        ),
    ),
    "B.3.gradient-v": _claim(Radial, _each, lambda f, i: sp.diff(f.value, f.v[i - 1]), lambda g: g.gradient("v")),
    "B.3.hessian-xx": _claim(
        Radial,
        _whole,
        lambda f, i: sp.diff(f.value, X, 2),
        generic.Generic.hessian_xx,
        _radial_correction(
            rf"\nabla^2_x f(x) = \sum_{{i=1}}^F v_i {_BELL_LATEX}"
            r" \left[ \left(\frac{c_i - x}{\lambda^2}\right)^2 - \frac{1}{\lambda^2} \right]",
            f"total(1, F, lambda i: v[i]*{_BELL}*(((c[i] - x)/lam**2)**2 - 1/lam**2))",
        ),
    ),
    "B.3.hessian-xv": _claim(
        Radial,
        _each,
        lambda f, i: sp.diff(f.value, X, f.v[i - 1]),
        lambda g: g.hessian_x("v"),
        _radial_correction(
            rf"\nabla_x \nabla_{{v_i}} f(x) = {_BELL_LATEX} \frac{{c_i - x}}{{\lambda^2}}",
            f"{_BELL}*(c[i] - x)/lam**2",
        ),
    ),
    "B.3.hessian-vv": _claim(
        Radial, _each, lambda f, i: sp.diff(f.value, f.v[i - 1], 2), lambda g: g.hessian("v", "v")
    ),
}
