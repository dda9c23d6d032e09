"""A package as it is at a time: its signals among its numbers."""

from __future__ import annotations

from typing import cast

from symdual.common.arrays import Array
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.signals import place_of


class Tuned:
    """A package whose numbers are those of a time; everything else is the package's own."""

    def __init__(self, package: LoadedPackage, signals: Array, time: int = 0) -> None:
        self.package, self.signals = package, signals
        data = package.numbers["data"].copy()
        data[place_of(package)] = signals[time]
        self.numbers = {**package.numbers, "data": data}

    def __getattr__(self, name: str) -> object:
        return getattr(self.package, name)


def at(package: LoadedPackage, time: int) -> LoadedPackage:
    """The package with the signals of a time, if it has any."""
    return cast(LoadedPackage, Tuned(package.package, package.signals, time)) if isinstance(package, Tuned) else package
