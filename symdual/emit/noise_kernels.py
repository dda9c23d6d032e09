"""The kernels of noise that depends: Q(x, u) and R(x), and the slopes of their weighted entries."""

from __future__ import annotations

import sympy as sp

from symdual.derive.calculus import Calculus
from symdual.derive.derivation import Derivation
from symdual.emit.kernels import KernelFunction, equations_text, leaf, new_builder
from symdual.spec.noise import lower, places


def noise_functions(derivation: Derivation) -> tuple[KernelFunction, ...]:
    """Two kernels for the noise of a step and two for that of a measurement, where noise depends on anything."""
    noise, derived = derivation.model.noise, derivation.noise
    if noise is None or derived is None:
        return ()
    q, r = lower(noise.process), lower(noise.measurement)
    return (
        *_functions(derivation, derived.process, "process_noise", "Q", q, derivation.inputs),
        *_functions(derivation, derived.measurement, "measurement_noise", "R", r, ()),
    )


def _functions(
    derivation: Derivation,
    calculus: Calculus,
    name: str,
    letter: str,
    expressions: tuple[sp.Expr, ...],
    inputs: tuple[sp.Symbol, ...],
) -> tuple[KernelFunction, ...]:
    size = len(derivation.model.states if letter == "Q" else derivation.model.observation)
    where = places(size)
    values = new_builder(derivation, calculus)
    for (i, j), entry in zip(where, calculus.program.outputs, strict=True):
        if i == j:
            values.write(f"noise_out[{i}, {i}]", entry, always=True)
        else:
            values.write(f"noise_out[{i}, {j}]", entry)
            values.write(f"noise_out[{j}, {i}]", entry)
    slopes = new_builder(derivation, calculus)
    for place, variables in (("noise_x_out", derivation.states), ("noise_u_out", inputs)):
        for a, variable in enumerate(variables):
            terms = [lam * calculus.jacobian(e, variable) for e, lam in enumerate(calculus.costate)]
            slopes.write(f"{place}[{a}]", sp.Add(*terms))
    by = "state and input" if inputs else "state"
    shown = tuple(f"{letter}[{i}, {j}]" for i, j in where)
    return (
        leaf(
            name,
            f"The covariance of the noise of a {'step' if inputs else 'measurement'}; what is identically zero beside "
            "the diagonal is not written.",
            _equations(shown, expressions),
            values.build(),
        ),
        leaf(
            f"{name}_gradient",
            f"The slope of costate' q by {by}, q the entries of {letter} on and below its diagonal, row by row.",
            (f"q = ({', '.join(shown)})",),
            slopes.build(),
        ),
    )


def _equations(names: tuple[str, ...], expressions: tuple[sp.Expr, ...]) -> tuple[str, ...]:
    """The entries that are not zero."""
    kept = {
        name: e if e.free_symbols else sp.Symbol(f"{float(e):g}") for name, e in zip(names, expressions, strict=True)
    }
    kept = {name: e for name, e in kept.items() if str(e) != "0"}
    return equations_text(tuple(kept), tuple(kept.values()))
