"""Signals as users give them: schedules of every kind, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, column, signal, unknown
from symdual.common.errors import ModelError, SymdualWarning
from symdual.spec.loading import load_model_file
from symdual.spec.specification import specified

x, u = sp.symbols("x u")
sun, price = signal("sun", usual=200.0), signal("price")
model = Model([x], [u], [x + sun * u], name="m")


def test_schedules_are_numbers_lists_functions_and_columns(tmp_path: Path) -> None:
    file = tmp_path / "weather.csv"
    file.write_text("time,sun,price\n0,100,0.1\n1,150,0.2\n2,50,0.3\n3,0,0.4\n")
    given = {sun: column(file, "sun"), "price": lambda k: 0.5 * k}
    scenario = Scenario(model, 3, cost=price * u + x**2, signals=given)
    assert scenario.signal_names == ("price", "sun")
    assert scenario.signals.T.tolist() == [[0.0, 0.5, 1.0, 1.5], [100.0, 150.0, 50.0, 0.0]]
    assert np.array_equal(scenario.forecasts, scenario.signals)
    believed = Scenario(model, 3, signals={sun: 7.0}, forecasts={sun: [1.0, 2.0, 3.0, 4.0]})
    assert believed.signals.ravel().tolist() == [7.0] * 4
    assert believed.forecasts.ravel().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_short_schedule_is_held_and_it_is_said() -> None:
    with pytest.warns(SymdualWarning, match='the signal "sun" has 2 values for 4 times; the last one, 5, is held'):
        scenario = Scenario(model, 3, signals={sun: [4.0, 5.0]})
    assert scenario.signals.ravel().tolist() == [4.0, 5.0, 5.0, 5.0]


def test_a_signal_that_nobody_set_is_left_for_run_time() -> None:
    assert np.isnan(Scenario(model, 3).signals).all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"son": 1.0}, 'signals names "son", which is not a signal; did you mean "sun"'),
        ({sun: np.nan}, "NaN or infinite"),
        ({sun: [1.0, np.inf]}, "NaN or infinite"),
        ({sun: []}, "must be one number, one for each time"),
        ({sun: [[1.0], [2.0]]}, "must be one number, one for each time"),
        ({sun: lambda k: "bright"}, "must be numbers"),
        ({sun: lambda k: [1.0, 2.0]}, "at step 0 must be one number"),
    ],
)
def test_bad_schedules_are_refused(given: dict[Any, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        Scenario(model, 3, signals=given)


def test_bad_columns_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "weather.csv"
    file.write_text("time,sun\n0,1\n1,\n")
    with pytest.raises(ModelError, match='row 3: the column "sun" holds no number'):
        column(file, "sun")
    for cell in ("1_000", "\u0661\u0662", "0x10", "1,5"):
        file.write_text(f"time,sun\n0,1\n1,{cell}\n" if "," not in cell else f'time,sun\n0,1\n1,"{cell}"\n')
        with pytest.raises(ModelError, match='row 3: the column "sun" holds no number'):
            column(file, "sun")
    file.write_text("time,sun,sun\n0,1,2\n")
    with pytest.raises(ModelError, match='has two columns called "sun"'):
        column(file, "sun")
    with pytest.raises(ModelError, match='has no column "sum"; did you mean "sun"'):
        column(file, "sum")
    with pytest.raises(ModelError, match="cannot read"):
        column(tmp_path / "none.csv", "sun")


def test_names_of_signals_never_become_code() -> None:
    with pytest.raises(ModelError, match="not an identifier"):
        signal("sun; import os")
    with pytest.raises(ModelError, match="is given to two different symbols"):
        Model([x], [u], [x + sun * u + signal("sun", usual=1.0)], name="m")


def test_signals_stand_together_behind_the_constants() -> None:
    late = Model([x], [u], [x + sun * u + unknown("b") * signal("alpha")], name="m")
    assert [s.name for s in late.signals] == ["alpha", "sun"]
    plant = Model([x], [u], [x + u * signal("zeta") * signal("beta")], name="plant")
    heard = specified(late, plants=[plant])
    assert [s.name for s in heard.signals] == ["alpha", "beta", "sun", "zeta"]


def test_a_model_hears_the_signals_of_its_plant(tmp_path: Path) -> None:
    file = tmp_path / "disturbed.py"
    file.write_text(
        "import sympy as sp\n"
        "from symdual import Model, Scenario, signal, unknown\n"
        "x, u = sp.symbols('x u')\n"
        "model = Model([x], [u], [x + unknown('b') * u], name='believed')\n"
        "true = Model([x], [u], [x + u + signal('wind')], name='true')\n"
        "scenario = Scenario(model, 3, plant=true, signals={'wind': 2.0})\n"
    )
    models = load_model_file(file).specifications
    assert [s.name for s in models["believed"].signals] == ["wind"]
