"""Symbolic code generation for dual control: controllers that learn while they steer.

A model file needs `Model`, `Scenario`, `unknown`, `constant`, `features`, `covariances` and `logistic`; programs use
`generate`, `load`, `check`, `fit`, `validate` and `identify`. Everything is imported when it is first used, so that
`import symdual` and the runtime stay light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from symdual.api import check as check
    from symdual.api import generate as generate
    from symdual.errors import SymdualError as SymdualError
    from symdual.estimation.fit import fit as fit
    from symdual.estimation.identify import identify as identify
    from symdual.estimation.validation import validate as validate
    from symdual.runtime.controller import controller as controller
    from symdual.runtime.loading import load as load
    from symdual.runtime.problem import Belief as Belief
    from symdual.runtime.problem import Problem as Problem
    from symdual.runtime.problem import problem as problem
    from symdual.spec import covariances as covariances
    from symdual.spec import features as features
    from symdual.spec.model import Model as Model
    from symdual.spec.scenario import Scenario as Scenario
    from symdual.spec.symbols import constant as constant
    from symdual.spec.symbols import logistic as logistic
    from symdual.spec.symbols import unknown as unknown

_PLACES = {
    "Belief": "symdual.runtime.problem",
    "Model": "symdual.spec.model",
    "Problem": "symdual.runtime.problem",
    "Scenario": "symdual.spec.scenario",
    "SymdualError": "symdual.errors",
    "check": "symdual.api",
    "constant": "symdual.spec.symbols",
    "controller": "symdual.runtime.controller",
    "covariances": "symdual.spec",
    "features": "symdual.spec",
    "fit": "symdual.estimation.fit",
    "generate": "symdual.api",
    "identify": "symdual.estimation.identify",
    "load": "symdual.runtime.loading",
    "logistic": "symdual.spec.symbols",
    "problem": "symdual.runtime.problem",
    "unknown": "symdual.spec.symbols",
    "validate": "symdual.estimation.validation",
}

__all__ = ["__version__", *_PLACES]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'symdual' has no attribute {name!r}")
    import importlib

    if name in ("covariances", "features"):
        return importlib.import_module(f"symdual.spec.{name}")
    return getattr(importlib.import_module(_PLACES[name]), name)
