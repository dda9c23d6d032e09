"""Which model of a file is meant, and whose scenario says what is known before a recording."""

from __future__ import annotations

from symdual.common.errors import SymdualError, did_you_mean
from symdual.spec.loading import ModelFile
from symdual.spec.scenario import Scenario
from symdual.spec.specification import Specification
from symdual.spec.symbols import Family
from symdual.spec.system import System


def chosen_model(contents: ModelFile, name: str | None, scenario: str | None) -> tuple[Specification, Scenario | None]:
    """The model that is named, or whose scenario is, or the only one that scenarios are about, or the only one.

    With the scenario that is named, or its only one; None if it has none.
    """
    if scenario is not None and scenario not in contents.scenarios:
        raise SymdualError(f'{contents.place} has no scenario "{scenario}"{did_you_mean(scenario, contents.scenarios)}')
    if name is not None and name not in contents.models:
        raise SymdualError(f'{contents.place} has no model "{name}"{did_you_mean(name, contents.models)}')
    if name is None and scenario is not None:
        name = contents.scenarios[scenario].model.name
    if name is None:
        candidates = sorted({s.model.name for s in contents.scenarios.values()} or contents.models)
        if len(candidates) > 1:
            raise SymdualError(f"{contents.place} has several models; name one of {', '.join(candidates)}")
        name = candidates[0]
    return contents.specifications[name], _chosen_scenario(contents, name, scenario)


def _chosen_scenario(contents: ModelFile, model: str, name: str | None) -> Scenario | None:
    own = {n: s for n, s in contents.scenarios.items() if s.model.name == model}
    if name is not None and name not in own:
        raise SymdualError(f'{contents.place} has no scenario "{name}" of {model}{did_you_mean(name, own)}')
    if name is None and len(own) > 1:
        raise SymdualError(f"{contents.place} has several scenarios; name one of {', '.join(sorted(own))}")
    return own[name] if name is not None else next(iter(own.values()), None)


def processes_of(model: System) -> tuple[Family, ...]:
    """The Gaussian processes of a model."""
    return tuple(family for family in model.families if family.process is not None)
