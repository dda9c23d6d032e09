"""Inputs some steps ago: what a model makes of them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from mpmath import mpf

from symdual import Model, Scenario, previous, unknown
from symdual.common.errors import ModelError
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.spec.loading import load_model_file

x, v, u, w = sp.symbols("x v u w")
b = unknown("b", 1.0, 0.5)


def _by_hand() -> Model:
    """What `previous` stands for, written out."""
    first, second = sp.symbols("previous_u previous_u_2")
    motion = [x + 0.1 * v + b * second, v + w + first, u, first]
    observation = [x + 0.3 * first, v]
    noise = [0.1, 0.2, 0.0, 0.0]
    return Model([x, v, first, second], [u, w], motion, observation=observation, process_noise=noise, name="m")


def _by_previous() -> Model:
    motion = [x + 0.1 * v + b * previous(u, 2), v + w + previous(u)]
    observation = [x + 0.3 * previous(u), v]
    return Model([x, v], [u, w], motion, observation=observation, process_noise=[0.1, 0.2], name="m")


def test_the_code_is_that_of_states_that_remember() -> None:
    by_hand, written = (package(derive(model)).files for model in (_by_hand(), _by_previous()))
    code = [name for name in by_hand if name.endswith(".py")]
    assert {name: by_hand[name] for name in code} == {name: written[name] for name in code}
    assert by_hand["data.npz"] == written["data.npz"]


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_in_continuous_time_the_past_moves_by_whole_steps(method: str) -> None:
    from symdual.many_digits.model import ExactModel

    model = Model([x], [u], derivatives=[-x + previous(u, 2)], step=0.5, method=method, name="m")
    assert [s.name for s in model.states] == ["x", "previous_u", "previous_u_2"]
    x0, u0 = [mpf(1.0), mpf(2.0), mpf(3.0)], [mpf(4.0)]
    later = [float(value) for value in ExactModel(model).dynamics(0, x0, u0, [])]
    assert later[1:] == [4.0, 2.0]
    assert later[0] == pytest.approx(1 + 0.5 * 2 if method == "euler" else 3 - 2 * np.exp(-0.5), rel=1e-3)
    outputs = derive(model).dynamics.program.outputs
    assert [sp.sstr(e) for e in outputs[1:]] == ["u", "previous_u"]


def test_observed_by_default_are_the_users_own_states() -> None:
    model = Model([x], [u], [x + previous(u, 2)])
    assert model.observation == (x,) and model.memory == 2
    assert model.process_noise.shape == (3, 3) and not np.any(model.process_noise)


def test_a_scenario_speaks_of_own_states_only() -> None:
    model = Model([x, v], [u], [x + v, v + previous(u, 3)], name="m")
    scenario = Scenario(model, 4, state_cost=[1.0, 2.0], reference=[3.0, 4.0], start=[5.0, 6.0], past={u: [0.7, 0.8]})
    assert np.diag(scenario.state_cost[0]).tolist() == [1.0, 2.0, 0.0, 0.0, 0.0]
    assert scenario.reference[0].tolist() == [3.0, 4.0, 0.0, 0.0, 0.0]
    assert scenario.start.tolist() == [5.0, 6.0, 0.7, 0.8, 0.8]
    assert scenario.start_covariance.shape == (5, 5)


def test_a_cost_that_looks_back_makes_model_and_plant_remember(tmp_path: Path) -> None:
    file = tmp_path / "rates.py"
    file.write_text(
        "import sympy as sp\n"
        "from symdual import Model, Scenario, previous, unknown\n"
        "x, y, u, q = sp.symbols('x y u q')\n"
        "model = Model([x], [u], [x + unknown('b') * u], name='believed')\n"
        "true = Model([y], [q], [y + sp.sin(previous(q, 2))], name='true')\n"
        "scenario = Scenario(model, 3, plant=true, cost=[x, u - previous(u)], past={u: 2.0}, start=1.0)\n"
    )
    contents = load_model_file(file)
    believed, true = contents.specifications["believed"], contents.specifications["true"]
    assert [s.name for s in believed.states] == ["x", "previous_u", "previous_u_2"]
    assert [s.name for s in true.states] == ["y", "previous_q", "previous_q_2"]
    q = sp.Symbol("q")
    assert true.objective is not None and true.objective.stage.expressions == (sp.Symbol("y"), q - previous(q))
    scenario = contents.scenarios["rates"]
    assert scenario.start.tolist() == [1.0, 2.0, 2.0]
    assert scenario.state_cost.shape == (4, 3, 3)
    package(derive(true))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Model([x], [u], [x + previous(x)]), r'contains previous\(x\), but "x" is not an input'),
        (lambda: Scenario(Model([x], [u], [x + u]), 3, cost=[previous(x)]), r'"x" is not an input'),
        (lambda: previous(b), "only inputs are remembered"),
        (lambda: previous(u + 1), "only inputs are remembered"),
        (lambda: previous(u, 0), "whole number of at least 1"),
        (lambda: previous(u, 1.5), "whole number of at least 1"),  # type: ignore[arg-type]
        (lambda: previous(u, 10**9), "no more than 1000 steps can be remembered"),
        (lambda: previous(previous(u)), "only inputs are remembered"),
        (lambda: Scenario(Model([x], [u], [x + previous(u, 5)]), 4), r"previous\(u, 5\) looks back more steps"),
        (lambda: Scenario(Model([x], [u], [x + u]), 4, cost=[previous(u, 5)]), "looks back more steps"),
        (lambda: Scenario(Model([x], [u], [x + previous(u)]), 4, past={"v": 1.0}), 'past names "v"'),
        (lambda: Model([x, sp.Symbol("previous_u")], [u], [x + previous(u), x]), "is taken by previous"),
        (lambda: Model([x], [u], [x + u], observation=[x + u]), r"such as previous\(u\)"),
    ],
)
def test_bad_memories_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        make()
