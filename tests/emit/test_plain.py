"""What a scenario can say costs nothing where it is not said: a plain model has no module, name or word of it."""

from __future__ import annotations

import ast
import re

import pytest
import sympy as sp

from symdual import Model, Scenario, features, previous, signal, unknown
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.generation import scenario_numbers
from symdual.spec.loading import gathered

x, v, u = sp.symbols("x v u")
sun = signal("sun", usual=0.5)
NOISE = {"process_noise": [0.01, 0.02], "measurement_noise": 0.01}
MODULES = {
    "kernels/objective.py",
    "constraints/constraints.py",
    "constraints/backoff_search.py",
    "constraints/backoff.py",
    "constraints/closed_loop_covariance.py",
    "kernels/signals.py",
    "search/discrete_inputs.py",
}
#: words that only models have which use them; `lower`, `upper` and the like are everybody's
WORDS = re.compile(
    r"signal|previous|constraint|probabilit|quantile|limit_|_limits?\\b|choice|switch|combination|objective|"
    r"stage_terms|final_terms|stage_value|end_value|stage_hessian|cross_cost|input_reference|cost_weights|"
    r"terminal_weights|backoff|noise_at|noise_of|_noise_gradient",
    re.IGNORECASE,
)


def files_of(model: Model, **asked: object) -> dict[str, bytes]:
    """The package of a model with a scenario."""
    contents = gathered(Scenario(model, 5, **asked))  # type: ignore[arg-type]
    return dict(package(derive(contents.specifications[model.name]), scenario_numbers(contents.scenarios)).files)


def plain(name: str, **more: object) -> Model:
    """A cart with unknown features of its place."""
    slope = features.fourier("g", x, count=4)
    gain = unknown("b", 1.0, 0.3)
    return Model([x, v], [u], [x + 0.4 * v, v + slope + gain * u], name=name, **{**NOISE, **more})  # type: ignore[arg-type]


def own_words(source: str) -> set[str]:
    """The identifiers, texts and comments of a module."""
    names = {
        getattr(node, "id", getattr(node, "attr", getattr(node, "name", ""))) for node in ast.walk(ast.parse(source))
    }
    words = re.findall(r"[A-Za-z_]\w*", source)
    return {str(name) for name in names if name} | set(words)


@pytest.mark.parametrize("square_root", [False, True])
def test_the_code_of_a_plain_model_has_no_trace_of_what_scenarios_can_say(square_root: bool) -> None:
    files = files_of(plain("cart", square_root=square_root), reference=[1.0, 0.0])
    assert not MODULES & set(files)
    for name, content in files.items():
        if name.endswith(".py"):
            found = sorted(word for word in own_words(content.decode()) if WORDS.search(word))
            assert not found, (name, found)


ASKED = {
    "a cost": ({}, {"cost": [x - 1, u]}),
    "a constraint": ({}, {"constraints": [x <= 1.0]}),
    "a signal": ({}, {"cost": [x - sun, u], "signals": {sun: 1.0}}),
    "the past": ({}, {"cost": [x, u - previous(u)]}),
    "choices": ({}, {"choices": {u: [0.0, 1.0]}}),
    "noise": ({"measurement_noise": [0.01 + x**2, 0.01]}, {}),
}


@pytest.mark.parametrize("what", list(ASKED))
def test_the_words_that_are_looked_for_are_those_of_models_that_use_them(what: str) -> None:
    """Otherwise the test above could not fail."""
    more, asked = ASKED[what]
    files = files_of(plain("cart", **more), **asked)
    usual = files_of(plain("cart"))
    code = {name: content for name, content in files.items() if name.endswith(".py")}
    assert any(WORDS.search(content.decode()) for content in code.values())
    assert any(usual.get(name) != content for name, content in code.items())


def test_numbers_of_a_task_change_no_code() -> None:
    """A scenario, whatever it says in numbers, leaves the code of a plain model as it is without one."""
    without = package(derive(plain("cart"))).files
    files = files_of(plain("cart"), reference=[3.0, 1.0], truth=lambda k: [0.5 + k, 0.0, 0.0, 0.0, 0.0])
    for name in without:
        if name.endswith(".py"):
            assert _without_digest(files[name]) == _without_digest(without[name]), name


def _without_digest(content: bytes) -> str:
    return re.sub(r"[0-9a-f]{64}", "", content.decode())
