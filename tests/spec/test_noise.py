"""Noise that depends, as users give it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, constant, features, previous, signal, unknown
from symdual.common.errors import ModelError
from symdual.derive.derivation import derive
from symdual.derive.structure import structure
from symdual.spec.loading import load_model_file

x, v, u = sp.symbols("x v u")
b = unknown("b", 1.0, 1.0)


def made(**options: Any) -> Model:
    return Model([x, v], [u], options.pop("dynamics", [x + 0.1 * v, v + u]), name="m", **options)


def test_one_expression_a_diagonal_and_a_matrix() -> None:
    one = made(process_noise=0.1 * u**2).noise
    assert one is not None
    assert one.process == ((0.1 * u**2, 0), (0, 0.1 * u**2))
    assert one.measurement == ((0.0, 0), (0, 0.0))
    diagonal = made(measurement_noise=[0.5, x**2]).noise
    assert diagonal is not None
    assert diagonal.measurement == ((0.5, 0), (0, x**2))
    matrix = made(process_noise=sp.Matrix([[1 + u**2, u * (1 + x)], [u + u * x, 2 + x**2]])).noise
    assert matrix is not None
    assert matrix.process[0][1] == matrix.process[1][0]
    assert made(measurement_noise=sp.Matrix([x**2, v**2])).noise == made(measurement_noise=[x**2, v**2]).noise


def test_numbers_stay_numbers() -> None:
    model = made(process_noise=[sp.Rational(1, 10), 0.2], measurement_noise=sp.Matrix([[1, 0], [0, 2]]))
    assert model.noise is None
    assert model.process_noise.tolist() == [[0.1, 0.0], [0.0, 0.2]]


def test_constants_signals_time_and_the_past_may_stand_in_it() -> None:
    k = sp.Symbol("k")
    fog, level = signal("fog", usual=1.0), constant("level", 0.3)
    noise = [level * fog / (1 + k), 0.1 + previous(u) ** 2]
    model = made(process_noise=noise, measurement_noise=[0.1 + previous(u, 2) ** 2, 1.0], time=k)
    assert [c.name for c in model.constants] == ["level", "fog"]
    assert len(model.states) == 4
    assert model.noise is not None
    assert [len(row) for row in model.noise.process] == [4] * 4
    assert model.noise.process[2] == (0, 0, 0, 0)
    assert model.process_noise.diagonal().tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"process_noise": [b * 0.1, 0.1]}, r'process_noise\[0, 0\] contains the unknown "b"; noise may depend on'),
        (
            {"measurement_noise": [0.1, u**2]},
            r'measurement_noise\[1, 1\] contains the input "u", which is chosen after',
        ),
        ({"process_noise": [sp.Symbol("w"), 0.1]}, r"process_noise\[0, 0\] contains 'w', which is not declared"),
        ({"process_noise": [x, 0.1, 0.1]}, r"process_noise must be one expression, 2 of them or a 2 x 2 matrix"),
        ({"process_noise": sp.Matrix([[1, x], [0, 1]])}, r"process_noise is not symmetric: its entry \[1, 0\] is 0"),
        ({"measurement_noise": [sp.floor(x), 1]}, r"measurement_noise\[0, 0\] uses floor, which has no derivative"),
        ({"process_noise": ["x**2", x]}, "is the text 'x\\*\\*2'; write it as an expression"),
        (
            {"process_noise": [x**2, 1], "fitted": {"process_noise": [[1.0, 0.0], [0.0, 1.0]]}},
            "the fit has numbers for process_noise, where the model has an expression",
        ),
        (
            {
                "process_noise": [x**2, 1],
                "dynamics": [x, v + u + features.gaussian_process("g", x, memory=5)],
            },
            'noise that depends is not for models with a Gaussian process \\("g"\\)',
        ),
        ({"process_noise": features.fourier("g", x, count=4)}, 'contains the unknown "g"'),
    ],
)
def test_what_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        made(**options)


def test_a_line_of_the_model_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "dark.py"
    file.write_text(
        "import sympy as sp\nfrom symdual import Model\nx, u = sp.symbols('x u')\n"
        "model = Model([x], [u], [x + u], measurement_noise=[u**2])\n"
    )
    with pytest.raises(ModelError, match=r'dark.py:4: measurement_noise\[0, 0\] contains the input "u"'):
        load_model_file(file)


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, 0),  # an offset: every input leaves it as uncertain as it was
        ({"process_noise": [0.1 + u**2, 0.1]}, 1),
        ({"process_noise": [0.1 + x**2, 0.1]}, 3),
        ({"measurement_noise": [0.1, 0.1 + v**2]}, 1),
        ({"measurement_noise": [0.1, 0.1 + x**2]}, 2),
    ],
)
def test_an_input_shows_in_the_belief_through_noise(options: dict[str, Any], steps: int) -> None:
    model = made(dynamics=[x + 0.1 * v, v + u + b], **options)
    assert structure(derive(model)).input_delay == steps


def test_a_plant_with_such_noise_is_known_to_its_model(tmp_path: Path) -> None:
    file = tmp_path / "world.py"
    file.write_text(
        "import sympy as sp\nfrom symdual import Model, Scenario\nx, u = sp.symbols('x u')\n"
        "calm = Model([x], [u], [x + u], process_noise=0.1)\n"
        "rough = Model([x], [u], [x + u], process_noise=0.1 + u**2)\n"
        "scenario = Scenario(calm, 3, plant=rough)\n"
    )
    models = load_model_file(file).specifications
    assert models["rough"].noise is not None
    assert not models["rough"].plants_have_state_dependent_noise
    assert models["calm"].noise is None
    assert models["calm"].plants_have_state_dependent_noise


def test_a_scenario_with_such_noise_has_numbers_of_its_own() -> None:
    model = made(process_noise=[x**2, 1])
    assert np.array_equal(Scenario(model, 3).model.process_noise, np.eye(2))
