"""Loading: packages are found, verified, light, and independent of where they lie."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, SymdualError, features
from symdual.errors import PackageError
from symdual.runtime import evaluate
from symdual.runtime.loading import LoadedPackage

x, u = sp.symbols("x u")


def cart(mean: float = 1.0, name: str = "cart") -> Model:
    return Model([x], [u], [x + u + features.rbf("g", x, [0.0, 1.0], mean=mean)], name=name)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package whose dynamics have been compiled, with numba's cache beside it."""
    (made,) = symdual.generate(cart(), tmp_path_factory.mktemp("original"))
    package = symdual.load(made.folder)
    evaluate.dynamics(package, [0.0], [0.0], [1.0, 1.0])
    return made.folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return Path(shutil.copytree(original, tmp_path / "generated" / "cart"))


def refusal(folder: str | Path) -> str:
    with pytest.raises(PackageError) as problem:
        symdual.load(folder)
    assert isinstance(problem.value, SymdualError)
    text = str(problem.value)
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


@pytest.mark.parametrize("name", ["kernels.py", "__init__.py", "data.npz", "filter.py"])
def test_edited_by_hand(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    assert f"the file {name} " in refusal(folder)
    assert "was changed after generation" in refusal(folder)


def test_a_file_is_missing(folder: Path) -> None:
    (folder / "kernels.py").unlink()
    assert "kernels.py" in refusal(folder)
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
    import symdual, symdual.runtime, symdual.runtime.loading, symdual.runtime.evaluate, symdual.runtime.warm
    package = symdual.load("generated/cart")
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
    from IMPORTED import kernels
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
        shutil.rmtree(folder / "__pycache__")
    place = folder.parent if imported == "cart" else folder.parent.parent
    printed = fresh_python(ALONE.replace("IMPORTED", imported), place).stdout.split()
    assert float(printed[0]) == pytest.approx(2.5 + 2 * np.exp(-0.125), rel=1e-14)
    assert int(printed[1]) == cached
    # what was compiled under this name serves symdual too
    assert fresh_python(LIGHT, folder.parent.parent).stdout.splitlines() == ["[]", "1"]
