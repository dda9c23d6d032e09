"""Loading: packages are found, verified, light, and independent of where they lie."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import py_compile
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symdual
import symdual.generation
from symdual import Model, SymdualError, features
from symdual.common.errors import PackageError, SymdualWarning
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.emit.write import exclusive, write
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage

x, u = sp.symbols("x u")


def cart(mean: float = 1.0, name: str = "cart") -> Model:
    return Model([x], [u], [x + u + features.rbf("g", x, [0.0, 1.0], mean=mean)], name=name)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package whose dynamics have been compiled, with numba's cache beside it."""
    (made,) = symdual.generate(cart(), tmp_path_factory.mktemp("original"))
    package = symdual.load(made.folder, backend="numba")
    evaluate.dynamics(package, [0.0], [0.0], [1.0, 1.0])
    return made.folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(original, tmp_path / "generated" / "cart"))


def refusal(folder: str | Path) -> str:
    with pytest.raises(PackageError) as failure:
        symdual.load(folder)
    assert isinstance(failure.value, SymdualError)
    text = str(failure.value)
    assert "\n" not in text
    assert "symdual generate" in text  # what to run to mend it
    return text


# -------------------------------------------------------------------- finding


def test_a_name_is_looked_up_in_generated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent.parent)
    (Path.cwd() / "cart").mkdir()  # a folder of the same name that is no package does not stand in the way
    assert symdual.load("cart").folder == folder


def test_names_and_numbers(folder: Path) -> None:
    package = symdual.load(folder)
    assert isinstance(package, LoadedPackage)
    assert (package.NAME, package.NX, package.NU, package.NTHETA) == ("cart", 1, 1, 2)
    assert package.UNKNOWNS == {"g": (0, 2)}
    assert package.DATA_ENTRIES == {"g_centre": (0, 2), "g_lengthscale": (2, 1)}
    assert package.numbers["data"].tolist() == [0.0, 1.0, 1.0]
    assert package.numbers["prior_mean"].tolist() == [1.0, 1.0]
    with pytest.raises(AttributeError, match="no module teapot"):
        _ = package.teapot


def test_two_packages_of_the_same_code_keep_their_own_numbers(tmp_path: Path) -> None:
    one, other = (symdual.load(symdual.generate(cart(mean), tmp_path / str(mean))[0].folder) for mean in (1.0, 2.0))
    assert one.DIGEST == other.DIGEST
    assert one.numbers["prior_mean"].tolist() == [1.0, 1.0]
    assert other.numbers["prior_mean"].tolist() == [2.0, 2.0]


# -------------------------------------------------------------------- verifying


def test_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no generated package" in refusal("nothing")
    assert str(tmp_path / "else" / "where") in refusal(tmp_path / "else" / "where")


@pytest.mark.parametrize("name", ["kernels/kernels.py", "__init__.py", "data.npz", "filters/filter.py"])
def test_edited_by_hand(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    assert f"the file {name} " in refusal(folder)
    assert "was changed after generation" in refusal(folder)


def test_a_file_is_missing(folder: Path) -> None:
    (folder / "kernels/kernels.py").unlink()
    assert "kernels/kernels.py" in refusal(folder)
    assert "is missing" in refusal(folder)


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"files": 3}', '{"files": {}, "symdual": 1}', "\xff"])
def test_a_damaged_manifest(folder: Path, content: str | None) -> None:
    manifest = folder / "manifest.json"
    manifest.unlink() if content is None else manifest.write_text(content, encoding="latin-1")
    assert "manifest" in refusal(folder)


def test_another_version(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"symdual": "0.0.1"}))
    text = refusal(folder)
    assert "0.0.1" in text
    assert symdual.__version__ in text


# -------------------------------------------------------------------- light, and at home anywhere

LIGHT = """
    import sys
    import symdual, symdual.runtime, symdual.runtime.loading, symdual.runtime.evaluate, symdual.backends.numba.ahead
    package = symdual.load("generated/cart", backend="numba")
    symdual.runtime.evaluate.dynamics(package, [0.0], [0.0], [1.0, 1.0])
    print([name for name in ("sympy", "jinja2", "mpmath", "click", "rich") if name in sys.modules])
    print(sum(package.kernels.dynamics.stats.cache_hits.values()))
"""


def test_the_runtime_needs_neither_sympy_nor_jinja2(
    folder: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """And a package that was moved after it was compiled finds its compiled code again."""
    assert fresh_python(LIGHT, folder.parent.parent).stdout.splitlines() == ["[]", "1"]


ALONE = """
    import sys
    sys.modules.update(dict.fromkeys(("symdual", "sympy", "jinja2", "scipy", "click", "rich")))
    import numpy as np
    import IMPORTED as package
    from IMPORTED.kernels import kernels
    out = np.zeros(1)
    theta = package.numbers()["prior_mean"]
    z, data, work = np.concatenate([[0.5], theta]), package.numbers()["data"], np.zeros(package.WORK)
    kernels.dynamics(0, z, np.array([2.0]), data, work, out)
    print(out[0], sum(kernels.dynamics.stats.cache_hits.values()))
"""


@pytest.mark.parametrize(("imported", "cached"), [("generated.cart", True), ("cart", True), ("cart", False)])
def test_a_copied_package_works_without_symdual(
    folder: Path, imported: str, cached: bool, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    if not cached:
        for place in folder.rglob("__pycache__"):
            shutil.rmtree(place)
    place = folder.parent if imported == "cart" else folder.parent.parent
    printed = fresh_python(ALONE.replace("IMPORTED", imported), place).stdout.split()
    assert float(printed[0]) == pytest.approx(2.5 + 2 * np.exp(-0.125), rel=1e-14)
    assert int(printed[1]) == cached
    # what was compiled under this name serves symdual too
    assert fresh_python(LIGHT, folder.parent.parent).stdout.splitlines() == ["[]", "1"]


# -------------------------------------------------------------------- what is loaded is what was verified


def signed(sign: int) -> Model:
    return Model([x], [u], [x + sign * 3 * u], name="signed")


def value(package: LoadedPackage) -> float:
    return float(evaluate.dynamics(package, [0.5], [1.0], [])[0])


ELSEWHERE = """
    import symdual
    from symdual.runtime import evaluate
    package = symdual.load("signed", backend="numba")
    print(package.DIGEST, evaluate.dynamics(package, [0.5], [1.0], [])[0])
"""


def test_a_package_that_is_regenerated_under_its_user_stays_what_it_was(
    tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    folder = tmp_path / "generated"
    symdual.generate(signed(1), folder)
    old = symdual.load(folder / "signed", backend="numba")
    symdual.generate(signed(-1), folder)
    new = symdual.load(folder / "signed", backend="numba")
    assert old.DIGEST != new.DIGEST
    assert value(old) == 3.5  # nothing of it had been imported when its files were replaced
    assert value(new) == -2.5
    # and what the old one compiled meanwhile is not taken for the new one's
    assert fresh_python(ELSEWHERE, tmp_path).stdout.split() == [new.DIGEST, "-2.5"]


def test_a_package_whose_folder_is_gone_still_works(tmp_path: Path) -> None:
    (made,) = symdual.generate(Model([x], [u], [x + 5 * u], name="gone"), tmp_path)
    package = symdual.load(made.folder, backend="numba")
    shutil.rmtree(made.folder)
    assert value(package) == 5.5
    assert not made.folder.exists()
    assert "def dynamics(" in inspect.getsource(package.kernels.dynamics.py_func)


def test_bytecode_of_another_source_is_not_run(tmp_path: Path) -> None:
    """As Python would: the size and the second of writing are those of the source."""
    (made,) = symdual.generate(Model([x], [u], [x + 7 * u], name="stale"), tmp_path)
    file = made.folder / "__init__.py"
    stale = importlib.util.cache_from_source(str(file))
    text = file.read_text()
    file.write_text(text.replace("NX = 1", "NX = 9"))
    os.utime(file, (1, 1))
    py_compile.compile(str(file), stale)
    file.write_text(text)
    os.utime(file, (1, 1))
    assert symdual.load(made.folder).NX == 1


def test_who_loads_while_a_package_is_replaced_gets_the_new_one(tmp_path: Path) -> None:
    symdual.generate(signed(1), tmp_path)
    target = tmp_path / "signed"
    held, half_done = threading.Event(), threading.Event()

    def replaced() -> None:
        with exclusive(tmp_path):
            (target / "kernels/kernels.py").write_text("half")  # a moment that a reader must not judge by
            held.set()
            half_done.wait(0.5)
            write(package(derive(signed(-1))), tmp_path)

    writer = threading.Thread(target=replaced)
    writer.start()
    held.wait()
    loaded = symdual.load(target)
    writer.join()
    assert value(loaded) == -2.5


TWO = """
import sympy as sp
from symdual import Model, Scenario, unknown
x, u = sp.symbols("x u")
believed = Model([x], [u], [x + unknown("b", 1.0) * u])
real = Model([x], [u], [x + {gain} * u + {offset}])
scenario = Scenario(believed, 3, plant=real, reference={gain})
"""


@pytest.mark.filterwarnings("ignore:.*real had been generated from it")
def test_a_model_never_stands_beside_an_old_plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "two.py"
    file.write_text(TWO.format(gain=2.0, offset=0.0))
    symdual.generate(file, tmp_path)
    early = symdual.load(tmp_path / "believed")
    assert symdual.problem(early).plant.name == "real"
    file.write_text(TWO.format(gain=3.0, offset=0.0))
    written: list[str] = []

    def killed(finished: Any, folder: Path, *arguments: Any) -> Path:
        if written:
            raise KeyboardInterrupt
        written.append(finished.name)
        return write(finished, folder, *arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(symdual.generation, "write", killed)
        symdual.generate(file, tmp_path)
    assert written == ["believed"]
    with pytest.raises(
        PackageError, match=r"real is not the plant that .*believed was generated with.*symdual generate"
    ):
        symdual.problem(symdual.load(tmp_path / "believed"))
    # the old model is not steered into a new plant either
    assert [item.changed for item in symdual.generate(file, tmp_path)] == [False, True]
    assert symdual.problem(symdual.load(tmp_path / "believed")).reference[0, 0] == 3.0
    with pytest.raises(PackageError, match="load them again"):
        symdual.problem(early)
    # a plant that changes alone takes its models along
    file.write_text(TWO.format(gain=3.0, offset=1.0))
    assert [item.changed for item in symdual.generate(file, tmp_path)] == [True, True]


# -------------------------------------------------------------------- a model file that is edited later


def test_an_edited_model_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "two.py"
    file.write_text(TWO.format(gain=2.0, offset=0.0))
    symdual.generate(file, tmp_path / "generated")
    symdual.load(tmp_path / "generated/real")  # warnings are errors here
    file.write_text(TWO.format(gain=4.0, offset=0.0))
    for name in ("believed", "real"):
        with pytest.warns(SymdualWarning, match=f"{file} was edited after the package .*{name} had been generated"):
            symdual.load(tmp_path / "generated" / name)
    symdual.generate(file, tmp_path / "generated")
    symdual.load(tmp_path / "generated/real")
    file.write_text(file.read_text() + "# a remark\n")  # nothing changes but the file, until it is generated again
    with pytest.warns(SymdualWarning, match="was edited after"):
        symdual.load(tmp_path / "generated/real")
    assert not any(item.changed for item in symdual.generate(file, tmp_path / "generated"))
    symdual.load(tmp_path / "generated/real")


@pytest.mark.parametrize("lost", ["the file", "the note", "a torn note", "another source"])
def test_a_package_that_knows_no_model_file_says_nothing(tmp_path: Path, lost: str) -> None:
    file = tmp_path / "two.py"
    file.write_text(TWO.format(gain=2.0, offset=0.0))
    (made, _) = symdual.generate(file, tmp_path)
    (note,) = made.folder.rglob("model-file.json")
    file.write_text("edited")
    if lost == "the file":
        file.unlink()
    elif lost == "the note":
        note.unlink()
    elif lost == "a torn note":
        note.write_bytes(note.read_bytes()[:9])
    else:
        symdual.generate(made.model, tmp_path)
    symdual.load(made.folder)


def test_a_package_and_its_model_file_move_together(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "two.py").write_text(TWO.format(gain=2.0, offset=0.0))
    symdual.generate(here / "two.py", here / "generated")
    there = Path(shutil.move(here, tmp_path / "there"))
    symdual.load(there / "generated/real")
    (there / "two.py").write_text("edited")
    with pytest.warns(SymdualWarning, match=f"{there / 'two.py'} was edited"):
        symdual.load(there / "generated/real")
