"""What the controller of a generated package offers, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Protocol

from symdual.common.arrays import Array
from symdual.entries.decisions import CostAddress, Table
from symdual.entries.recursions import FilterWorkspace, Workspace
from symdual.entries.types import (
    RUN_TIME,
    Belief,
    Candidates,
    Input,
    Measurement,
    Pointer,
    Records,
    Statistics,
    shaped,
)

#: the numbers of a problem by name
Given = Mapping[str, Any]
States = Annotated[Array, shaped(RUN_TIME, "NX")]


class SettingsModule(Protocol):
    """What a controller is told; `given` are the numbers of a problem by name."""

    def cost_of(
        self, name: str, order: int, steps: int, W: Array | None = ..., options: Mapping[str, float] | None = ...
    ) -> str:
        """The name of the compiled cost that a controller minimises."""

    def searches(self, cost: str, settings: Records) -> bool:
        """Whether a cost is searched over the first input."""

    def cost_that_decides(self, cost: str, variances: Array, settings: Records) -> str:
        """The cost that decides for a belief with these variances."""

    def settings_of(self, name: str, order: int, given: Given, options: Mapping[str, float]) -> Records:
        """The settings of a controller."""

    def stage_costs_of(self, given: Given, steps: int) -> Records:
        """The cost of each time."""

    def floors_of(self, given: Given, steps: int) -> Array:
        """What the square of each input costs at least."""


class EmittedController(Protocol):
    """`controller.Controller`: a controller with its workspaces, where it is in its problem, and what it believes.

    Its methods return a status of the module, below zero, where something is lost.
    """

    k: int
    pending: bool
    shift: int
    steps: int
    u: Array
    belief: Records
    settings: Records
    workspace: Workspace
    table: Table
    stats: Array
    floors: Array
    address: int
    searching: bool
    cost: str

    def lay_out(self, steps: int) -> None:
        """Make the workspace for problems of so many steps."""

    def take(self, y: Array) -> int:
        """Take a measurement into the belief."""

    def deciding(self) -> tuple[int, bool]:
        """The address of the cost that decides, and whether it is searched."""

    def choose(self, address: int, searching: bool) -> int:
        """Choose an input by it."""

    def times(self) -> tuple[int, int]:
        """Begin and end of the plan, with room for it; a `ValueError` where the problem has ended."""


class MakeController(Protocol):
    """`controller.Controller` as what makes one."""

    def __call__(
        self,
        name: str,
        scenario: str | None,
        order: int,
        window: int | None,
        options: Mapping[str, float],
        given: Given,
        pointer: Pointer,
    ) -> EmittedController:
        """A controller for the problem of these numbers."""


class ControllerModule(Protocol):
    """The implementation of all controllers: what one does at a step, and the status that is returned."""

    Controller: MakeController
    FINE: int
    ENDED: int
    INFINITE_MEASUREMENT: int
    LOST_BELIEF: int
    LOST_PLAN: int
    NO_SIGNAL: int

    def write_plan(
        self,
        start: int,
        end: int,
        learns: bool,
        belief: Belief,
        workspace: Workspace,
        u: Input,
        states: States,
        inputs: Candidates,
    ) -> int:
        """Write the plan of the last decision."""


#: what the arguments of the functions of a step are, which an exported controller calls
STEP_ARGUMENTS: Mapping[str, Any] = {
    **dict.fromkeys(("k", "first", "last", "start", "end", "horizon", "window", "count", "shift"), int),
    **dict.fromkeys(("pending", "learns", "searching"), bool),
    "trial": Annotated[Records, shaped(of="GAUSSIAN")],
    "saved": Annotated[Records, shaped("1", of="SETTINGS")],
    "address": CostAddress,
    "floor": Input,
    "belief": Belief,
    "workspace": Workspace,
    "filter_workspace": FilterWorkspace,
    "table": Table,
    "stats": Statistics,
    "u": Input,
    "y": Measurement,
    "states": States,
    "inputs": Candidates,
}
