"""Section 6: the printed settings against the model files that run the experiments, and what a run needs at all."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from symdual.paper.case import Case, Convention, Coverage, Derivation, Meant, Printed, Supplies
from symdual.paper.derivations import draws
from symdual.paper.derivations.gaussians import beside
from symdual.paper.machine import counted
from symdual.paper.matrices import Matrix, diagonal, root
from symdual.spec import features
from symdual.spec.loading import load_model_file
from symdual.spec.model import Model
from symdual.spec.scenario import Scenario
from symdual.spec.symbols import logistic, unknown

MODELS = Path(__file__).parent.parent / "models"

NAMES = {
    "Model": {"process_noise": "Q", "measurement_noise": "R", "drift": "Xi"},
    "Scenario": {
        "horizon": "T",
        "state_cost": "W",
        "input_cost": "U",
        "reference": "r",
        "start": "x0",
        "start_covariance": "Sigma0",
        "truth": "theta_true",
        "bonus": "tau",
    },
    "fourier": {"count": "features", "lengthscale": "lengthscale", "amplitude": "amplitude"},
    "logistic": {"locations": "b", "variance": "prior_v", "slope_variance": "prior_w"},
    "unknown": {"variance": "prior"},
}
"""What the arguments of a model file are called in the paper; other arguments are no constants of the paper."""

WORDS = {
    "Q": "process noise",
    "R": "measurement noise",
    "Sigma0": "covariance of the first state",
    "U": "control cost",
    "Xi": "drift of the parameters",
    "lengthscale": "of the kernel",
    "prior": "of theta",
    "prior_v": "of v",
    "prior_w": "of w",
    "tau": "weight of the bonus",
    "x0": "first state",
}

ALWAYS = frozenset({"start_covariance"})
"""Arguments that stand for a number of the paper (Eq. 13) even when nobody gives them."""

_CALLED: dict[str, Callable[..., Any]] = {
    "Model": Model,
    "Scenario": Scenario,
    "fourier": features.fourier,
    "logistic": features.logistic,
    "unknown": unknown,
}


@cache
def scenario(model: str) -> Scenario:
    """The scenario of an experiment's model file."""
    (only,) = load_model_file(MODELS / f"{model}.py").scenarios.values()
    return only


def needed(model: str) -> frozenset[str]:
    """The constants of a run: the arguments that the model file gives, and those that have a number by default."""
    found = set()
    for call in ast.walk(ast.parse((MODELS / f"{model}.py").read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and (name := _function(call.func)) in NAMES:
            given = {keyword.arg for keyword in call.keywords}
            defaults = {
                key
                for key, value in inspect.signature(_CALLED[name]).parameters.items()
                if type(value.default) is float
            }
            found |= {symbol for key, symbol in NAMES[name].items() if key in given | defaults | ALWAYS}
    return frozenset(found)


def _function(called: ast.expr) -> str:
    """The name of a function of the package; `logistic(...)` alone is the logistic function, not the family."""
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) and called.id != "logistic" else ""


def toy_needs() -> frozenset[str]:
    """The constants on which L of the toy depends: two steps of the cautious law, with its belief, written out."""
    names = "a b prior_mean prior_variance Q W U x0"
    a, b, mean, variance, q, w, u, x = sp.symbols(names)
    cost: sp.Expr = w * x**2
    for noise in sp.symbols("xi0 xi1"):
        applied = -w * a * mean * x / (u + w * (variance + mean**2))
        seen = b * applied + noise
        x = a * x + seen
        mean, variance = (
            (variance * applied * seen + mean * q) / (applied**2 * variance + q),
            variance * q / (applied**2 * variance + q),
        )
        cost += w * x**2 + u * applied**2
    return frozenset(str(s) for s in cost.free_symbols if not str(s).startswith("xi")) | {"T", "R", "tau"}


def last_step(schedule: Any) -> int:
    """The last step of a printed schedule."""
    return max(int(last) for _, last, _ in schedule)


def spaced(ends: Matrix, count: int) -> Any:
    """So many numbers at equal distances."""
    return np.linspace(ends.array[0, 0], ends.array[1, 0], count)


def _supplies(names: Callable[[], frozenset[str]], lines: dict[str, Printed]) -> Iterator[Case]:
    tools = {"matrix": Matrix, "N": beside, "last": last_step, "spaced": spaced, "exp": np.exp}
    yield Case("all constants of a run", {**tools, **lines}, Supplies(names(), WORDS))


def _setting(model: str, lines: dict[str, Printed]) -> Derivation:
    return Derivation(
        f"The arguments that the model file of this experiment ({model}.py) has to give, against all constants that the"
        " section prints.",
        partial(_supplies, partial(needed, model), lines),
    )


def _schedule(model: str, kind: str) -> Iterator[Case]:
    own = scenario(model)
    values = own.reference if kind == "reference" else own.state_cost
    yield Case(f"steps 0 to {own.horizon}", {}, Coverage(0, own.horizon, tuple(map(_nested, values))))


def _nested(array: Any) -> Any:
    return tuple(map(_nested, array)) if np.ndim(array) else float(array)


def _constant(wanted: Callable[[], Any]) -> Derivation:
    return Derivation(
        "As the experiment is run.",
        lambda: iter([Case("the model file", {"matrix": Matrix, "N": beside}, Meant(wanted()))]),
    )


def _noise(model: str) -> Derivation:
    def levels() -> dict[str, float]:
        own = scenario(model).model
        return {"Q": float(own.process_noise[0, 0]), "R": float(own.measurement_noise[0, 0])}

    return _constant(levels)


def _prior() -> Matrix:
    plant = scenario("schedule").plant
    variances = np.asarray(plant.prior_covariance)
    return beside(Matrix(plant.prior_mean), Matrix(np.diag(variances) if variances.ndim == 1 else variances))


def _velocity(model: str) -> Any:
    """The true dynamics of the velocity, written out."""
    return scenario(model).plant.dynamics[1].replace(logistic, lambda a: 1 / (1 + sp.exp(-a)))


def _feature(model: str, which: int) -> Iterator[Case]:
    """The factor of theta^i in the velocity of the plant."""
    plant = scenario(model).plant
    factor = sp.diff(_velocity(model), plant.unknowns[which - 1])
    for x in (-3.0, 0.5, 4.0):
        yield Case(f"x = {x}", {"x": x, "exp": np.exp}, Meant(float(factor.subs(plant.states[0], x))))


def _cart(noisy: bool) -> Iterator[Case]:
    """x' of the plant of the model file, with the disturbance of Section 2 or without it."""
    plant, velocity = scenario("schedule").plant, _velocity("schedule")
    for seed in (1, 2):
        rng = draws.source(91, seed)
        x, u, xi, theta = (draws.matrix(rng, size) for size in (2, 1, 2, 2))
        symbols = (*plant.states, *plant.inputs, *plant.unknowns)
        numbers = dict(zip(symbols, np.vstack([x.array, u.array, theta.array])[:, 0], strict=True))
        values = [float(sp.diff(velocity, factor).subs(numbers)) for factor in plant.unknowns]
        after = np.array([float(part.subs(numbers)) for part in (plant.dynamics[0], velocity)])
        known = {
            "x": x,
            "u": u,
            "theta": counted(list(theta.array[:, 0])),
            "varphi": lambda i, at, values=values: values[i - 1],
            "matrix": Matrix,
        }
        yield Case(f"draw {seed}", known, Matrix(after + xi.array[:, 0] if noisy else after))


def _bonus() -> Iterator[Case]:
    for p in (1, 3):
        cov = draws.covariance(draws.source(90, p), p)
        symbols = {"tau": 0.7, "Stt": cov, "root": root, "diag": diagonal}
        yield Case(f"{p} parameter(s)", symbols, Meant(Matrix(0.7 * np.linalg.eigvalsh(cov.array).sum())))


_FEATURE = "The factor of this parameter in the plant of the model file."
_SCHEDULE = "Every time step has to be given once, and as the experiment is run."
_SAME_SYSTEM = {"prior": Printed("6.2.prior"), "truth": Printed("6.2.truth")}

DERIVATIONS = {
    "6.bonus": Derivation("tau times the trace of the covariance, from its eigenvalues.", _bonus),
    "6.1.setting": Derivation(
        "The constants on which L depends when two steps of the cautious law are written out with SymPy.",
        partial(_supplies, toy_needs, {"tau": Printed("6.1.bonus-weight")}),
        remark="The control cost is called Lambda here and U elsewhere.",
    ),
    "6.1.bonus-weight": _constant(lambda: scenario("toy").bonus),
    "6.2.system": Derivation(
        "The plant of the model file, with the disturbance of Section 2.",
        partial(_cart, True),
        conventions=(Convention("the disturbance xi_k of Section 2 is not written out", partial(_cart, False)),),
    ),
    "6.2.prior": _constant(_prior),
    "6.2.truth": _constant(lambda: Matrix(scenario("schedule").truth)),
    "6.2.feature-1": Derivation(_FEATURE, partial(_feature, "schedule", 1)),
    "6.2.feature-2": Derivation(_FEATURE, partial(_feature, "schedule", 2)),
    "6.2.noise": _noise("schedule"),
    "6.2.reference": Derivation(_SCHEDULE, partial(_schedule, "schedule", "reference")),
    "6.2.weights": Derivation(_SCHEDULE, partial(_schedule, "schedule", "weights")),
    "6.2.control-cost": _constant(lambda: float(scenario("schedule").input_cost[0, 0, 0])),
    "6.2.basis": _constant(lambda: len(scenario("schedule").model.prior_mean)),
    "6.2.setting": _setting(
        "schedule",
        {
            "noise": Printed("6.2.noise"),
            "reference": Printed("6.2.reference"),
            "weights": Printed("6.2.weights"),
            "price": Printed("6.2.control-cost"),
            "count": Printed("6.2.basis"),
            "kernel": Printed("5.2.1.square-exponential", ("x", "x2", "lam")),
            **_SAME_SYSTEM,
        },
    ),
    "6.3.noise": _noise("relevance"),
    "6.3.reference": Derivation(_SCHEDULE, partial(_schedule, "relevance", "reference")),
    "6.3.weights": Derivation(_SCHEDULE, partial(_schedule, "relevance", "weights")),
    "6.3.units": _constant(lambda: len(scenario("relevance").model.families[0].data[0].values)),
    "6.3.bonus-weight": _constant(lambda: scenario("relevance").bonus),
    "6.3.setting": _setting(
        "relevance",
        {
            "noise": Printed("6.3.noise"),
            "reference": Printed("6.3.reference"),
            "weights": Printed("6.3.weights"),
            "count": Printed("6.3.units"),
            "places": Printed("6.3.locations"),
            "bonus": Printed("6.3.bonus-weight"),
            **_SAME_SYSTEM,
        },
    ),
    "6.4.feature-1": Derivation(_FEATURE, partial(_feature, "drift", 1)),
    "6.4.feature-2": Derivation(_FEATURE, partial(_feature, "drift", 2)),
    "6.4.truth": _constant(lambda: Matrix(scenario("drift").truth)),
    "6.4.reference": Derivation(_SCHEDULE, partial(_schedule, "drift", "reference")),
    "6.4.weights": Derivation(_SCHEDULE, partial(_schedule, "drift", "weights")),
    "6.4.setting": _setting(
        "drift",
        {
            "reference": Printed("6.4.reference"),
            "weights": Printed("6.4.weights"),
            "truth": Printed("6.4.truth"),
        },
    ),
}
