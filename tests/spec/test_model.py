"""Bad models are refused with one sentence that names what to mend; good ones hold what was given."""

from __future__ import annotations

import keyword
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, constant, features, logistic, unknown
from symdual.common.errors import ModelError
from symdual.spec.names import RESERVED
from symdual.spec.symbols import Unknown

x, v, u, k = sp.symbols("x v u k")


def refusal(*arguments: object, **options: object) -> str:
    with pytest.raises(ModelError) as failure:
        Model(*arguments, **options)
    text = str(failure.value)
    assert "\n" not in text
    return text


# -------------------------------------------------------------------- symbols


def test_undeclared_symbol_is_named_with_the_closest_one() -> None:
    velocity, forse = sp.symbols("velocity forse")
    text = refusal([x, velocity], [sp.Symbol("force")], [x + velocity, velocity + forse])
    assert "'forse'" in text
    assert 'did you mean "force"?' in text
    assert 'the dynamics of "velocity"' in text


def test_undeclared_symbol_far_from_everything_has_no_suggestion() -> None:
    text = refusal([x], [u], [x + u + sp.Symbol("zebra")])
    assert "'zebra'" in text
    assert "did you mean" not in text


def test_undeclared_symbol_in_the_observation_and_in_feature_arguments() -> None:
    assert "observation number 1" in refusal([x], [u], [x + u], observation=[x, sp.Symbol("w")])
    slope = features.fourier("g", sp.Symbol("w"), count=2)
    assert "'w'" in refusal([x], [u], [x + u + slope])


def test_symbol_with_other_assumptions_is_not_taken_for_the_declared_one() -> None:
    text = refusal([x], [u], [sp.Symbol("x", positive=True) + u])
    assert '"x"' in text
    assert "assumptions" in text


def test_assumptions_of_declared_symbols_do_not_matter() -> None:
    p = sp.Symbol("p", positive=True)
    model = Model([p], [u], [sp.sqrt(p) + u])
    assert model.states == (p,)


@pytest.mark.parametrize("kind", ["dynamics", "derivatives"])
def test_state_without_dynamics(kind: str) -> None:
    options = {"step": 0.1} if kind == "derivatives" else {}
    assert f'the state "v" has no {kind}' in refusal([x, v], [u], **{kind: [x]}, **options)
    assert f'the state "v" has no {kind}' in refusal([x, v], [u], **{kind: {x: x}}, **options)


def test_dynamics_of_something_that_is_no_state() -> None:
    assert '"v"' in refusal([x], [u], {x: x, v: v})
    assert "2 entries for 1 states" in refusal([x], [u], [x, x])


@pytest.mark.parametrize(
    ("states", "inputs", "options"),
    [
        ([x, x], [u], {}),
        ([x, sp.Symbol("x", real=True)], [u], {}),
        ([x], [u, u], {}),
        ([x], [x], {}),
        ([x], [sp.Symbol("x", real=True)], {}),
        ([x], [u], {"time": x}),
        ([x], [u], {"time": u}),
    ],
)
def test_one_name_for_two_symbols(states: list[sp.Symbol], inputs: list[sp.Symbol], options: dict[str, object]) -> None:
    text = refusal(states, inputs, [x] * len(states), **options)
    assert "twice" in text or "is given to a" in text


def test_one_name_for_a_state_and_an_unknown_or_constant() -> None:
    assert '"x"' in refusal([x], [u], [x + unknown("x")])
    assert '"u"' in refusal([x], [u], [x + constant("u", 1.0)])
    assert '"a"' in refusal([x], [u], [x + unknown("a") * constant("a", 1.0)])
    assert '"a"' in refusal([x], [u], [x + unknown("a", 0.0, 1.0) * unknown("a", 0.0, 2.0)])


def test_one_name_for_two_families_or_for_their_arrays() -> None:
    one, other = (features.rbf("g", x, centres=[0.0, 1.0]) for _ in range(2))
    assert '"g"' in refusal([x], [u], [x + one + other])
    assert '"g_centre"' in refusal([x], [u], [x + one + unknown("g_centre")])
    assert '"x"' in refusal([x], [u], [x + features.rbf("x", x, centres=[0.0])])
    assert '"a_sin"' in refusal(
        [x], [u], [x + features.fourier("a", x, count=2) + features.rbf("a_sin", x, centres=[0.0])]
    )


def test_one_constant_in_two_families_is_one_constant() -> None:
    scale = constant("scale", 2.0)
    one, other = (
        features.custom(name, x, lambda a, w, p: w * sp.cos(p * a / scale), {"w": (0, 1)}, {"p": [1.0, 2.0]})
        for name in ("one", "other")
    )
    assert Model([x], [u], [x + one + other + scale * u]).constants == (scale,)
    different = features.custom(
        "third", x, lambda a, w, p: w * p * a * constant("scale", 3.0), {"w": (0, 1)}, {"p": [1.0]}
    )
    assert '"scale"' in refusal([x], [u], [x + one + different])


# -------------------------------------------------------------------- names


BAD_NAMES = ["x); import os #", "", "2x", "a b", "a.b", "a-b", "é", "_x", "x\ny", "x\n", 'x"""', "x{{1}}", "x'"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_are_no_identifiers(name: str) -> None:
    odd = sp.Symbol(name)
    for text in (
        refusal([odd], [u], [odd + u]),
        refusal([x], [odd], [x + odd]),
        refusal([x], [u], [x + u + odd]),
        refusal([x], [u], [x + u], time=odd),
    ):
        assert repr(name)[1:-1] in text
    for declare in (
        lambda: unknown(name),
        lambda: constant(name, 1.0),
        lambda: features.rbf(name, x, centres=[0.0]),
        lambda: features.linear(name + ")", x),
        lambda: features.logistic(name, x, locations=[0.0]),
        lambda: features.custom("g", x, lambda a, **p: a, {name + "-": (0, 1)}, {"d": [1.0]}),
    ):
        with pytest.raises(ModelError, match="identifier"):
            declare()
    if name:
        assert "identifier" in refusal([x], [u], [x + u], name=name)


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_names_that_the_generated_code_uses(name: str) -> None:
    assert f'"{name}"' in refusal([sp.Symbol(name)], [u], [u])


@pytest.mark.parametrize("name", sorted(keyword.kwlist))
def test_python_keywords(name: str) -> None:
    assert "keyword" in refusal([sp.Symbol(name)], [u], [u])


# -------------------------------------------------------------------- expressions

undefined = sp.Function("mystery")


class exp(sp.Function):
    """A function of the user's own with the name of a known one."""


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        (undefined(x), "mystery"),
        (exp(x), "exp"),
        (sp.gamma(x), "gamma"),
        (sp.besselj(0, x), "besselj"),
        (sp.cot(x), "cot"),
        (sp.zeta(x), "zeta"),
        (sp.conjugate(x), "conjugate"),
        (sp.floor(x), "floor"),
        (sp.sign(x), "sign"),
        (sp.Heaviside(x), "Heaviside"),
        (x % 2, "Mod"),
        (sp.Derivative(undefined(x), x), "Derivative"),
        (sp.Integral(sp.exp(-(x**2)), (x, 0, u)), "Integral"),
        (sp.Sum(x**k, (k, 0, 3)), "Sum"),
        (sp.Subs(x**2, x, u), "Subs"),
        (sp.UnevaluatedExpr(x), "UnevaluatedExpr"),
        (sp.MatrixSymbol("A", 2, 2)[0, 0], "MatrixElement"),
        (sp.IndexedBase("a")[0], "Indexed"),
        (sp.Piecewise((x, x > 0)), "Piecewise"),
        (sp.Piecewise((x, sp.Xor(x > 0, u > 0)), (0, True)), "Xor"),
    ],
)
def test_functions_without_generated_code_or_derivative_are_named(expression: sp.Expr, named: str) -> None:
    assert named in refusal([x], [u], [expression], time=k)


@pytest.mark.parametrize("expression", [undefined(x), sp.gamma(x), sp.floor(x), sp.Subs(x**2, x, 2 * x)])
def test_functions_in_summands_are_checked_too(expression: sp.Expr) -> None:
    with pytest.raises(ModelError, match=r"mystery|gamma|floor|Subs"):
        features.custom("g", x, lambda a, w, p: w * p * expression.xreplace({x: a}), {"w": (0, 1)}, {"p": [1.0]})


@pytest.mark.parametrize(
    "number", [sp.nan, sp.oo, -sp.oo, sp.zoo, sp.I, sp.sqrt(-2), sp.Float("1e400"), sp.Integer(10) ** 400]
)
def test_numbers_that_are_not_finite_and_real(number: sp.Expr) -> None:
    assert "not a finite real number" in refusal([x], [u], [x + number * u if number.is_finite else number])
    with pytest.raises(ModelError, match="not a finite real number"):
        features.custom("g", x, lambda a, w, p: number, {"w": (0, 1)}, {"p": [1.0]})


@pytest.mark.parametrize(
    "constant_part",
    [
        sp.exp(-sp.exp(sp.exp(sp.exp(9)))),
        sp.Pow(2, sp.Pow(2, 2000, evaluate=False), evaluate=False),
        sp.tanh(sp.sinh(sp.sinh(900))),
    ],
)
def test_functions_of_constants_that_overflow(constant_part: sp.Expr) -> None:
    product = sp.Mul(constant_part, x, evaluate=False)  # older versions of SymPy fail themselves at computing it
    assert "is not a finite real number" in refusal([x], [u], [sp.Add(x, u, product, evaluate=False)])


def test_a_number_of_hundreds_of_digits_is_not_printed_in_full() -> None:
    assert len(refusal([x], [u], [x + sp.factorial(400) * u])) < 200


def test_things_that_are_no_scalar_expressions() -> None:
    assert "not a scalar" in refusal([x], [u], [x > u])
    assert "not a scalar" in refusal([x], [u], [sp.Matrix([x, u])])
    assert "list" in refusal([x], [u], x + u)
    assert "symbol" in refusal([x + u], [u], [x])


def test_observation_of_an_input() -> None:
    assert '"u"' in refusal([x], [u], [x + u], observation=[x + u])
    assert '"u"' in refusal([x], [u], [x + u], observation=[features.fourier("g", u, count=2)])
    assert "empty" in refusal([x], [u], [x + u], observation=[])


def test_a_model_needs_states_inputs_and_one_kind_of_dynamics() -> None:
    assert "at least one state" in refusal([], [u], [])
    assert "at least one input" in refusal([x], [], [x])
    assert "not both" in refusal([x], [u])
    assert "not both" in refusal([x], [u], [x], derivatives=[x], step=0.1)
    assert "step=" in refusal([x], [u], [x], step=0.1)
    assert "needs step=" in refusal([x], [u], derivatives=[x])
    assert "positive" in refusal([x], [u], derivatives=[x], step=0.0)
    assert "NaN" in refusal([x], [u], derivatives=[x], step=float("nan"))
    assert "'rk45'" in refusal([x], [u], derivatives=[x], step=0.1, method="rk45")
    assert "'cubature'" in refusal([x], [u], [x], filter="cubature")


# -------------------------------------------------------------------- numbers

INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]  # eigenvalues 3 and -1


@pytest.mark.parametrize("argument", ["process_noise", "measurement_noise"])
def test_noise_must_be_a_covariance(argument: str) -> None:
    text = refusal([x, v], [u], [v, u], **{argument: INDEFINITE})
    assert argument in text
    assert "smallest eigenvalue is -1" in text
    text = refusal([x, v], [u], [v, u], **{argument: [[1.0, 0.5], [0.0, 1.0]]})
    assert "not symmetric" in text
    assert "0.75" in text  # the smallest eigenvalue of the symmetric part
    assert "eigenvalue is -0.25" in refusal([x, v], [u], [v, u], **{argument: [1.0, -0.25]})
    assert "shape (3,)" in refusal([x, v], [u], [v, u], **{argument: [1.0, 1.0, 1.0]})
    assert "shape (1, 2)" in refusal([x, v], [u], [v, u], **{argument: [[1.0, 1.0]]})
    for bad in (np.nan, np.inf, [1.0, -np.inf]):
        assert "NaN or infinite" in refusal([x, v], [u], [v, u], **{argument: bad})
    assert "must be numbers" in refusal([x, v], [u], [v, u], **{argument: "much"})


def test_parameter_drift_must_fit() -> None:
    a, b = unknown("a"), unknown("b")
    dynamics = [x + a * u + b]
    assert "smallest eigenvalue is -1" in refusal([x], [u], dynamics, drift=INDEFINITE)
    assert "smallest eigenvalue is -0.5" in refusal([x], [u], dynamics, drift=[1.0, -0.5])
    assert "shape (3,)" in refusal([x], [u], dynamics, drift=[1.0, 1.0, 1.0])
    assert "shape (3, 3)" in refusal([x], [u], dynamics, transition=np.eye(3))
    assert "NaN" in refusal([x], [u], dynamics, transition=np.nan)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_unknowns_and_constants_have_finite_numbers(bad: float) -> None:
    with pytest.raises(ModelError, match='"a"'):
        unknown("a", mean=bad)
    with pytest.raises(ModelError, match='"a"'):
        unknown("a", variance=bad)
    with pytest.raises(ModelError, match='"a"'):
        constant("a", bad)


def test_a_negative_prior_variance_is_refused_with_its_value() -> None:
    with pytest.raises(ModelError, match=r"-0\.5"):
        unknown("a", variance=-0.5)


def test_a_vector_gives_the_dynamics() -> None:
    listed = Model([x, v], [u], [x + v, v + u], observation=[x])
    for vector in (sp.Matrix([x + v, v + u]), sp.ImmutableMatrix([[x + v, v + u]])):
        assert Model([x, v], [u], vector, observation=sp.Matrix([x])).dynamics == listed.dynamics
    assert Model([x], [u], derivatives=sp.Matrix([u]), step=0.1).dynamics == (u,)
    assert "a matrix of 2 x 2, not a vector" in refusal([x, v], [u], sp.Matrix([[x, v], [v, u]]))
    assert '"v" has no dynamics' in refusal([x, v], [u], sp.Matrix([x]))


def test_bounds_of_states() -> None:
    assert 'state_bounds has an entry for "u", which is not a state' in refusal(
        [x], [u], [x + u], state_bounds={u: (0, 1)}
    )
    assert 'did you mean "x"?' in refusal([x], [u], [x + u], state_bounds={"X": (0.0, 1.0)})
    assert "leave no room: 1 to 1" in refusal([x], [u], [x + u], state_bounds={x: (1.0, 1.0)})
    assert "NaN" in refusal([x], [u], [x + u], state_bounds={x: (np.nan, 1.0)})
    assert Model([x], [u], [x + u], state_bounds={x: (None, None)}).state_bounds == ()
    dry = Model([v, x], [u], [v, x + u], state_bounds={"x": (0, None)})
    assert dry.bounded_states == {1: (0.0, None)}
    with pytest.raises(ModelError, match='the start of "x" is -1, where it cannot be: its bounds are above 0'):
        Scenario(dry, 3, start=[0.0, -1.0])


def test_bounds() -> None:
    assert '"x", which is not an input but a state: what it cannot leave belongs to state_bounds' in refusal(
        [x], [u], [x + u], bounds={x: (0.0, 1.0)}
    )
    assert "but a state" in refusal([x], [u], [x + u], bounds={"x": (0.0, 1.0)})
    force = sp.Symbol("force")
    assert 'did you mean "force"?' in refusal([x], [force], [x + force], bounds={"forse": (0.0, 1.0)})
    assert 'did you mean "force"?' in refusal([x], [force], [x + force], bounds={sp.Symbol("Force"): (0.0, 1.0)})
    named = Model([x], [force, v], [x + force + v], bounds={"force": (-1.0, 2.0)})
    assert (named.lower.tolist(), named.upper.tolist()) == ([-1.0, -np.inf], [2.0, np.inf])
    assert "no room" in refusal([x], [u], [x + u], bounds={u: (1.0, 0.0)})
    assert "no room" in refusal([x], [u], [x + u], bounds={u: (np.inf, None)})
    assert "NaN" in refusal([x], [u], [x + u], bounds={u: (np.nan, 1.0)})
    assert "pair" in refusal([x], [u], [x + u], bounds={u: 1.0})
    model = Model([x], [u, v], [x + u + v], bounds={v: (None, 2.0)})
    assert model.lower.tolist() == [-np.inf, -np.inf]
    assert model.upper.tolist() == [np.inf, 2.0]


# -------------------------------------------------------------------- what a model holds


def test_unknowns_come_as_they_are_declared_before_the_families() -> None:
    th = {n: unknown(f"th{n}", mean=n, variance=0.1 * n) for n in (2, 10, 1)}
    net = features.logistic("net", x, locations=[0.0, 1.0], mean=[5.0, 6.0], slope_mean=[7.0, 8.0], slope_variance=0.3)
    model = Model([x], [u], [x + th[10] * u + th[2] + th[1] * net], drift=0.1)
    assert model.unknown_names == ("th2", "th10", "th1", "net_v[0]", "net_v[1]", "net_w[0]", "net_w[1]")
    assert model.prior_mean.tolist() == [2.0, 10.0, 1.0, 5.0, 6.0, 7.0, 8.0]
    np.testing.assert_allclose(model.prior_covariance, [0.2, 1.0, 0.1, 1.0, 1.0, 0.3, 0.3])
    assert model.drift is not None and model.drift.shape == (7,)
    assert repr(model).endswith("unknowns th2, th10, th1, net_v (2), net_w (2)>")


def test_families_come_as_they_are_declared() -> None:
    late, early = (features.fourier(name, x, count=2) for name in ("z", "a"))
    assert Model([x], [u], [x + early * u + late]).unknown_names == ("z_sin[0]", "z_cos[0]", "a_sin[0]", "a_cos[0]")


def test_a_model_does_not_take_over_the_order_of_another_one() -> None:
    def made(*names: str) -> Model:
        own = {name: unknown(name, 1.0, 0.5) for name in names}
        return Model([x], [u], [x + own["a"] * u + own["b"] * x])  # equal expressions, which SymPy remembers

    assert made("b", "a").unknown_names == ("b", "a")
    assert made("a", "b").unknown_names == ("a", "b")
    assert made("b", "a").unknown_names == ("b", "a")


def test_an_unknown_that_is_declared_again_is_the_same_and_keeps_its_place() -> None:
    b = unknown("b", 1.0, 0.5)
    model = Model([x, v], [u], [x + unknown("a") * u - b * v, v + unknown("b", 1.0, 0.5) * u], observation=[x * b])
    assert model.unknowns[0] == b and model.unknown_names == ("b", "a")
    assert set().union(*(e.atoms(Unknown) for e in model.dynamics)) == set(model.unknowns)
    limited = Scenario(model, 3, constraints=[x <= unknown("b", 1.0, 0.5)])
    assert limited.objective is not None and limited.objective.constraints[0].atoms(Unknown) == {b}


def test_an_unknown_keeps_its_place_when_it_is_pickled() -> None:
    b, a = unknown("b"), unknown("a")
    travelled = pickle.loads(pickle.dumps([x + a * u + b, b]))
    assert travelled[1] == b and Model([x], [u], [travelled[0]]).unknown_names == ("b", "a")


def test_what_moves_unknowns_may_be_given_by_their_names() -> None:
    z, a = unknown("z"), unknown("a")
    family = features.rbf("g", x, [0.0, 1.0])
    model = Model([x], [u], [x + a * u + z + family], transition={"a": 0.5}, drift={z: 0.1, "g": [0.2, 0.3]})
    assert model.transition is not None and model.transition.tolist() == [1.0, 0.5, 1.0, 1.0]
    assert model.drift is not None and model.drift.tolist() == [0.1, 0.0, 0.2, 0.3]
    with pytest.raises(ModelError, match=r'drift names "zz", which is none of z, a, g; did you mean "z"'):
        Model([x], [u], [x + a * u + z + family], drift={"zz": 0.1})
    with pytest.raises(ModelError, match="drift is not positive semidefinite"):
        Model([x], [u], [x + a * u], drift={"a": -0.1})


def test_a_correlated_prior_makes_the_covariance_a_matrix() -> None:
    covariance = np.array([[2.0, 1.0], [1.0, 2.0]])
    model = Model([x], [u], [x + unknown("a", 0, 3.0) * u + features.rbf("g", x, [0.0, 1.0], variance=covariance)])
    expected = np.zeros((3, 3))
    expected[0, 0], expected[1:, 1:] = 3.0, covariance
    np.testing.assert_array_equal(model.prior_covariance, expected)


def test_logistic_is_differentiated_without_overflow() -> None:
    a = sp.Symbol("a", real=True)
    assert sp.diff(logistic(a), a) == logistic(a) * logistic(-a)
    s = 1 / (1 + np.exp(-0.3))
    curvature = float(sp.diff(logistic(a), a, 2).subs(a, sp.Rational(3, 10)).evalf(30))
    assert curvature == pytest.approx(s * (1 - s) * (1 - 2 * s), rel=1e-14)


def test_features_cannot_be_differentiated_by_the_user() -> None:
    with pytest.raises(ModelError, match='"g"'):
        sp.diff(features.fourier("g", x, count=2), x)


# -------------------------------------------------------------------- texts


PROGRAM = "__import__('pathlib').Path('executed').touch()"


@pytest.mark.parametrize(
    "build",
    [
        lambda: Model([x], [u], [PROGRAM]),
        lambda: Model([x], [u], {x: PROGRAM}),
        lambda: Model([x], [u], PROGRAM),
        lambda: Model([x], [u], derivatives=[PROGRAM], step=0.1),
        lambda: Model([x], [u], [x + u], observation=[PROGRAM]),
        lambda: Model([x], [u], [x + u], observation=PROGRAM),
        lambda: Model([PROGRAM], [u], [x + u]),
        lambda: features.fourier("g", PROGRAM, count=2),
        lambda: features.rbf("g", [x, PROGRAM], [[0.0, 0.0]]),
        lambda: features.linear("g", [PROGRAM]),
        lambda: features.gaussian_process("g", PROGRAM),
        lambda: features.gaussian_process("g", x, mean=PROGRAM),
        lambda: features.gaussian_process("g", x, mean=lambda a: PROGRAM),
        lambda: features.gaussian_process("g", x, kernel=lambda a, b: PROGRAM),
        lambda: features.custom("g", x, lambda s, c, p: PROGRAM, {"c": (0.0, 1.0)}, {"p": [0.0]}),
        lambda: Model([x], [u], [_Speaking()]),
        lambda: Model([x], [u], [x + u], process_noise=PROGRAM),
        lambda: Model([x], [u], [x + u], bounds={u: (PROGRAM, None)}),
        lambda: unknown("a", PROGRAM),
    ],
)
def test_a_text_is_refused_and_never_run(
    build: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SymPy turns a text into an expression by running it as a program."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError) as refusal:
        build()
    assert list(tmp_path.iterdir()) == []
    assert "\n" not in str(refusal.value)


class _Speaking:
    """An object that SymPy does not know, whose text is a program."""

    def __str__(self) -> str:
        return PROGRAM


def test_a_text_is_refused_in_one_sentence() -> None:
    with pytest.raises(ModelError, match=r'the dynamics of "x" is the text \'x \+ u\'; write it as an expression'):
        Model([x], [u], ["x + u"])
    with pytest.raises(ModelError, match="the observation number 1 is the text"):
        Model([x], [u], [x + u], observation=[x, "x**2"])


def test_numbers_are_expressions() -> None:
    model = Model([x, v], [u], [np.float64(2.0), 3], observation=[1])
    assert model.dynamics == (sp.Float(2.0), sp.Integer(3))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"substeps": 0}, "substeps must be a whole number from 1 to 1000, but is 0"),
        ({"substeps": 2.5}, "substeps must be a whole number from 1 to 1000, but is 2.5"),
    ],
)
def test_substeps_that_are_none(options: dict[str, Any], sentence: str) -> None:
    a, b = sp.symbols("a b")
    with pytest.raises(ModelError, match=sentence):
        Model([a], [b], derivatives=[b - a], step=0.5, **options)
    with pytest.raises(ModelError, match="substeps= belongs to derivatives="):
        Model([a], [b], [b - a], substeps=2)
    process = features.gaussian_process("g", a, memory=3)
    with pytest.raises(ModelError, match="substeps are not for models with a Gaussian process"):
        Model([a], [b], derivatives=[b - process], step=0.5, substeps=2)


# ------------------------------------------------------------------------------------------------ bounds of unknowns


def test_the_prior_of_theta_is_matched_to_the_given_moments() -> None:
    rate, share = unknown("rate", 2.0, 0.25, positive=True), unknown("share", 0.3, 0.01, lower=0.0, upper=1.0)
    model = Model([x], [u], [rate * x + share * u + unknown("b", 1.0, 4.0)])
    assert model.unknown_names == ("rate", "share", "b")
    variance = np.log(1 + 0.25 / 4)  # of the logarithm
    assert model.prior_mean[0] == pytest.approx(np.log(2.0) - variance / 2, rel=1e-14)
    assert model.prior_covariance[0] == pytest.approx(variance, rel=1e-14)
    assert (model.prior_mean[2], model.prior_covariance[2]) == (1.0, 4.0)
    np.testing.assert_array_equal(model.stated_prior[0], [2.0, 0.3, 1.0])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mean": -1.0, "positive": True}, 'the mean -1 of the unknown "k" does not lie between its bounds, above 0'),
        ({"positive": True}, 'the mean 0 of the unknown "k" does not lie between'),
        ({"mean": 2.0, "lower": 0.0, "upper": 1.0}, "does not lie between its bounds, 0 to 1"),
        (
            {"mean": 0.5, "variance": 0.3, "lower": 0.0, "upper": 1.0},
            "the variance 0.3 .* is impossible: .* below 0.25",
        ),
        ({"mean": 1.0, "lower": 2.0, "upper": 1.0}, 'the bounds of the unknown "k" leave no room: 2 to 1'),
        ({"mean": 1.0, "lower": float("nan")}, "leave no room"),
        ({"mean": 1.0, "lower": "a"}, "must be numbers"),
        ({"mean": 1.0, "positive": True, "lower": 0.5}, "both positive=True, which is lower=0, and lower=0.5"),
    ],
)
def test_bounds_that_make_no_sense(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        unknown("k", **given)


def test_an_unknown_with_bounds_drifts_but_does_not_decay() -> None:
    k = unknown("k", 1.0, 0.1, positive=True)
    b = unknown("b")
    assert Model([x], [u], [k * x + b + u], drift={"k": 1e-4}, transition={"b": 0.9}).drift is not None
    with pytest.raises(ModelError, match='transition moves the unknown "k", which has bounds'):
        Model([x], [u], [k * x + b + u], transition={"k": 0.9})
    with pytest.raises(ModelError, match='transition moves the unknown "k"'):
        Model([x], [u], [k * x + b + u], transition=[[1.0, 0.0], [0.1, 1.0]])


def test_the_name_of_what_is_normal_is_taken() -> None:
    k = unknown("k", 1.0, 0.1, positive=True)
    with pytest.raises(ModelError, match='the name "log_k" stands for what is normal of the unknown "k"'):
        Model([sp.Symbol("log_k")], [u], [k * u])


def test_truths_and_priors_of_scenarios_are_in_the_users_units() -> None:
    k = unknown("k", 1.0, 0.1, positive=True)
    model = Model([x], [u], [k * x + u])
    scenario = Scenario(model, 3, prior_mean={"k": 3.0}, prior_covariance=[0.5], truth={"k": 2.0})
    assert scenario.truth is not None and scenario.truth[0] == pytest.approx(np.log(2.0))
    found = k.transform.moments(scenario.prior_mean, np.diag(scenario.prior_covariance))
    assert (float(found.mean[0]), float(found.variance[0])) == pytest.approx((3.0, 0.5), rel=1e-12)
    moving = Scenario(model, 2, truth=lambda step: {"k": 1.0 + step})
    assert moving.truth_path is not None
    np.testing.assert_allclose(moving.truth_path[:, 0], np.log([2.0, 3.0]))
    with pytest.raises(ModelError, match='truth has 0 for "k", which has the bounds above 0'):
        Scenario(model, 3, truth={"k": 0.0})
