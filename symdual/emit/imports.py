"""Leaves out what a rendered module does not need: what it needs depends on the model.

So templates need not ask: they import from modules that only some packages have, call what these offer, and give names
to what only some models use.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection

_WIDTH = 110
_IMPORT = re.compile(r"^from \.(\w+) import ([^\n(]+)\n", re.M)
_STATEMENT = re.compile(r"^((?:from [\w.]+ )?import )(\([^)]*\)|[^\n(]+)\n", re.M)
_FUNCTION = re.compile(r"^(?= *def )", re.M)
_WORD = re.compile(r'"""[\s\S]*?"""|"[^"\n]*"|#[^\n]*|(?<![\w.])(f"[^"\n]*"|[^\W\d]\w*)')
_CHAIN = r"\w+(?:\.\w+|\[[^][\n]*\])*\.\w+"
_FIELD = re.compile(rf"^( +)(\w+) = (?:{_CHAIN}|np\.zeros\((?:[^()\n]|\([^()\n]*\))*\))\n", re.M)


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
    """Return the module without lines that give a field a name which nobody uses, and without unused imports.

    Names are words outside of plain texts and comments that do not follow a dot. Parsing would say the same, and take
    three times as long as all the rest of rendering a package.
    """
    start, *functions = _FUNCTION.split(source)
    used, kept = set(_names(_STATEMENT.sub("", start))), [start]
    for function in functions:
        text, names = _without_unused_fields(function)
        kept.append(text)
        used |= names
    body = "".join(kept)
    return re.sub(r"\n{4,}", "\n\n\n", _STATEMENT.sub(lambda found: _reduced(found, used), body))


def _without_unused_fields(function: str) -> tuple[str, set[str]]:
    """A function without its lines `name = record.field` and `name = np.zeros(...)` where nobody uses the name.

    The second result are the names that are left.
    """
    uses = Counter(_names(function))
    depth = len(function) - len(function.lstrip()) + 4
    idle = [line for line in _FIELD.finditer(function) if len(line[1]) == depth and uses[line[2]] == 1]
    if not idle:
        return function, set(uses)
    for line in reversed(idle):
        function = function[: line.start()] + function[line.end() :]
    return function, set(uses - Counter(name for line in idle for name in _names(line[0])))


def _names(code: str) -> list[str]:
    """The words of a code that may be names, with those that are formatted in a text."""
    words = _WORD.findall(code)
    return words + [name for text in words if text.startswith('f"') for name in re.findall(r"\w+", text)]


def _reduced(statement: re.Match[str], used: Collection[str]) -> str:
    """An import with the used names alone; empty where there are none."""
    before, names = statement[1], re.split(r",\s*", statement[2].strip("()\n, "))
    kept = [name.strip() for name in names if name.split(" as ")[-1].strip() in used]
    if len(kept) == len(names):
        return statement[0]
    line = before + ", ".join(kept)
    if len(line) <= _WIDTH:
        return line + "\n" if kept else ""
    return before + "(\n" + "".join(f"    {name},\n" for name in kept) + ")\n"
