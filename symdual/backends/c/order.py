"""Whether C evaluates an expression in the order of Python: it may take operands and arguments in any order it likes.

That matters where one of them is a call that writes. Python goes from left to right; so does C at `and`, `or` and a
conditional. Anywhere else what stands beside such a call must not read memory: plain variables and constants only.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Set as AbstractSet

_IN_TURN = ast.BoolOp | ast.IfExp  # C has the order of Python here


def is_kept(statement: ast.stmt, writing: AbstractSet[ast.Call]) -> bool:
    """Whether the order does not matter in a statement with these calls that write, or is that of Python."""
    if isinstance(statement, ast.If | ast.While):
        return _in_order([statement.test], writing)
    if isinstance(statement, ast.For):
        return _in_order([statement.iter], writing)
    if isinstance(statement, ast.AugAssign):
        return _in_order([statement.target, statement.value], writing)
    if isinstance(statement, ast.Assign):
        # Python looks at the places after the value
        places = [
            part.slice for target in statement.targets for part in ast.walk(target) if isinstance(part, ast.Subscript)
        ]
        values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
        return all(_in_order([value, *places], writing) for value in values)
    return all(_in_order([part], writing) for part in ast.iter_child_nodes(statement) if isinstance(part, ast.expr))


def _in_order(parts: list[ast.expr], writing: AbstractSet[ast.Call]) -> bool:
    """The same for expressions that C evaluates in any order."""
    for n, part in enumerate(parts):
        if not _writes(part, writing):
            continue
        if any(_reads_memory(other) for other in parts[:n] + parts[n + 1 :]):
            return False
        inner = _operands(part)
        if isinstance(part, _IN_TURN):
            if not all(_in_order([child], writing) for child in inner):
                return False
        elif not _in_order(inner, writing):
            return False
    return True


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return node.args
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _writes(node: ast.AST, writing: AbstractSet[ast.Call]) -> bool:
    return any(part in writing for part in ast.walk(node))


def _reads_memory(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return not _of_library(node.func) or any(map(_reads_memory, node.args))
    if isinstance(node, ast.Attribute):
        return not _of_library(node)
    return isinstance(node, ast.Subscript) or any(map(_reads_memory, _operands(node)))


def _of_library(node: ast.expr) -> bool:
    """Whether a name belongs to Python or to its libraries, not to the package."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id in ("math", "np")
    return isinstance(node, ast.Name) and hasattr(builtins, node.id)
