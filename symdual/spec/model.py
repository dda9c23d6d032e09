"""`Model`: what a user knows, and does not know, about a system.

x_{k+1} = f(x_k, u_k, theta) + xi_k,      xi ~ N(0, Q)
theta_{k+1} = D theta_k + eta_k,          eta ~ N(0, Xi)
y_k = h(x_k, theta) + gamma_k,            gamma ~ N(0, R)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike

from symdual.common.display import first_few, shown
from symdual.common.errors import ModelError
from symdual.common.named import Given
from symdual.common.numbers import as_semidefinite
from symdual.common.words import spelled
from symdual.spec.content import Content
from symdual.spec.expressions import as_expression
from symdual.spec.fitted import Fitted, Source, read_fit
from symdual.spec.given import (
    checked_bounds,
    checked_drift,
    checked_method,
    checked_outliers,
    checked_state_bounds,
    checked_step,
    checked_substeps,
    checked_transition,
    of_the_same_form,
)
from symdual.spec.mechanics import motion_of
from symdual.spec.names import check_name
from symdual.spec.noise import Noise, in_order, noise_of, refuse
from symdual.spec.past import depths
from symdual.spec.symbols import Constant, FeatureSum, Unknown, one_for_each
from symdual.spec.system import System, remembering

FILTERS = (
    *("extended", "second_order", "iterated", "iterated_second_order"),
    *("recalibrated", "recalibrated_second_order"),
)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Model(System):
    """Dynamics, observation, noise and unknowns of a system, checked and ready for derivation.

    Every array over the unknowns has the order of the file: scalars (`unknown`) first, then families (`features`).
    `print(model)` shows this order. A mapping from names to numbers may replace any such array.

    Args:
        states, inputs: SymPy symbols.
        dynamics: the next state, as a list or a vector in the order of `states` or a mapping from state to expression.
        derivatives: instead of `dynamics`, the time derivative of the state; Jacobians and Hessians are those of the
            discretised step.
        step: the length of a time step for `derivatives`; the input is constant during it.
        method: the integrator for `derivatives`: `"euler"`, `"midpoint"`, `"heun"`, `"rk4"`, or `"radau"` for stiff
            models (`docs/integrators.md`).
        substeps: the number of steps of the integrator in one time step. They are a loop, so the code does not grow
            with them.
        observation: expressions in the states and unknowns; the states themselves by default.
        process_noise: Q, as a number, a diagonal, a matrix or a mapping such as {"speed": 0.1}, with 0 for all other
            states. Entries may be expressions in states, inputs, signals and time.
        measurement_noise: R, in the same way but without inputs. R = 0 is allowed.
        transition: D in theta' = D theta + N(0, Xi), as a number, a diagonal or a matrix, or as a mapping from
            unknowns to numbers; all other unknowns are constant, which is the default.
        drift: Xi, in the same way. An unknown with bounds drifts by its logarithm or logit: 0.01**2 is 1 % a step.
        bounds: mapping from an input or its name to its (lower, upper) bound; None or an infinity leaves a side open.
        state_bounds: the same for states with physical limits, such as the level of a tank: if a step or a substep
            leads beyond a bound, the state stops there.
        time: the symbol for the step number k in time-varying dynamics. In continuous time it is k + 1/2 at the
            middle of a step of `"rk4"`.
        filter: `"extended"` linearises at the mean. `"second_order"` takes mean and covariance to second order, for
            wide priors and exact measurements. `"iterated"` linearises again at the updated mean, including the step
            before. `"iterated_second_order"` does both. `"recalibrated"` takes the slope of a curved measurement
            again at the new mean, and undoes an update that does not help; also as `"recalibrated_second_order"`.
            `docs/beliefs.md` compares them.
        square_root: whether the filter propagates a square root of the covariance, for ill-conditioned problems.
        outliers: the number of deviations, such as 3, beyond which a measured number counts less; None counts all in
            full (`docs/beliefs.md`).
        fitted: the file of `symdual fit`, or its content as a mapping: its numbers replace the priors and the noise
            given here.
        name: the name of the generated package; the model file's name by default.

    >>> x, v, u = sympy.symbols("x v u")
    >>> friction = symdual.unknown("friction", mean=0.3, variance=0.1)
    >>> symdual.Model([x, v], [u], derivatives=[v, u - friction * v], step=0.1, process_noise=1e-3, name="cart")
    <Model cart: states x, v, inputs u, unknowns friction>
    """

    @spelled
    def __init__(
        self,
        states: Sequence[sp.Symbol],
        inputs: Sequence[sp.Symbol],
        dynamics: Sequence[sp.Expr] | Mapping[sp.Symbol, sp.Expr] | None = None,
        *,
        derivatives: Sequence[sp.Expr] | Mapping[sp.Symbol, sp.Expr] | None = None,
        step: float | None = None,
        method: str = "euler",
        substeps: int = 1,
        observation: Sequence[sp.Expr] | None = None,
        process_noise: ArrayLike | sp.Basic | Sequence[sp.Expr] = 0.0,
        measurement_noise: ArrayLike | sp.Basic | Sequence[sp.Expr] = 0.0,
        transition: Given | None = None,
        drift: Given | None = None,
        bounds: Mapping[sp.Symbol | str, tuple[float | None, float | None]] | None = None,
        state_bounds: Mapping[sp.Symbol | str, tuple[float | None, float | None]] | None = None,
        time: sp.Symbol | None = None,
        filter: str = "extended",
        square_root: bool = False,
        outliers: float | None = None,
        fitted: Source | None = None,
        name: str = "",
    ) -> None:
        states, inputs = _symbols(states, "state"), _symbols(inputs, "input")
        if not states:
            raise ModelError("a model needs at least one state")
        if not inputs:
            raise ModelError("a model needs at least one input")
        if (dynamics is None) == (derivatives is None):
            raise ModelError(
                "a model needs either dynamics= (the next state) or derivatives= (with step=), and not both"
            )
        if filter not in FILTERS:
            names = " or ".join(f'"{name}"' for name in FILTERS)
            raise ModelError(f"filter must be {names}, not {filter!r}")
        given = dynamics if derivatives is None else derivatives
        assert given is not None
        kind = "dynamics" if derivatives is None else "derivatives"
        motion = _by_state(given, states, kind)
        measured = states if observation is None else _measured(observation)
        if not measured:
            raise ModelError("the observation is empty; leave it out to observe the states")
        spare = one_for_each({a for e in (*motion, *measured) for a in e.atoms(Unknown)})
        motion, measured = (tuple(e.xreplace(spare) if spare else e for e in part) for part in (motion, measured))
        clock = () if time is None else _symbols([time], "time symbol")
        declared = _declared({"state": states, "input": inputs, "time symbol": clock})
        content = Content(inputs)
        for state, expression in zip(states, motion, strict=True):
            content.add(expression, _entry(kind, state), declared)
        for row, expression in enumerate(measured):
            content.add(expression, f"the observation number {row}", declared)
            _refuse_inputs(expression, inputs, row)
            _refuse_processes(expression, row)
        process_noise = in_order(process_noise, [state.name for state in states], "process_noise")
        seen = [one.name if one in states else f"y{row}" for row, one in enumerate(measured)]
        measurement_noise = in_order(measurement_noise, seen, "measurement_noise")
        noise = noise_of(process_noise, measurement_noise, len(states), len(measured))
        for where, expression in () if noise is None else noise.named:
            refuse(expression, inputs, where)
            content.add(expression, where, declared)
        content.check_names(declared)
        known = None if fitted is None else read_fit(fitted)
        if noise is not None:  # what is drawn has variance 1, and is scaled where it is met
            process_noise, measurement_noise = np.eye(len(states)), np.eye(len(measured))
        if known is not None:
            process_noise = _fitted_noise(known, "process_noise", process_noise, noise)
            measurement_noise = _fitted_noise(known, "measurement_noise", measurement_noise, noise)

        def put(**values: object) -> None:
            for key, value in values.items():
                object.__setattr__(self, key, value)

        put(
            name=check_name(name, "the model") if name else "",
            filter=filter,
            square_root=bool(square_root),
            outliers=checked_outliers(outliers),
            fitted=known,
        )
        put(states=states, inputs=inputs, memory=0, time=clock[0] if clock else None)
        put(unknowns=content.unknowns, families=content.families, constants=content.constants)
        put(dynamics=motion, observation=measured)
        put(step=checked_step(step, derivatives is not None), method=checked_method(method))
        put(substeps=checked_substeps(substeps, derivatives is not None))
        put(process_noise=as_semidefinite(process_noise, len(states), "process_noise"))
        put(measurement_noise=as_semidefinite(measurement_noise, len(measured), "measurement_noise"), noise=noise)
        if known is not None:
            drift = of_the_same_form(known.drift(self.unknown_names), drift)
        places = self.unknown_places
        put(transition=checked_transition(transition, places), drift=checked_drift(drift, places))
        lower, upper = checked_bounds(bounds or {}, inputs, states)
        put(lower=lower, upper=upper, state_bounds=checked_state_bounds(state_bounds or {}, states))
        entries = () if noise is None else noise.expressions
        put(**remembering(self, depths((*motion, *measured, *entries), inputs)).__dict__)
        require_fit_for_processes(self)
        _refuse_motion_of_bounded(self)
        if self.is_implicit and self.bounded_states:
            raise ModelError(f'method="{method}" is not for models with state_bounds: its steps do not stop there')
        if known is not None:
            known.prior(self.unknown_names, *self._own_prior)  # a name that the model does not know is an error

    @classmethod
    def from_mechanics(
        cls,
        equations: Any,
        inputs: Sequence[sp.Expr],
        *,
        values: Mapping[sp.Symbol, float] | None = None,
        step: float,
        **options: Any,
    ) -> Self:
        """A model of the equations of motion of a `KanesMethod` or `LagrangesMethod` of `sympy.physics.mechanics`.

        The states are first the coordinates, then the speeds, under their names; Lagrange's speed of the coordinate
        `q` is `q_rate`. Unknowns may appear anywhere, in masses and forces.

        Args:
            equations: the equations of motion, already formed, in independent coordinates and speeds.
            inputs: symbols or functions of time.
            values: numbers for symbols, such as lengths.
            step: how long the input holds.
            options: all other arguments of a model, in the same symbols and functions of time; the method is `"rk4"`
                by default.

        >>> from sympy.physics.mechanics import LagrangesMethod, dynamicsymbols
        >>> q, F, m = dynamicsymbols("q"), sympy.Symbol("F"), symdual.unknown("m", mean=1.0, variance=0.1)
        >>> spring = LagrangesMethod(m * q.diff() ** 2 / 2 - 2 * q**2 + F * q, [q])
        >>> equations = spring.form_lagranges_equations()
        >>> symdual.Model.from_mechanics(spring, [F], step=0.1, name="spring")
        <Model spring: states q, q_rate, inputs F, unknowns m>
        """
        motion = motion_of(equations, inputs, values or {})
        given = {"method": "rk4"} | {key: motion.translated(value) for key, value in options.items()}
        acting = [motion.symbols[symbol] for symbol in inputs]
        return cls(list(motion.states), acting, derivatives=list(motion.derivatives), step=step, **given)

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self.states), ", ".join(u.name for u in self.inputs)
        own = [name if count == 1 else f"{name} ({count})" for name, (_, count) in self.unknown_places.items()]
        unknowns = f"unknowns {first_few(own)}" if own else "no unknowns"
        return f"<Model {self.name or 'without a name'}: states {names[0]}, inputs {names[1]}, {unknowns}>"

    def _repr_html_(self) -> str:
        """The equations, for notebooks."""
        return str(shown("a model in a notebook", self))


def _symbols(given: Iterable[sp.Symbol], what: str) -> tuple[sp.Symbol, ...]:
    one = f"an {what}" if what[0] in "aeiou" else f"a {what}"
    listed = tuple([given] if isinstance(given, sp.Symbol) else given)
    seen: set[str] = set()
    for symbol in listed:
        if not isinstance(symbol, sp.Symbol):
            raise ModelError(f"{one} must be a SymPy symbol, but {symbol!r} is not")
        if isinstance(symbol, (Unknown, Constant)):
            raise ModelError(f'"{symbol.name}" is an unknown or a constant and cannot be {one} as well')
        check_name(symbol.name, one)
        if symbol.name in seen:
            raise ModelError(f'the {what} "{symbol.name}" is given twice')
        seen.add(symbol.name)
    return listed


def _declared(roles: Mapping[str, tuple[sp.Symbol, ...]]) -> dict[str, sp.Symbol]:
    """The symbols of all roles by name; every name stands for one thing."""
    declared: dict[str, sp.Symbol] = {}
    owner: dict[str, str] = {}
    for role, symbols in roles.items():
        for symbol in symbols:
            if symbol.name in owner:
                raise ModelError(f'the name "{symbol.name}" is given to a {owner[symbol.name]} and to a {role}')
            declared[symbol.name], owner[symbol.name] = symbol, role
    return declared


def _by_state(
    given: Sequence[sp.Expr] | Mapping[sp.Symbol, sp.Expr], states: tuple[sp.Symbol, ...], kind: str
) -> tuple[sp.Expr, ...]:
    if isinstance(given, Mapping):
        for key in given:
            if key not in states:
                raise ModelError(f'{kind} has an entry for "{key}", which is not a state')
        for state in states:
            if state not in given:
                raise ModelError(f'the state "{state.name}" has no {kind}')
        return tuple(as_expression(given[state], _entry(kind, state)) for state in states)
    if isinstance(given, sp.MatrixBase):
        if 1 not in given.shape:
            raise ModelError(f"{kind} is a matrix of {given.rows} x {given.cols}, not a vector")
        given = given.flat()
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise ModelError(
            f"{kind} must be a list with one expression for each state, or a mapping from state to expression"
        )
    listed = tuple(given)
    if len(listed) < len(states):
        raise ModelError(f'the state "{states[len(listed)].name}" has no {kind}')
    if len(listed) > len(states):
        raise ModelError(f"{kind} has {len(listed)} entries for {len(states)} states")
    pairs = zip(listed, states, strict=True)
    return tuple(as_expression(e, _entry(kind, state)) for e, state in pairs)


def _entry(kind: str, state: sp.Symbol) -> str:
    """What messages call the expression of a state."""
    return f'the {kind.removesuffix("s") if kind == "derivatives" else kind} of "{state.name}"'


def _measured(observation: Iterable[sp.Expr]) -> tuple[sp.Expr, ...]:
    if isinstance(observation, sp.MatrixBase):
        observation = observation.flat()
    if not isinstance(observation, Iterable) or isinstance(observation, (str, bytes)):
        raise ModelError("the observation must be a list of expressions")
    return tuple(as_expression(e, f"the observation number {row}") for row, e in enumerate(observation))


def _refuse_inputs(expression: sp.Expr, inputs: tuple[sp.Symbol, ...], row: int) -> None:
    for symbol in inputs:
        if symbol in expression.free_symbols:
            raise ModelError(
                f'the observation number {row} contains the input "{symbol.name}"; y may depend on x and theta, and on '
                f"inputs that were applied before, such as previous({symbol.name})"
            )


def _refuse_processes(expression: sp.Expr, row: int) -> None:
    for part in expression.atoms(FeatureSum):
        if part.family.process is not None:
            raise ModelError(
                f'the observation number {row} contains the Gaussian process "{part.family.name}", which may stand in '
                "the dynamics only"
            )


def require_fit_for_processes(model: System) -> None:
    """Refuse what a belief relative to its prior does not allow: a square root, and a drift that differs by index.

    The drift of a Gaussian process is another process with the same kernel, scaled.
    """
    start = len(model.unknowns)
    for family in model.families:
        for _ in family.weights:
            own = slice(start, start + family.count)
            start += family.count
            if family.process is None:
                continue
            if model.noise is not None:
                raise ModelError(f'noise that depends is not for models with a Gaussian process ("{family.name}")')
            if model.is_implicit:
                raise ModelError(f'method="{model.method}" is not for models with a Gaussian process ("{family.name}")')
            if model.substeps > 1:
                raise ModelError(f'substeps are not for models with a Gaussian process ("{family.name}")')
            if model.square_root:
                raise ModelError(f'square_root=True is not for models with a Gaussian process ("{family.name}")')
            if model.filter.endswith("second_order"):
                raise ModelError(f'filter="{model.filter}" is not for models with a Gaussian process ("{family.name}")')
            for what, value in (("transition", model.transition), ("drift", model.drift)):
                if value is not None and (value.ndim == 2 or np.ptp(value[own]) > 0):
                    raise ModelError(f'{what} must be the same number for all of the Gaussian process "{family.name}"')


def _refuse_motion_of_bounded(model: Model) -> None:
    """Refuse a transition of an unknown with bounds: it would be one of its logarithm, and depend on units."""
    if model.transition is None:
        return
    D = np.diag(model.transition) if model.transition.ndim == 1 else model.transition
    unlike = np.eye(len(D)) != D
    for i, symbol in enumerate(model.unknowns):
        if symbol.transform and (unlike[i].any() or unlike[:, i].any()):
            raise ModelError(
                f'transition moves the unknown "{symbol.name}", which has bounds ({symbol.transform}): such an '
                "unknown may drift, but not decay"
            )


def _fitted_noise(known: Fitted, what: str, own: Any, noise: Noise | None) -> Any:
    """The noise of a fit, which takes the place of numbers only."""
    if what in known.noises and noise is not None:
        raise ModelError(f"the fit has numbers for {what}, where the model has an expression: leave one of them out")
    return known.noises.get(what, own)
