"""Leaves out the imports that a rendered module does not use: which ones it needs depends on the model."""

from __future__ import annotations

import ast
import re

_WIDTH = 110


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


def _statement(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> str:
    texts = [a.name if a.asname is None else f"{a.name} as {a.asname}" for a in names]
    before = "import " if isinstance(node, ast.Import) else f"from {'.' * node.level}{node.module or ''} import "
    line = before + ", ".join(texts)
    if len(line) <= _WIDTH:
        return line + "\n"
    return before + "(\n" + "".join(f"    {text},\n" for text in texts) + ")\n"
