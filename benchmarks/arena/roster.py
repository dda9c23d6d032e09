"""Who takes part: the systems, a model file each, and the controllers with their settings.

A system is a file of `systems`. Its docstring begins with a line that says what it is and names its source, and it
has a scenario; the truth is drawn from the prior. It may also say:

    truth = "drift"          that unknowns drift while it runs
    window = 10              that plans are so long, instead of to the end
    reference = "exact"      with which controller regret is counted, instead of `oracle`
    def losses(inputs, means, variances): ...      what each episode costs beyond the exact optimum, in percent of it
"""

from __future__ import annotations

import ast
import json
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from symdual import api
from symdual.common.errors import SymdualError
from symdual.runtime.closed_loop import Settings
from symdual.runtime.costs import require_fit
from symdual.runtime.options import USUAL, Options
from symdual.runtime.problem import Problem

HERE = Path(__file__).parent
CONTROLLERS = (
    "ce",
    "cautious",
    "dual",
    "planned",
    "beb",
    "information",
    "thompson",
    "dither",
    "scenario",
    "rollout",
)
BASELINE = "ce"
PARTS = ("planned", "thompson", "rivals")


@dataclass(frozen=True)
class Chosen:
    """Settings of all controllers, the same for all systems: whole numbers, and the bonus of `beb`."""

    options: Options = USUAL
    bonus: float = 1.0

    @staticmethod
    def read(file: Path) -> Chosen:
        """Those of a settings file."""
        told = json.loads(file.read_text())
        return Chosen(Options(**told["options"]), told["bonus"])

    def changed(self, **numbers: float) -> Chosen:
        """The same with other numbers."""
        bonus = numbers.pop("bonus", self.bonus)
        return Chosen(Options(**{**vars(self.options), **numbers}), bonus)


@dataclass(frozen=True)
class System:
    """A system of the arena."""

    file: Path
    packages: Path

    @property
    def name(self) -> str:
        """That of its file."""
        return self.file.stem

    @cached_property
    def about(self) -> str:
        """Its docstring."""
        return ast.get_docstring(ast.parse(self.file.read_text())) or ""

    @cached_property
    def told(self) -> dict[str, Any]:
        """What the file says."""
        return runpy.run_path(str(self.file))

    @property
    def reference(self) -> str:
        """The controller with which regret is counted."""
        return str(self.told.get("regret_beyond", "oracle"))

    @property
    def losses(self) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None:
        """What episodes cost beyond the exact optimum in percent, where that is known."""
        return self.told.get("losses")

    def settings(self, chosen: Chosen) -> Settings:
        """How its episodes are run."""
        return Settings(self.told.get("truth", "prior"), 1, self.told.get("window"), None, chosen.options)

    def problem(self, chosen: Chosen, backend: str | None = None) -> Problem:
        """It with its package."""
        found = api.problem(self.file, folder=self.packages, backend=backend, parts=PARTS)
        return found.changed(bonus=chosen.bonus)

    def contestants(self, problem: Problem, chosen: Chosen) -> tuple[tuple[str, ...], dict[str, str]]:
        """Who takes part here, the reference included, and why others cannot."""
        able, refused = [], {}
        for name in dict.fromkeys((*CONTROLLERS, "oracle", self.reference)):
            try:
                require_fit(problem, name, 1, self.settings(chosen).window or problem.horizon)
                able.append(name)
            except SymdualError as reason:
                refused[name] = str(reason)
        return tuple(able), refused


def systems(packages: Path, only: tuple[str, ...] = ()) -> list[System]:
    """All systems, or those that are named."""
    files = sorted((HERE / "systems").glob("[!_]*.py"))
    unknown = set(only) - {file.stem for file in files}
    if unknown:
        raise SymdualError(f"the arena has no system {', '.join(sorted(unknown))}")
    return [System(file, packages) for file in files if not only or file.stem in only]
