"""Controllers in files: they go on to the bit, elsewhere and later, and what does not fit is refused in a sentence."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.common.archives import stored_arrays
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.runtime import saved
from symdual.runtime.controller import Controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import problem
from symdual.runtime.results import ABOUT

MEASURED = ([0.1], [0.35], [np.nan], [0.7])

# a tank that loses what a signal says, and may not run over
TANK = """
import sympy as sp
from symdual import Model, Scenario, constant, signal, unknown
level, inflow = sp.symbols("level inflow")
rim, loss = constant("rim", 2.0), signal("loss", 0.1)
gain = unknown("gain", 1.0, 0.2)
tank = Model([level], [inflow], [0.9 * level + gain * inflow - loss], process_noise=1e-3, measurement_noise=1e-3)
scenario = Scenario(tank, 8, input_cost=0.1, reference=1.5, constraints=[level <= rim], signals={loss: 0.1})
"""

# a plant that is another model
ELSEWHERE = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
near = Model([x], [u], [x + unknown("b", 1.0, 1.0) * u], process_noise=0.01, measurement_noise=0.01)
far = Model([x], [u], [x + sp.tanh(unknown("c", 1.0, 1.0) * u)], process_noise=0.01, measurement_noise=0.01)
scenario = Scenario(near, 6, input_cost=0.1, start=1.0, plant=far, truth={"c": 0.7})
"""


@pytest.fixture(scope="module")
def tank(make_quickly: Callable[[str, str], LoadedPackage]) -> LoadedPackage:
    return make_quickly("tank", TANK)


def bits(controller: Controller, measured: Any = MEASURED) -> list[bytes]:
    """The next inputs and the belief after them, to the bit."""
    inputs = [controller.act(y).tobytes() for y in measured]
    return [*inputs, controller.belief.mean.tobytes(), controller.belief.covariance.tobytes()]


def edited(file: Path, **about: Any) -> Path:
    """A file that says something else of itself, and is whole."""
    with np.load(file) as stored:
        arrays = {name: stored[name] for name in stored.files if name != ABOUT}
        told = json.loads(stored[ABOUT]) | about
    told.pop("digest")
    told["digest"] = saved._digest(told, arrays)
    other = file.with_name("edited.npz")
    other.write_bytes(stored_arrays(arrays, {ABOUT: json.dumps(told).encode()}))
    return other


@pytest.mark.parametrize(
    "name", ["oracle", "ce", "cautious", "beb", "dual", "planned", "thompson", "scenario", "dither"]
)
def test_the_next_inputs_are_those_of_a_controller_that_was_never_saved(
    waves_package: LoadedPackage, name: str, tmp_path: Path
) -> None:
    options = symdual.Options(starts=2, samples=8, hold=3, seed=4)
    own = symdual.controller(problem(waves_package), name, options=options)
    own.save(tmp_path / "first.npz")
    package = own.problem.package
    assert bits(symdual.load_controller(tmp_path / "first.npz", package), MEASURED[:2]) == bits(own, MEASURED[:2])
    own.save(tmp_path / "second.npz")
    again = symdual.load_controller(tmp_path / "second.npz", package)
    assert (again.k, again.options) == (2, options)
    assert bits(again, MEASURED[2:]) == bits(own, MEASURED[2:])


def test_it_goes_on_in_another_process_with_all_that_it_was_told(tank: LoadedPackage, tmp_path: Path) -> None:
    own = symdual.controller(problem(tank), "planned", window=5, options=symdual.Options(samples=0))
    own.act([0.1], signals={"loss": [0.3, 0.2, 0.1, 0.1, 0.2, 0.15]})
    own.change(reference={"level": 1.2}, constants={"rim": 1.3}, probability=0.8, bounds={"inflow": (-0.5, 0.6)})
    own.act([0.2])
    own.save(tmp_path / "tank.npz")
    program = f"""
        import symdual

        again = symdual.load_controller({str(tmp_path / "tank.npz")!r}, {str(own.problem.package.folder)!r})
        print([again.act(y).tobytes().hex() for y in ([0.1], [0.35], [float("nan")], [0.7])])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([one.hex() for one in bits(own)[:-2]])


def test_the_package_is_found_by_its_name_and_its_plant_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.py").write_text(ELSEWHERE.replace("near", "nearby").replace("far", "faraway"))
    monkeypatch.chdir(tmp_path)
    for name in ("dual", "oracle"):
        own = symdual.controller("model.py", name)
        own.act([1.1])
        own.save("own.npz")
        again = symdual.load_controller("own.npz")
        assert again.problem.plant.name == "faraway" and again.problem.truth is not None
        assert bits(again) == bits(own)
    with pytest.raises(SymdualError, match="is of the model faraway, and nearby is another one"):
        symdual.load_controller("own.npz", "nearby")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(SymdualError, match="there is no generated package"):
        symdual.load_controller("../own.npz")


def test_what_a_gaussian_process_remembers_is_kept(
    make_quickly: Callable[[str, str], LoadedPackage], tmp_path: Path
) -> None:
    text = """
        import sympy as sp
        from symdual import Model, Scenario, features
        x, u = sp.symbols("x u")
        wind = features.gaussian_process("wind", x, memory=6)
        windy_saved = Model([x], [u], [x + wind + u], process_noise=0.1, measurement_noise=0.01)
        scenario = Scenario(windy_saved, horizon=8, input_cost=0.1, reference=1.0)
    """
    own = symdual.controller(problem(make_quickly("windy_saved", textwrap.dedent(text))), "dual")
    own.act([0.0])
    own.act([0.5])
    own.save(tmp_path / "windy.npz")
    again = symdual.load_controller(tmp_path / "windy.npz", own.problem.package)
    assert again.belief.memory is not None and again.belief.memory.any()
    assert bits(again) == bits(own)


def test_numbers_may_change_and_equations_may_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ELSEWHERE.replace("near", "mutable").replace(", plant=far", "").replace('{"c": 0.7}', '{"b": 0.7}')
    (tmp_path / "model.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    own = symdual.controller("model.py", "dual")
    own.act([1.1])
    own.save("own.npz")
    (tmp_path / "model.py").write_text(text.replace("process_noise=0.01", "process_noise=0.5"))
    symdual.generate("model.py")
    assert bits(symdual.load_controller("own.npz")) == bits(own)
    (tmp_path / "model.py").write_text(text.replace("x + unknown", "0.5 * x + unknown"))
    symdual.generate("model.py")
    with pytest.raises(SymdualError, match="the model mutable has changed since"):
        symdual.load_controller("own.npz")


def test_files_of_other_versions_and_of_other_things_are_refused(waves_package: LoadedPackage, tmp_path: Path) -> None:
    file = tmp_path / "own.npz"
    symdual.controller(problem(waves_package), "ce").save(file)
    for other in (0, 2):
        with pytest.raises(SymdualError, match=rf"in version {other} of its format, and symdual .* reads version 1"):
            symdual.load_controller(edited(file, version=other), waves_package)
    with pytest.raises(SymdualError, match=r"written by symdual 9\.0"):
        symdual.load_controller(edited(file, version=2, **{"written by": "symdual 9.0"}), waves_package)
    np.savez(tmp_path / "numbers.npz", mean=np.zeros(2))
    (tmp_path / "text.npz").write_text("hello")
    for wrong in (edited(file, format="symdual sweep"), tmp_path / "numbers.npz", tmp_path / "text.npz"):
        with pytest.raises(SymdualError, match="is not a saved controller, or it is damaged"):
            symdual.load_controller(wrong, waves_package)
    with pytest.raises(SymdualError, match="cannot read"):
        symdual.load_controller(tmp_path / "nowhere", waves_package)
    with pytest.raises(SymdualError, match="cannot write"):
        symdual.controller(problem(waves_package), "ce").save(tmp_path / "nowhere" / "own.npz")


def test_no_code_comes_with_a_file(waves_package: LoadedPackage, tmp_path: Path) -> None:
    file = tmp_path / "own.npz"
    symdual.controller(problem(waves_package), "ce").save(file)
    evil = {"name": "../../tmp/evil", "code": "", "model": "", "backend": "c"}
    with pytest.raises(SymdualError, match="is damaged"):
        symdual.load_controller(edited(file, package=evil))
    with np.load(file) as stored:
        arrays = dict(stored)
    buffer = io.BytesIO()
    np.savez(buffer, **{**arrays, ABOUT: arrays[ABOUT], "state.u": np.array([print], dtype=object)})
    (tmp_path / "pickled.npz").write_bytes(buffer.getvalue())
    with pytest.raises(SymdualError, match="is not a saved controller, or it is damaged"):
        symdual.load_controller(tmp_path / "pickled.npz", waves_package)


def test_a_flipped_byte_never_changes_an_input(waves_package: LoadedPackage, tmp_path: Path) -> None:
    own = symdual.controller(problem(waves_package), "ce")
    own.act([0.2])
    own.save(tmp_path / "own.npz")
    content, expected = (tmp_path / "own.npz").read_bytes(), bits(own)
    random, file = np.random.default_rng(0), tmp_path / "flipped.npz"
    for place in random.integers(len(content), size=60):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            again = symdual.load_controller(file, waves_package)
        except SymdualError as failure:
            assert "damaged" in str(failure)
        else:  # a byte of the archive that means nothing
            assert bits(again) == expected
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(SymdualError, match="damaged"):
        symdual.load_controller(file, waves_package)


def test_plans_of_another_layout_are_made_anew(
    waves_package: LoadedPackage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = symdual.controller(problem(waves_package), "ce")
    own.act([0.2])
    assert own._live[0].plans is not None
    plans = own._live[0].plans
    trimmed = np.zeros(plans.shape, [(name, plans.dtype[name]) for name in plans.dtype.names or () if name != "gain_t"])
    for name in trimmed.dtype.names or ():
        trimmed[name] = plans[name]
    own._live[:] = [own._live[0]._replace(plans=trimmed)]
    own.save(tmp_path / "own.npz")
    with pytest.warns(SymdualWarning, match="are those of another version of symdual; the first decision makes new"):
        again = symdual.load_controller(tmp_path / "own.npz", waves_package)
    assert again._live[0].plans is None and np.isfinite(again.act([0.3])).all()


def test_a_file_replaces_another_one_as_a_whole(waves_package: LoadedPackage, tmp_path: Path) -> None:
    own = symdual.controller(problem(waves_package), "ce")
    own.save(tmp_path / "own.npz")
    first = (tmp_path / "own.npz").read_bytes()
    own.save(tmp_path / "own.npz")
    assert (tmp_path / "own.npz").read_bytes() == first  # the same content has the same bytes
    object.__setattr__(own, "options", None)
    with pytest.raises(TypeError):
        own.save(tmp_path / "own.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["own.npz"]
    assert (tmp_path / "own.npz").read_bytes() == first
