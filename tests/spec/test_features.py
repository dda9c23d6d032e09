"""Feature families: what they sum up to, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from symdual import features
from symdual.common.errors import ModelError
from symdual.spec.symbols import FeatureSum, Unknown

x, y = sp.symbols("x y")


def value(sum_: FeatureSum, weights: dict[str, np.ndarray], at: tuple[float, ...]) -> float:
    """The sum written out, feature by feature."""
    family = sum_.family
    total = sp.Integer(0)
    for i in range(family.count):
        rule = {s: sp.Float(float(a)) for s, a in zip(family.arguments, at, strict=True)}
        rule |= {w.symbol: sp.Float(float(weights[w.symbol.name][i])) for w in family.weights}
        rule |= {d.symbol: sp.Float(float(d.values[i])) for d in family.data}
        rule |= {c: sp.Float(c.value) for c in family.constants}
        total += family.summands[sum_.output].xreplace(rule)
    return float(total.evalf(30))


def test_linear_is_a_sum_of_unknowns() -> None:
    expression = features.linear("a", [x, y, x * y], mean=[1.0, 2.0, 3.0], variance=0.5)
    a = sorted((s for s in expression.free_symbols if isinstance(s, Unknown)), key=lambda s: s.name)
    assert [(s.name, s.mean, s.variance) for s in a] == [("a0", 1.0, 0.5), ("a1", 2.0, 0.5), ("a2", 3.0, 0.5)]
    assert expression == a[0] * x + a[1] * y + a[2] * x * y


def test_polynomial_has_all_monomials() -> None:
    p = features.polynomial("p", [x, y], degree=2)
    powers = [tuple(int(d.values[i]) for d in p.family.data) for i in range(p.family.count)]
    assert powers == [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
    w = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    a, b = 0.7, -1.3
    expected = w @ [1.0, a, b, a * a, a * b, b * b]
    assert value(p, {"p": w}, (a, b)) == pytest.approx(expected, rel=1e-14)


def test_fourier_covariance_approaches_the_squared_exponential_kernel() -> None:
    f = features.fourier("f", x, count=400, lengthscale=0.8, amplitude=1.5)
    omega, scale = f.family.data[0].values, f.family.constants[0].value
    for distance in (0.0, 0.3, 1.0, 2.0):
        covariance = scale**2 * np.sum(np.cos(omega * distance))
        assert covariance == pytest.approx(1.5**2 * np.exp(-(distance**2) / (2 * 0.8**2)), abs=0.02)


def test_fourier_value_with_shared_and_with_own_frequencies() -> None:
    rng = np.random.default_rng(1)
    sines, cosines = rng.normal(size=3), rng.normal(size=3)
    weights = {"f_sin": sines, "f_cos": cosines}
    shared = features.fourier("f", x, count=6, frequencies=[0.5, 1.0, 2.0])
    expected = np.sqrt(2 / 6) * np.sum(
        sines * np.sin(0.9 * np.array([0.5, 1, 2])) + cosines * np.cos(0.9 * np.array([0.5, 1, 2]))
    )
    assert value(shared, weights, (0.9,)) == pytest.approx(expected, rel=1e-11)
    own = features.fourier("f", x, count=6, frequencies=[0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    expected = np.sqrt(2 / 6) * np.sum(
        sines * np.sin(0.9 * np.array([0.5, 1.5, 2.5])) + cosines * np.cos(0.9 * np.array([1.0, 2.0, 3.0]))
    )
    assert value(own, weights, (0.9,)) == pytest.approx(expected, rel=1e-11)


def test_fourier_frequencies_by_seed_are_repeatable_and_scaled() -> None:
    def draw(seed: int, lengthscale: list[float]) -> np.ndarray:
        family = features.fourier("f", [x, y], count=2000, lengthscale=lengthscale, seed=seed).family
        return np.stack([d.values for d in family.data])

    np.testing.assert_array_equal(draw(3, [1.0, 2.0]), draw(3, [1.0, 2.0]))
    assert not np.array_equal(draw(3, [1.0, 2.0]), draw(4, [1.0, 2.0]))
    np.testing.assert_allclose(draw(3, [1.0, 2.0]).std(axis=1), [1.0, 0.5], rtol=0.07)


def test_rbf_value() -> None:
    g = features.rbf("g", [x, y], centres=[[0.0, 0.0], [1.0, -1.0]], lengthscale=[1.0, 2.0])
    expected = 2 * np.exp(-(0.3**2) / 2 - 0.4**2 / 8) - 3 * np.exp(-(0.7**2) / 2 - 1.4**2 / 8)
    assert value(g, {"g": np.array([2.0, -3.0])}, (0.3, 0.4)) == pytest.approx(expected, rel=1e-14)


def test_logistic_value_with_one_and_with_two_arguments() -> None:
    def s(a: float) -> float:
        return 1 / (1 + np.exp(-a))

    net = features.logistic("n", x, locations=[0.5, -0.5])
    weights = {"n_v": np.array([2.0, 3.0]), "n_w": np.array([1.5, -1.0])}
    assert value(net, weights, (0.2,)) == pytest.approx(2 * s(1.5 * (0.2 - 0.5)) + 3 * s(-(0.2 + 0.5)), rel=1e-14)
    wide = features.logistic("n", [x, y], locations=[0.5, -0.5], location_variance=0.1)
    assert [w.symbol.name for w in wide.family.weights] == ["n_v", "n_w0", "n_w1", "n_b"]
    weights = {
        "n_v": np.array([2.0, 3.0]),
        "n_w0": np.array([1.0, 2.0]),
        "n_w1": np.array([-1.0, 0.5]),
        "n_b": np.array([0.1, 0.2]),
    }
    expected = 2 * s(0.2 - 0.7 + 0.1) + 3 * s(0.4 + 0.35 + 0.2)
    assert value(wide, weights, (0.2, 0.7)) == pytest.approx(expected, rel=1e-14)


def test_slopes_may_have_one_row_per_argument() -> None:
    net = features.logistic("n", [x, y], locations=[0.0, 0.0, 0.0], slope_mean=[[1, 2, 3], [4, 5, 6]])
    means = {w.symbol.name: w.mean.tolist() for w in net.family.weights}
    assert means["n_w0"] == [1, 2, 3]
    assert means["n_w1"] == [4, 5, 6]


def test_outputs_share_the_basis_and_have_their_own_weights() -> None:
    one, two, three = features.fourier("f", x, count=4, outputs=3)
    assert one.family is two.family is three.family
    assert [w.symbol.name for w in one.family.weights] == [
        "f0_sin",
        "f0_cos",
        "f1_sin",
        "f1_cos",
        "f2_sin",
        "f2_cos",
    ]
    assert two.family.summands[1].free_symbols & {w.symbol for w in two.family.weights} == {
        w.symbol for w in two.family.weights[2:4]
    }


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: features.fourier("f", x, count=0), "0 features"),
        (lambda: features.fourier("f", x, count=-2), "-2 features"),
        (lambda: features.fourier("f", x, count=3), "even"),
        (lambda: features.fourier("f", [x, y], count=4), "seed"),
        (lambda: features.fourier("f", x, count=4, lengthscale=0.0), "positive"),
        (lambda: features.fourier("f", x, count=4, lengthscale=[1.0, 2.0]), "shape"),
        (lambda: features.fourier("f", x, count=4, frequencies=[1.0, 2.0, 3.0]), "shape"),
        (lambda: features.fourier("f", x, count=4, frequencies=[1.0, np.nan]), "NaN"),
        (lambda: features.fourier("f", x, count=4, amplitude=np.inf), "infinite"),
        (lambda: features.fourier("f", x, count=4, outputs=0), "0 outputs"),
        (lambda: features.fourier("f", x, count=4, variance=-1.0), "negative"),
        (lambda: features.fourier("f", x, count=4, variance=[[1, 2], [2, 1]]), "smallest eigenvalue is -1"),
        (lambda: features.fourier("f", x, count=4, mean=[0.0, 0.0, 0.0]), "shape"),
        (lambda: features.rbf("f", x, centres=[]), "0 features"),
        (lambda: features.rbf("f", [x, y], centres=[1.0, 2.0]), "shape"),
        (lambda: features.rbf("f", x, centres=[np.inf]), "infinite"),
        (lambda: features.logistic("f", x, locations=[]), "0 features"),
        (lambda: features.logistic("f", x, locations=[[1.0]]), "shape"),
        (lambda: features.logistic("f", x, locations=[1.0], slope_variance=np.nan), "NaN"),
        (lambda: features.logistic("f", x, locations=[1.0], slope_mean="steep"), "numbers"),
        (lambda: features.polynomial("f", x, degree=-1), "0 features"),
        (lambda: features.polynomial("f", [], degree=1), "argument"),
        (lambda: features.linear("f", []), "argument"),
        (lambda: features.custom("f", x, lambda a, p: a * p, {}, {"p": []}), "0 features"),
        (lambda: features.custom("f", x, lambda a, p, q: a, {}, {"p": [1.0], "q": [1.0, 2.0]}), "one length"),
        (lambda: features.custom("f", x, lambda a, p: a, {}, {"p": [1.0]}, count=2), "one length"),
        (lambda: features.custom("f", x, lambda a, p: a * y, {}, {"p": [1.0]}), '"y"'),
        (lambda: features.custom("f", x, lambda a, p: a > p, {}, {"p": [1.0]}), "scalar"),
        (lambda: features.custom("f", x, lambda a, p: features.fourier("g", a, 2), {}, {"p": [1.0]}), "nested"),
    ],
)
def test_what_a_family_refuses(make: object, said: str) -> None:
    with pytest.raises(ModelError, match=said.replace("[", r"\[")) as failure:
        make()  # type: ignore[operator]
    assert "\n" not in str(failure.value)
