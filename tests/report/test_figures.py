"""Figures of sweeps whose costs are of very different sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, Scenario, unknown
from symdual.report.figures import drawn_sweep


def test_costs_over_decades_have_a_logarithmic_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x, u = sp.symbols("x u")
    model = Model([x], [u], [unknown("growth", 1.0, 0.4**2) * x + u], process_noise=1e-2, name="wild")
    found = symdual.simulate(Scenario(model, 12, input_cost=1e4, start=1.0), ["ce", "cautious"], runs=40)
    costs = found["ce"].costs
    assert np.quantile(costs, 0.99) > 30.0 * np.median(costs)
    axes = drawn_sweep(found, found.summary()).get_axes()
    scales = {ax.get_title() or ax.get_title("left"): ax.get_xscale() for ax in axes}
    assert scales["cost per step L / T: runs, quartiles, mean"] == "log"
    assert scales["L / T minus that of ce, run by run (± 2 s.e.)"] == "linear"
