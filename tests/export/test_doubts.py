"""What speaks against a decision: an exported controller says the same as the one in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import symdual
from symdual.checks.exported import build
from symdual.export.controller import Settings, export
from symdual.runtime.controller import controller
from symdual.runtime.doubts import KINDS
from symdual.runtime.info import State
from symdual.runtime.problem import Problem

# where an input is squared, its opposite is worth as much
MODELS = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, y, u, v, w = sp.symbols("x y u v w")
b, c = unknown("b", mean=-0.5, variance=0.04), unknown("c", mean=1.0, variance=0.1)
noise = dict(process_noise=1e-2, measurement_noise=1e-3)
single = Model([x], [u], [x + b * u**2], **noise)
angled = Model([x, y], [u, v], [x + b * u + sp.sin(y), 0.9 * y + c * v], **noise)
picked = Model([x], [w], [x + b * w**2], bounds={w: (-1, 1)}, **noise)
one = Scenario(single, 8, input_cost=0.1, start=[1.0])
two = Scenario(angled, 8, input_cost=0.1, start=[1.0, 0.5])
three = Scenario(picked, 8, input_cost=0.1, start=[1.0], choices={w: [-1.0, 0.0, 1.0]})
"""

YS = np.array([[1.0, 0.5], [1.1, 0.4], [np.nan, 0.0], [40.0, -9.0], [-30.0, 10.0], [200.0, -30.0]])


@pytest.fixture(scope="module")
def problem_of(
    c_compiler: str, shared_models: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Problem]:
    file = tmp_path_factory.mktemp("models") / "doubtful.py"
    file.write_text(MODELS)
    return lambda name: symdual.problem(symdual.load(shared_models(file) / name, backend="c"))


@pytest.mark.parametrize("name", ["single", "angled", pytest.param("picked", marks=pytest.mark.soak)])
def test_an_exported_controller_says_what_speaks_against_its_input(
    problem_of: Callable[[str], Problem], name: str, tmp_path: Path
) -> None:
    problem = problem_of(name)
    exported = export(problem, Settings("doubting", controllers=("ce", "dual")))
    text = '#include "doubting.h"\nint doubts_of(const doubting_controller *c) { return c->doubts; }\n'
    text += "void limit(doubting_controller *c) { c->settings.iterations = 1; }\n"
    native = build(replace(exported, files={**exported.files, "probe.c": text}), tmp_path)
    memory = np.zeros(exported.bytes // 8 + 1)
    place, met = ctypes.c_void_p(memory.ctypes.data), 0
    for number, limited in ((one.number, limited) for one in exported.choices for limited in (False, True)):
        twin = controller(problem, exported.choices[number].name)
        native.doubting_init(place)
        native.doubting_use(place, number)
        if limited:
            native.limit(place)
            twin.solver.settings["iterations"] = 1
        state = twin.init()
        for given in YS[:, : problem.package.NY]:
            belief, statistics = twin.solver.observe(state, given)
            u, status, plans = twin.solver.decide(State(state.k, belief, None, state.plans))
            wanted = {doubt.kind for doubt in twin.solver.doubts(state.k, belief, statistics, u, status)}
            y, applied = given.copy(), np.zeros(problem.package.NU)
            assert native.doubting_act(place, ctypes.c_void_p(y.ctypes.data), ctypes.c_void_p(applied.ctypes.data)) >= 0
            assert applied == pytest.approx(u, rel=1e-6, abs=1e-6)
            bits = native.doubts_of(place)
            assert {kind for n, kind in enumerate(KINDS) if bits >> n & 1} == wanted, (twin.name, state.k)
            met |= bits
            state = State(state.k + 1, belief, u, plans)
    kinds = {kind for n, kind in enumerate(KINDS) if met >> n & 1}
    assert kinds >= {"measurement", "prior"} | ({"search"} if name != "angled" else {"limit"})
