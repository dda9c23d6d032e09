"""What a generated package offers as a whole: its modules, and the names, sizes and index maps of its `__init__`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from symdual.entries.controllers import ControllerModule, SettingsModule
from symdual.entries.decisions import (
    DecisionModule,
    EpisodeControls,
    EpisodeLogArrays,
    EpisodeModule,
    EpisodeNoiseDraws,
    EpisodePlant,
    PlantModule,
    SearchModule,
    Table,
    ThreadWorkspace,
)
from symdual.entries.kernels import KernelsModule
from symdual.entries.likelihood import InformationModule, LikelihoodGradientModule, LikelihoodModule
from symdual.entries.recursions import (
    CallsModule,
    DualCostModule,
    FilterModule,
    FilterWorkspace,
    MomentsModule,
    NominalModule,
    ProcessModule,
    RecordsModule,
    Workspace,
)
from symdual.entries.types import target_of


class Constants:
    """The names, sizes and index maps of a package (its `__init__`); those from `COST` on only some packages have."""

    DIGEST: str
    NX: int
    NU: int
    NY: int
    NS: int
    NTHETA: int
    NZ: int
    NR: int
    NHR: int
    NPAIRS: int
    DATA: int
    WORK: int
    STATES: Mapping[str, int]
    INPUTS: Mapping[str, int]
    MEASUREMENTS: Mapping[str, int]
    UNKNOWNS: Mapping[str, tuple[int, int]]
    DATA_ENTRIES: Mapping[str, tuple[int, int]]
    THETA_ROWS: tuple[int, ...]
    H_THETA_ROWS: tuple[int, ...]
    H_SELECTS: tuple[int, ...]
    HESSIAN_DIAGONALS: tuple[tuple[int, int, int, int], ...]
    OBSERVATION_DIAGONALS: tuple[tuple[int, int, int, int], ...]
    OBSERVATION_PAIRS: int
    INPUT_DELAY: int
    TRANSITION: str
    DIFFUSION: str
    AFFINE: bool
    LINEAR: bool
    SQUARE_ROOT: bool
    TIME_VARYING: bool
    METHOD: str
    SUBSTEPS: int
    PROCESSES: Mapping[str, tuple[str, ...]]
    COST: Mapping[str, list[str]]
    TERMS: int
    ENDS: int
    CONSTRAINTS: tuple[str, ...]
    WITH_INPUTS: tuple[int, ...]
    SIGNALS: tuple[str, ...]
    NOISE: Mapping[str, str]
    COMBINATIONS: int
    OUTLIERS: float


class Offered(Constants):
    """All that is found in a loaded package when it is asked for: names of its `__init__`, and its modules."""

    kernels: KernelsModule
    records: RecordsModule
    filter: FilterModule
    moments: MomentsModule
    nominal: NominalModule
    dual_cost: DualCostModule
    calls: CallsModule
    search: SearchModule
    decision: DecisionModule
    settings: SettingsModule
    controller: ControllerModule
    process: ProcessModule
    plant: PlantModule
    episode: EpisodeModule
    likelihood: LikelihoodModule
    likelihood_gradient: LikelihoodGradientModule
    information: InformationModule


#: the protocols of modules, by name
MODULES: Mapping[str, type] = {name: kind for name, kind in get_type_hints(Offered).items() if name.islower()}

#: where packages have the named tuples that are declared in this room: module and name
CLASSES: Mapping[type, tuple[str, str]] = {
    Workspace: ("records", "Workspace"),
    FilterWorkspace: ("filter", "FilterWorkspace"),
    Table: ("search", "Table"),
    EpisodePlant: ("episode", "Plant"),
    EpisodeControls: ("episode", "Controls"),
    EpisodeNoiseDraws: ("episode", "NoiseDraws"),
    EpisodeLogArrays: ("episode", "EpisodeLog"),
    ThreadWorkspace: ("episode", "ThreadWorkspace"),
}


def entry(module: str, name: str) -> Callable[..., Any] | None:
    """The declaration of a function of a module, with `self` before its arguments; None if there is none."""
    protocol = MODULES.get(module)
    if protocol is None:
        return None
    own = vars(protocol).get(name)
    if inspect.isfunction(own):
        return own
    kind = get_type_hints(protocol, include_extras=True).get(name)
    called = vars(target_of(kind) or kind).get("__call__") if kind is not None else None
    return called if inspect.isfunction(called) else None
