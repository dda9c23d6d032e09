"""What fits and identification call of a generated package without Gaussian processes: the likelihood of a recording.

No controller needs it, and it is not translated: its arrays have no declared shapes.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.entries.types import Records


class FilterSetting(NamedTuple):
    """`likelihood.Setting`: what the filter is given."""

    mean: Array
    covariance: Array
    active: NDArray[np.int64]
    Q: Array
    R: Array
    D: Array
    numbers: Array
    expected: bool
    still: bool


class FilterRecording(NamedTuple):
    """`likelihood.Recording`: what was measured; `signals` only where the model has some."""

    inputs: Array
    measurements: Array
    signals: Array


class FilterTrace(NamedTuple):
    """`likelihood.Trace`: what the filter writes down."""

    means: Array
    covariances: Array
    outputs: Array
    variances: Array
    whites: Array
    stats: Array


class LikelihoodSlopes(NamedTuple):
    """`likelihood_gradient.Slopes`: derivatives on their way back."""

    mean: Array
    covariance: Array
    noise: Array
    measurement: Array
    inputs: Array


class GradientScratch(Protocol):
    """`likelihood_gradient.GradientScratch`: scratch of one thread."""

    back: Records


class LikelihoodModule(Protocol):
    """The filter over a recording."""

    Setting: type[FilterSetting]
    Recording: type[FilterRecording]
    Trace: type[FilterTrace]

    def rows(self) -> Records:
        """Scratch of one thread."""

    def forward(
        self, setting: FilterSetting, recording: FilterRecording, trace: FilterTrace, scratch: Records
    ) -> float:
        """Run the filter; returns log p."""

    def forecast(
        self,
        setting: FilterSetting,
        recording: FilterRecording,
        trace: FilterTrace,
        outputs: Array,
        variances: Array,
        scratch: Records,
    ) -> None:
        """Predict measurements from every row on."""


class LikelihoodGradientModule(Protocol):
    """Its backward pass."""

    Slopes: type[LikelihoodSlopes]

    def make_gradient_scratch(self) -> GradientScratch:
        """Scratch of one thread."""

    def reverse(
        self,
        setting: FilterSetting,
        recording: FilterRecording,
        trace: FilterTrace,
        slopes: LikelihoodSlopes,
        scratch: Records,
        gradient_scratch: GradientScratch,
    ) -> None:
        """Carry derivatives back."""


class InformationModule(Protocol):
    """What a recording tells about quantities."""

    def information(
        self,
        setting: FilterSetting,
        recording: FilterRecording,
        trace: FilterTrace,
        directions: Array,
        gathered: Array,
        scratch: Records,
    ) -> None:
        """The information along directions, gathered part by part."""
