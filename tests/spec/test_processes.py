"""Gaussian processes in a model: what they are made of, and where they may stand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from symdual import Model, covariances, features, unknown
from symdual.common.errors import ModelError

x, w, u = sp.symbols("x w u")
b = unknown("b", 1.0, 1.0)


def test_one_line_is_another() -> None:
    """Where features.fourier stood, features.gaussian_process can stand."""
    for slope in (features.fourier("g", x, count=4), features.gaussian_process("g", x, memory=4)):
        model = Model([x], [u], [x + sp.sin(x) * slope + u])
        assert len(model.prior_mean) == 4
    assert model.families[0].process is not None
    assert not model.prior_covariance.any()  # relative to its own prior


def test_prior_mean_and_mixed_outputs() -> None:
    first, second = features.gaussian_process(
        "g", [x, u], mean=lambda a, b: 2 * a, outputs=2, output_covariance=[[4.0, 1.0], [1.0, 1.0]]
    )
    family = next(iter(first.atoms(features.FeatureSum))).family
    assert len(family.weights) == 2
    constants = {c.name: c.value for c in (first + second).free_symbols if hasattr(c, "value")}
    root = np.array([[constants[f"g_mix{i}_{j}"] for j in range(2)] for i in range(2)])
    np.testing.assert_allclose(root @ root.T, [[4.0, 1.0], [1.0, 1.0]], rtol=1e-11)
    assert first.subs(dict.fromkeys(first.atoms(features.FeatureSum), 0)) == 2 * x


def test_fitted_values_are_data(tmp_path: Path) -> None:
    file = tmp_path / "cart.fit.json"
    values = {"g_lengthscale": {"value": 3.5}, "g_amplitude": {"value": 2.0}}
    file.write_text(json.dumps({"hyperparameters": values}))
    for fitted in (file, str(file), {"g_lengthscale": 3.5}):
        family = features.gaussian_process("g", x, amplitude=2.0, fitted=fitted).family
        assert {c.name: c.value for c in family.constants} == {"g_amplitude": 2.0, "g_lengthscale": 3.5}
    with pytest.raises(ModelError, match="positive"):
        features.gaussian_process("g", x, fitted={"g_lengthscale": -3.5})


def _process(argument: sp.Expr = x) -> sp.Expr:
    return features.gaussian_process("g", argument, kernel=covariances.matern32(), memory=3)


def test_refused() -> None:
    with pytest.raises(ModelError, match='argument "b", which is neither a state nor an input'):
        Model([x], [u], [x + b * _process(b * x)])
    with pytest.raises(ModelError, match="observation number 0 contains the Gaussian process"):
        Model([x], [u], [x + _process()], observation=[_process()])
    with pytest.raises(ModelError, match="contains features"):
        Model([x], [u], [x + _process(features.fourier("h", x, count=2))])
    with pytest.raises(ModelError, match="square_root"):
        Model([x], [u], [x + _process()], square_root=True)
    with pytest.raises(ModelError, match="drift must be the same number"):
        Model([x], [u], [x + _process()], drift=[0.1, 0.2, 0.1])
    with pytest.raises(ModelError, match="transition must be the same number"):
        Model([x], [u], [x + _process()], transition=np.eye(3))
    with pytest.raises(ModelError, match="not positive semidefinite"):
        features.gaussian_process("g", x, outputs=2, output_covariance=[[1.0, 2.0], [2.0, 1.0]])
