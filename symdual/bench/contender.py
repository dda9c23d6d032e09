"""What a participant of the benchmark offers: callables that repeat one kernel, and what they computed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol, cast

from symdual.bench.workload import Answer, Workload
from symdual.common.errors import SymdualError, did_you_mean

OWN: Final = "symdual"
PEERS: Final = ("c", "export", "casadi", "jax", "symforce", "filterpy", "numpy")
_MODULES: Final = {
    OWN: "own_side",
    "c": "c_limit",
    "export": "own_c",
    "casadi": "casadi_code",
    "jax": "jax_code",
    "symforce": "symforce_code",
    "filterpy": "filterpy_step",
    "numpy": "numpy_dense",
}


class Implementation(NamedTuple):
    """One way to compute one kernel.

    `repeat(n)` computes it n times, `answer()` returns what was computed. `in_loop` says that the repetitions
    run inside compiled code; otherwise each costs a call from Python. Of each `row` the best variant counts.
    """

    kernel: str
    row: str
    variant: str
    repeat: Callable[[int], object]
    answer: Callable[[], Answer]
    in_loop: bool


class Contender(Protocol):
    """A participant: a module with these two functions."""

    def missing(self) -> str | None:
        """Return why this participant cannot run here, or None."""

    def implementations(self, work: Workload, build: Path) -> list[Implementation]:
        """Return all implementations for this size; compiled files go to the folder `build`."""


def contender(name: str) -> Contender:
    """Return the participant with this name; its own imports happen only when it is asked for work."""
    if name not in _MODULES:
        known = ", ".join(PEERS)
        raise SymdualError(f'there is no peer "{name}"{did_you_mean(name, PEERS)} (known: {known})')
    return cast(Contender, importlib.import_module(f"symdual.bench.peers.{_MODULES[name]}"))
