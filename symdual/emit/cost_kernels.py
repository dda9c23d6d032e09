"""The kernels of a cost that is given by expressions: its terms with their derivatives, at a step and at the end."""

from __future__ import annotations

import sympy as sp

from symdual.derive.branches import derivative, product
from symdual.derive.calculus import Calculus, differentiate
from symdual.derive.derivation import Derivation
from symdual.derive.program import expanded_outputs, values_program
from symdual.emit.kernels import KernelFunction, equations_text, leaf, new_builder, write_jacobian, write_values


def cost_functions(derivation: Derivation) -> tuple[KernelFunction, ...]:
    """Three kernels for the terms of a step, three for those of the end, as far as there are any.

    Terms that are no squares have third derivatives too where the slope of the dual cost asks for them.
    """
    if derivation.objective is None:
        return ()
    objective = derivation.model.objective
    assert objective is not None
    stage, final = derivation.objective.stage, derivation.objective.final
    functions: tuple[KernelFunction, ...] = ()
    turning = not (objective.constraints or derivation.processes)
    if objective.stage:
        functions += _functions(derivation, stage, "stage", derivation.inputs, objective.stage.expressions)
        functions += (_turns(derivation, stage, "stage", derivation.inputs),) * (
            turning and not objective.stage.squares
        )
    if objective.constraints:
        functions += _constraint_functions(derivation, derivation.objective.constraints, objective.constraints)
    if objective.final:
        functions += _functions(derivation, final, "final", (), objective.final.expressions)
        functions += (_turns(derivation, final, "final", ()),) * (turning and not objective.final.squares)
    return functions


def _functions(
    derivation: Derivation,
    calculus: Calculus,
    role: str,
    inputs: tuple[sp.Symbol, ...],
    expressions: tuple[sp.Expr, ...],
) -> tuple[KernelFunction, ...]:
    names = tuple(f"t{i}" for i in range(len(expressions)))
    values = new_builder(derivation, calculus)
    write_values(values, calculus, "terms_out")
    slopes = new_builder(derivation, calculus)
    write_values(slopes, calculus, "terms_out")
    write_jacobian(slopes, calculus, "terms_x_out", derivation.states)
    write_jacobian(slopes, calculus, "terms_u_out", inputs)
    hessians = new_builder(derivation, calculus)
    blocks = (("hessian_xx_out", derivation.states, derivation.states), ("hessian_ux_out", inputs, derivation.states))
    for place, rows, columns in (*blocks, ("uu_out", inputs, inputs)):
        for a, one in enumerate(rows):
            for b, other in enumerate(columns):
                hessians.write(f"{place}[{a}, {b}]", calculus.hessian.entry(one, other))
    when = "a step" if inputs else "the end"
    return (
        leaf(f"{role}_terms", f"The terms of the cost of {when}.", equations_text(names, expressions), values.build()),
        leaf(
            f"{role}_jacobian",
            f"The terms of the cost of {when} with their derivatives by {'state and input' if inputs else 'state'}.",
            ("terms_x_out = dt/dx" + (", terms_u_out = dt/du" if inputs else ""),),
            slopes.build(),
        ),
        leaf(
            f"{role}_hessian",
            f"The second derivatives of costate' t, t the terms of the cost of {when}.",
            ("hessian_xx_out = t_xx" + (", hessian_ux_out = t_ux, uu_out = t_uu" if inputs else ""),),
            hessians.build(),
        ),
    )


def _turns(derivation: Derivation, calculus: Calculus, role: str, inputs: tuple[sp.Symbol, ...]) -> KernelFunction:
    """The slope of tr D H, H the second derivatives of costate' t by v = (x, u), for a symmetric D."""
    variables, terms = (*derivation.states, *inputs), expanded_outputs(calculus.program)
    places = {
        sp.Symbol(f"_joint{i}_{j}", real=True): f"joint_in[{i}, {j}]"
        for i in range(len(variables))
        for j in range(i + 1)
    }
    shares = {sp.Symbol(f"_share{e}", real=True): f"costate[{e}]" for e in range(len(terms))}
    found = dict.fromkeys(variables, sp.S.Zero)
    for share, term in zip(shares, terms, strict=True):
        for symbol, (i, j) in zip(places, _lower(len(variables)), strict=True):
            bend = derivative(derivative(term, variables[i]), variables[j])
            for variable in variables:
                turned = derivative(bend, variable)
                found[variable] += product(share * symbol * (1 if i == j else 2), turned)
    program = values_program(found.values())
    builder = new_builder(derivation, differentiate(program, ()), more=places | shares)
    own = [f"turns_x_out[{i}]" for i in range(len(derivation.states))] + [
        f"turns_u_out[{a}]" for a in range(len(inputs))
    ]
    for place, expression in zip(own, program.outputs, strict=True):
        builder.write(place, expression)
    when = "a step" if inputs else "the end"
    return leaf(
        f"{role}_third_derivatives",
        f"The slope of tr D H, D = joint_in symmetric, H the second derivatives of costate' t of the cost of {when}.",
        ("what is identically zero is not written",),
        builder.build(),
    )


def _lower(size: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(size) for j in range(i + 1)]


def _constraint_functions(
    derivation: Derivation, calculus: Calculus, expressions: tuple[sp.Expr, ...]
) -> tuple[KernelFunction, ...]:
    """The values of constraints, and their slopes by state, input and scalar unknowns."""
    values = new_builder(derivation, calculus)
    write_values(values, calculus, "constraints_out")
    slopes = new_builder(derivation, calculus)
    write_values(slopes, calculus, "constraints_out")
    write_jacobian(slopes, calculus, "constraints_x_out", derivation.states)
    write_jacobian(slopes, calculus, "constraints_u_out", derivation.inputs)
    write_jacobian(slopes, calculus, "constraints_theta_out", derivation.scalars)
    names = tuple(f"g{i}" for i in range(len(expressions)))
    kept = "The constraints, at most zero where they are kept"
    equations = equations_text(names, expressions)
    by = (
        "constraints_x_out = dg/dx, constraints_u_out = dg/du, constraints_theta_out = dg/dtheta, of scalar unknowns",
    )
    return (
        leaf("constraint_values", f"{kept}.", equations, values.build()),
        leaf("constraint_jacobian", f"{kept}, with their slopes.", by, slopes.build()),
    )
