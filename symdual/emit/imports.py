"""Leaves out what a rendered module does not need: what it needs depends on the model.

So templates need not ask: they import from modules that only some packages have, call what these offer, and give names
to what only some models use.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Collection, Iterator

_WIDTH = 110
_IMPORT = re.compile(r"^from \.(\w+) import ([^\n(]+)\n", re.M)


def without_absent_modules(source: str, modules: Collection[str]) -> str:
    """Return the module without imports from modules that its package does not have, and without what they would do.

    These are lines that only call a function of such a module, or add what it returns: `tune(k, desk)`,
    `trace += poison(task)`. A name that is used in any other way stays; the linter then misses its import.
    """
    absent = [statement for statement in _IMPORT.finditer(source) if statement[1] not in modules]
    names = {alias.split(" as ")[-1].strip() for statement in absent for alias in statement[2].split(",")}
    if not names:
        return source
    call = re.compile(rf"^ +(?:[^\n=]+ \+= )?(?:{'|'.join(sorted(names))})\([^\n]*\)\n", re.M)
    for statement in absent:
        source = source.replace(statement[0], "", 1)
    return call.sub(lambda line: "" if _only_calls(line[0], names) else line[0], source)


def _only_calls(line: str, names: Collection[str]) -> bool:
    """Whether a line does nothing but call one of the functions, or add what it returns."""
    (statement,) = ast.parse(line.strip()).body
    if not isinstance(statement, (ast.Expr, ast.AugAssign)) or not isinstance(statement.value, ast.Call):
        return False
    return isinstance(statement.value.func, ast.Name) and statement.value.func.id in names


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
