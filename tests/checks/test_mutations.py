"""`check` finds a flipped sign in any one derivative that is emitted, and names the block."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import sympy as sp

from symdual import Model, Scenario, unknown
from symdual.checks.kernels import compare, references

KERNELS = {
    *("dynamics", "linearise", "dynamics_jacobian", "dynamics_hessian", "dynamics_hessians"),
    *("observation", "observation_jacobian", "observation_hessian"),
}


class Mutant(NamedTuple):
    """A source with the right side of one statement negated."""

    kernel: str
    statement: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Negate every right side that is computed: all but the zeros that sums start from and plain reads of arguments."""
    lines = source.split("\n")
    for function in ast.parse(source).body:
        if not isinstance(function, ast.FunctionDef) or function.name not in KERNELS:
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AugAssign)) and not _is_trivial(node.value):
                line, value = lines[node.lineno - 1], node.value
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):  # sine and cosine at once
                    assert isinstance(value, ast.Call)
                    (value,) = value.args
                assert node.lineno == node.end_lineno
                negation = "not " if isinstance(value, (ast.Compare, ast.BoolOp)) else "-"
                shown = line[value.col_offset : value.end_col_offset]
                changed = f"{line[: value.col_offset]}{negation}({shown}){line[value.end_col_offset :]}"
                text = [*lines[: node.lineno - 1], changed, *lines[node.lineno :]]
                yield Mutant(function.name, line.strip(), "\n".join(text))


def _is_trivial(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return value.value == 0.0
    if isinstance(value, ast.Subscript):  # x = z_in[0], p = data[3 + _i], _matrix = hessian_out[_row]
        return ast.unparse(value.value) in ("z_in", "u_in", "data", "hessian_out")
    return ast.unparse(value) == "float(time_index)"


def coordinates(package_: Any) -> list[str]:
    """The names of the columns of (x, theta, u)."""
    names = list(package_.STATES)
    for name, (_, count) in package_.UNKNOWNS.items():
        names += [name] * count
    return names + list(package_.INPUTS)


@pytest.mark.parametrize(
    "zoo_model",
    [
        *("gain", "waves", "network", "polynomial", "scaled", "euler", "time_varying"),
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("product", "nested", "measured")),
    ],
    indirect=True,
)
def test_every_flipped_sign_is_found(zoo_model: Model, interpreted: Callable[..., Any]) -> None:
    expected = references(zoo_model, points=2)
    plain = interpreted(zoo_model)
    source = plain.source
    assert all(result.passed for result in compare(plain, expected))
    names = coordinates(plain)
    count = 0
    for mutant in mutants(source):
        count += 1
        missed = {r.block for r in compare(interpreted(zoo_model, mutant.source), expected) if not r.passed}
        assert missed, f"survived in {mutant.kernel}: {mutant.statement}"
        letter = "h" if mutant.kernel.startswith("observation") else "f"
        assert all(block.split(" by ")[0] == letter for block in missed), (mutant.statement, missed)
        if mutant.statement.startswith(("f_x_out[", "h_x_out[")):  # a single entry: its block is the one that is named
            column = int(mutant.statement.split("]")[0].split(",")[1])
            assert missed == {f"{letter} by {names[column]}"}
    assert count >= 15


def test_the_files_of_a_mutant_fail_one_by_one(interpreted: Callable[..., Any]) -> None:
    """The mutation machinery itself: a statement of a known block is found, negated, and its block is named."""
    x, v, u = sp.symbols("x v u")
    model = Model([x, v], [u], [x * v, v**2 + u], name="known")
    source = interpreted(model).source
    (mutant,) = [
        m for m in mutants(source) if m.kernel == "dynamics_jacobian" and m.statement.startswith("f_x_out[1, 1]")
    ]
    results = compare(interpreted(model, mutant.source), references(model, points=2))
    assert {(r.block, r.oracle) for r in results if not r.passed} == {
        ("f by v", "50 digits"),
        ("f by v", "differences"),
    }


def test_a_row_in_small_units_is_not_hidden_by_one_in_large_units(interpreted: Callable[..., Any]) -> None:
    """Second derivatives of all rows are summed: of x in picometres and y in megapascals, say, none must be lost."""
    x, y, u = sp.symbols("x y u")
    b = unknown("b", 1e12, 1e22)
    model = Model([x, y], [u], [b * x**2 + 1e-12 * u, y / 2 + 1e30 * x**2], name="mixed")
    units: dict[str, Any] = {"start": [1e-12, 1e6], "start_covariance": [1e-26, 1e10], "reference": [1e-12, 1e6]}
    expected = references(model, points=2, scenarios=[Scenario(model, 5, **units, name="units")])
    plain = interpreted(model)
    assert all(result.passed for result in compare(plain, expected))
    found = [m for m in mutants(plain.source) if "hessian" in m.kernel]
    for mutant in found:
        assert not all(r.passed for r in compare(interpreted(model, mutant.source), expected)), mutant.statement
    assert len(found) >= 4
