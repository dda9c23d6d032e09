"""Lays kernels out as text: what the template of the kernels is given for each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import indent

from symdual.derive.structure import Structure
from symdual.emit.kernels import KernelFunction
from symdual.emit.steps import Call, Line, Step

_STEP = "    "


def functions_text(functions: Iterable[KernelFunction]) -> str:
    """Kernels one after the other, with two empty lines between them."""
    return "\n\n\n".join(map(function_text, functions))


def function_text(function: KernelFunction) -> str:
    """A kernel with its decorator and its docstring."""
    kernel = function.kernel
    body = [
        _docstring(function),
        *(f"{line.target} = {line.value}" for line in kernel.unpack),
        *(statement(step) for step in kernel.steps),
    ]
    if not kernel.steps:
        body += ["# identically zero", "return"]
    options = "**INNER" if function.name[0] == "_" else "**KERNEL" + ", forceinline=True" * kernel.merged
    head = f"@njit({options})\ndef {function.name}({', '.join(function.arguments)}):"
    return f"{head}\n{indent(chr(10).join(body), _STEP)}"


_HELPER = re.compile(r"(?<![\w.])(_logistic|_matern|_sincos|_power_\d\d)\(")
_WITH_MATH = {"_logistic", "_matern", "_sincos", "_power_01", "_power_02", "_power_11"}
_OWN_OPTIONS = {"_nearest": "ORDERED", "_sincos": "ORDERED"}  # all other helpers are EXACT


def helpers_in(text: str, blocks: bool) -> tuple[str, ...]:
    """The functions of `special` and `elementary` that kernels call; `blocks`: sines or exponentials of many."""
    called = set(_HELPER.findall(text))
    return tuple(sorted(called | ({"_nearest"} if blocks or "_sincos" in called else set())))


def kernel_imports(text: str, helpers: tuple[str, ...], sincos: bool, exp: bool, staged: bool, implicit: bool) -> str:
    """The imports of the kernels: what their text, the helpers, blocks of sines or exponentials, and stages need."""
    options = {"KERNEL", *(_OWN_OPTIONS.get(name, "EXACT") for name in helpers)}
    options |= ({"EXACT"} if sincos or exp else set()) | ({"INNER"} if staged or "**INNER" in text else set())
    lines = ["from numba import njit", "", f"from ..options import {', '.join(sorted(options))}"]
    if staged or sincos or exp or "_sincos" in helpers or "np." in text:
        lines = ["import numpy as np", *lines]
    if implicit or sincos or _WITH_MATH & set(helpers) or "math." in text:
        lines = ["import math", "", *lines]
    return "\n".join(lines)


def statement(step: Step) -> str:
    """A statement of a kernel, not indented."""
    if isinstance(step, Line):
        return f"{step.target} {step.operator} {step.value}"
    if isinstance(step, Call):
        return step.code
    lines = (f"{_STEP}{statement(line)}" for line in step.lines)
    return "\n".join([f"# {step.comment}", f"for _i in range({step.length}):", *lines])


def _docstring(function: KernelFunction) -> str:
    equations = "".join(f"{_STEP}{equation}\n\n" for equation in function.equations)
    about = f"Shapes: {function.shapes}.\nOperations: {function.kernel.operations}."
    return f'"""{function.summary}\n\n{equations}{about}\n"""'


def hessian_text(structure: Structure) -> str:
    """The statements of `dynamics_hessians` that make a matrix of the blocks of one row of f."""
    return indent("\n".join(_blocks(structure)), 2 * _STEP)


def _blocks(s: Structure) -> Iterator[str]:
    """What is not identically zero: pairs of vectors, diagonals, full rows of z, and rows of the inputs."""
    yield "_matrix[:, :] = 0.0"
    if s.npairs:
        product = "left_out[_c, _i] * right_out[_c, _j] + right_out[_c, _i] * left_out[_c, _j]"
        yield f"""\
for _c in range({s.npairs}):
    for _i in range({s.ntheta}):
        for _j in range({s.ntheta}):
            _matrix[{s.nx} + _i, {s.nx} + _j] += {product}"""
    for row, column, count, start in s.hessian_diagonals:
        yield f"for _i in range({count}):\n    _matrix[{row} + _i, {column} + _i] += diagonal_out[{start} + _i]"
        if row != column:
            yield f"    _matrix[{column} + _i, {row} + _i] += diagonal_out[{start} + _i]"
    if s.hessian_core_rows:
        yield f"""\
for _i in {s.hessian_core_rows}:
    for _j in range({s.nz}):
        _matrix[_i, _j] = core_out[_i, _j]
        _matrix[_j, _i] = core_out[_i, _j]"""
    for row in s.hessian_input_rows:
        yield f"""\
for _j in range({s.nz}):
    _matrix[{s.nz} + {row}, _j] = input_out[{row}, _j]
    _matrix[_j, {s.nz} + {row}] = input_out[{row}, _j]"""
    if s.huu_nonzero:
        yield f"""\
for _a in range({s.nu}):
    for _b in range({s.nu}):
        _matrix[{s.nz} + _a, {s.nz} + _b] = uu_out[_a, _b]"""
