"""A controller as a file: its problem, its settings, where it is, what it believes and plans; numbers only, no code.

The file is an archive of arrays (.npz) that numpy reads by itself. Its first member, `about.json`, says which package
and controller they belong to, and has the SHA-256 of everything. The package is looked up by its name, as
`symdual.load` does: a file cannot name a folder, so that no code comes with it.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import symdual
from symdual.common.archives import stored_arrays
from symdual.common.arrays import Array
from symdual.common.atomic_files import require_writable, write_atomically
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.entries.types import Records
from symdual.runtime.belief import Belief, checked_belief
from symdual.runtime.evaluate import argument
from symdual.runtime.info import State
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.objective import Objective
from symdual.runtime.options import Options
from symdual.runtime.problem import Problem
from symdual.runtime.results import ABOUT, UNREADABLE
from symdual.runtime.signals import Signals

if TYPE_CHECKING:
    from symdual.runtime.controller import Controller

FORMAT = "symdual controller"
VERSION = 1

_TUPLES: Mapping[str, Callable[..., Any]] = {"prior": Belief, "objective": Objective, "signals": Signals}
_NOT_NUMBERS = ("name", "package", "plant")
_NOT_ARRAYS = ("names", "transforms")  # in those; a belief has its own from the package

#: problem, name, order, window, options and budget of a controller
Arguments = tuple[Problem, str, int, int | None, Options, float | None]

#: finds a package by its name, or in a folder
Find = Callable[[str | Path], LoadedPackage]


# ------------------------------------------------------------ writing


def save(controller: Controller, live: State | None, forecasts: Problem | None, path: Path) -> None:
    """Write a controller to a file in one go: `live` is where `act` is, `forecasts` the problem with what was said."""
    require_writable(path)
    problem = controller.problem
    arrays = dict(_numbers_of(problem))
    if live is not None:
        arrays |= _flat("state.belief", live.belief) | _flat("state.u", live.u)
        if live.plans is not None:
            arrays |= {f"plans.{name}": live.plans[name].astype(np.float64) for name in live.plans.dtype.names or ()}
    if forecasts is not None and forecasts.signals is not None:
        arrays["forecasts"] = forecasts.signals.believed
    about = {
        "format": FORMAT,
        "version": VERSION,
        "written by": f"symdual {symdual.__version__}",
        "controller": controller.name,
        "order": controller.order,
        "window": controller.window,
        "options": asdict(controller.options),
        "budget": controller.budget,
        "problem": problem.name,
        "step": None if live is None else live.k,
        "signals": None if problem.signals is None else list(problem.signals.names),
        "package": _identity(problem.package),
        "plant": None if problem.plant is problem.package else _identity(problem.plant),
    }
    about["digest"] = _digest(about, arrays)
    write_atomically(path, stored_arrays(arrays, {ABOUT: (json.dumps(about, indent=1) + "\n").encode()}))


def _identity(package: LoadedPackage) -> dict[str, str]:
    digests = {"code": str(package.module.DIGEST), "model": package.model_digest}
    return {"name": package.name, **digests, "backend": package.backend}


def _numbers_of(problem: Problem) -> Iterator[tuple[str, Array]]:
    """All numbers of a problem and of its packages, by names that say where they belong."""
    for part in fields(Problem):
        if part.name not in _NOT_NUMBERS:
            yield from _flat(f"problem.{part.name}", getattr(problem, part.name)).items()
    roles = {"package": problem.package} | ({} if problem.plant is problem.package else {"plant": problem.plant})
    for role, package in roles.items():
        yield from ((f"{role}.{key}", value) for key, value in _own_numbers(package).items())


def _own_numbers(package: LoadedPackage) -> dict[str, Array]:
    """The numbers of a model; those of its scenarios are in problems."""
    return {key: value for key, value in package.numbers.items() if not key.startswith("scenario.")}


def _flat(key: str, value: Any) -> dict[str, Array]:
    """Arrays by name of a number, an array, a named tuple of them, or nothing; names are no numbers."""
    if value is None:
        return {}
    if not isinstance(value, tuple):
        return {key: np.asarray(value, dtype=np.float64)}
    parts = {part: one for part, one in value._asdict().items() if part not in _NOT_ARRAYS}  # type: ignore[attr-defined]
    return {name: array for part, one in parts.items() for name, array in _flat(f"{key}.{part}", one).items()}


def _digest(about: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """The SHA-256 of a description and of its arrays."""
    total = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(f"\n{name} {arrays[name].shape}\n".encode())
        total.update(np.ascontiguousarray(arrays[name], dtype="<f8").tobytes())
    return total.hexdigest()


# ------------------------------------------------------------ reading


@dataclass(frozen=True)
class Saved:
    """A file that was read and found whole."""

    path: Path
    about: Mapping[str, Any]
    arrays: Mapping[str, Array]

    def arguments(self, find: Find, package: LoadedPackage | None) -> Arguments:
        """What a controller is made of, with a package that is given or found by its name."""
        own = self._package("package", self._found("package", find) if package is None else package)
        plant = own
        if self.about["plant"] is not None:
            plant = self._package("plant", self._found("plant", lambda name: find(own.folder.parent / name)))
        numbers = {part.name: self._part(part.name) for part in fields(Problem) if part.name not in _NOT_NUMBERS}
        numbers |= {name: float(numbers[name]) for name in ("bonus", "dual_weight")}
        problem = Problem(self.about["problem"], own, plant=plant, **numbers)
        options = Options(**self.about["options"])
        about = self.about
        return problem, about["controller"], about["order"], about["window"], options, about.get("budget")

    def state(self, package: LoadedPackage) -> State | None:
        """Where `act` was, if it was called."""
        if self.about["step"] is None:
            return None
        belief = checked_belief(package, self._tuple("state.belief", Belief))
        u = self.arrays.get("state.u")
        checked = None if u is None else argument(u, (package.NU,), "the input before")
        return State(self.about["step"], belief, checked, self._plans(package))

    def forecasts(self, problem: Problem) -> Problem | None:
        """The problem with what was said of its signals, or None where there are none."""
        said = self.arrays.get("forecasts")
        if said is None or problem.signals is None:
            return None
        longer = problem.changed(horizon=len(said) - 1)
        assert longer.signals is not None
        return replace(longer, signals=longer.signals._replace(believed=said))

    def _found(self, role: str, find: Find) -> LoadedPackage:
        """The package of a role by its name; through numba where it was, though there may be a C compiler."""
        known = self.about[role]
        package = find(known["name"])
        return package.through(None) if known["backend"] == "numba" else package

    def _package(self, role: str, package: LoadedPackage) -> LoadedPackage:
        """The package of a role with the numbers that it had; it must be the one that was used."""
        known = self.about[role]
        if package.name != known["name"]:
            raise SymdualError(f"{self.path} is of the model {known['name']}, and {package.name} is another one")
        if known["code"] != package.module.DIGEST and package.model_digest != known["model"]:
            raise SymdualError(
                f"the model {package.name} has changed since the controller in {self.path} was saved; make a new "
                "controller, and give its `reset` what is still right of the belief"
            )
        if package.backend != known["backend"]:
            how = {"c": "C", "numba": "numba"}
            warnings.warn(
                f"the controller in {self.path} was compiled by {how[known['backend']]} and now is by "
                f"{how[package.backend]}: its inputs are the same up to rounding only",
                SymdualWarning,
                stacklevel=5,
            )
        now = _own_numbers(package)
        saved = {key: self.arrays.get(f"{role}.{key}", value) for key, value in now.items()}
        numbers = {key: argument(value, np.shape(now[key]), key) for key, value in saved.items()}
        return replace(package, numbers={**package.numbers, **numbers})

    def _part(self, name: str) -> Any:
        key = f"problem.{name}"
        return self._tuple(key, _TUPLES[name]) if name in _TUPLES else self.arrays.get(key)

    def _tuple(self, key: str, kind: Any) -> Any:
        """A named tuple of arrays, or None where nothing of it was saved."""
        found = {part: self.arrays.get(f"{key}.{part}") for part in kind._fields if part not in _NOT_ARRAYS}
        if all(array is None for array in found.values()):
            return None
        return kind(**found, **({"names": tuple(self.about["signals"])} if kind is Signals else {}))

    def _plans(self, package: LoadedPackage) -> Records | None:
        """The plans that were stored; None where there are none, or where the code now stores others."""
        own = {name.removeprefix("plans."): array for name, array in self.arrays.items() if name.startswith("plans.")}
        if not own:
            return None
        plans = np.zeros(own["steps"].shape[:2], package.records.STORED)
        if {name: plans[name].shape for name in plans.dtype.names or ()} != {name: a.shape for name, a in own.items()}:
            warnings.warn(
                f"the plans in {self.path} are those of another version of symdual; the first decision makes new ones",
                SymdualWarning,
                stacklevel=4,
            )
            return None
        for name, array in own.items():
            plans[name] = array
        return plans


def read(path: Path) -> Saved:
    """Read the file of a controller, or say in a sentence what is wrong with it."""
    try:
        content = path.read_bytes()
    except OSError as failure:
        raise SymdualError(f"cannot read {path}: {failure.strerror}") from failure
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            about = json.loads(stored[ABOUT])
            if about["format"] != FORMAT:
                raise ValueError("another file")
            version, writer = about["version"], about["written by"]
            arrays = {name: stored[name] for name in stored.files if name != ABOUT} if version == VERSION else {}
        whole = version != VERSION or about.pop("digest") == _digest(about, arrays)
    except UNREADABLE as failure:
        raise SymdualError(f"{path} is not a saved controller, or it is damaged") from failure
    if version != VERSION:
        raise SymdualError(
            f"{path} was written by {writer} in version {version} of its format, and symdual {symdual.__version__} "
            f"reads version {VERSION}: load and save it with a symdual that knows both, or take the belief only"
        )
    if not whole or not str(about["package"]["name"]).isidentifier():
        raise SymdualError(f"{path} is damaged: its content is not what was saved")
    return Saved(path, about, arrays)
