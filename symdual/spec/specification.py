"""`Specification`: the system that code is made of: a model, and what its scenarios ask of the code.

A scenario asks for the terms of its cost and its constraints, for inputs that they look back at, for signals of its
plant, and for room to try the values of its discrete inputs. All its numbers are data, and nothing of them is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from symdual.common.errors import ModelError
from symdual.spec.content import in_place
from symdual.spec.model import Model
from symdual.spec.objective import Objective, merged
from symdual.spec.past import deepest, depths
from symdual.spec.scenario import Scenario
from symdual.spec.symbols import Constant, Unknown
from symdual.spec.system import System, remembering


@dataclass(frozen=True, eq=False)
class Specification(System):
    """A system with the cost and the constraints that are code, and what its plants and discrete inputs need.

    `combinations` of discrete inputs are tried at most. The constants are those of the model, of the cost and the
    constraints, and the signals of plants.
    """

    objective: Objective | None
    combinations: int
    plants_have_state_dependent_noise: bool
    plants_have_state_bounds: bool


def specification(model: Model, scenarios: Mapping[str, Scenario]) -> Specification:
    """A model with what scenarios ask of its code: those that believe in it, and those of which it is the plant."""
    own = {name: s for name, s in scenarios.items() if model is s.model or model is s.plant}
    return specified(
        model,
        merged({name: s.objective_of(model) for name, s in own.items()}, model),
        remembered=_remembered(model, scenarios.values()),
        combinations=max((s.combinations for s in own.values()), default=0),
        plants=[s.plant for s in own.values() if s.model is model],
    )


def specified(
    model: System,
    objective: Objective | None = None,
    remembered: Mapping[int, int] | None = None,
    combinations: int = 0,
    plants: Iterable[System] = (),
) -> Specification:
    """A model with these terms and constraints, inputs `remembered` for so many steps, and these plants."""
    plants, asked = list(plants), _with_unknowns_of(model, objective)
    looks_back = {} if asked is None else depths(asked.expressions, model.inputs)
    whole = remembering(model, deepest(remembered or {}, looks_back))
    constants = {c.name: c for c in model.constants}
    in_cost = () if asked is None else asked.constants
    _add(constants, in_cost, whole, 'the name "{}" in a cost is given to two different symbols')
    heard = (signal for plant in plants for signal in plant.signals)
    _add(constants, heard, whole, 'the name "{}" of a signal of the plant means something else here')
    parts = whole.__dict__ | {
        "constants": in_place(constants),
        "objective": asked,
        "combinations": combinations,
        "plants_have_state_dependent_noise": any(plant.noise is not None for plant in plants),
        "plants_have_state_bounds": any(plant.state_bounds for plant in plants),
    }
    return Specification(**parts)


def _with_unknowns_of(model: System, objective: Objective | None) -> Objective | None:
    """The objective of a scenario in the unknowns of the model itself: a plant may have another prior."""
    if objective is None:
        return None
    own = {symbol.name: symbol for symbol in model.unknowns}
    found = {a for limit in objective.constraints for a in limit.atoms(Unknown) if a.name in own}
    return objective.moved({a: own[a.name] for a in found})


def _add(constants: dict[str, Constant], further: Iterable[Constant], whole: System, complaint: str) -> None:
    taken = {s.name for s in (*whole.states, *whole.inputs, *whole.unknowns)}
    for constant in further:
        if constant.name in taken or constants.get(constant.name, constant) != constant:
            raise ModelError(complaint.format(constant.name))
        constants[constant.name] = constant


def _remembered(model: Model, scenarios: Iterable[Scenario]) -> dict[int, int]:
    """How many steps back inputs are remembered: models and plants that meet in scenarios have the same states."""
    together, met, listed = {id(model): model}, list[Scenario](), list(scenarios)
    while True:
        met = [s for s in listed if id(s.model) in together or id(s.plant) in together]
        wider = together | {id(one): one for s in met for one in (s.model, s.plant)}
        if len(wider) == len(together):
            return deepest(*(s.remembered for s in met), *(one.remembered for one in together.values()))
        together = wider
