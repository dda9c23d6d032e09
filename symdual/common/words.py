"""Arguments by name that a function does not have: a sentence that names those that it has, and the one that was meant.

Python's own error would name the function in which the word was missed, which need not be one that the user called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from symdual.common.errors import SymdualError, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

#: what others call things that have another name here
_ELSEWHERE = {
    **dict.fromkeys(("target", "goal", "setpoint", "set_point", "ref"), "reference"),
    **dict.fromkeys(("Q", "W", "state_weight", "state_weights"), "state_cost"),
    **dict.fromkeys(("R", "U", "input_weight", "input_weights", "control_cost"), "input_cost"),
    **dict.fromkeys(("N", "T", "steps", "length"), "horizon"),
    **dict.fromkeys(("x0", "initial_state", "initial"), "start"),
    **dict.fromkeys(("theta", "parameters", "true_parameters"), "truth"),
    **dict.fromkeys(("limits", "input_bounds"), "bounds"),
    **dict.fromkeys(("dt", "sample_time", "timestep"), "step"),
    **dict.fromkeys(("outputs", "measurements", "measurement", "output"), "observation"),
    **dict.fromkeys(("ode", "rhs"), "derivatives"),
    **dict.fromkeys(("episodes", "n", "count"), "runs"),
    **dict.fromkeys(("controls", "actions"), "inputs"),
}


class ArgumentError(SymdualError, TypeError):
    """A call with an argument that does not exist."""


def refuse_unknown(called: str, given: Iterable[str], function: Callable[..., Any], *more: str) -> None:
    """Raise where a word that was given to what is `called` so is none of `more`, nor of the function behind it."""
    known = [name for name in inspect.signature(function).parameters if name != "self"] + list(more)
    for word in given:
        if word not in known:
            meant = _ELSEWHERE.get(word)
            hint = f'; did you mean "{meant}"?' if meant in known else did_you_mean(word, known)
            raise ArgumentError(f'{called} has no argument "{word}", only {", ".join(known)}{hint}') from None


def spelled(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse arguments by name that it does not have, in a sentence."""
    called = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> R:
        try:
            return function(*given, **named)
        except TypeError:
            refuse_unknown(called, named, function)
            raise

    return checked
