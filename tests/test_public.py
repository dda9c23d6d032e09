"""What `import symdual` offers: everything public is found by people and by their editors, and costs nothing before."""

from __future__ import annotations

import pydoc
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import symdual


def test_every_public_name_is_there_and_listed() -> None:
    assert set(symdual.__all__) <= set(dir(symdual))
    for name in symdual.__all__:
        assert getattr(symdual, name) is not None
    promised = "problem run_foreign GymPlant evaluate simulate sweep replay fit posterior Episodes generate load check"
    assert set(promised.split()) <= set(symdual.__all__)


def test_completion_shows_what_is_public_and_nothing_else() -> None:
    assert [name for name in dir(symdual) if not name.startswith("__")] == sorted(
        set(symdual.__all__) - {"__version__"}
    )
    for module in (symdual.features, symdual.covariances, symdual.evaluate, symdual.plot):
        assert dir(module) == sorted(module.__all__)


def test_every_public_name_says_what_it_is() -> None:
    for name in symdual.__all__:
        if name != "__version__":
            assert (getattr(symdual, name).__doc__ or "").strip(), name


def test_the_overview_names_everything() -> None:
    assert symdual.__doc__ is not None
    others = {"__version__", "SymdualError", "SymdualWarning", "DoubtWarning"}
    others |= {"Belief", "Problem", "Episodes", "Settings"}
    words = set(symdual.__doc__.replace(",", " ").replace(";", " ").split())
    assert set(symdual.__all__) - others <= words


@pytest.mark.parametrize("name", ["Model", "generate", "simulate", "GymPlant", "posterior"])
def test_help_shows_it(name: str) -> None:
    assert name in pydoc.plain(pydoc.render_doc(symdual)).split("NAME", 1)[1].replace("(", " ").split()


@pytest.mark.parametrize("name", ["gaussian_process", "fourier", "rbf", "custom"])
def test_help_on_features_shows_it(name: str) -> None:
    assert f"    {name}(" in pydoc.plain(pydoc.render_doc(symdual.features))


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'teapot'"):
        _ = symdual.teapot  # type: ignore[attr-defined]


def test_importing_stays_light(tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    heavy = """
        import sys, symdual
        dir(symdual)
        print([name for name in ("numpy", "numba", "sympy", "scipy", "click", "rich") if name in sys.modules])
    """
    assert fresh_python(heavy, tmp_path).stdout.strip() == "[]"
