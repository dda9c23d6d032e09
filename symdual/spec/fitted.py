"""The file with which `symdual fit` hands numbers to a model: JSON, numbers only.

    {"hyperparameters": {"g_lengthscale": {"value": 1.93, "standard_deviation": 0.21, ...}, ...}, ...}

    {"unknowns": {"mass": {"value": 1.2, ...}, ...}, "covariance": [[...]], "process_noise": [[...]],
     "measurement_noise": [[...]], "drift": [[...]], "drift_of": ["mass", ...], "start": {"mean": [...], ...}, ...}

The first is for Gaussian processes, the second for `Model` and `Scenario`; of the second, parts may be missing. Only
the values are read; everything else is for people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.common.atomic_files import write_atomically
from symdual.common.errors import ModelError, SymdualError, did_you_mean
from symdual.common.numbers import as_numbers, as_square, as_vector

Source = str | Path | Mapping[str, Any]


class Fitted(NamedTuple):
    """What a fit says of a model: a prior of the named unknowns, and where they were fitted, noise and first state."""

    origin: str
    unknowns: tuple[str, ...]
    mean: Array
    covariance: Array
    noises: dict[str, Array]
    start: tuple[Array, Array] | None
    drift_of: tuple[str, ...] = ()

    def drift(self, names: tuple[str, ...]) -> Array | None:
        """The fitted drift of all unknowns of a model, in its order; as it is given where it has no names."""
        drift = self.noises.get("drift")
        if drift is None or not self.drift_of:
            return drift
        if sorted(self.drift_of) != sorted(names):
            raise ModelError(
                f"{self.origin} has the drift of {', '.join(self.drift_of)}, but the unknowns are {', '.join(names)}"
            )
        places = [self.drift_of.index(name) for name in names]
        return np.asarray(drift[places] if drift.ndim == 1 else drift[np.ix_(places, places)])

    def prior(self, names: tuple[str, ...], mean: Array, covariance: Array) -> tuple[Array, Array]:
        """The prior of all unknowns of a model, given what it was: the fitted ones are independent of the others."""
        for name in self.unknowns:
            if name not in names:
                raise ModelError(
                    f'{self.origin} has a value for "{name}", which is not an unknown of the model'
                    f"{did_you_mean(name, names)}"
                )
        own = [names.index(name) for name in self.unknowns]
        mean, covariance = mean.copy(), np.diag(covariance) if covariance.ndim == 1 else covariance.copy()
        mean[own] = self.mean
        covariance[own] = 0.0
        covariance[:, own] = 0.0
        covariance[np.ix_(own, own)] = self.covariance
        diagonal = np.diag(covariance)
        return mean, covariance if np.any(covariance - np.diag(diagonal)) else diagonal.copy()


def read_fit(source: Source) -> Fitted:
    """A fit from its file, or from the same content as `Fit.to_json` gives it."""
    origin = "the fit" if isinstance(source, Mapping) else str(source)
    content = source if isinstance(source, Mapping) else _content(Path(source))
    try:
        entries = content.get("unknowns", {})
        names = tuple(str(name) for name in entries)
        mean = [float(entries[name]["value"]) for name in names]
        noises = {key: content[key] for key in ("process_noise", "measurement_noise", "drift") if key in content}
        start = content.get("start")
        covariance = content.get("covariance", []) if names else np.zeros((0, 0))
        first = None if start is None else (start["mean"], start["covariance"])
        drift_of = tuple(str(name) for name in content.get("drift_of", ()))
    except (KeyError, TypeError, AttributeError, ValueError) as failure:
        raise ModelError(f"{origin} does not hold a fit as `symdual fit` writes it") from failure
    if not names and not noises and first is None:
        raise ModelError(f"{origin} holds neither unknowns nor noise nor a first state as `symdual fit` writes them")
    if np.size(noises.get("drift", ())) > 1 and not drift_of and "log_likelihood" in content:
        raise ModelError(f"{origin} holds a drift without the names of its unknowns: run `symdual fit` again")
    size = len(names)
    return Fitted(
        origin=origin,
        unknowns=names,
        mean=as_vector(mean, size, f"the unknowns of {origin}") if size else np.zeros(0),
        covariance=_semidefinite(as_square(covariance, size, f"the covariance of {origin}")),
        noises={key: as_numbers(value, f"{key} of {origin}") for key, value in noises.items()},
        start=None if first is None else _first_state(origin, *first),
        drift_of=drift_of,
    )


def _first_state(origin: str, mean: Any, covariance: Any) -> tuple[Array, Array]:
    numbers = as_numbers(mean, f"the start of {origin}")
    return numbers, _semidefinite(as_square(covariance, numbers.size, f"the covariance of the start of {origin}"))


def _semidefinite(matrix: Array) -> Array:
    """The nearest positive semidefinite matrix: what a file keeps is rounded."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if values.size == 0 or values[0] >= 0:
        return 0.5 * (matrix + matrix.T)
    near = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(0.5 * (near + near.T))


def _content(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"there is no file {file}; `symdual fit` writes it for a model without fitted=") from None
    except OSError as failure:
        raise ModelError(f"the fit cannot be read from {file}: {failure.strerror}") from failure
    except ValueError as failure:
        raise ModelError(f"{file} does not hold a fit as `symdual fit` writes it") from failure
    if not isinstance(content, Mapping):
        raise ModelError(f"{file} does not hold a fit as `symdual fit` writes it")
    return content


def read(file: Path) -> dict[str, float]:
    """The values by name."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {str(key): float(entry["value"]) for key, entry in content["hyperparameters"].items()}
    except FileNotFoundError:
        raise ModelError(
            f"there is no file {file} with fitted hyperparameters; `symdual fit` writes it for a model without fitted="
        ) from None
    except OSError as failure:
        raise ModelError(f"the fitted hyperparameters cannot be read from {file}: {failure.strerror}") from failure
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as failure:
        raise ModelError(f"{file} does not hold fitted hyperparameters as `symdual fit` writes them") from failure


def write(file: Path, content: Mapping[str, Any]) -> None:
    """Write the file in one go, so that a reader never sees half of it; equal content is equal bytes."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    try:
        write_atomically(file, text.encode())
    except OSError as failure:
        raise SymdualError(f"cannot write {file}: {failure.strerror}") from failure
