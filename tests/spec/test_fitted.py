"""The file of fitted hyperparameters: written whole, read by a model, refused with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import sympy as sp

from symdual import features
from symdual.common.errors import ModelError, SymdualError
from symdual.spec.fitted import read, write


def gaussian(fitted: Mapping[str, float] | str | Path) -> dict[str, float]:
    """The hyperparameters of a process that reads them from somewhere."""
    value = features.gaussian_process("g", sp.Symbol("x"), fitted=fitted)
    assert isinstance(value, sp.Expr)
    return {c.name: c.value for c in value.family.constants}


def test_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "fit.json"
    entries = {"g_amplitude": {"value": 0.1}, "g_lengthscale": {"value": 3.0, "note": "x"}, "h_shape": {"value": 1.0}}
    write(file, {"model": "m", "hyperparameters": entries})
    assert read(file) == {"g_amplitude": 0.1, "g_lengthscale": 3.0, "h_shape": 1.0}
    assert gaussian(file) == gaussian(str(file)) == {"g_amplitude": 0.1, "g_lengthscale": 3.0}
    assert gaussian({"g_lengthscale": 2.0}) == {"g_amplitude": 1.0, "g_lengthscale": 2.0}


@pytest.mark.parametrize(
    "text", ["", "[1]", "{}", '{"hyperparameters": {"g_amplitude": 1}}', '{"hyperparameters": [1]}']
)
def test_files_that_are_something_else(tmp_path: Path, text: str) -> None:
    file = tmp_path / "fit.json"
    file.write_text(text)
    with pytest.raises(ModelError, match=r"fit\.json does not hold fitted hyperparameters"):
        gaussian(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no file .*fit\.json .*`symdual fit` writes it"):
        gaussian(tmp_path / "fit.json")
    with pytest.raises(ModelError, match="cannot be read from"):
        gaussian(tmp_path)


def test_values_of_another_kernel(tmp_path: Path) -> None:
    file = tmp_path / "fit.json"
    write(file, {"hyperparameters": {"g_amplitude": {"value": 2.0}}})
    with pytest.raises(ModelError, match=r'fit\.json has no value for "g_lengthscale"; fit the model again'):
        gaussian(file)
    with pytest.raises(ModelError, match='none of "g": g_amplitude, g_lengthscale; did you mean "g_lengthscale"'):
        gaussian({"g_lengthscal": 2.0})
    with pytest.raises(ModelError, match='"g_lengthscale" must be positive, not -1'):
        gaussian({"g_lengthscale": -1.0})


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "fit.json"
    folder.mkdir()
    with pytest.raises(SymdualError, match="cannot write"):
        write(folder, {"hyperparameters": {}})
    assert [p.name for p in tmp_path.iterdir()] == ["fit.json"]  # nothing is left behind
