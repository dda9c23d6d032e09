"""Leaves out what a rendered module does not use, imports and names of fields: what it needs depends on the model."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator

_WIDTH = 110


def without_unused(source: str) -> str:
    """Return the module without lines that give a field a name which nobody uses, and without unused imports."""
    tree = ast.parse(source)
    lines = _without_unused_fields(source, tree)
    used = _used("".join(lines))
    for node in reversed(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            kept = [a for a in node.names if (a.asname or a.name) in used]
            if len(kept) < len(node.names):
                lines[node.lineno - 1 : node.end_lineno] = [_statement(node, kept)] if kept else []
    return re.sub(r"\n{4,}", "\n\n\n", "".join(lines))


def _without_unused_fields(source: str, tree: ast.Module) -> list[str]:
    """The lines of a module, without the texts `name = record.field` and `name = np.zeros(...)` that nobody uses."""
    lines = source.splitlines(keepends=True)
    for function, table in _functions(tree, symtable.symtable(source, "module", "exec")):
        for node in function.body:
            if isinstance(node, ast.Assign) and _only_names(node.value):
                (target,) = node.targets
                if isinstance(target, ast.Name) and not table.lookup(target.id).is_referenced():
                    lines[node.lineno - 1] = ""
    return lines


def _functions(
    owner: ast.Module | ast.ClassDef, table: symtable.SymbolTable
) -> Iterator[tuple[ast.FunctionDef, symtable.SymbolTable]]:
    """Functions and methods with their symbols, which the compiler finds sooner than a walk through their trees."""
    inner = {child.get_name(): child for child in table.get_children()}
    for node in owner.body:
        if isinstance(node, ast.FunctionDef):
            yield node, inner[node.name]
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, inner[node.name])


def _used(source: str) -> set[str]:
    """The names that a module uses."""
    tables, used = [symtable.symtable(source, "module", "exec")], set[str]()
    for table in tables:
        used |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
        tables += table.get_children()
    return used


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
