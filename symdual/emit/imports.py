"""Leaves out what a rendered module does not need: what it needs depends on the model.

So templates need not ask: they import from modules that only some packages have, call what these offer, and give names
to what only some models use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

_WIDTH = 110


def without_absent_modules(source: str, modules: Collection[str]) -> str:
    """Return the module without imports from modules that its package does not have, and without what they would do.

    These are statements that only call a function of such a module, or add what it returns: `tune(k, desk)`,
    `trace += poison(task)`. A name that is used in any other way stays; the linter then misses its import.
    """
    body = ast.parse(source)
    absent = [n for n in body.body if isinstance(n, ast.ImportFrom) and n.level == 1 and n.module]
    absent = [node for node in absent if node.module not in modules]
    names = {alias.asname or alias.name for node in absent for alias in node.names}
    gone = [*absent, *(node for node in ast.walk(body) if isinstance(node, ast.stmt) and _only_calls(node, names))]
    lines = source.splitlines(keepends=True)
    for node in gone:
        lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "".join(lines)


def _only_calls(statement: ast.stmt, names: Collection[str]) -> bool:
    """Whether a statement does nothing but call one of the functions, or add what it returns."""
    if not isinstance(statement, (ast.Expr, ast.AugAssign)) or not isinstance(statement.value, ast.Call):
        return False
    return isinstance(statement.value.func, ast.Name) and statement.value.func.id in names


def without_unused_imports(source: str) -> str:
    """Return the module with every import statement reduced to the names that occur in it."""
    tree = ast.parse(source)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    lines = source.splitlines(keepends=True)
    for node in reversed(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            kept = [a for a in node.names if (a.asname or a.name) in used]
            if len(kept) < len(node.names):
                lines[node.lineno - 1 : node.end_lineno] = [_statement(node, kept)] if kept else []
    return re.sub(r"\n{4,}", "\n\n\n", "".join(lines))


def without_unused_fields(source: str) -> str:
    """Return the module without lines `name = record.field` and `name = np.zeros(...)` that nobody uses."""
    lines = source.splitlines(keepends=True)
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            loaded = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            for node in function.body:
                if isinstance(node, ast.Assign) and _only_names(node.value):
                    (target,) = node.targets
                    if isinstance(target, ast.Name) and target.id not in loaded:
                        lines[node.lineno - 1] = ""
    return "".join(lines)


def _only_names(value: ast.expr) -> bool:
    """Whether an expression does nothing but give something a name."""
    return isinstance(value, ast.Attribute) or (
        isinstance(value, ast.Call) and ast.unparse(value.func) == "np.zeros" and value.lineno == value.end_lineno
    )


def _statement(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> str:
    texts = [a.name if a.asname is None else f"{a.name} as {a.asname}" for a in names]
    before = "import " if isinstance(node, ast.Import) else f"from {'.' * node.level}{node.module or ''} import "
    line = before + ", ".join(texts)
    if len(line) <= _WIDTH:
        return line + "\n"
    return before + "(\n" + "".join(f"    {text},\n" for text in texts) + ")\n"
