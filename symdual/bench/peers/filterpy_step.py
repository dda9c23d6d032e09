"""filterpy's extended Kalman filter, fed with numpy functions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from symdual.bench import workload
from symdual.bench.contender import Implementation
from symdual.bench.peers.numpy_dense import repeated
from symdual.bench.workload import Answer, Workload


def missing() -> str | None:
    """Return why filterpy cannot run here, or None."""
    return None if importlib.util.find_spec("filterpy") else "filterpy is not installed"


def implementations(work: Workload, build: Path) -> list[Implementation]:
    """Return the EKF step."""
    from filterpy.kalman import ExtendedKalmanFilter

    constant = workload.matrices(work)
    tracker = ExtendedKalmanFilter(dim_x=work.size, dim_z=2)
    tracker.Q, tracker.R = constant.process, constant.measurement
    seen = work.measurement[:, None]

    def predict_mean(control: float = 0.0) -> None:
        tracker.x = workload.dynamics(work, tracker.x[:, 0], control)[:, None]

    tracker.predict_x = predict_mean

    def step() -> Answer:
        tracker.x, tracker.P = work.mean[:, None].copy(), work.covariance.copy()
        tracker.F = workload.jacobian(work, work.mean)
        tracker.predict(work.control)
        tracker.update(seen, lambda state: constant.observation, lambda state: state[:2])
        return tracker.x[:, 0], tracker.P

    return [Implementation("ekf", "filterpy", "ExtendedKalmanFilter", repeated(step), step, False)]
