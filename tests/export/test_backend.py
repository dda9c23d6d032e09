"""A package through C computes what numba and plain Python compute."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import symdual
from symdual.backends.c import compilation, compilers
from symdual.backends.c.backend import CBackend, library_text
from symdual.backends.c.library import Library
from symdual.backends.c.program import Program
from symdual.backends.c.source import translated
from symdual.backends.loading import in_c
from symdual.checks import exported as checks
from symdual.checks.places import Place
from symdual.common.errors import SymdualError
from symdual.entries.types import shaped
from symdual.runtime import evaluate
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import load_model_file

from .conftest import FAST, ROOT, close, files_of, other_compiler

TOY = load_model_file(ROOT / "symdual/paper/models/toy.py")


class InPython:
    """A package whose modules are run as plain Python."""

    def __init__(self, package: LoadedPackage) -> None:
        self._package, self._program = package, Program(package.files)

    def __getattr__(self, name: str) -> Any:
        return self._program.module(name) if self._program.has(name) else getattr(self._package, name)


def around_one(package: LoadedPackage) -> Place:
    """A place of order one."""
    sizes = package.NX, package.NU, package.NTHETA
    return Place(*(np.full(n, 0.4) for n in sizes), *(np.full(n, 0.3) for n in sizes), horizon=5)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("bent", marks=pytest.mark.soak),
        *["bent_once", "iterated", "pushed_again", "known", "mixing", "rooted_mixing", "rough", "squared", "staged"],
    ],
)
def test_every_function_agrees_with_plain_python(name: str, through_c: Callable[[str], LoadedPackage]) -> None:
    package = through_c(name)
    python: Any = InPython(package)
    runs = []
    for one in (python, package):
        sample = checks._Sample(python, around_one(package), np.random.default_rng(1))
        calls = checks._calls(one) if one is package else _plain_calls(python, package)
        runs.append([*sample._kernels(calls), *sample._filter(calls), *sample._planning(calls)])
    for (what, exact), (_, got) in zip(*runs, strict=True):
        assert close(got, exact, 1e-10), what


def _plain_calls(python: Any, package: LoadedPackage) -> Any:
    return {
        (module, name): getattr(getattr(python, module), name)
        for module, name in checks._calls(package)
        if name != "cost_pointer"
    }


@pytest.mark.soak
def test_episodes_and_decisions_agree_with_numba(numba_toy_package: LoadedPackage, c_compiler: str) -> None:
    found = {}
    for package in (numba_toy_package, in_c(numba_toy_package)):
        problem = symdual.problem(package)
        found[package.backend] = symdual.simulate(problem, ["ce", "dual", "planned", "oracle"], 3, seed=1)
    for name, exact in found["numba"].items():
        got = found["c"][name]
        assert np.array_equal(got.outcomes, exact.outcomes)
        # of a state that is measured exactly, the variance is what rounding leaves
        spread = ("variances", "covariances", "steps") if name != "oracle" else ()
        for field in ("states", "inputs", "means", *spread):
            assert close(getattr(got, field), getattr(exact, field)), (name, field)


def test_the_info_of_a_step_agrees_with_numba(numba_toy_package: LoadedPackage, c_compiler: str) -> None:
    steps = [
        controller(symdual.problem(p), "dual").step(controller(symdual.problem(p), "dual").init(), [0.3])
        for p in (numba_toy_package, in_c(numba_toy_package))
    ]
    (_, u, decision_log), (_, u_c, info_c) = steps
    assert close(u_c, u) and close(info_c.costs, decision_log.costs) and close(info_c.parts, decision_log.parts)
    assert close(info_c.planned_states, decision_log.planned_states)


def test_controllers_run_without_numba(
    c_compiler: str, package_of: Callable[[str], Path], fresh_python: Callable[..., Any], tmp_path: Path
) -> None:
    printed = fresh_python(
        f"""
        import sys, symdual
        from symdual.backends.c import compilation
        compilation.FAST = ("-O1",)
        package = symdual.load({str(package_of("toy"))!r}, backend="c")
        dual = symdual.controller(symdual.problem(package), "dual")
        print(float(dual.act()[0]), float(dual.act([0.2])[0]), "numba" in sys.modules)
        """,
        tmp_path,
        XDG_CACHE_HOME=str(tmp_path),
    ).stdout.split()
    assert printed[2] == "False"
    assert np.isfinite([float(word) for word in printed[:2]]).all()


def test_a_cart_is_generated_and_steered_without_what_only_others_need(
    c_compiler: str, fresh_python: Callable[..., Any], tmp_path: Path
) -> None:
    printed = fresh_python(
        """
        import sys, sympy, symdual
        from symdual.backends.c import compilation
        compilation.FAST = ("-O1",)
        x, u = sympy.symbols("x u")
        slope = symdual.features.fourier("v", x, count=4, lengthscale=2.0)
        model = symdual.Model([x], [u], [x + slope + u], process_noise=0.1, measurement_noise=0.1, name="hill")
        scenario = symdual.Scenario(model, horizon=3)
        (made,) = symdual.generate(scenario, folder="generated")
        symdual.controller(symdual.problem(symdual.load(made.folder, backend="c")), "dual").act()
        print([name for name in ("numba", "scipy", "symdual.checks") if name in sys.modules])
        """,
        tmp_path,
        XDG_CACHE_HOME=str(tmp_path),
    ).stdout
    assert printed.strip() == "[]"


def test_a_part_is_translated_when_one_of_its_functions_is_looked_up(c_compiler: str) -> None:
    backend = CBackend("toy", files_of("toy"))
    decision, learning = backend.module("decision"), backend.module("filter")
    assert not backend._parts
    cost = decision.cost_pointer("ce")
    assert list(backend._parts) == ["cost ce"]
    assert callable(learning.predict) and callable(decision.decide_at)
    assert list(backend._parts) == ["cost ce", "controller"]
    assert cost.address == cost.address != 0
    with pytest.raises(AttributeError, match="the module filter of toy has no foretell"):
        _ = learning.foretell


def test_a_package_through_c_is_copied_and_pickled(through_c: Callable[[str], LoadedPackage]) -> None:
    package = through_c("toy")
    first = controller(symdual.problem(package), "dual").act([0.1])
    for twin in (copy.deepcopy(package), pickle.loads(pickle.dumps(package))):
        assert twin.backend == "c"
        assert np.array_equal(controller(symdual.problem(twin), "dual").act([0.1]), first)


def test_by_default_c_compiles_where_a_compiler_works(
    c_compiler: str,
    package_of: Callable[[str], Path],
    no_compiler: Callable[[], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert symdual.load(package_of("toy")).backend == "c"
    lame = tmp_path / "lame"  # a compiler that says who it is and cannot compile, say for want of headers
    lame.write_text('#!/bin/sh\n[ "$1" = --version ] && echo lame 1.0 || exit 1\n')
    lame.chmod(0o755)
    for named in (str(lame), "no-such-compiler"):
        monkeypatch.setenv("CC", named)
        with pytest.warns(symdual.SymdualWarning, match=f"{named}.*; numba compiles instead"):
            assert symdual.load(package_of("toy")).backend == "numba"
    no_compiler()
    assert symdual.load(package_of("toy")).backend == "numba"
    with pytest.raises(compilers.NoCompiler, match="there is no C compiler"):
        compilation.begun("int nothing;")


def test_exact_dual_control_is_left_to_numba(numba_toy_package: LoadedPackage, c_compiler: str) -> None:
    inputs = [
        controller(symdual.problem(package), "exact").act() for package in (numba_toy_package, in_c(numba_toy_package))
    ]
    assert np.array_equal(*inputs)


def test_what_c_does_not_have_is_said(
    package_of: Callable[[str], Path], no_compiler: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SymdualError, match=r'no backend "d".*known: numba, c'):
        symdual.load(package_of("toy"), backend="d")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(compilers.NoCompiler, match=r"no-such-compiler, which \$CC names, is not there"):
        compilers.compiler()
    no_compiler()
    with pytest.raises(compilers.NoCompiler, match="there is no C compiler: install gcc or clang"):
        compilers.compiler()


def test_wrong_arrays_are_refused(through_c: Callable[[str], LoadedPackage]) -> None:
    kernels = through_c("toy").kernels
    with pytest.raises(SymdualError, match="dimensions"):
        kernels.dynamics(0, np.zeros((2, 2)), np.zeros(1), np.zeros(0), np.zeros(0), np.zeros(1))
    with pytest.raises(SymdualError, match="shape"):
        kernels.dynamics(0, np.zeros(7), np.zeros(1), np.zeros(0), np.zeros(0), np.zeros(1))
    with pytest.raises(TypeError, match="takes 6 arguments"):
        kernels.dynamics(0)


def test_a_wrong_translation_is_noticed(
    through_c: Callable[[str], LoadedPackage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign that is wrong in C only is a miss of the check."""
    from symdual.backends.c import backend

    text = backend.library_text
    broken = lambda work: text(work).replace("f_out[0] = b * u + x;", "f_out[0] = b * u - x;")  # noqa: E731
    monkeypatch.setattr(backend, "library_text", broken)
    monkeypatch.setattr(backend, "_BACKENDS", {})
    results = checks.check_exported(TOY.specifications["toy"], through_c("toy"), points=2, recursions=False)
    assert not all(result.passed for result in results)


def test_a_right_translation_passes(through_c: Callable[[str], LoadedPackage]) -> None:
    """All exported functions in single precision beside double, the built controller beside the one in Python."""
    package, scenarios = through_c("toy"), tuple(TOY.scenarios.values())
    results = checks.check_exported(TOY.specifications["toy"], package, points=2, recursions=False)
    results += checks._functions(TOY.specifications["toy"], package, scenarios)
    results += checks._controllers(symdual.problem(package))
    assert [result.block for result in results if not result.passed] == []
    compared = {result.block for result in results}
    assert {"C: decision.decide_at, planned", "C: filter.step", "C: dual along an episode"} <= compared


def test_implicit_steps_converge_in_single_precision(through_c: Callable[[str], LoadedPackage]) -> None:
    """What is left to the last correction follows the precision; 1e-12 of a state is never reached with 24 bits."""
    package, x, theta = through_c("ignition"), np.array([0.7, 400.0]), np.array([7.2e10])  # ignites within the step
    work = translated(Program(package.files), package.name, "package", "float")
    library, found = Library(work, compilation.shared_library(library_text(work))), np.empty(2)
    dynamics = next(u for u in work.units if u.public and u.function.name == "dynamics")
    data, scratch = package.numbers["data"], np.zeros(package.WORK)
    library.function(dynamics)(0, np.append(x, theta), np.array([300.0]), data, scratch, found)
    np.testing.assert_allclose(found, evaluate.dynamics(package, x, [300.0], theta), rtol=1e-4)


def test_explained_episodes_have_the_noise_of_where_they_are(through_c: Callable[[str], LoadedPackage]) -> None:
    """R = 0.05 + 0.1 (position - 4)^2: a measurement at the light, and one far from it."""
    world, random = checks._World(symdual.problem(through_c("light_dark"))), np.random.default_rng(0)
    for place, variance in ((4.0, 0.05), (0.0, 1.65)):
        drawn = [world.measure(0, np.array([place]), random)[0] for _ in range(400)]
        assert np.var(drawn) == pytest.approx(variance, rel=0.3)
        assert np.mean(drawn) == pytest.approx(place, abs=0.25)


WAVES = """
from .kernels.kernels import {names}


def at_once(work):
    for block in range(16):
        start = 16 * block
        {call}
"""


@pytest.mark.parametrize("command", ["gcc", "clang"])
def test_fast_mathematics_leaves_sines_and_exponentials_right(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", other_compiler(command))
    angles = np.concatenate(
        [np.linspace(-40.0, 40.0, 240), [0.0, -0.0, 9999.5, -9999.5, 1e4, 1e5], np.geomspace(1e-9, 1e-2, 10)]
    )
    exponents = np.concatenate([np.linspace(-745.0, 709.7, 250), [-750.0, 710.0, 0.0, -0.0, 1e-9, -1e3]])
    turn = ("sine, cosine = _sincos(work[i])", "work[256 + i] = sine", "work[512 + i] = cosine")
    one_by_one = "\n            ".join(("for i in range(start, start + 16):", *turn))
    for name, names, call, given, exact in (
        ("squared", "_sincos", one_by_one, angles, (np.sin, np.cos)),
        ("schedule", "_sincos_16", "_sincos_16(work, start, 256 + start, 512 + start)", angles, (np.sin, np.cos)),
        ("greenhouse", "_exp_16", "_exp_16(work, start, 256 + start)", exponents, (np.exp,)),
    ):
        work = np.zeros(768)
        work[:256] = given
        _compiled(name, WAVES.format(names=names, call=call))(work)
        for got, function in zip(work[256:].reshape(2, 256), exact, strict=False):
            with np.errstate(over="ignore"):
                np.testing.assert_allclose(got, function(given), rtol=1e-15, atol=2e-16 if names != "_exp_16" else 0.0)


def _compiled(name: str, text: str) -> Any:
    """A function of a module beside those of a package, compiled as for a user."""
    program = Program({**files_of(name), "probe.py": f"import numpy as np\n{text}".encode()})
    given = {"probe": {"work": Annotated[np.ndarray, shaped("768")]}}
    work = translated(program, name, "probing", further=given, wanted=lambda function: False)
    library = Library(work, compilation.shared_library(library_text(work), FAST))
    (unit,) = (u for u in work.units if u.function.module == "probe")
    return library.function(unit)
