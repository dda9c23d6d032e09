"""Which measured numbers a filter has found to be outliers."""

from __future__ import annotations

import numpy as np

from symdual.common.arrays import Array
from symdual.runtime.loading import LoadedPackage


def counts_outliers(package: LoadedPackage) -> bool:
    """Whether the filter of a package takes measured numbers that are too far off for less."""
    return hasattr(package.module, "OUTLIERS")


def outliers_in(package: LoadedPackage, rejected: Array | None, y: Array) -> tuple[str, ...]:
    """The names of those of a measurement y that were too far off, from the counts after its update."""
    if rejected is None:
        return ()
    far = (rejected > 0.0) & ~np.isnan(y)
    return tuple(name for name, one in zip(package.MEASUREMENTS, far, strict=True) if one)
