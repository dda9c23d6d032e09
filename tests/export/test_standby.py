"""numba takes over where C fails after all: what the translator cannot take, compilers that fail later."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import symdual
from symdual.backends.c import backend, compilation
from symdual.backends.c.values import Untranslatable
from symdual.commands import main
from symdual.common import errors
from symdual.common.errors import SymdualError
from symdual.runtime import evaluate, loading, readiness
from symdual.runtime.backend import BackendFailure
from symdual.runtime.sweep import sweep

WORDS = "; numba compiles instead, which takes longer"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, c_compiler: str) -> None:
    monkeypatch.setattr(backend, "_BACKENDS", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    errors.SAID.clear()


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules of numba that were looked up."""
    found: list[str] = []
    original = loading.importlib.import_module

    def spied(name: str, *rest: Any) -> Any:
        if name.startswith("symdual_generated."):
            found.append(name.rpartition(".")[2])
        return original(name, *rest)

    monkeypatch.setattr(loading.importlib, "import_module", spied)
    return found


def failing(monkeypatch: pytest.MonkeyPatch, part: str, how: str) -> None:
    """Let one part of every package fail, in the translation or later."""
    begun = backend.CBackend._begun

    def fail(self: backend.CBackend, wanted: str) -> Any:
        if not wanted.startswith(part):
            return begun(self, wanted)
        if how == "untranslatable":
            raise Untranslatable("toy/filter.py:7: no such thing in C")
        if how == "too deep":
            raise RecursionError
        work, library = begun(self, wanted)
        library.require()
        library._loaded = None

        def killed() -> bytes:
            raise SymdualError("the C compiler cc was ended by the signal SIGKILL")

        library._content = killed
        return work, library

    monkeypatch.setattr(backend.CBackend, "_begun", fail)


SENTENCES = {
    "untranslatable": "toy/filter.py:7: no such thing in C",
    "too deep": "an expression of toy is too deep to be translated to C",
    "killed": "the C compiler cc was ended by the signal SIGKILL",
}


@pytest.mark.parametrize("how", SENTENCES)
@pytest.mark.parametrize("part", ["kernels", "calls"])
def test_functions_by_themselves_are_numbas(
    part: str, how: str, package_of: Callable[[str], Path], looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, part, how)
    package = symdual.load(package_of("toy"))
    assert package.backend == "c"
    with pytest.warns(symdual.SymdualWarning) as said:
        getattr(package, part)
    assert [str(one.message) for one in said] == [SENTENCES[how] + WORDS]
    assert package.backend == "numba" and looked_up == [part]
    assert "compiled by numba" in repr(package)
    assert symdual.load(package_of("toy")).backend == "numba"  # which is known from now on, without a word
    if part == "kernels":
        f = evaluate.dynamics(package, [1.0], [0.5], [2.0])
        assert f == evaluate.dynamics(symdual.load(package_of("toy"), backend="numba"), [1.0], [0.5], [2.0])


@pytest.mark.parametrize("how", SENTENCES)
def test_who_asks_for_c_hears_of_it(
    how: str, package_of: Callable[[str], Path], looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "", how)
    package = symdual.load(package_of("toy"), backend="c")
    problem = symdual.problem(package)
    tries: list[Callable[[], object]] = [
        lambda: evaluate.dynamics(package, [1.0], [0.5], [2.0]),
        lambda: symdual.controller(problem, "dual"),
        lambda: symdual.simulate(problem, "ce", runs=1),
    ]
    for attempt in tries:
        with pytest.raises(BackendFailure) as caught:
            attempt()
        assert str(caught.value) == SENTENCES[how]
    assert package.backend == "c" and not looked_up


@pytest.mark.parametrize("part", ["controller", "cost"])
def test_a_controller_is_made_anew(
    part: str, package_of: Callable[[str], Path], looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All or nothing: a cost of C is never handed to a search of numba."""
    from symdual.runtime import controller as module

    benches: list[str] = []

    class Solver(module.Solver):
        def __init__(self, chosen: Any) -> None:
            benches.append(chosen.problem.package.backend)
            if benches[-1] == "c":
                super().__init__(chosen)

    monkeypatch.setattr(module, "Solver", Solver)
    failing(monkeypatch, part, "killed")
    problem = symdual.problem(symdual.load(package_of("toy")))
    with pytest.warns(symdual.SymdualWarning, match="SIGKILL; numba compiles instead"):
        symdual.controller(problem, "dual")
    assert benches == ["c", "numba"]
    symdual.controller(problem, "ce")
    assert benches == ["c", "numba", "numba"] and problem.package.backend == "numba"


def test_a_sweep_is_settled_before_it_is_described(
    package_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "episode", "untranslatable")
    problem = symdual.problem(symdual.load(package_of("toy")))
    plan = sweep(problem, ["ce", "dual", "oracle"], 2)
    told: list[str] = []
    with pytest.warns(symdual.SymdualWarning, match="no such thing in C; numba"):
        readiness.make_ready(problem, plan.controllers, progress=lambda what, share: told.append(what))
    assert problem.package.backend == problem.plant.backend == "numba"
    assert "backend" not in plan.description.identity["versions"]


def test_all_parts_of_a_sweep_are_compiled(package_of: Callable[[str], Path]) -> None:
    problem = symdual.problem(symdual.load(package_of("toy")))
    told: list[str] = []
    readiness.make_ready(problem, ["ce", "dual"], progress=lambda what, share: told.append(what))
    assert told[0] == "compiling toy: ce" and told[-1] == "compiling toy: episodes"
    assert problem.package.backend == "c"


def test_what_is_pickled_stays_on_standby(package_of: Callable[[str], Path]) -> None:
    package = symdual.load(package_of("toy"))
    assert isinstance(pickle.loads(pickle.dumps(package)).c, backend.Preferred)
    assert isinstance(symdual.load(package_of("toy"), backend="c").c, backend.CBackend)


FAILS_LATER = """#!/bin/sh
for last; do :; done
case "$*" in *package.c) grep -q 'double probe' "$last" || { echo "error: out of memory"; exit 1; };; esac
exec gcc "$@"
"""
MODEL = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
tank = Model([x], [u], [x + unknown("b", 1.0) * u], process_noise=0.1, measurement_noise=0.1)
fill = Scenario(tank, horizon=2, truth={"b": 1.5})
"""


@pytest.mark.soak
@pytest.mark.filterwarnings("always::symdual.SymdualWarning")
def test_from_the_first_command_to_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that passes its test and fails with every package: each command does what it should, by numba."""
    command = tmp_path / "latecc"
    command.write_text(FAILS_LATER)
    command.chmod(0o755)
    monkeypatch.setenv("CC", str(command))
    (tmp_path / "tank.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    sentence = f"the C compiler refused the translation: error: out of memory{WORDS}"
    for line in ("generate tank.py", "simulate tank.py --controller ce --controller dual --runs 2"):
        monkeypatch.setattr(backend, "_BACKENDS", {})
        errors.SAID.clear()
        done = CliRunner().invoke(main, line.split())
        assert done.exit_code == 0, done.output
        assert done.output.count(sentence) == 1
    done = CliRunner().invoke(main, ["simulate", "tank.py", "--backend", "c", "--runs", "2", "-o", "other"])
    assert done.exit_code == 2
    assert "symdual: the C compiler refused the translation: error: out of memory" in done.output
    monkeypatch.setattr(backend, "_BACKENDS", {})
    errors.SAID.clear()
    with pytest.warns(symdual.SymdualWarning, match="out of memory; numba"):
        problem = symdual.problem(tmp_path / "tank.py")
        first = symdual.controller(problem, "dual").act([0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_numba = symdual.controller(symdual.problem(tmp_path / "tank.py", backend="numba"), "dual")
        assert np.array_equal(first, by_numba.act([0.1]))
    assert compilation.quickest() == "c"
