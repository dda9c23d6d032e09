"""What all fits have in common: a function of coordinates psi that is maximised, and what its maximum says of a model.

There are two. `parameters` has unknowns, first states and noise as psi, and the likelihood of the filter. `processes`
has hyperparameters of Gaussian processes and noise as psi; unknowns, first states and processes are integrated out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from symdual.common.arrays import Array
from symdual.identification.result import Fit, Outcome
from symdual.identification.standard_errors import Certainty
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import Recording

Report = Callable[[str, float | None], None]  #: what is being done, and which share of it is done, None if nobody knows


def unreported(text: str, share: float | None) -> None:
    """Report to nobody."""


class Value(NamedTuple):
    """log p and its gradient by psi; the value is minus infinity where the filter breaks down."""

    log_likelihood: float
    gradient: Array


@dataclass(frozen=True, eq=False)
class Optimum:
    """The end of a search.

    `value` is log p(y | psi) with its gradient, `first` the same for the model's own numbers; `curvature` (size, size)
    is minus the second derivatives of what was maximised, `at_bound` -1, 0 or 1 for each coordinate; `agreeing` of
    `searches` starting points led to the best maximum.
    """

    psi: Array
    value: Value
    first: Value
    curvature: Array
    at_bound: list[int]
    searches: int
    agreeing: int
    converged: bool


class Likelihood(Protocol):
    """A model with recordings of it, as a function of psi."""

    @property
    def model(self) -> str:
        """The name of the model."""

    @property
    def method(self) -> str:
        """What is maximised."""

    @property
    def recordings(self) -> Sequence[Recording]:
        """What the model is fitted to."""

    @property
    def columns(self) -> LoadedPackage:
        """The names of inputs, signals and measurements."""

    @property
    def names(self) -> Sequence[str]:
        """A name for each entry of psi."""

    @property
    def measured(self) -> int:
        """How many measured numbers count."""

    @property
    def evaluations(self) -> int:
        """How often the likelihood was computed."""

    def read(self, sources: Any, resample: bool = False) -> list[Recording]:
        """Other recordings of the same model."""

    def maximise(self, starts: int, report: Report, begin: Array | None = None) -> Optimum:
        """The psi that explains the recordings best; from the model's own numbers on, or from `begin`."""

    def certainty(self, optimum: Any) -> Certainty:
        """How well the recordings determine psi."""

    def outcome(self, optimum: Any, found: Certainty) -> Outcome:
        """What the maximum says of the model."""

    def warnings(self, optimum: Any) -> Iterator[str]:
        """What to be wary of, beside numbers that are not determined."""

    def predictor(self, result: Fit, unseen: Sequence[Recording], folder: str | Path | None) -> Any:
        """The fitted model ready to predict recordings (`held_out.Predictor`)."""
