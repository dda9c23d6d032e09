"""Setters of an exported controller: which fields of a cost and of the settings have one, and how these differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from symdual.backends.c.expressions import LARGEST
from symdual.backends.c.kinds import Array, Kind
from symdual.controllers import CONTROLLERS, OPTIONS, cost_changes_of

#: fields of a cost and the names of their setters; the input cost, of which an eigenvalue is asked for, has its own
_OF_COSTS = {
    "r": "reference",
    "s": "input_reference",
    "terms": "cost_weights",
    "W": "state_cost",
    "N": "cross_cost",
}
#: likewise fields of the settings, which hold for all times
_OF_TASKS = {"ends": "terminal_weights", "constraint_weights": "constraint_weights"}


class Setter(NamedTuple):
    """A function in C that copies its argument `field` to a place in the controller, unless it refuses it."""

    signature: str
    remark: str  # behind its declaration
    refused: str  # the condition
    positive: bool  # whether entries below zero are refused too
    field: str
    place: str
    shape: tuple[int, ...]

    @property
    def declaration(self) -> str:
        """As the header has it."""
        return f"{self.signature};{self.remark}"


class OptionSetter(NamedTuple):
    """A function in C that sets an option of controllers to a whole number."""

    name: str
    field: str
    meaning: str
    least: int
    most: int

    @property
    def refused(self) -> str:
        """The condition under which it is refused; no int is larger than the largest."""
        below = f"{self.name} < {self.least}"
        return below if self.most == LARGEST else f"{below} || {self.name} > {self.most}"


def option_setters(controllers: Iterable[str], told: Mapping[str, float]) -> tuple[OptionSetter, ...]:
    """Those of all options of these controllers, told at first what is given by name.

    An option by which a controller minimises another cost is fixed; where it is off, no other of its options matters.
    """
    wanted = set[str]()
    for one in controllers:
        cost_changes = cost_changes_of(one)
        if not cost_changes or any(told[name] for name in cost_changes):
            wanted.update(name for name in CONTROLLERS[one].options if name not in cost_changes)
    return tuple(
        OptionSetter(o.name, o.field, o.meaning, o.least, o.most) for o in OPTIONS.values() if o.name in wanted
    )


def setters(
    records: Mapping[str, Mapping[str, Kind]], prefix: str, real: str
) -> tuple[tuple[Setter, ...], tuple[Setter, ...]]:
    """Those of vectors, which belong to a time or hold for all times, and those of matrices."""
    timed = [_timed(*own, prefix, real) for own in _settable(records["STAGE_COST"], _OF_COSTS)]
    always = [_untimed(*own, prefix, real) for own in _settable(records["SETTINGS"], _OF_TASKS)]
    vectors, matrices = (tuple(one for one in timed if len(one.shape) == size) for size in (1, 2))
    return (*vectors, *always), matrices


def _settable(fields: Mapping[str, Kind], names: Mapping[str, str]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """The fields that a record has, with the names of their setters and with their shapes."""
    for field, what in names.items():
        kind = fields.get(field)
        if isinstance(kind, Array) and not kind.empty:
            yield field, what, tuple(size for size in kind.shape if size is not None)


def _timed(field: str, what: str, shape: tuple[int, ...], prefix: str, real: str) -> Setter:
    argument, sound = f"const {real} *{field}", f"is_finite({field}, {shape[0]})"
    if len(shape) > 1:
        argument, sound = f"{real} (*{field})[{shape[1]}]", f"is_finite(&{field}[0][0], {shape[0]} * {shape[1]})"
    if field == "W":
        sound = f"is_plausible(&{field}[0][0], {shape[0]}, 0)"
    return Setter(
        f"int {prefix}_set_{what}({prefix}_controller *c, int k, {argument})",
        "",
        f"k < 0 || k >= {prefix.upper()}_COST_TIMES || !{prefix}_{sound}",
        what.endswith("weights"),
        field,
        f"stage_costs[k].{field}",
        shape,
    )


def _untimed(field: str, what: str, shape: tuple[int, ...], prefix: str, real: str) -> Setter:
    return Setter(
        f"int {prefix}_set_{what}({prefix}_controller *c, const {real} *{field})",
        f" /* {shape[0]}, for all times */",
        f"!{prefix}_is_finite({field}, {shape[0]})",
        what.endswith("weights"),
        field,
        f"settings.{field}",
        shape,
    )
