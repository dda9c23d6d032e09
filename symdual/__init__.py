"""Symbolic code generation for dual control: controllers that learn while they steer.

Model files are made of

    Model, Scenario                          a system, and what is to be done with it
    unknown, constant, signal, logistic      symbols and functions in its equations
    previous, column                         an input some steps ago, a signal from a file
    features, covariances                    families of unknown weights, and kernels of unknown functions

and programs use them, or a model file in their place, with

    generate, check, load                    write packages, check them, and load them
    problem, controller, load_controller     a scenario with its package, and a controller that is asked for inputs
    simulate, sweep, open_results            episodes by the thousand, in memory or in files
    run_foreign, GymPlant                    a plant that is not a model
    replay, read_recording                   recorded data through the filter
    fit, validate, identify                  from recordings to priors and noise, and what can be learned at all
    plot, explain                            figures of episodes, plans, decisions and unknown functions
    evaluate, posterior                      derivatives of a model, and what a belief says about an unknown function

What they return is a Problem, a Belief, a Controller, a Simulation of Episodes, or Results; Settings and Options
are further options. In examples `problem` is that of the model file `toy` (symdual/paper/models/toy.py),
and `folder` is a folder that can be written.
Everything is imported when it is first used, so that `import symdual` and the runtime stay light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from symdual.api import check as check
    from symdual.api import controller as controller
    from symdual.api import explain as explain
    from symdual.api import generate as generate
    from symdual.api import load as load
    from symdual.api import load_controller as load_controller
    from symdual.api import problem as problem
    from symdual.api import replay as replay
    from symdual.api import simulate as simulate
    from symdual.api import sweep as sweep
    from symdual.common.errors import DoubtWarning as DoubtWarning
    from symdual.common.errors import SymdualError as SymdualError
    from symdual.common.errors import SymdualWarning as SymdualWarning
    from symdual.identification.fit import fit as fit
    from symdual.identification.identify import identify as identify
    from symdual.identification.validate import validate as validate
    from symdual.report import plot as plot
    from symdual.runtime import evaluate as evaluate
    from symdual.runtime.belief import Belief as Belief
    from symdual.runtime.closed_loop import Episodes as Episodes
    from symdual.runtime.closed_loop import Settings as Settings
    from symdual.runtime.controller import Controller as Controller
    from symdual.runtime.options import Options as Options
    from symdual.runtime.plants import GymPlant as GymPlant
    from symdual.runtime.plants import run_foreign as run_foreign
    from symdual.runtime.posterior import posterior as posterior
    from symdual.runtime.problem import Problem as Problem
    from symdual.runtime.replay import read_recording as read_recording
    from symdual.runtime.results import Results as Results
    from symdual.runtime.results import open_results as open_results
    from symdual.runtime.simulation import Simulation as Simulation
    from symdual.spec import covariances as covariances
    from symdual.spec import features as features
    from symdual.spec.model import Model as Model
    from symdual.spec.past import previous as previous
    from symdual.spec.scenario import Scenario as Scenario
    from symdual.spec.signals import column as column
    from symdual.spec.signals import signal as signal
    from symdual.spec.symbols import constant as constant
    from symdual.spec.symbols import logistic as logistic
    from symdual.spec.symbols import unknown as unknown

_PLACES = {
    "Belief": "symdual.runtime.belief",
    "Controller": "symdual.runtime.controller",
    "Episodes": "symdual.runtime.closed_loop",
    "Options": "symdual.runtime.options",
    "GymPlant": "symdual.runtime.plants",
    "Model": "symdual.spec.model",
    "Problem": "symdual.runtime.problem",
    "Results": "symdual.runtime.results",
    "Scenario": "symdual.spec.scenario",
    "Settings": "symdual.runtime.closed_loop",
    "Simulation": "symdual.runtime.simulation",
    "SymdualError": "symdual.common.errors",
    "SymdualWarning": "symdual.common.errors",
    "DoubtWarning": "symdual.common.errors",
    "check": "symdual.api",
    "column": "symdual.spec.signals",
    "constant": "symdual.spec.symbols",
    "controller": "symdual.api",
    "covariances": "symdual.spec",
    "evaluate": "symdual.runtime",
    "explain": "symdual.api",
    "features": "symdual.spec",
    "fit": "symdual.identification.fit",
    "generate": "symdual.api",
    "identify": "symdual.identification.identify",
    "load": "symdual.api",
    "load_controller": "symdual.api",
    "logistic": "symdual.spec.symbols",
    "open_results": "symdual.runtime.results",
    "plot": "symdual.report",
    "posterior": "symdual.runtime.posterior",
    "previous": "symdual.spec.past",
    "problem": "symdual.api",
    "read_recording": "symdual.runtime.replay",
    "replay": "symdual.api",
    "run_foreign": "symdual.runtime.plants",
    "signal": "symdual.spec.signals",
    "simulate": "symdual.api",
    "sweep": "symdual.api",
    "unknown": "symdual.spec.symbols",
    "validate": "symdual.identification.validate",
}
_MODULES = ("covariances", "evaluate", "features", "plot")

__all__ = ["__version__", *_PLACES]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'symdual' has no attribute {name!r}")
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"{_PLACES[name]}.{name}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """All public names, imported or not, so that `help` and completion show them and nothing else."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
