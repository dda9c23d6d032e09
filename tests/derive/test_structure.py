"""What is known without numbers: zero rows, spans, affinity, and when an input shows in the belief."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sp

from symdual import Model, features, unknown
from symdual.derive.derivation import derive
from symdual.derive.structure import Structure, structure
from symdual.spec.loading import load_model_file

x, v, u, w = sp.symbols("x v u w")
PAPER = Path(__file__).parents[2] / "symdual" / "paper" / "models"


def of(model: Model) -> Structure:
    return structure(derive(model))


def cart(observation: list[sp.Expr] | None = None) -> Model:
    slope = features.fourier("g", x, count=4)
    return Model([x, v], [u], [x + 0.4 * v, v + slope + u], observation=observation)


@pytest.mark.parametrize(
    ("model", "delay"),
    [
        (Model([x], [u], [x + unknown("b") * u]), 1),
        (cart(), 3),
        (cart([x]), 4),
        (cart([v]), 3),
        (Model([x], [u], [unknown("a") * x + u]), 2),  # f_theta = x, which u moves one step earlier
        (Model([x], [u], [x + unknown("a") + u]), 0),  # additive: nothing about a depends on u
        (Model([x], [u], [x + u]), 0),  # nothing to learn
        (Model([x, v], [u], [unknown("a") * x, v + u]), 0),  # u acts elsewhere
        (Model([x], [u], [x + u], observation=[unknown("c") * x]), 1),  # h_theta = x
        (Model([x, v], [u], [x + u, unknown("a") * v], observation=[v * x]), 1),  # the gain of the sensor moves
        (Model([x], [u], [x + u * features.rbf("g", x, [0.0, 1.0])]), 1),
        (Model([x, v, w], [u], [x + unknown("a") * v, v + w, w + u]), 3),
    ],
)
def test_input_delay(model: Model, delay: int) -> None:
    assert of(model).input_delay == delay


@pytest.mark.parametrize(("file", "delay"), [("toy", 1), ("schedule", 3), ("relevance", 3), ("drift", 3)])
def test_input_delay_of_the_papers_models(file: str, delay: int) -> None:
    assert of(load_model_file(PAPER / f"{file}.py").specifications[file]).input_delay == delay


def test_rows_and_spans_of_f_theta() -> None:
    a, b = unknown("a"), unknown("b")
    model = Model(
        [x, v, w],
        [u],
        [x + v, v + a * u + features.rbf("late", x, [0.0, 1.0, 2.0]), w + features.fourier("early", v, count=4) + b],
    )
    pattern = of(model)
    # theta = (a, b, late x 3, early_sin x 2, early_cos x 2)
    assert pattern.theta_rows == (1, 2)
    assert pattern.f_theta_spans == (((0, 1), (2, 5)), ((1, 2), (5, 9)))
    assert (pattern.nx, pattern.nu, pattern.ny, pattern.ns, pattern.ntheta, pattern.nz) == (3, 1, 3, 2, 9, 12)


def test_columns_and_selected_states() -> None:
    c = unknown("c")
    model = Model([x, v], [u, w], [x + v, v * w + c], observation=[v, x * v, x + c, x])
    pattern = of(model)
    assert pattern.f_x_columns == ((0, 1), (1,))
    assert pattern.f_u_columns == ((), (1,))
    assert pattern.h_selects == (1, -1, -1, 0)
    assert pattern.h_x_columns == ((1,), (0, 1), (0,), (0,))
    assert pattern.h_theta_rows == (2,)


@pytest.mark.parametrize(
    ("dynamics", "affine"),
    [
        (x + unknown("a") * u, True),
        (unknown("a") * x + sp.exp(unknown("b")) * u, True),
        (x + sp.sin(sp.Symbol("k")) * u, True),
        (x + unknown("a") * x * u, False),
        (x**2 + u, False),
        (x + u + features.fourier("g", x, count=2), False),
        (x + u + features.custom("g", x, lambda s, c, p: c * p * s, {"c": (0, 1)}, {"p": [1.0, 2.0]}), True),
    ],
)
def test_affinity(dynamics: sp.Expr, affine: bool) -> None:
    assert of(Model([x], [u], [dynamics], time=sp.Symbol("k"))).linear is affine


def test_second_derivatives_by_inputs() -> None:
    pattern = of(Model([x, v], [u, w], [x + u * v, v + w**2]))
    assert pattern.hessian_core_rows == ()  # f_zz = 0
    assert pattern.hessian_input_rows == (0,)
    assert pattern.huu_nonzero
    assert not of(Model([x], [u], [x * u])).huu_nonzero


def test_rows_that_are_bent_by_anything() -> None:
    x, y, q, u = sp.symbols("x y q u")
    gain, rail = unknown("gain"), features.fourier("v", x, count=4, lengthscale=1.0)
    straight = structure(derive(Model([x, y], [u], [x + y + u, 0.5 * y + u], name="straight")))
    assert straight.curved_rows == ()
    rows = [x + gain, y + sp.tanh(u), q + gain * u, x + rail, q + sp.sin(q)]
    names = [x, y, q, *sp.symbols("r s")]
    assert structure(derive(Model(names, [u], rows, name="bent"))).curved_rows == (1, 2, 3, 4)
