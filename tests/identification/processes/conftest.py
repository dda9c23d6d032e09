"""Recordings as tables, fits made of them, and the marginal likelihood along a fixed trajectory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symdual import Model, Scenario
from symdual.common.arrays import Array
from symdual.identification.processes.evidence import Evidence
from symdual.identification.processes.setup import ProcessSetup, setup_for
from symdual.identification.processes.trajectory import Estimate, Trajectories

Setups = Callable[..., ProcessSetup]


def table(names: list[str], columns: list[Any]) -> str:
    """A recording in the format of `symdual replay`; NaN becomes an empty cell."""
    rows = [",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in zip(*columns, strict=True)]
    return "\n".join([",".join(names), *rows]) + "\n"


@pytest.fixture
def recorded(tmp_path: Path) -> Setups:
    """Return a function that makes a setup of a model, its inputs (K, U) and its measurements (K, Y)."""

    def make(model: Model, inputs: Array, measurements: Array, times: Any = None, **scenario: Any) -> ProcessSetup:
        named = model if model.name else model.named("anonymous")
        names = [s.name for s in named.inputs]
        observed = list(named.observation)
        outputs = [e.name if e in named.states else f"y{i}" for i, e in enumerate(observed)]
        columns = [np.arange(len(inputs)) if times is None else times, *inputs.T, *measurements.T]
        file = tmp_path / "recorded.csv"
        file.write_text(table(["time", *names, *outputs], columns))
        return setup_for(named, Scenario(named, 5, name="s", **scenario), file)

    return make


@pytest.fixture
def evidence_at() -> Callable[..., Evidence]:
    """Return a function that linearises a setup along a trajectory, with the mean functions of the prior."""

    def make(setup: ProcessSetup, trajectory: Array | None = None) -> Evidence:
        found = Trajectories(setup)
        psi = np.log([c.value for c in setup.hyperparameters])
        along = found.first(psi).trajectory if trajectory is None else trajectory
        return found.evidence(Estimate(along, found.lineariser.prior), psi)

    return make
