"""What the syntax tree of a function says about its variables, before anything is translated."""

from __future__ import annotations

import ast
from collections import Counter


def targets(node: ast.AST) -> set[str]:
    """The names that a statement gives a value."""
    places: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        places = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.For):
        places = [node.target]
    found = [part for place in places for part in (place.elts if isinstance(place, ast.Tuple) else [place])]
    return {part.id for part in found if isinstance(part, ast.Name)}


def assignments(statements: list[ast.stmt]) -> Counter[str]:
    """How many statements give each variable a value."""
    found: Counter[str] = Counter()
    pending = list(statements)
    for statement in pending:  # which grows on the way
        for name in targets(statement):
            found[name] += 1
        pending += [*getattr(statement, "body", ()), *getattr(statement, "orelse", ())]
    return found


def loose(tree: ast.AST) -> set[str]:
    """Loop variables that are also used outside of their loops, or set inside them."""
    found: set[str] = set()

    def visit(node: ast.AST, inside: frozenset[str]) -> None:
        if isinstance(node, ast.Name):
            if node.id not in inside:
                found.add(node.id)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            visit(node.iter, inside)
            if node.target.id in inside or node.target.id in assignments(node.body):
                found.add(node.target.id)
            for child in node.body:
                visit(child, inside | {node.target.id})
        else:
            for part in vars(node).values():  # `ast.iter_child_nodes` takes three times as long
                for child in part if isinstance(part, list) else (part,):
                    if isinstance(child, ast.AST):
                        visit(child, inside)

    visit(tree, frozenset())
    return found
